//! Modules in four languages, made as their authors make them: `salt-module build` in each folder; served by a master, called by
//! `salt`.
//!
//! From nothing this fetches three compilers and runs them, which takes minutes. What it makes is kept in the target folder's
//! `languages/`, by the content of all that goes into it, and so is the code that the minion's compiler makes of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod build;
mod document;
mod reports;
mod templates;
mod trouble;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brine_tests::salt::{Kind, Master, Minion};

/// A development build's compiler is several times slower than the one that is shipped, and other tests run beside this one: the
/// default, 60 s of CPU, may be too little for an interpreter here.
const COMPILE: &str = "compile: {cpu: 600s, wall: 900s}";

/// A master and a minion that keeps what its compiler makes from one run of the tests to the next.
fn start(kept: &str, modules: &str) -> (Master, Minion) {
    let master = Master::start("");
    let config = format!("sandbox:\n  {COMPILE}\n  limits: {{wall: 15m}}\n  modules: {modules}");
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, &config);
    copy_code(&build::folder().join(kept), &minion.path("cache/sandbox"));
    let events = master.events();
    minion.up();
    events.wait("web1 to wait for acceptance", |tag, data| tag == "salt/auth" && data["act"] == "pend");
    master.command("salt-key", &["-y", "-a", "web1"]).exits(0);
    events.wait_tag("salt/minion/web1/start");
    (master, minion)
}

/// For the next run.
fn keep(kept: &str, minion: &Minion) {
    copy_code(&minion.path("cache/sandbox"), &build::folder().join(kept));
}

/// Copies compiled code to a folder that has nothing else in it afterwards, with the modes that the minion insists on.
fn copy_code(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let copy = to.join(entry.file_name());
        fs::copy(entry.path(), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
    }
}
