//! Modules in four languages, built as their authors build them with `salt-module build`, served by a master and called
//! by `salt`.
//!
//! The first run fetches and runs three compilers, which takes minutes. The results are kept in `languages/` in the
//! target folder, by the content of their inputs, and so is the minion's compiled code.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod build;
mod document;
mod engines;
mod recordings;
mod reports;
mod templates;
mod trouble;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_kit::files::set_mode;
use brine_tests::compiled::COMPILED;
use brine_tests::salt::{Kind, Master, Minion};

/// The compiler of a development build is several times slower than the shipped one, and other tests run beside this
/// one. The default of 60 s of CPU time may be too little here for an interpreter.
const COMPILE: &str = "compile: {cpu: 600s, wall: 900s}";

/// Compiled code that no test used for this long is not kept.
const UNUSED: Duration = Duration::from_hours(14 * 24);

/// Starts a master and a minion that has the compiled code of earlier tests.
fn start(modules: &str) -> (Master, Minion) {
    let master = Master::start("");
    let config = format!("sandbox:\n  {COMPILE}\n  limits: {{wall: 15m}}\n  modules: {modules}");
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, &config);
    copy_code(&code(), &minion.path(COMPILED));
    master.accept(&mut minion);
    (master, minion)
}

/// Returns the folder of compiled code.
fn code() -> PathBuf {
    build::folder().join("code")
}

/// Keeps the compiled code for the next test.
fn keep(minion: &Minion) {
    copy_code(&minion.path(COMPILED), &code());
    for entry in fs::read_dir(code()).unwrap().flatten() {
        let modified = entry.metadata().and_then(|file| file.modified()).unwrap();
        if modified.elapsed().is_ok_and(|age| age > UNUSED) {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Copies compiled code to a folder, beside what is there, with the modes that the minion requires.
fn copy_code(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    set_mode(to, 0o700);
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let copy = to.join(entry.file_name());
        fs::copy(entry.path(), &copy).unwrap();
        set_mode(&copy, 0o600);
    }
}
