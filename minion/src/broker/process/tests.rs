//! With real programs of the machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{Caller, Grants, HostError, JobContext, Names, ProcessGrant, ProcessOp, ProcessRun, Sha256Hex};

use super::Processes;

const ANY: fn() -> ProcessGrant = || {
    let mut grant = ProcessGrant::default();
    (grant.programs, grant.users, grant.groups) = (Names::Any, Names::Any, Names::Any);
    (grant.env, grant.cwd) = (Names::Any, Names::Any);
    grant
};

fn only(programs: &[&str]) -> ProcessGrant {
    let mut grant = ProcessGrant::default();
    grant.programs = names(programs);
    grant
}

fn names(names: &[&str]) -> Names {
    Names::Only(names.iter().map(ToString::to_string).collect())
}

fn caller(process: ProcessGrant) -> Caller {
    let mut grants = Grants::default();
    grants.process = process;
    let job = JobContext {
        jid: "20260101000000000000".into(),
        function: "cmd.run".into(),
        user: "root".into(),
        minion_id: "m1".into(),
        test: false,
        master: None,
        timeout_ms: None,
        called_by: None,
    };
    let module = "cmd".parse().unwrap();
    Caller::new(Arc::new(job), module, Sha256Hex::from([0; 32]), Arc::new(grants), Duration::from_secs(60))
}

fn argv(argv: &[&str]) -> ProcessRun {
    ProcessRun { argv: argv.iter().map(ToString::to_string).collect(), ..ProcessRun::default() }
}

fn sh(script: &str) -> ProcessRun {
    argv(&["/bin/sh", "-c", script])
}

async fn run_with(process: ProcessGrant, asked: ProcessRun) -> Result<Value, HostError> {
    Processes::new().answer(&caller(process), ProcessOp::Run(Box::new(asked))).await
}

async fn run(asked: ProcessRun) -> Value {
    run_with(ANY(), asked).await.unwrap()
}

async fn refused(asked: ProcessRun) -> String {
    match run_with(ANY(), asked).await {
        Err(HostError::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn bytes<'a>(value: &'a Value, key: &str) -> &'a [u8] {
    value.get(key).unwrap().bytes().unwrap()
}

fn stdout(value: &Value) -> String {
    String::from_utf8_lossy(bytes(value, "stdout")).into_owned()
}

fn number(value: &Value, key: &str) -> Option<i64> {
    value.get(key).unwrap().as_i64()
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: only root can run programs as another user");
    }
    root
}

/// A folder that only its owner writes, whatever the umask.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn script(path: &Path, text: &str, mode: u32) -> String {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Waits for what happens outside: looks again until it is so.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !so() {
        assert!(Instant::now() < deadline, "{what}: not within 10 s");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Whether the process is there and is no zombie.
fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn read_pid(path: &Path) -> Option<i32> {
    fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))?.trim().parse().ok()
}

#[tokio::test]
async fn what_ended_how_and_said_what() {
    let done = run(sh("echo out; echo err >&2; exit 3")).await;
    assert_eq!((stdout(&done).as_str(), bytes(&done, "stderr")), ("out\n", &b"err\n"[..]));
    assert_eq!((number(&done, "code"), number(&done, "signal")), (Some(3), None));
    assert_eq!(done.get("timed_out"), Some(&Value::from(false)));
    assert!(number(&done, "pid").unwrap() > 1);
    let killed = run(sh("kill -9 $$")).await;
    assert_eq!((number(&killed, "code"), number(&killed, "signal")), (None, Some(9)));
    let merged = run(ProcessRun { merge_stderr: true, ..sh("echo 1; echo 2 >&2; echo 3; echo 4 >&2") }).await;
    assert_eq!((stdout(&merged).as_str(), bytes(&merged, "stderr")), ("1\n2\n3\n4\n", &b""[..]));
    let raw = run(argv(&["/usr/bin/printf", "\\377\\0a"])).await;
    assert_eq!(bytes(&raw, "stdout"), b"\xff\0a");
}

/// Arguments are the program's, as they are: nothing reads them before.
#[tokio::test]
async fn arguments_are_not_interpreted() {
    let args = ["$HOME", "a b", "; echo x", "`id`", "*", "", "-n", "\"", "\n", "é"];
    let mut asked = argv(&["/usr/bin/printf", "<%s>"]);
    asked.argv.extend(args.iter().map(ToString::to_string));
    let expected: String = args.iter().map(|arg| format!("<{arg}>")).collect();
    assert_eq!(stdout(&run(asked).await), expected);
    // The program sees its path as its name.
    assert_eq!(stdout(&run(argv(&["sh", "-c", "tr '\\0' ' ' < /proc/$$/cmdline"])).await), {
        let sh = super::program::which(&Names::Any, "sh").unwrap();
        format!("{sh} -c tr '\\0' ' ' < /proc/$$/cmdline ")
    });
}

#[tokio::test]
async fn input_is_read_and_may_be_left() {
    let input = vec![b'x'; 3 << 20];
    let with = |asked, input: &[u8]| ProcessRun { stdin: Some(input.to_vec().into()), ..asked };
    let counted = run(with(argv(&["wc", "-c"]), &input)).await;
    assert_eq!(stdout(&counted).trim(), (3 << 20).to_string());
    let echoed = ProcessRun { max_output: Some(4 << 20), ..with(argv(&["cat"]), &input) };
    assert_eq!(bytes(&run(echoed).await, "stdout"), input);
    assert_eq!(number(&run(with(argv(&["true"]), &input)).await, "code"), Some(0));
    assert_eq!(stdout(&run(with(argv(&["cat"]), b"")).await), "");
    assert_eq!(stdout(&run(argv(&["cat"])).await), "");
}

#[tokio::test]
async fn outputs_have_a_cap_and_the_rest_is_counted() {
    let asked = ProcessRun { max_output: Some(4), ..sh("printf 123456; printf abcdefgh >&2") };
    let done = run(asked).await;
    assert_eq!((bytes(&done, "stdout"), number(&done, "stdout_dropped")), (&b"1234"[..], Some(2)));
    assert_eq!((bytes(&done, "stderr"), number(&done, "stderr_dropped")), (&b"abcd"[..], Some(4)));
    let size = 5 << 20;
    let many = format!("head -c {size} /dev/zero");
    let done = run(sh(&many)).await;
    assert_eq!(bytes(&done, "stdout").len() as u64, super::request::OUTPUT);
    assert_eq!(number(&done, "stdout_dropped"), Some(size - super::request::OUTPUT as i64));
    let done = run(ProcessRun { max_output: Some(u64::MAX), ..sh(&many) }).await;
    assert_eq!(bytes(&done, "stdout").len(), 4 << 20);
    assert_eq!(number(&done, "stdout_dropped"), Some(1 << 20));
    let none = run(ProcessRun { max_output: Some(0), ..sh("echo x") }).await;
    assert_eq!((bytes(&none, "stdout"), number(&none, "stdout_dropped")), (&b""[..], Some(2)));
}

#[tokio::test]
async fn a_flood_takes_no_memory() {
    let size: i64 = 1 << 30;
    let before = resident();
    let done = run(argv(&["head", "-c", &size.to_string(), "/dev/zero"])).await;
    assert_eq!(number(&done, "stdout_dropped"), Some(size - super::request::OUTPUT as i64));
    let grown = resident().saturating_sub(before);
    // What else the tests beside it take.
    assert!(grown < 256 << 20, "{grown} bytes more");
}

fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn the_environment_is_what_is_said() {
    let env = |done: &Value| {
        let mut lines: Vec<String> = stdout(done).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let own = super::account::find(None, None, &Names::default()).unwrap();
    let (home, shell) = (own.home.display(), own.shell.display());
    let expected = [
        format!("HOME={home}"),
        "LANG=C.UTF-8".to_owned(),
        format!("LOGNAME={}", own.name),
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        format!("SHELL={shell}"),
        format!("USER={}", own.name),
    ];
    let program = argv(&["/usr/bin/env"]);
    assert_eq!(env(&run(program.clone()).await), expected);
    let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let more = pairs(&[("PATH", "/x"), ("A", "1"), ("A", "2"), ("EMPTY", ""), ("E", "a=b c")]);
    let said = env(&run(ProcessRun { env: more, ..program.clone() }).await);
    for line in ["PATH=/x", "A=2", "EMPTY=", "E=a=b c"] {
        assert!(said.iter().any(|l| l == line), "{line}: {said:?}");
    }
    assert_eq!(said.len(), 9);
    let clean = ProcessRun { clean_env: true, env: pairs(&[("A", "1")]), ..program.clone() };
    assert_eq!(env(&run(clean).await), ["A=1"]);
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
        let why = refused(ProcessRun { env: pairs(&[(name, value)]), ..program.clone() }).await;
        assert!(why.contains("variable"), "{why}");
    }
}

/// The second look at the grant: what the sandbox's check let through by mistake is not run.
#[tokio::test]
async fn what_was_not_granted_is_denied_here_too() {
    let denied = async |grant: ProcessGrant, asked: ProcessRun| match run_with(grant, asked).await {
        Err(HostError::Denied(why)) => why,
        other => panic!("{other:?}"),
    };
    let pair = |name: &str| vec![(name.to_owned(), "x".to_owned())];
    for program in ["/bin/ls", "env", "/usr/bin/env ", "/usr/bin/../bin/env", "/usr/bin//env", "/usr/bin/env/"] {
        let why = denied(only(&["/usr/bin/env"]), argv(&[program])).await;
        assert!(why.contains("not granted"), "{why}");
    }
    denied(ProcessGrant::default(), argv(&["/usr/bin/env"])).await;
    for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "lang", "LC", "XLC_ALL", "BASH_ENV"] {
        denied(only(&["/usr/bin/env"]), ProcessRun { env: pair(name), ..argv(&["/usr/bin/env"]) }).await;
    }
    for name in ["LANG", "LC_ALL", "TZ", "OWN", "APP_X"] {
        let mut grant = only(&["/usr/bin/env"]);
        grant.env = names(&["OWN", "APP_*"]);
        run_with(grant, ProcessRun { env: pair(name), ..argv(&["/usr/bin/env"]) }).await.unwrap();
    }
    denied(only(&["/usr/bin/env"]), ProcessRun { run_as: Some("daemon".into()), ..argv(&["/usr/bin/env"]) }).await;
}

#[tokio::test]
async fn what_cannot_be_run_says_why() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let plain = script(&at("plain"), "#!/bin/sh\n", 0o644);
    let unknown = script(&at("unknown"), "echo never\n", 0o755);
    let lost = script(&at("lost"), "#!/no/such/interpreter\n", 0o755);
    let loops = at("loop");
    symlink("loop", &loops).unwrap();
    for (program, says) in [
        ("no-such-program", "there is no program \"no-such-program\""),
        ("/no/such/program", "there is no /no"),
        ("/etc", "not a file"),
        ("/", "not a file"),
        ("..", "there is no program"),
        ("/etc/passwd/x", "/etc/passwd/x is not in a directory"),
        ("./sh", "neither a program's name nor an absolute path"),
        ("bin/sh", "neither"),
        ("", "no program"),
        ("/bin/sh\0", "NUL"),
        (&plain, "not executable"),
        (&unknown, "neither a program of this machine nor a script"),
        (&lost, "interpreter"),
        (loops.to_str().unwrap(), "loop of links"),
    ] {
        let why = refused(argv(&[program])).await;
        assert!(why.contains(says) && !why.contains('\n'), "{program:?}: {why}");
    }
    assert_eq!(refused(ProcessRun::default()).await, "no program was named");
    assert!(refused(argv(&["/bin/sh", "a\0b"])).await.contains("NUL"));
}

#[tokio::test]
async fn what_is_asked_has_bounds() {
    let long = "x".repeat(128 * 1024);
    assert!(refused(argv(&["true", &long])).await.contains("at most 131071 bytes"));
    assert_eq!(number(&run(argv(&["true", &long[1..]])).await, "code"), Some(0));
    let mut many = argv(&["true"]);
    many.argv.extend((0..10_000).map(|_| String::new()));
    assert!(refused(many).await.contains("10001 arguments"));
    let mut heavy = argv(&["true"]);
    heavy.argv.extend((0..9).map(|_| long[1..].to_owned()));
    assert!(refused(heavy).await.contains("bytes of arguments"));
    let env = |pairs: Vec<(String, String)>| ProcessRun { env: pairs, ..argv(&["true"]) };
    assert!(
        refused(env((0..1_001).map(|n| (n.to_string(), String::new())).collect())).await.contains("1001 variables")
    );
    assert!(refused(env(vec![("A".into(), long.clone())])).await.contains("variables have at most"));
    assert!(refused(ProcessRun { umask: Some(0o1000), ..argv(&["true"]) }).await.contains("umask"));
    let stdin = Some(vec![0; (16 << 20) + 1].into());
    assert!(refused(ProcessRun { stdin, ..argv(&["true"]) }).await.contains("bytes to read"));
    for user in ["", "a\0", "a:b", &long] {
        assert!(refused(ProcessRun { run_as: Some(user.into()), ..argv(&["true"]) }).await.contains("name of a user"));
        assert!(refused(ProcessRun { group: Some(user.into()), ..argv(&["true"]) }).await.contains("name of a user"));
    }
    // Together as much as is allowed still starts.
    let mut most = env((0..3).map(|n| (n.to_string(), long[3..].to_owned())).collect());
    most.argv.extend((0..7).map(|_| long[1..].to_owned()));
    assert_eq!(number(&run(most).await, "code"), Some(0));
}

#[tokio::test]
async fn programs_that_others_may_change_are_not_run() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let text = "#!/bin/sh\necho ran\n";
    let good = script(&at("good"), text, 0o755);
    assert_eq!(stdout(&run(argv(&[&good])).await), "ran\n");
    for mode in [0o775, 0o757, 0o777] {
        let bad = script(&at("bad"), text, mode);
        let why = refused(argv(&[&bad])).await;
        assert!(why.starts_with(&format!("{bad} can be written by others than its owner (mode {mode:o})")), "{why}");
    }
    // A folder on the way.
    let open = at("open");
    fs::create_dir(&open).unwrap();
    let inside = script(&open.join("p"), text, 0o755);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let why = refused(argv(&[&inside])).await;
    assert!(why.starts_with(&format!("{} can be written", open.display())), "{why}");
    // One where nobody can replace what is another's.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(stdout(&run(argv(&[&inside])).await), "ran\n");
    // A link is looked at where it lies and where it leads to.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    symlink(&inside, at("link")).unwrap();
    let why = refused(argv(&[at("link").to_str().unwrap()])).await;
    assert!(why.starts_with(&format!("{} can be written", open.display())), "{why}");
    symlink(&good, open.join("link")).unwrap();
    assert!(refused(argv(&[open.join("link").to_str().unwrap()])).await.contains("can be written"));
    symlink("good", at("near")).unwrap();
    symlink("../../../../../../../bin/sh", at("far")).unwrap();
    assert_eq!(stdout(&run(argv(&[at("near").to_str().unwrap()])).await), "ran\n");
    assert_eq!(stdout(&run(argv(&[at("far").to_str().unwrap(), "-c", "echo ran"])).await), "ran\n");
    // Of another user.
    if is_root() {
        let theirs = script(&at("theirs"), text, 0o755);
        std::os::unix::fs::chown(&theirs, Some(12_345), None).unwrap();
        let why = refused(argv(&[&theirs])).await;
        assert!(why.starts_with(&format!("{theirs} belongs to the user 12345")), "{why}");
    }
}

#[tokio::test]
async fn where_it_starts() {
    let dir = folder();
    let real = dir.path().canonicalize().unwrap();
    let inside = real.join("inside");
    fs::create_dir(&inside).unwrap();
    fs::write(real.join("file"), "").unwrap();
    let start = |cwd: &Path| ProcessRun { cwd: Some(cwd.to_str().unwrap().to_owned()), ..argv(&["/bin/pwd"]) };
    assert_eq!(stdout(&run(start(&inside)).await).trim(), inside.to_str().unwrap());
    assert_eq!(stdout(&run(start(Path::new("/"))).await), "/\n");
    for (cwd, says) in [
        ("/no/such/directory", "does not exist"),
        (real.join("file").to_str().unwrap(), "is not a directory"),
        ("relative", "not an absolute path"),
        ("", "not an absolute path"),
        ("/tmp/../etc", "not an absolute path"),
        ("/\0", "not an absolute path"),
    ] {
        let why = refused(ProcessRun { cwd: Some(cwd.to_owned()), ..argv(&["/bin/pwd"]) }).await;
        assert!(why.contains(says), "{cwd}: {why}");
    }
    // As in Salt at home; but in / where only some directories are granted.
    let home = super::account::find(None, None, &Names::default()).unwrap().home;
    let home = home.canonicalize().unwrap_or_else(|_| PathBuf::from("/"));
    assert_eq!(Path::new(stdout(&run(argv(&["/bin/pwd"])).await).trim()), home);
    let granted = || {
        let mut grant = only(&["/bin/pwd"]);
        grant.cwd = names(&[inside.to_str().unwrap()]);
        grant
    };
    let done = run_with(granted(), argv(&["/bin/pwd"])).await.unwrap();
    assert_eq!(stdout(&done), "/\n");
    run_with(granted(), start(&inside)).await.unwrap();
    // A link does not lead out of what was granted.
    symlink("/etc", inside.join("out")).unwrap();
    for elsewhere in [inside.join("out"), PathBuf::from("/etc"), real.clone()] {
        let why = run_with(granted(), start(&elsewhere)).await.unwrap_err().to_string();
        assert!(why.contains("leads out of those that were granted"), "{why}");
    }
}

#[tokio::test]
async fn the_umask_is_set() {
    let dir = folder();
    let file = dir.path().join("file");
    let asked = |umask| ProcessRun { umask, ..sh(&format!("umask; rm -f {0}; : > {0}", file.display())) };
    assert_eq!(stdout(&run(asked(Some(0o027))).await).trim_start_matches('0').trim(), "27");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    run(asked(Some(0))).await;
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o666);
}

/// Also of what the minion itself was started with, or some library opened carelessly.
#[tokio::test]
async fn no_descriptor_of_the_minion_is_there() {
    let dir = folder();
    let secret = fs::File::create(dir.path().join("secret")).unwrap();
    let careless = rustix::io::dup(&secret).unwrap();
    assert!(!rustix::io::fcntl_getfd(&careless).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    let list = run(argv(&["ls", "-l", "/proc/self/fd"])).await;
    let text = stdout(&list);
    let mut open: Vec<&str> = text.lines().filter_map(|line| line.split_once(" -> ")?.0.rsplit(' ').next()).collect();
    open.sort_unstable();
    // 3 is the directory that it reads.
    assert_eq!(open, ["0", "1", "2", "3"], "{text}");
    assert!(!text.contains("secret") && text.contains("/dev/null"), "{text}");
}

#[tokio::test]
async fn a_session_of_its_own_and_no_signal_ignored() {
    let done = run(argv(&["/usr/bin/cut", "-d ", "-f1,5,6,7", "/proc/self/stat"])).await;
    let pid = number(&done, "pid").unwrap();
    assert_eq!(stdout(&done), format!("{pid} {pid} {pid} 0\n"));
    let status = stdout(&run(argv(&["/bin/cat", "/proc/self/status"])).await);
    for kind in ["SigBlk", "SigIgn", "SigCgt"] {
        assert!(status.contains(&format!("{kind}:\t0000000000000000\n")), "{status}");
    }
}

#[tokio::test]
async fn run_as_another_user() {
    if !is_root() {
        return;
    }
    let nobody = |asked| ProcessRun { run_as: Some("nobody".into()), ..asked };
    let done =
        run(nobody(sh("id -un; id -G; echo $HOME $USER $LOGNAME; grep -E '^(Uid|Gid|CapEff)' /proc/$$/status"))).await;
    let expected = super::account::find(Some("nobody"), None, &Names::default()).unwrap();
    let identity = expected.identity.unwrap();
    let (text, gid) = (stdout(&done), identity.gid);
    let uid = identity.uid;
    let groups: Vec<String> = identity.groups.iter().map(ToString::to_string).collect();
    let home = expected.home.display();
    let lines = [
        "nobody".to_owned(),
        groups.join(" "),
        format!("{home} nobody nobody"),
        format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}"),
        format!("Gid:\t{gid}\t{gid}\t{gid}\t{gid}"),
        "CapEff:\t0000000000000000".to_owned(),
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    // Where nobody may not go.
    let dir = folder();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let private = ProcessRun { cwd: Some(dir.path().to_str().unwrap().to_owned()), ..nobody(argv(&["/bin/pwd"])) };
    let why = refused(private).await;
    assert!(why.contains("cannot be entered as the user nobody"), "{why}");
    // A home that is not there.
    assert!(["/", &home.to_string()].contains(&stdout(&run(nobody(argv(&["/bin/pwd"]))).await).trim()));
    assert!(refused(ProcessRun { run_as: Some("no-such-user".into()), ..argv(&["true"]) }).await.contains("no user"));
    assert!(refused(ProcessRun { group: Some("no-such-group".into()), ..argv(&["true"]) }).await.contains("no group"));
    // What its own user may change runs as that user, not as another.
    let shared = folder();
    let theirs = script(&shared.path().join("theirs"), "#!/bin/sh\nid -un\n", 0o755);
    std::os::unix::fs::chown(&theirs, Some(uid), None).unwrap();
    assert_eq!(stdout(&run(nobody(argv(&[&theirs]))).await), "nobody\n");
    assert!(refused(argv(&[&theirs])).await.contains("belongs to the user"));
}

#[tokio::test]
async fn groups_are_those_of_the_user_or_granted() {
    if !is_root() {
        return;
    }
    let asked = |group: &str| ProcessRun {
        run_as: Some("nobody".into()),
        group: Some(group.into()),
        ..argv(&["/usr/bin/id", "-gn"])
    };
    let mut grant = only(&["/usr/bin/id"]);
    grant.users = names(&["nobody"]);
    let why = run_with(grant.clone(), asked("daemon")).await.unwrap_err().to_string();
    assert_eq!(why, "the user \"nobody\" is not in the group \"daemon\"");
    grant.groups = names(&["daemon"]);
    assert_eq!(stdout(&run_with(grant, asked("daemon")).await.unwrap()), "daemon\n");
    let as_root = ProcessRun { group: Some("daemon".into()), ..sh("id -un; id -gn") };
    assert_eq!(stdout(&run(as_root).await), "root\ndaemon\n");
    let by_number = ProcessRun { run_as: Some("65534".into()), ..argv(&["/usr/bin/id", "-u"]) };
    assert_eq!(stdout(&run(by_number).await), "65534\n");
}

#[tokio::test]
async fn only_root_runs_programs_as_others() {
    if rustix::process::geteuid().is_root() {
        println!("skipped: root may");
        return;
    }
    let as_daemon = ProcessRun { run_as: Some("daemon".into()), ..argv(&["true"]) };
    assert!(
        refused(as_daemon).await.starts_with("this minion does not run as root, so its programs run as its own user")
    );
    let in_daemon = ProcessRun { group: Some("daemon".into()), ..argv(&["true"]) };
    assert!(refused(in_daemon).await.contains("in the group \"daemon\""));
    let own = super::account::find(None, None, &Names::default()).unwrap().name;
    run(ProcessRun { run_as: Some(own), ..argv(&["true"]) }).await;
}

/// The one that the module acts as needs no word of the guest.
#[tokio::test]
async fn the_modules_own_user() {
    if !is_root() {
        return;
    }
    let mut caller = caller(only(&["/usr/bin/id"]));
    let mut grants = Grants::clone(&caller.grants);
    grants.user = Some("nobody".into());
    caller.grants = Arc::new(grants);
    let processes = Processes::new();
    let run = async |run_as: Option<&str>| {
        let asked = ProcessRun { run_as: run_as.map(str::to_owned), ..argv(&["/usr/bin/id", "-un"]) };
        processes.answer(&caller, ProcessOp::Run(Box::new(asked))).await
    };
    assert_eq!(stdout(&run(None).await.unwrap()), "nobody\n");
    assert_eq!(stdout(&run(Some("nobody")).await.unwrap()), "nobody\n");
    assert!(matches!(run(Some("daemon")).await, Err(HostError::Denied(_))));
}

#[tokio::test]
async fn the_timeout_ends_all_of_it() {
    let dir = folder();
    let file = dir.path().join("pid");
    let text = format!("echo early; sleep 1000 & echo $! > {}; wait", file.display());
    let before = Instant::now();
    let done = run(ProcessRun { timeout_ms: Some(300), ..sh(&text) }).await;
    assert_eq!(done.get("timed_out"), Some(&Value::from(true)));
    assert_eq!((number(&done, "signal"), stdout(&done).as_str()), (Some(15), "early\n"));
    assert!(before.elapsed() < Duration::from_secs(5));
    let (grandchild, pid) = (read_pid(&file).unwrap(), number(&done, "pid").unwrap() as i32);
    until("the program is reaped", || !exists(pid)).await;
    until("the grandchild ends", || !lives(grandchild)).await;
}

#[tokio::test]
async fn one_that_ignores_sigterm_is_killed() {
    let text = "trap '' TERM; echo ready; while :; do sleep 1000; done";
    let done = run(ProcessRun { timeout_ms: Some(100), ..sh(text) }).await;
    assert_eq!((number(&done, "signal"), stdout(&done).as_str()), (Some(9), "ready\n"));
    assert_eq!(done.get("timed_out"), Some(&Value::from(true)));
    // One that tidies up has time for it, and one that is stopped is not forgotten.
    let text = "trap 'echo tidy; exit 5' TERM; kill -STOP $$; while :; do sleep 0.01; done";
    let done = run(ProcessRun { timeout_ms: Some(100), ..sh(text) }).await;
    assert_eq!((number(&done, "code"), stdout(&done).as_str()), (Some(5), "tidy\n"));
}

#[tokio::test]
async fn dropped_it_is_gone_at_once_with_all_that_it_started() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let text = format!(
        "trap '' TERM HUP INT; echo $$ > {}; sleep 1000 & echo $! > {}; (sleep 1000 & echo $! > {}) & wait",
        at("leader").display(),
        at("child").display(),
        at("daemon").display(),
    );
    let caller = caller(ANY());
    let processes = Processes::at_most(1);
    {
        let running = processes.answer(&caller, ProcessOp::Run(Box::new(sh(&text))));
        tokio::pin!(running);
        tokio::select! {
            done = &mut running => panic!("{done:?}"),
            () = until("it runs", || ["leader", "child", "daemon"].iter().all(|name| read_pid(&at(name)).is_some())) => {}
        }
    }
    let dropped = Instant::now();
    let pids: Vec<i32> = ["leader", "child", "daemon"].iter().map(|name| read_pid(&at(name)).unwrap()).collect();
    until("all end", || !pids.iter().any(|pid| lives(*pid))).await;
    until("the leader is reaped", || !exists(pids[0])).await;
    println!("ended and reaped after {:?}", dropped.elapsed());
    // Its place is free again.
    until("the place is free", || processes.places.available_permits() == 1).await;
    processes.answer(&caller, ProcessOp::Run(Box::new(argv(&["true"])))).await.unwrap();
}

#[tokio::test]
async fn dropped_before_it_started_it_leaves_nothing() {
    let caller = caller(ANY());
    let processes = Processes::new();
    for _ in 0..200 {
        let running = processes.answer(&caller, ProcessOp::Run(Box::new(argv(&["sleep", "1717"]))));
        // Polled once.
        let _ = tokio::time::timeout(Duration::ZERO, running).await;
    }
    until("all places are free", || processes.places.available_permits() == super::MAX_PROGRAMS).await;
    assert_eq!(processes_named("sleep\x001717\0"), 0);
}

fn processes_named(cmdline: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.ends_with(cmdline.as_bytes())))
        .count()
}

/// Sessions of their own included, as long as what started them is there.
#[tokio::test]
async fn a_tree_is_ended_whole() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let names = ["outer", "inner", "plain"];
    let text = format!(
        "setsid sh -c 'echo $$ > {}; setsid sleep 1000 & echo $! > {}; wait' & sleep 1000 & echo $! > {}; wait",
        at("outer").display(),
        at("inner").display(),
        at("plain").display(),
    );
    let there = || names.iter().all(|name| read_pid(&at(name)).is_some());
    for timeout_ms in [None, Some(400)] {
        names.iter().for_each(|name| drop(fs::remove_file(at(name))));
        let asked = ProcessRun { timeout_ms, ..sh(&text) };
        let running = run(asked);
        tokio::pin!(running);
        match timeout_ms {
            None => tokio::select! {
                done = &mut running => panic!("{done:?}"),
                () = until("it runs", there) => {}
            },
            Some(_) => assert_eq!(running.as_mut().await.get("timed_out"), Some(&Value::from(true))),
        }
        let pids = names.map(|name| read_pid(&at(name)).unwrap());
        if timeout_ms.is_none() {
            // Drops the one that runs.
            running.set(run(argv(&["true"])));
        }
        until("all end", || !pids.iter().any(|pid| lives(*pid))).await;
    }
}

/// Each is waited for.
#[tokio::test]
async fn no_zombies() {
    let mut pids = Vec::new();
    for _ in 0..20 {
        pids.push(number(&run(sh("sleep 0 & true")).await, "pid").unwrap() as i32);
    }
    until("all are reaped", || !pids.iter().any(|pid| exists(*pid))).await;
}

/// In its group, forked twice, and by a shell with job control in a group of its own.
#[tokio::test]
async fn what_it_left_behind_is_ended() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    for (name, text) in [
        ("child", format!("sleep 1000 & echo $! > {}", at("child").display())),
        ("daemon", format!("(sleep 1000 > /dev/null 2>&1 & echo $! > {}) & true", at("daemon").display())),
        ("job", format!("set -m; sleep 1000 & echo $! > {}", at("job").display())),
    ] {
        let before = Instant::now();
        let done = run(sh(&format!("{text}; while ! test -s {}; do :; done; echo done", at(name).display()))).await;
        assert_eq!((number(&done, "code"), stdout(&done).as_str()), (Some(0), "done\n"), "{name}");
        assert!(before.elapsed() < Duration::from_secs(5));
        let pid = read_pid(&at(name)).unwrap();
        until(name, || !lives(pid)).await;
    }
}

/// Who makes itself a session of its own, as a daemon does, stays; it does not hold the job by keeping the output open.
#[tokio::test]
async fn a_daemon_stays_and_holds_nobody() {
    let dir = folder();
    let file = dir.path().join("pid");
    let text = format!(
        "setsid sleep 1000 & echo $! > {}; until grep -q sleep /proc/$!/comm; do :; done; echo done",
        file.display()
    );
    let before = Instant::now();
    let done = run(sh(&text)).await;
    assert_eq!(stdout(&done), "done\n");
    assert!(before.elapsed() < Duration::from_secs(5));
    let pid = read_pid(&file).unwrap();
    assert!(lives(pid));
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_and_one_more_is_busy() {
    let processes = Processes::new();
    let caller = caller(ANY());
    let dir = folder();
    let go = dir.path().join("go");
    let text = format!("until test -e {}; do read x < /dev/null; sleep 0.01; done; echo $0", go.display());
    let running = (0..super::MAX_PROGRAMS).map(|n| {
        let asked = argv(&["/bin/sh", "-c", &text, &n.to_string()]);
        processes.answer(&caller, ProcessOp::Run(Box::new(asked)))
    });
    let all = async {
        let all = futures_util::future::join_all(running).await;
        for (n, done) in all.into_iter().enumerate() {
            assert_eq!(stdout(&done.unwrap()), format!("{n}\n"));
        }
    };
    let one_more = async {
        until("all run", || processes.places.available_permits() == 0).await;
        let busy = processes.answer(&caller, ProcessOp::Run(Box::new(argv(&["true"])))).await.unwrap_err();
        assert_eq!(busy.to_string(), "busy: 64 programs of jobs run on this minion; try again later");
        fs::write(&go, "").unwrap();
    };
    tokio::join!(all, one_more);
    assert_eq!(processes.places.available_permits(), super::MAX_PROGRAMS);
}

#[tokio::test]
async fn programs_and_shells_that_are_there() {
    let processes = Processes::new();
    let ask = async |grant: ProcessGrant, op: ProcessOp| processes.answer(&caller(grant), op).await.unwrap();
    let which = |name: &str| ProcessOp::Which { name: name.to_owned() };
    let shell = |path: Option<&str>| ProcessOp::Shell { path: path.map(str::to_owned) };
    let found = ask(ANY(), which("env")).await;
    assert!(found.text().unwrap().ends_with("/env"));
    for (grant, op, expect) in [
        (ANY(), which("/bin/sh"), Some("/bin/sh")),
        (ANY(), which("no-such-program"), None),
        (ANY(), which("/etc/passwd"), None),
        (ANY(), which("/etc"), None),
        (ANY(), which(""), None),
        (ANY(), which(".."), None),
        (ANY(), which("bin/sh"), None),
        (ANY(), which("sh\0"), None),
        (only(&["/bin/sh"]), which("/bin/sh"), Some("/bin/sh")),
        (only(&["/bin/sh"]), which("/usr/bin/env"), None),
        (only(&["/bin/sh"]), which("sh"), None),
        (only(&["/no/such/sh"]), which("/no/such/sh"), None),
        (ANY(), shell(None), Some("/bin/sh")),
        (ANY(), shell(Some("/bin/sh")), Some("/bin/sh")),
        (ANY(), shell(Some("/no/such/sh")), None),
        (only(&["/usr/bin/env"]), shell(None), None),
        (only(&["/usr/bin/env", "/bin/sh"]), shell(None), Some("/bin/sh")),
        (only(&["/no/such/bash", "/bin/sh"]), shell(None), Some("/bin/sh")),
        (only(&["/bin/sh"]), shell(Some("sh")), Some("/bin/sh")),
        (only(&["/bin/sh"]), shell(Some("/bin/bash")), None),
        (ProcessGrant::default(), shell(None), None),
    ] {
        assert_eq!(ask(grant, op.clone()).await.text(), expect, "{op:?}");
    }
}
