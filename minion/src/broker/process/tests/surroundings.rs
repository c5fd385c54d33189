//! The state in which a program starts: environment, directory, umask, descriptors, session.

use super::*;

#[tokio::test]
async fn the_environment_is_what_is_said() {
    let env = |done: &Value| {
        let mut lines: Vec<String> = stdout(done).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let own = super::super::account::find(None, None, &Names::default()).unwrap();
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
    // As in Salt, the user's home; but `/` if the grant names directories.
    let home = super::super::account::find(None, None, &Names::default()).unwrap().home;
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
    // A link does not lead out of the granted directories.
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
    assert_eq!(mode(&file), 0o640);
    run(asked(Some(0))).await;
    assert_eq!(mode(&file), 0o666);
}

/// This includes descriptors that the minion inherited, or that a library opened without close-on-exec.
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
    // 3 is the directory that the program reads.
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
