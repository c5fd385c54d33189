//! The programs and arguments that are permitted.

use super::*;

use brine_kit::files::set_mode;

/// The second check of the grant: a program that the sandbox's check passed by mistake does not run.
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
    // The largest permitted total still starts.
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
    set_mode(&open, 0o777);
    let why = refused(argv(&[&inside])).await;
    assert!(why.starts_with(&format!("{} can be written", open.display())), "{why}");
    // In a sticky folder, others cannot replace files of another user.
    set_mode(&open, 0o1777);
    assert_eq!(stdout(&run(argv(&[&inside])).await), "ran\n");
    // The folder of a link is checked, and so is the link's target.
    set_mode(&open, 0o777);
    symlink(&inside, at("link")).unwrap();
    let why = refused(argv(&[at("link").to_str().unwrap()])).await;
    assert!(why.starts_with(&format!("{} can be written", open.display())), "{why}");
    symlink(&good, open.join("link")).unwrap();
    assert!(refused(argv(&[open.join("link").to_str().unwrap()])).await.contains("can be written"));
    symlink("good", at("near")).unwrap();
    symlink("../../../../../../../bin/sh", at("far")).unwrap();
    assert_eq!(stdout(&run(argv(&[at("near").to_str().unwrap()])).await), "ran\n");
    assert_eq!(stdout(&run(argv(&[at("far").to_str().unwrap(), "-c", "echo ran"])).await), "ran\n");
    // A file of another user.
    if rustix::process::geteuid().is_root() {
        let theirs = script(&at("theirs"), text, 0o755);
        std::os::unix::fs::chown(&theirs, Some(12_345), None).unwrap();
        let why = refused(argv(&[&theirs])).await;
        assert!(why.starts_with(&format!("{theirs} belongs to the user 12345")), "{why}");
    }
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
