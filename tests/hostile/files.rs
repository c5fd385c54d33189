//! Directories: every way to leave them.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use brine_kit::files::set_mode;
use brine_kit::wat::wasm;
use rustix::fs::{CWD, FileType, Mode};

use crate::asks::NOTHING;
use crate::guests;
use crate::rig::{AT_ONCE, Gets, Rig, fails, hostile, returns, text};

fn out() -> Gets {
    fails("not-permitted")
}

fn code(code: &str) -> Gets {
    fails(code)
}

/// Starts a minion that grants `{dir}/ro` and `{dir}/rw`. The attacks' target is `{dir}/secret`.
async fn start() -> Rig {
    let granted = NOTHING.replace("filesystem: {}", "filesystem: {\"{dir}/ro\": ro, \"{dir}/rw\": rw}");
    let rig = Rig::start(&format!("  modules:\n    hostile: {granted}\n")).await;
    let dir = &rig.dir;
    for name in ["ro", "rw", "ro/sub", "rw/sub", "outside"] {
        std::fs::create_dir(dir.join(name)).unwrap();
        set_mode(dir.join(name), 0o755);
    }
    everyones(&dir.join("rw"));
    everyones(&dir.join("rw/sub"));
    std::fs::write(dir.join("secret"), "secret").unwrap();
    std::fs::write(dir.join("outside/secret"), "secret").unwrap();
    std::fs::write(dir.join("ro/inside"), "inside").unwrap();
    std::fs::write(dir.join("rw/inside"), "inside").unwrap();
    everyones(&dir.join("rw/inside"));
    symlink("../secret", dir.join("ro/link")).unwrap();
    symlink(dir.join("secret"), dir.join("ro/absolute")).unwrap();
    symlink("/", dir.join("ro/root")).unwrap();
    symlink("../outside", dir.join("ro/dirlink")).unwrap();
    symlink("loop", dir.join("ro/loop")).unwrap();
    symlink("/proc/self/root", dir.join("ro/procroot")).unwrap();
    let fifo = dir.join("ro/fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    symlink("/dev/zero", dir.join("ro/device")).unwrap();
    // A hard link in a granted directory is part of that directory.
    std::fs::hard_link(dir.join("secret"), dir.join("ro/hard")).unwrap();
    rig.install("hostile", &hostile()).await;
    rig
}

fn everyones(path: &Path) {
    set_mode(path, 0o777);
}

#[tokio::test(flavor = "multi_thread")]
async fn ways_out_of_a_directory() {
    let rig = start().await;
    let (ro, rw) = (rig.dir.join("ro"), rig.dir.join("rw"));
    let (ro, rw) = (ro.to_str().unwrap(), rw.to_str().unwrap());
    let secret = rig.dir.join("secret");
    let secret = secret.to_str().unwrap();
    for (op, root, path, other, gets) in [
        ("read", ro, "inside", "", returns("inside")),
        ("read", ro, "../secret", "", out()),
        ("read", ro, "sub/../../secret", "", out()),
        ("read", ro, "sub/../inside", "", returns("inside")),
        ("read", ro, "./../ro/../secret", "", out()),
        ("read", ro, secret, "", out()),
        ("read", ro, "/etc/passwd", "", out()),
        ("read", ro, "//etc/passwd", "", out()),
        ("read", ro, "link", "", out()),
        ("read", ro, "absolute", "", out()),
        ("read", ro, "root/etc/passwd", "", out()),
        ("read", ro, "dirlink/secret", "", out()),
        ("read", ro, "dirlink/../secret", "", out()),
        ("read", ro, "procroot/etc/passwd", "", out()),
        ("read", ro, "loop", "", code("loop")),
        ("read", ro, "inside/", "", code("not-directory")),
        ("read", ro, "link/", "", out()),
        ("read-nofollow", ro, "link", "", code("loop")),
        ("read", ro, "inside\0/../../secret", "", code("invalid")),
        ("read", ro, "", "", code("no-entry")),
        // Opening must neither block on a FIFO nor read endlessly.
        ("read", ro, "fifo", "", out()),
        ("read", ro, "device", "", out()),
        ("read", ro, "hard", "", returns("secret")),
        ("write", ro, "hard", "x", out()),
        ("stat", ro, "../secret", "", out()),
        ("stat", ro, "link", "", out()),
        ("list", ro, "..", "", out()),
        ("list", ro, "root", "", out()),
        ("list", ro, "dirlink", "", out()),
        ("readlink", ro, "../ro/link", "", out()),
        // Read-only directories stay unchanged, whatever the operation.
        ("write", ro, "inside", "x", out()),
        ("create", ro, "new", "x", out()),
        ("truncate", ro, "inside", "", out()),
        ("mkdir", ro, "new", "", out()),
        ("rmdir", ro, "sub", "", out()),
        ("unlink", ro, "inside", "", out()),
        ("rename", ro, "inside", "moved", out()),
        ("symlink", ro, "new", "inside", out()),
        ("link", ro, "new", "inside", out()),
        ("mutate", ro, "sub", "new", out()),
        ("grow", ro, "inside", "", out()),
        // Writes stay inside like reads.
        ("write", rw, "inside", "inside", returns("6 bytes")),
        ("write", rw, "../secret", "x", out()),
        ("create", rw, "../new", "x", out()),
        ("mkdir", rw, "../new", "", out()),
        ("rename", rw, "inside", "../moved", out()),
        ("rename", rw, "../secret", "mine", out()),
        ("unlink", rw, "../secret", "", out()),
        ("rmdir", rw, "../outside", "", out()),
        ("link", rw, "hard", "../secret", out()),
        ("link-follow", rw, "hard", "../ro/link", code("invalid")),
        // A symbolic link may have any target, but following it does not lead out. Other programs that follow it are
        // the owner's concern, as with any file.
        ("symlink", rw, "made", secret, out()),
        ("symlink", rw, "made", "../secret", returns("done")),
        ("read", rw, "made", "", out()),
        ("write", rw, "made", "x", out()),
        ("truncate", rw, "made", "x", out()),
        // The largest possible sparse file: it occupies no disk space, but a copy of it would.
        (
            "grow",
            rw,
            "inside",
            "",
            fails("hostile.file was stopped: its limit of 256 MiB written to files is used up; …"),
        ),
    ] {
        let args = vec![text(op), text(root), text(path), text(other)];
        println!("{op} {path} {other}");
        rig.attack("hostile.file", args, AT_ONCE, &gets).await;
    }
    assert_eq!(std::fs::read_to_string(rig.dir.join("secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_to_string(rig.dir.join("ro/inside")).unwrap(), "inside");
    let gets = fails(format!(
        "{secret} is in no directory that was granted to module hostile; the owner of this host grants it by this line under \
         sandbox: modules: in the minion's configuration: hostile: {{…filesystem: {{…{ro}: ro…}}…}}"
    ));
    rig.attack("hostile.stat", vec![text(secret), true.into()], AT_ONCE, &gets).await;
    for path in ["/etc/shadow", "/proc/self/root/etc/shadow", "../secret", ""] {
        rig.attack(
            "hostile.stat",
            vec![text(path), true.into()],
            AT_ONCE,
            &fails("…is in no directory that was granted…"),
        )
        .await;
    }
    for path in ["link", "absolute", "root", "../secret", "sub/../../secret", "procroot/etc/shadow"] {
        let path = format!("{ro}/{path}");
        rig.attack(
            "hostile.stat",
            vec![text(&path), true.into()],
            AT_ONCE,
            &fails("…is in no directory that was granted…"),
        )
        .await;
    }
    // The number of open files is bounded.
    rig.attack(
        "hostile.handles",
        vec![text(ro), text("inside"), 1_000_000.into()],
        AT_ONCE,
        &fails("hostile.handles was stopped: its limit of 100 open files is used up"),
    )
    .await;
    rig.end().await;
}

/// Read-only directories within writable ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_narrower_directory_holds() {
    let granted = "filesystem: {\"{dir}/outer\": rw, \"{dir}/outer/mid/inner\": ro}";
    let granted = NOTHING.replace("filesystem: {}", granted);
    let rig = Rig::start(&format!("  modules:\n    hostile: {granted}\n")).await;
    let outer = rig.dir.join("outer");
    for name in ["", "mid", "mid/inner", "mid/inner/sub", "spare"] {
        std::fs::create_dir(outer.join(name)).unwrap();
        everyones(&outer.join(name));
    }
    for name in ["mid/inner/file", "own"] {
        std::fs::write(outer.join(name), "kept").unwrap();
        everyones(&outer.join(name));
    }
    symlink("mid/inner/file", outer.join("link")).unwrap();
    symlink("mid", outer.join("way")).unwrap();
    rig.install("hostile", &hostile()).await;
    let root = outer.to_str().unwrap();
    for (op, path, other, gets) in [
        ("read", "mid/inner/file", "", returns("kept")),
        ("write", "mid/inner/file", "x", out()),
        ("write", "link", "x", out()),
        ("write", "way/inner/file", "x", out()),
        ("truncate", "spare/../mid/inner/file", "", out()),
        ("grow", "mid/inner/file", "", out()),
        ("create", "mid/inner/new", "x", out()),
        ("mkdir", "mid/inner/new", "", out()),
        ("mutate", "mid/inner", "new", out()),
        ("mutate", "way/inner/sub", "new", out()),
        ("unlink", "mid/inner/file", "", out()),
        ("rmdir", "mid/inner/sub", "", out()),
        ("symlink", "mid/inner/new", "file", out()),
        ("link", "linked", "mid/inner/file", out()),
        ("link", "mid/inner/new", "own", out()),
        ("rename", "mid/inner/file", "taken", out()),
        ("rename", "own", "mid/inner/new", out()),
        ("rename", "mid/inner", "taken", out()),
        ("rename", "mid", "taken", out()),
        ("rename", "spare", "mid", out()),
        ("rmdir", "mid", "", out()),
        ("write", "own", "mine", returns("4 bytes")),
        ("mkdir", "mid/made", "", returns("done")),
        ("rename", "mid/made", "made", returns("done")),
    ] {
        let args = vec![text(op), text(root), text(path), text(other)];
        println!("{op} {path} {other}");
        rig.attack("hostile.file", args, AT_ONCE, &gets).await;
    }
    let inner = outer.join("mid/inner");
    assert_eq!(std::fs::read_to_string(inner.join("file")).unwrap(), "kept");
    assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 2);
    rig.end().await;
}

/// A file and a directory that may be changed, in a directory that may only be read: their names are that directory's.
#[tokio::test(flavor = "multi_thread")]
async fn names_in_a_narrower_directory_hold() {
    let granted = "filesystem: {\"{dir}/outer\": rw, \"{dir}/outer/inner\": ro, \"{dir}/outer/inner/conf\": rw, \"{dir}/outer/inner/own\": rw}";
    let granted = NOTHING.replace("filesystem: {}", granted);
    let rig = Rig::start(&format!("  modules:\n    hostile: {granted}\n")).await;
    let outer = rig.dir.join("outer");
    for name in ["", "inner", "inner/own", "spare"] {
        std::fs::create_dir(outer.join(name)).unwrap();
        everyones(&outer.join(name));
    }
    std::fs::write(outer.join("inner/conf"), "kept").unwrap();
    everyones(&outer.join("inner/conf"));
    symlink("/etc/passwd", outer.join("link")).unwrap();
    rig.install("hostile", &hostile()).await;
    let root = outer.to_str().unwrap();
    for (op, path, other, gets) in [
        ("rename", "link", "inner/conf", out()),
        ("rename", "inner/conf", "taken", out()),
        ("unlink", "inner/conf", "", out()),
        ("link", "linked", "inner/conf", out()),
        ("rename", "inner/own", "taken", out()),
        ("rename", "spare", "inner/own", out()),
        ("rmdir", "inner/own", "", out()),
        ("write", "inner/conf", "mine", returns("4 bytes")),
        ("create", "inner/own/new", "x", returns("1 bytes")),
        ("rename", "inner/own/new", "inner/own/newer", returns("done")),
    ] {
        let args = vec![text(op), text(root), text(path), text(other)];
        println!("{op} {path} {other}");
        rig.attack("hostile.file", args, AT_ONCE, &gets).await;
    }
    assert_eq!(std::fs::read_to_string(outer.join("inner/conf")).unwrap(), "mine");
    rig.end().await;
}

/// A directory that cannot be opened does not affect the others, and becomes available when it can.
#[tokio::test(flavor = "multi_thread")]
async fn directories_that_are_left_out() {
    let granted = "filesystem: {\"{dir}/there\": ro, \"{dir}/missing\": ro, \"{dir}/link\": rw, \"{dir}/pipe\": ro, \"{dir}/closed\": ro}";
    let granted = NOTHING.replace("filesystem: {}", granted);
    let rig = Rig::start(&format!("  modules:\n    hostile: {granted}\n")).await;
    let dir = &rig.dir;
    let make = |name: &str| {
        std::fs::create_dir(dir.join(name)).unwrap();
        std::fs::write(dir.join(name).join("inside"), name).unwrap();
        set_mode(dir.join(name), 0o755);
    };
    ["there", "other", "closed"].into_iter().for_each(make);
    symlink("other", dir.join("link")).unwrap();
    // A regular file would be granted by itself.
    rustix::fs::mknodat(CWD, dir.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    // Matters if the executor is not root.
    let closed = |mode| set_mode(dir.join("closed"), mode);
    closed(0o700);
    rig.install("hostile", &hostile()).await;
    let read = async |name: &str, gets: &Gets| {
        let args = vec![text("read"), text(dir.join(name).to_str().unwrap()), text("inside"), text("")];
        rig.attack("hostile.file", args, AT_ONCE, gets).await;
    };
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    for _ in 0..8 {
        read("there", &returns("there")).await;
        let left_out = |name: &str, why: &str| {
            fails(format!("no directory {0}; {0} was granted and is left out for now: {why}", path(name)))
        };
        read("missing", &left_out("missing", "No such file or directory (os error 2)")).await;
        read("pipe", &left_out("pipe", "Not a directory (os error 20)")).await;
        read("link", &left_out("link", "a part of its path is a symbolic link")).await;
    }
    let link = path("link");
    let told = format!(
        "{link}/inside cannot be seen: {link} was granted and is left out for now: a part of its path is a symbolic link"
    );
    rig.attack("hostile.stat", vec![text(&format!("{link}/inside")), true.into()], AT_ONCE, &fails(told)).await;
    std::fs::remove_file(dir.join("link")).unwrap();
    std::fs::remove_file(dir.join("pipe")).unwrap();
    ["missing", "link", "pipe"].into_iter().for_each(make);
    closed(0o755);
    for name in ["there", "missing", "link", "pipe", "closed"] {
        read(name, &returns(name)).await;
    }
    // Another directory replaces it.
    std::fs::rename(dir.join("there"), dir.join("old")).unwrap();
    make("there");
    read("there", &returns("there")).await;
    rig.end().await;
}

/// Each way of writing and of creating a name counts. Beyond the limit the job ends with the configuration line that
/// raises it.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_a_budget_of_what_it_writes_and_makes() {
    let granted = NOTHING.replace("filesystem: {}", "filesystem: {\"{dir}/rw\": rw}");
    let rig =
        Rig::start(&format!("  limits: {{written: 5, new_files: 0}}\n  modules:\n    hostile: {granted}\n")).await;
    let rw = rig.dir.join("rw");
    std::fs::create_dir(&rw).unwrap();
    everyones(&rw);
    std::fs::write(rw.join("inside"), "inside").unwrap();
    everyones(&rw.join("inside"));
    rig.install("hostile", &hostile()).await;
    let raised = "the owner of this host raises it in the entry of hostile under sandbox: modules: in the minion's configuration, as in hostile: \
                  {limits: ";
    let over = |limit: &str, to: &str| {
        fails(format!("hostile.file was stopped: its limit of {limit} is used up; {raised}{{{to}}}}}"))
    };
    let written = || over("5 bytes written to files", "written: 10");
    let made = || over("0 new files", "new_files: 10000");
    for (op, path, other, gets) in [
        ("write", "inside", "short", returns("5 bytes")),
        ("write", "inside", "longer", written()),
        ("grow", "inside", "", written()),
        ("create", "new", "", made()),
        ("mkdir", "new", "", made()),
        ("symlink", "new", "inside", made()),
        ("link", "new", "inside", made()),
        ("read", "inside", "", returns("shorte")),
    ] {
        let args = vec![text(op), text(rw.to_str().unwrap()), text(path), text(other)];
        println!("{op} {path} {other}");
        rig.attack("hostile.file", args, AT_ONCE, &gets).await;
    }
    assert_eq!(std::fs::read_dir(&rw).unwrap().count(), 1);
    rig.end().await;
}

/// Content that is handed over and put nowhere is on the disk all the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_staged_counts_as_written() {
    let rig = Rig::start("  limits: {written: 5MiB}\n  modules:\n    staging: {changes: {}}\n").await;
    rig.install("staging", &wasm(guests::staging())).await;
    let over = "staging.run was stopped: its limit of 5 MiB written to files is used up; …";
    let outcome = rig.run("staging.run", vec![]).await;
    rig.got("staging.run", &outcome, &fails(over));
    rig.end().await;
}

/// While another process swaps a directory for a link that leads out, nothing outside is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_race_of_renames() {
    let rig = start().await;
    let ro = rig.dir.join("ro");
    std::fs::create_dir(ro.join("a")).unwrap();
    set_mode(ro.join("a"), 0o755);
    std::fs::write(ro.join("a/secret"), "inside").unwrap();
    symlink("../outside", ro.join("b")).unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let swapping = std::thread::spawn({
        let (a, b) = (ro.join("a"), ro.join("b"));
        move || {
            let mut swaps = 0;
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                let here = rustix::fs::CWD;
                rustix::fs::renameat_with(here, &a, here, &b, rustix::fs::RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    let args = vec![text(ro.to_str().unwrap()), text("a/secret"), 5_000.into()];
    let sandbox = std::sync::Arc::clone(rig.sandbox());
    let race = async move { sandbox.run(crate::rig::job("hostile.race"), "hostile.race", args, Vec::new()).await };
    let outcome = rig.beside("a race", Duration::from_secs(20), race).await;
    drop(stop);
    println!("{} swaps: {}", swapping.join().unwrap(), crate::rig::shown(&outcome.value));
    rig.got("a race", &outcome, &returns("… inside, … refused"));
    rig.end().await;
}
