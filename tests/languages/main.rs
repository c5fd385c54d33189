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
use std::path::PathBuf;
use std::time::Duration;

use brine_tests::compiled::{self, COMPILED};
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
    fs::create_dir_all(code()).unwrap();
    compiled::copy(&code(), &minion.path(COMPILED)).unwrap();
    master.accept(&mut minion);
    (master, minion)
}

/// Returns the folder of compiled code.
fn code() -> PathBuf {
    build::folder().join("code")
}

/// Keeps the compiled code for the next test.
fn keep(minion: &Minion) {
    compiled::copy(&minion.path(COMPILED), &code()).unwrap();
    for entry in fs::read_dir(code()).unwrap().flatten() {
        // Another test may be removing it.
        let modified = entry.metadata().and_then(|file| file.modified());
        if modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > UNUSED)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
