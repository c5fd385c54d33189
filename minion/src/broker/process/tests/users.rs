//! The user that a program runs as.

use super::*;

use brine_kit::files::set_mode;

#[tokio::test]
async fn run_as_another_user() {
    if !is_root() {
        return;
    }
    let nobody = |asked| ProcessRun { run_as: Some("nobody".into()), ..asked };
    let done =
        run(nobody(sh("id -un; id -G; echo $HOME $USER $LOGNAME; grep -E '^(Uid|Gid|CapEff)' /proc/$$/status"))).await;
    let expected = super::super::account::find(Some("nobody"), None, &Names::default()).unwrap();
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
    // A directory that the user `nobody` cannot enter.
    let dir = folder();
    set_mode(dir.path(), 0o700);
    let private = ProcessRun { cwd: Some(dir.path().to_str().unwrap().to_owned()), ..nobody(argv(&["/bin/pwd"])) };
    let why = refused(private).await;
    assert!(why.contains("cannot be entered as the user nobody"), "{why}");
    // A home that does not exist.
    assert!(["/", &home.to_string()].contains(&stdout(&run(nobody(argv(&["/bin/pwd"]))).await).trim()));
    assert!(refused(ProcessRun { run_as: Some("no-such-user".into()), ..argv(&["true"]) }).await.contains("no user"));
    assert!(refused(ProcessRun { group: Some("no-such-group".into()), ..argv(&["true"]) }).await.contains("no group"));
    // A file that its owner can change runs only as that owner.
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
        return; // root may
    }
    let as_daemon = ProcessRun { run_as: Some("daemon".into()), ..argv(&["true"]) };
    assert!(
        refused(as_daemon).await.starts_with("this minion does not run as root, so its programs run as its own user")
    );
    let in_daemon = ProcessRun { group: Some("daemon".into()), ..argv(&["true"]) };
    assert!(refused(in_daemon).await.contains("in the group \"daemon\""));
    let own = super::super::account::find(None, None, &Names::default()).unwrap().name;
    run(ProcessRun { run_as: Some(own), ..argv(&["true"]) }).await;
}

/// The minion's own user needs no grant.
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
