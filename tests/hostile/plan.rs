//! Jobs with `test=True`: whatever a module tries, nothing changes, and the return says what it would have done.

use std::path::Path;

use brine_kit::files::set_mode;
use brine_protocol::value::{Value, map};
use brine_sandbox::{JobContext, JobOutcome};

use crate::asks::NOTHING;
use crate::rig::{Rig, hostile, hostile_as, job, shown, text, texts};

/// Starts a minion that grants the module everything that could change something, and the module `other` programs.
async fn start() -> Rig {
    let granted = NOTHING
        .replace(
            "process: []",
            "process: {programs: any, looks: [\"/bin/ls **\", \"/bin/cat {dir}/rw/*\"], env: any, cwd: any}",
        )
        .replace("filesystem: {}", "filesystem: {\"{dir}/rw\": rw, \"{dir}/ro\": ro}")
        .replace("changes: {}", "changes: {\"{dir}/rw\": rw}")
        .replace("network: []", "network: [\"127.0.0.1:*\"]")
        .replace("functions: []", "functions: any")
        .replace("files: []", "files: any")
        .replace("events: []", "events: any")
        .replace("mine: []", "mine: any");
    let rig = Rig::start(&format!("  modules:\n    hostile: {granted}\n    other: {granted}\n")).await;
    for name in ["rw", "ro", "rw/sub"] {
        std::fs::create_dir(rig.dir.join(name)).unwrap();
        set_mode(rig.dir.join(name), 0o777);
    }
    std::fs::write(rig.dir.join("rw/file"), "content").unwrap();
    set_mode(rig.dir.join("rw/file"), 0o666);
    rig.install("hostile", &hostile()).await;
    rig.install("other", &hostile_as("other")).await;
    rig
}

async fn planned(rig: &Rig, fun: &str, args: Vec<Value>) -> JobOutcome {
    let context = JobContext { test: true, ..job(fun) };
    rig.sandbox().run(context, fun, args, Vec::new()).await
}

/// All names, kinds, modes, sizes and times below a directory.
fn tree(dir: &Path, all: &mut Vec<String>) {
    use std::os::unix::fs::MetadataExt;
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let (mode, size, times) = (meta.mode(), meta.size(), (meta.mtime(), meta.mtime_nsec(), meta.ctime_nsec()));
        all.push(format!("{} {mode:o} {size} {times:?}", path.display()));
        if meta.is_dir() {
            tree(&path, all);
        }
    }
}

fn entries(outcome: &JobOutcome) -> Vec<String> {
    let plan = outcome.plan.as_ref().expect("a job with test=True has a plan");
    plan.iter().map(|entry| format!("{}: {}", shown(&entry["fun"]), shown(&entry["would"]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_changes_in_test_mode() {
    attack(false).await;
}

/// The variable that says to this program, started once more, that its executors are to have no second wall.
const ONE_WALL: &str = "BRINE_HOSTILE_ONE_WALL";

/// The same on a kernel without landlock and seccomp: the instance and the broker are enough.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test's own program, again")]
fn nothing_changes_in_test_mode_with_the_first_wall_alone() {
    if std::env::var_os(ONE_WALL).is_some() {
        take_the_second_wall();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(attack(true));
        return;
    }
    let name = "plan::nothing_changes_in_test_mode_with_the_first_wall_alone";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(ONE_WALL, "1")
        .output()
        .unwrap();
    let said = [child.stdout, child.stderr].map(|out| String::from_utf8_lossy(&out).into_owned()).concat();
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

/// From now on, this process and those that it starts have a kernel that knows neither landlock nor seccomp.
fn take_the_second_wall() {
    use seccompiler::{SeccompAction, SeccompFilter};
    let missing = [
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_add_rule,
        libc::SYS_landlock_restrict_self,
        libc::SYS_seccomp,
    ];
    let rules = missing.into_iter().map(|call| (call, Vec::new())).collect();
    let action = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap();
    let filter: seccompiler::BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter_all_threads(&filter).unwrap();
}

async fn attack(one_wall: bool) {
    let rig = start().await;
    if one_wall {
        for (wall, expect) in [("landlock", Value::from(0)), ("seccomp", Value::from(false))] {
            let outcome = rig.run("grains.get", vec![text(&format!("sandbox:walls:{wall}"))]).await;
            assert_eq!(outcome.value, expect, "the wall {wall} stands");
        }
    }
    let rw = rig.dir.join("rw").to_str().unwrap().to_owned();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut before = Vec::new();
    tree(&rig.dir.join("rw"), &mut before);

    let file = |op: &str, path: &str, other: &str| ("hostile.file", vec![text(op), text(&rw), text(path), text(other)]);
    let run = |argv: &[&str]| ("hostile.run", vec![texts(argv)]);
    // What a module that never heard of test mode comes to, and the words with which it is stopped.
    for ((fun, args), would) in [
        (run(&["/bin/touch", &format!("{rw}/x")]), format!("would run: /bin/touch {rw}/x")),
        (run(&["rm", "-rf", &rw]), format!("would run: rm -rf {rw}")),
        (run(&["/bin/sh", "-c", "/bin/ls; rm x"]), "would run: /bin/sh -c '/bin/ls; rm x'".to_owned()),
        (run(&["/bin/cat", "/etc/passwd"]), "would run: /bin/cat /etc/passwd".to_owned()),
        (run(&["/bin/cat", &format!("{rw}/../ro/x")]), format!("would run: /bin/cat {rw}/../ro/x")),
        // What is no word of the command line could make another program of it. `any` in the grant names none of it.
        (
            ("hostile.run", vec![texts(&["/bin/ls"]), Value::Nil, map([("LD_PRELOAD", format!("{rw}/file"))])]),
            "would run: /bin/ls".to_owned(),
        ),
        (("hostile.run", vec![texts(&["/bin/ls"]), text(&rw)]), "would run: /bin/ls".to_owned()),
        (
            ("hostile.run", [vec![texts(&["/bin/ls"])], vec![Value::Nil; 8], vec![text("input")]].concat()),
            "would run: /bin/ls".to_owned(),
        ),
        (file("write", "file", "x"), format!("would write: {rw}/file")),
        (file("create", "new", "x"), format!("would write: {rw}/new")),
        (file("truncate", "file", ""), format!("would write: {rw}/file")),
        (file("mkdir", "new", ""), format!("would write: {rw}/new")),
        (file("rmdir", "sub", ""), format!("would write: {rw}/sub")),
        (file("unlink", "file", ""), format!("would write: {rw}/file")),
        (file("rename", "file", "moved"), format!("would write: {rw}/moved")),
        (file("symlink", "new", "file"), format!("would write: {rw}/new")),
        (file("link", "new", "file"), format!("would write: {rw}/new")),
        (file("grow", "file", ""), format!("would write: {rw}/file")),
        (
            ("hostile.http", vec![text(&format!("http://127.0.0.1:{port}/"))]),
            format!("would send: GET http://127.0.0.1:{port}/"),
        ),
        // Another module's function is in the same job.
        (("hostile.call", vec![text("other.fire"), text("sly/tag")]), String::new()),
    ] {
        let outcome = planned(&rig, fun, args.clone()).await;
        let said = shown(&outcome.value);
        let what = format!("{fun} {args:?}: {said}");
        if would.is_empty() {
            assert_eq!(entries(&outcome), ["other.fire: fire the event sly/tag"], "{what}");
            continue;
        }
        assert!(!outcome.success && said.ends_with(&format!("in test mode it {would}")), "{what}, not {would}");
        assert_eq!(entries(&outcome), [format!("{fun}: {}", would.trim_start_matches("would "))], "{what}");
    }
    // What is answered as if it had been done.
    let outcome = planned(&rig, "hostile.sly", vec![text(&rw)]).await;
    assert_eq!(
        entries(&outcome)[..7],
        [
            format!("hostile.sly: write: {rw}/put (1 bytes)"),
            format!("hostile.sly: remove: {rw}/file"),
            format!("hostile.sly: set permissions: {rw}/file (mode 0777)"),
            "hostile.sly: fire the event sly/tag".to_owned(),
            "hostile.sly: publish sly to the mine".to_owned(),
            "hostile.sly: send the master a file as sly".to_owned(),
            "hostile.sly: end the job 20260101000000000000".to_owned(),
        ],
        "{:?}",
        outcome.value
    );
    assert!(entries(&outcome)[7].starts_with("other.run: run: "), "{:?}", entries(&outcome));
    // What looks.
    for ((fun, args), expect) in [
        (file("read", "file", ""), "content"),
        (file("list", "", ""), "no-entry"),
        (run(&["/bin/cat", &format!("{rw}/file")]), "0: content"),
        (("hostile.change", vec![text("read"), text(&format!("{rw}/file"))]), "content"),
        (("hostile.change", vec![text("look"), text(&format!("{rw}/file"))]), "Kind::Regular 666 7"),
    ] {
        let outcome = planned(&rig, fun, args).await;
        assert_eq!(shown(&outcome.value), expect, "{fun}");
        assert_eq!(entries(&outcome), [""; 0], "{fun}");
    }
    // A probe: it looks where it can change nothing, or says why it cannot.
    for (script, expect) in [
        (format!("cat {rw}/file"), "Some(0): content"),
        (format!("{{ echo x > {rw}/file; }} 2>/dev/null"), "Some(2): "),
        (format!("rm -rf {rw} 2>/dev/null"), "Some(1): "),
    ] {
        let outcome = planned(&rig, "hostile.probe", vec![text(&script)]).await;
        let said = shown(&outcome.value);
        let unable = said.starts_with("unable: a probe needs ") || said.starts_with("unable: this kernel has no ");
        assert!(if one_wall { unable } else { said == expect || unable }, "{script}: {said}");
        assert_eq!(entries(&outcome), [""; 0], "{script}");
    }
    for op in ["connect", "bind", "listen", "udp"] {
        let outcome = planned(&rig, "hostile.socket", vec![text(op), text("127.0.0.1"), port.into()]).await;
        assert!(!outcome.success, "{op}: {outcome:?}");
    }

    let mut after = Vec::new();
    tree(&rig.dir.join("rw"), &mut after);
    assert_eq!(after, before);
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "it was connected to");
    // The attempts are real: outside of test mode they do something, and have no plan.
    let outcome = rig.run("hostile.change", vec![text("put"), text(&format!("{rw}/file")), text("new")]).await;
    assert_eq!((shown(&outcome.value).as_str(), outcome.plan), ("Kind::Regular 666 7 -> Kind::Regular 666 3", None));
    let outcome = rig.run("hostile.run", vec![texts(&["/bin/touch", &format!("{rw}/touched")])]).await;
    assert!(outcome.success && rig.dir.join("rw/touched").exists(), "{outcome:?}");
    let outcome = rig.run("hostile.probe", vec![text(&format!("echo x > {rw}/probed"))]).await;
    assert!(outcome.success && rig.dir.join("rw/probed").exists(), "{outcome:?}");
    // The memory is not compared: there are two more executors now, one that may write and one that may not.
    rig.sandbox().shutdown().await;
}
