//! Crashes in the middle of a run of states: no file is half written, no result is lost, and the next run ends the work.

use std::collections::BTreeSet;
use std::path::Path;

use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master};
use serde_json::{Value, json};

/// Files of a run.
const FILES: usize = 40;
/// The files after which the executor or the minion is killed: two of each, or twenty with `BRINE_LONG`.
fn moments() -> Vec<usize> {
    let all = (0..20).map(|number| number * 17 % (FILES - 2));
    if brine_tests::long() { all.collect() } else { vec![3, 29] }
}

/// Rounds after which the minion starts again and forgets which executors died.
const FORGETS: usize = 3;

/// What a file holds after a round.
fn content(file: usize, round: usize) -> String {
    format!("{}{file}-{round}\n", "x".repeat(100_000))
}

#[test]
fn a_crash_leaves_nothing_half_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().canonicalize().expect("there");
    let master = Master::start("");
    let sls = format!(
        "{{% for i in range({FILES}) %}}\nf{{{{ i }}}}:\n  file.managed:\n    - name: {}/f{{{{ i }}}}\n    - mode: '0640'\n    \
         - contents: \"{{{{ 'x' * 100000 }}}}{{{{ i }}}}-{{{{ pillar.round }}}}\"\n{{% endfor %}}\n",
        dir.display()
    );
    master.serve("files.sls", sls.as_bytes());
    let grants = format!("sandbox: {{modules: {{file.states: {{changes: {{{}: rw}}}}}}}}\n", dir.display());
    let mut minion = master.minion_kind(Kind::Brine, "web1", &grants);
    let events = master.events();
    let mut round = 0;
    for victim in ["executor", "minion"] {
        for moment in moments() {
            round += 1;
            let there = names(&dir);
            let jid = master.start_job(&["web1", "state.apply", "files", &format!("pillar={{round: {round}}}")]);
            let seen = content(moment, round);
            let returned = format!("salt/job/{jid}/ret/web1");
            wait_for("the run to come to the moment", || {
                let ended = events.all().into_iter().find(|(tag, _)| *tag == returned);
                let is_there = std::fs::read_to_string(dir.join(format!("f{moment}"))).ok()? == seen;
                assert!(is_there || ended.is_none(), "{victim} before f{moment}: it ended: {ended:?}");
                is_there.then_some(())
            });
            match victim {
                "executor" => {
                    // A module whose executor died runs in another one for a while.
                    for executor in minion.executors() {
                        let pid = i32::try_from(executor).ok().and_then(rustix::process::Pid::from_raw);
                        let pid = pid.expect("a process id");
                        // It may have ended by itself.
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                }
                _ => {
                    minion.kill();
                    minion.up();
                }
            }
            events.wait_return(&jid, "web1");
            // A module whose executors died is not run for a while, twice as long each time, until the minion starts again.
            if victim == "executor" && round % FORGETS == 0 {
                minion.stop();
                minion.up();
            }
            // On the bus, large returns are trimmed.
            let stored = master.command("salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).exits(0).json();
            // The next job is lost to a minion that has not subscribed again.
            wait_for("the module to run", || {
                let asked = master.salt(&["web1", "state.running", "-t", "5", "--out=json"]);
                asked.stdout.contains("[]").then_some(())
            });
            check(&dir, &there, &stored["web1"], (round, moment), victim);
        }
    }
    // The next run ends the work, and the one after it finds nothing to do.
    let last = ["web1", "state.apply", "files", &format!("pillar={{round: {round}}}")];
    for changes in [true, false] {
        let run = master.json("web1", &last[1..]);
        let results = run.as_object().unwrap_or_else(|| panic!("{run}"));
        assert_eq!(results.len(), FILES);
        assert!(results.values().all(|result| result["result"] == json!(true)), "{run}");
        assert!(changes || results.values().all(|result| result["changes"] == json!({})), "{run}");
    }
    let names = names(&dir);
    assert_eq!(names, (0..FILES).map(|file| format!("f{file}")).collect());
    for file in 0..FILES {
        let text = std::fs::read_to_string(dir.join(format!("f{file}"))).expect("there");
        assert!(text == content(file, round), "f{file} has {} bytes", text.len());
    }
}

fn names(dir: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(dir).expect("our own folder").flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

/// Compares the return of a run that was cut off with the files.
fn check(dir: &Path, there: &BTreeSet<String>, run: &Value, (round, moment): (usize, usize), victim: &str) {
    // Before the first result, the failure is the return.
    let none = serde_json::Map::new();
    let is_cut_off =
        |text: &&str| ["did not finish", "ended while this job ran"].iter().any(|says| text.contains(says));
    let failed = run.as_str().filter(is_cut_off).map(|_| &none);
    let results = run.as_object().or(failed).unwrap_or_else(|| panic!("{victim} after f{moment}: {run}"));
    let has = |file: usize| {
        results.iter().any(|(tag, result)| tag.contains(&format!("_|-f{file}_|-")) && result["result"] == json!(true))
    };
    let mut done = 0;
    let said: Vec<String> = results
        .iter()
        .map(|(tag, result)| {
            let comment = result["comment"].as_str().unwrap_or_default();
            format!("{tag}: {} {}", result["result"], comment.chars().take(200).collect::<String>())
        })
        .collect();
    let said = said.join("\n");
    for file in 0..FILES {
        let text = std::fs::read_to_string(dir.join(format!("f{file}"))).ok();
        let is = |round: usize| text.as_ref().is_some_and(|text| *text == content(file, round));
        let is_new = is(round);
        // No run may have come to a file yet; one that was there stays.
        let is_old = text.is_none() && !there.contains(&format!("f{file}")) || (0..round).any(is);
        let bytes = text.as_ref().map(String::len);
        assert!(is_new || is_old, "{victim} after f{moment}: f{file} has {bytes:?} bytes");
        if has(file) {
            // A result that was returned is true.
            assert!(is_new, "{victim} after f{moment}: f{file}");
            done += 1;
        } else {
            // What is written without a result is the one that was being worked at.
            assert!(!is_new || file == done, "{victim} after f{moment}: f{file} has no result, {done} have:\n{said}");
        }
    }
    assert!(done >= moment, "{victim} after f{moment}: only {done} results:\n{said}");
    let is_cut = results.keys().any(|tag| tag.ends_with("_|-cut_off"));
    assert!(is_cut || results.is_empty() || done == FILES, "{victim} after f{moment}:\n{said}");
}
