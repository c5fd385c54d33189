//! Refusals about programs and how they are run.

use super::*;

#[test]
fn programs_are_run_as_they_were_granted() {
    let config = "modules:\n  mine: {user: deploy, process: {programs: [/opt/a/ls], users: [web], env: [\"APP_*\"], cwd: [/srv]}}\n";
    let who = caller(&policy(config), "mine", "f", None);
    let checked = |run: ProcessRun| match check(&who, process(run)) {
        Ok(HostOp::Process(ProcessOp::Run(run))) => Ok(*run),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    };
    let done = checked(run(&["ls", "-l"])).unwrap();
    assert_eq!((done.argv, done.run_as.as_deref()), (vec!["/opt/a/ls".to_owned(), "-l".into()], Some("deploy")));
    for (cwd, may) in [("/", true), ("/srv", true), ("/srv/a", true), ("/srvx", false), ("/etc", false)] {
        assert_eq!(checked(ProcessRun { cwd: Some(cwd.into()), ..run(&["ls"]) }).is_ok(), may, "{cwd}");
    }
    for (user, may) in [("deploy", true), ("web", true), ("root", false), ("0", false)] {
        assert_eq!(checked(ProcessRun { run_as: Some(user.into()), ..run(&["ls"]) }).is_ok(), may, "{user}");
    }
    for (name, value, may) in [
        ("LANG", "de_DE.UTF-8", true),
        ("LC_ALL", "C", true),
        ("LC_TIME", "ca_ES@valencia", true),
        ("TZ", "Europe/Berlin", true),
        ("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", true),
        ("APP_X", "\u{1b}[31m anything", true),
        ("LANG", "/etc/x", false),
        ("LC_ALL", "../x", false),
        ("LC_all", "C", false),
        ("TZ", "/etc/shadow", false),
        ("TZ", ":/etc/shadow", false),
        ("TZ", "../../etc/shadow", false),
        ("LANGUAGE", "x", false),
        ("LOCPATH", "/x", false),
        ("LD_PRELOAD", "/x", false),
        ("PATH", "/x", false),
        ("app_x", "1", false),
    ] {
        let env = vec![(name.to_owned(), value.to_owned())];
        assert_eq!(checked(ProcessRun { env, ..run(&["ls"]) }).is_ok(), may, "{name}={value}");
    }
    // The minion's own user, for a module without a user.
    let mut own = policy("modules:\n  mine: {process: [/bin/ls]}\n");
    own.host.user = Some("salt".into());
    let who = caller(&own, "mine", "f", None);
    for (user, may) in [("salt", true), ("root", false)] {
        assert_eq!(
            check(&who, process(ProcessRun { run_as: Some(user.into()), ..run(&["ls"]) })).is_ok(),
            may,
            "{user}"
        );
    }
    // A granted shell is given by its granted path. For another shell the broker reports that there is none.
    let op = HostOp::Process(ProcessOp::Shell { path: Some("ls".into()) });
    assert_eq!(check(&who, op).unwrap(), HostOp::Process(ProcessOp::Shell { path: Some("/bin/ls".into()) }));
}

#[test]
fn commands_have_a_form() {
    let bad = |change: fn(&mut ProcessRun), expect: &str| {
        let mut bad = run(&["/bin/x"]);
        change(&mut bad);
        never(process(bad), expect);
    };
    bad(|run| run.argv.clear(), "the command has no program");
    bad(|run| run.argv[0] = String::new(), "the program is empty");
    bad(|run| run.argv[0] = "x\ny".into(), "the program has control characters");
    bad(|run| run.argv[0] = "./x".into(), "the program is not an absolute path");
    bad(
        |run| run.argv[0] = "/a/../b".into(),
        "the program has parts that are empty, . or ..; the path is to be written without them",
    );
    bad(
        |run| run.argv[0] = "/a/".into(),
        "the program has parts that are empty, . or ..; the path is to be written without them",
    );
    bad(|run| run.argv[0] = "..".into(), "the program is a folder");
    bad(|run| run.argv[0] = "/".into(), "the program is a folder");
    bad(|run| run.argv[0] = "x".repeat(5_000), "the program has 5000 bytes; the most is 4095");
    bad(|run| run.argv.push("a\0b".into()), "an argument has a NUL byte");
    bad(|run| run.argv = vec!["x".into(); 4_097], "the command has 4097 arguments; the most is 4096");
    bad(|run| run.argv.push("x".repeat(128 << 10)), "an argument: 131072 bytes; the most is 131071");
    bad(
        |run| run.argv.extend(vec!["x".repeat(100 << 10); 11]),
        "the arguments and variables: 1126418 bytes; the most is 1048576",
    );
    for name in ["", "A=B", "1A", "A B", "A\0", "BASH_FUNC_x%%", "Ä"] {
        let bad = ProcessRun { env: vec![(name.into(), String::new())], ..run(&["/bin/x"]) };
        never(process(bad), "the name of a variable is to be letters, digits and _, no digit first");
    }
    bad(|run| run.env = vec![("A".into(), "a\0b".into())], "a variable has a NUL byte");
    bad(|run| run.env = vec![("A".into(), String::new()); 2], "the variable A is there twice");
    bad(
        |run| run.env = (0..513).map(|n| (format!("A{n}"), String::new())).collect(),
        "the environment has 513 variables; the most is 512",
    );
    bad(|run| run.cwd = Some("srv".into()), "the directory to start in is not an absolute path");
    bad(
        |run| run.cwd = Some("/srv/../etc".into()),
        "the directory to start in has parts that are empty, . or ..; the path is to be written without them",
    );
    bad(|run| run.cwd = Some("/a\0".into()), "the directory to start in has control characters");
    bad(|run| run.run_as = Some("a b".into()), "the user is neither a name nor a number");
    bad(|run| run.run_as = Some("-x".into()), "the user is neither a name nor a number");
    bad(|run| run.group = Some(String::new()), "the group is neither a name nor a number");
    bad(|run| run.umask = Some(0o1000), "the umask is not one: 777 is the most");
    bad(|run| run.stdin = Some(data((16 << 20) + 1)), "the input: 16777217 bytes; the most is 16777216");
}

/// A program of which only command lines are granted runs in these ways, and in none that another word makes.
#[test]
fn command_lines_are_granted_whole() {
    let grant =
        "process: {lines: [\"/usr/bin/systemctl start nginx.service\"], looks: [\"/usr/bin/systemctl is-active *\"]}";
    let who = caller(&policy(&format!("modules:\n  mine: {{{grant}}}\n")), "mine", "f", None);
    let checked = |run: ProcessRun| match check(&who, process(run)) {
        Ok(HostOp::Process(ProcessOp::Run(run))) => Ok(run.argv.join(" ")),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    };
    for (line, may) in [
        ("/usr/bin/systemctl start nginx.service", true),
        ("systemctl start nginx.service", true),
        ("systemctl is-active cron", true),
        ("systemctl start cron.service", false),
        ("systemctl start nginx.service cron.service", false),
        ("systemctl --host=example start nginx.service", false),
        ("systemctl start", false),
        ("systemctl", false),
        ("/tmp/systemctl start nginx.service", false),
        ("sh -c x", false),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = checked(run(&words));
        assert_eq!(said.is_ok(), may, "{line}: {said:?}");
        if let Ok(argv) = said {
            assert!(argv.starts_with("/usr/bin/systemctl "), "{argv}");
        }
    }
    // What decides beside the words: variables, input and the folder.
    let line = || run(&["systemctl", "start", "nginx.service"]);
    let env = vec![("SYSTEMD_PAGER".to_owned(), "/tmp/x".to_owned())];
    assert!(checked(ProcessRun { env, ..line() }).is_err());
    assert!(checked(ProcessRun { stdin: Some(b"x".to_vec().into()), ..line() }).is_err());
    assert!(checked(ProcessRun { cwd: Some("/tmp".into()), ..line() }).is_err());
    assert!(checked(ProcessRun { run_as: Some("postgres".into()), ..line() }).is_err());
    for (umask, may) in [(0o077, true), (0o027, true), (0o022, true), (0o002, false), (0, false)] {
        assert_eq!(checked(ProcessRun { umask: Some(umask), ..line() }).is_ok(), may, "{umask:o}");
    }
    // The line that would grant it, unless a word of it would stand for others.
    let why = checked(run(&["systemctl", "stop", "nginx.service"])).unwrap_err();
    assert!(why.contains("\"/usr/bin/systemctl stop nginx.service\"") && why.contains("looks: "), "{why}");
    let why = checked(run(&["systemctl", "stop", "*"])).unwrap_err();
    assert!(why.contains("only some command lines") && !why.contains("stop *\""), "{why}");
    // Found by the fuzz target: the text is one line of a log.
    let why = checked(run(&["systemctl", "s\u{1}top\nit", "nginx.service"])).unwrap_err();
    assert!(!why.contains(char::is_control) && why.contains("'s\\u{1}top\\nit'"), "{why}");
    // Without `lines`, looks grant nothing.
    let looks = "process: {looks: [\"/usr/bin/systemctl is-active *\"]}";
    let who = caller(&policy(&format!("modules:\n  mine: {{{looks}}}\n")), "mine", "f", None);
    assert!(check(&who, process(run(&["systemctl", "is-active", "cron"]))).is_err());
}
