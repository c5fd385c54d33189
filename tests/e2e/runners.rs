//! Runners and the wheel from the viewpoint of an operator.

use brine_kit::wait::wait_for;
use brine_tests::compiled::{COMPILED, lay_out};
use brine_tests::salt::{Kind, Master};
use serde_json::json;

/// The command ends at once, events report the result, and the jid finds it.
#[test]
fn an_asynchronous_run_is_found_by_its_jid() {
    let master = Master::start("job_cache_store_endtime: True");
    let events = master.events();
    let started = master.command("salt-run", &["--async", "test.metasyntactic", "uk"]).exits(0);
    assert_eq!(started.stdout, "");
    let tag = started.stderr.trim().rsplit(' ').next().expect("a tag").to_owned();
    let jid = tag.strip_prefix("salt/run/").expect("a run's tag");
    let new = events.wait_tag(&format!("{tag}/new"));
    assert_eq!((&new["fun"], &new["jid"]), (&json!("runner.test.metasyntactic"), &json!(jid)));
    let ret = events.wait_tag(&format!("{tag}/ret"));
    let names = json!(["wibble", "wobble", "wubble", "flob"]);
    assert_eq!((&ret["success"], &ret["return"]), (&json!(true), &names));
    let found = wait_for("the run among the jobs", || {
        let found = master.command("salt-run", &["--out=json", "jobs.lookup_jid", jid]).exits(0).json();
        found.as_object()?.values().next().cloned()
    });
    assert_eq!(found["return"], names);
    let job = master.command("salt-run", &["--out=json", "jobs.list_job", jid]).exits(0).json();
    let (start, end) = (job["StartTime"].as_str().expect("a time"), job["EndTime"].as_str().expect("a time"));
    assert!(start.len() == end.len() && start[..23] <= end[..23], "{job}");
    let listed = master.command("salt-run", &["--out=json", "jobs.list_jobs", "search_function=runner.test.*"]);
    assert_eq!(listed.exits(0).json()[jid]["User"], json!("root"));
}

/// Runners send jobs to minions, and running runners are listed meanwhile.
#[test]
fn runners_ask_minions_and_are_seen_while_they_do() {
    let master = Master::start("timeout: 15");
    let _minion = master.minion("web1");
    let run = |words: &[&str]| {
        let mut all = vec!["--out=json"];
        all.extend(words);
        master.command("salt-run", &all).exits(0).json()
    };
    let jid = master.start_job(&["web1", "test.sleep", "100"]);
    let job = wait_for("the job among the active ones", || run(&["jobs.active"]).get(&jid).cloned());
    assert_eq!((&job["Function"], &job["Returned"]), (&json!("test.sleep"), &json!([])));
    assert!(job["Running"][0]["web1"].is_u64(), "{job}");
    assert_eq!(run(&["survey.hash", "*", "test.echo", "x"]), json!([{"pool": ["web1"], "result": "x"}]));
    assert_eq!(run(&["manage.versions"])["Up to date"]["web1"], run(&["manage.versions"])["Master"]);
    master.command("salt-run", &["--async", "test.sleep", "100"]).exits(0);
    let running = run(&["jobs.master"]);
    let names: Vec<_> = running.as_array().expect("a list").iter().map(|run| run["fun"].clone()).collect();
    assert_eq!(names, [json!("runner.test.sleep"), json!("runner.jobs.master")]);
    master.salt(&["web1", "saltutil.kill_job", &jid]).exits(0);
}

/// Modules on the master's host run in the sandbox without grants.
#[test]
fn salt_cmd_runs_without_grants() {
    let master = Master::start("");
    lay_out(&master.path("cache/salt_cmd").join(COMPILED));
    let answer = master.command("salt-run", &["--out=json", "salt.cmd", "test.arg", "a b", "c=[1, x]"]).exits(0);
    assert_eq!(answer.json(), json!({"args": ["a b"], "kwargs": {"c": [1, "x"]}}));
    let refused = master.command("salt-run", &["salt.cmd", "cmd.run", "/usr/bin/id"]).exits(1);
    assert!(refused.stdout.contains("a sandbox to which nothing is granted"), "{refused:?}");
    assert!(!refused.stdout.contains("uid="), "{refused:?}");
    let option = master.command("salt-run", &["salt.cmd", "--config-dir=/etc/x.y"]).exits(64);
    assert_eq!(option.stdout, "", "{option:?}");
}

#[test]
fn what_is_wrong_is_said_as_salt_says_it() {
    let master = Master::start("");
    let run = |words: &[&str]| master.command("salt-run", words).exits(1).stdout;
    assert_eq!(run(&["nobody.knows"]), "'nobody.knows' is not available.\n");
    let wrong = run(&["jobs.list_job", "1", "x=2"]);
    assert!(wrong.contains("Passed invalid arguments: list_job() got an unexpected keyword argument 'x'"), "{wrong}");
    assert!(wrong.contains("jobs.list_job jid [ext_source=None]"), "{wrong}");
    let docs = master.command("salt-run", &["-d", "survey"]).exits(0).stdout;
    assert!(docs.starts_with("survey.diff:\n\n    As survey.hash,") && docs.contains("\nsurvey.hash:\n"), "{docs}");
    assert!(!docs.contains("jobs."), "{docs}");
}

/// A user without an account on this host runs runners with a name and a password, or with a token.
#[test]
fn salt_run_logs_in() {
    let mut master = Master::prepare(Kind::Brine, "");
    let (users, token) = (master.path("users"), master.path("token"));
    std::fs::write(&users, "fred:fred-secret\n").expect("our own folder");
    let conf = std::fs::read_to_string(master.path("conf/master")).expect("just written");
    let more = format!(
        "external_auth: {{file: {{^filename: {}, fred: ['@runner': [test.arg]]}}}}\ntoken_file: {}\n",
        users.display(),
        token.display()
    );
    std::fs::write(master.path("conf/master"), conf + &more).expect("our own folder");
    master.up();
    let run = |password: &str, fun: &str| {
        master.command("salt-run", &["-a", "file", "--username=fred", "--password", password, "--out=json", fun])
    };
    assert_eq!(run("fred-secret", "test.arg").exits(0).json(), json!({"args": [], "kwargs": {}}));
    // The result is the error message, and the exit code is 0, as in Salt.
    let wrong = run("wrong", "test.arg").exits(0);
    assert_eq!(wrong.json(), json!("Authentication failure of type \"eauth\" occurred for user fred."));
    let not_his = run("fred-secret", "test.metasyntactic").exits(0);
    assert!(not_his.stdout.contains("Authorization failure") || not_his.stdout.contains("fred"), "{not_his:?}");
    // A token works without a key.
    let log_in = ["-a", "file", "-T", "--username=fred", "--password=fred-secret", "test.arg"];
    master.command("salt-run", &log_in).exits(0);
    std::fs::remove_file(master.path("cache/.root_key")).expect("the master's key");
    master.command("salt-run", &["test.arg"]).exits(0);
    std::fs::remove_file(&token).expect("his token");
    master.command("salt-run", &["test.arg"]).exits(1);
}
