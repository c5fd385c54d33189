//! A job that restarts the minion which runs it: its return comes once, the job does not run again, and its receipt is in the chain.

use std::path::{Path, PathBuf};

use brine_kit::files::set_mode;
use brine_kit::process::run;
use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

/// Time that jobs get when the minion ends.
const DRAIN_S: u64 = 3;

/// A host whose service manager is this test: `restart` stands for `systemctl restart salt-minion`.
struct Host {
    master: Master,
    minion: Minion,
    events: Events,
    folder: tempfile::TempDir,
}

impl Host {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let master = Master::start("");
        let config = format!("drain_timeout: {DRAIN_S}\nsandbox: {{modules: {{cmd: {{process: any}}}}}}");
        let minion = master.minion_kind(Kind::Brine, "m1", &config);
        let (pid, runs) = (minion.path("minion.pid"), folder.path().join("runs"));
        let (pid, runs) = (pid.display(), runs.display());
        // It ends the minion. With --no-block it does not wait for the new one.
        let restart = format!(
            "#!/bin/sh\necho restart >> {runs}\nold=$(cat {pid})\nkill -TERM $old\necho asked\n\
             [ \"$1\" = --no-block ] && exit 0\nwhile [ \"$(cat {pid} 2>/dev/null || echo $old)\" = $old ]; do sleep 0.1; done\n\
             echo restarted >> {runs}\n"
        );
        let note = format!("#!/bin/sh\nsleep $2\necho $1 >> {runs}\n");
        for (name, text) in [("restart", restart), ("note", note)] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("our own folder");
            set_mode(&path, 0o755);
        }
        let events = master.events();
        Self { master, minion, events, folder }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a job, does what the service manager does, and returns the job's return when the new minion is there.
    fn restarts(&mut self, args: &[&str]) -> Value {
        let starts = self.events.count("salt/minion/m1/start");
        let jid = self.master.start_job(&[&["m1"], args].concat());
        let ended = self.minion.daemon.as_mut().expect("it runs").wait_exit();
        assert!(ended.success(), "{ended}");
        self.minion.up();
        wait_for("the start of the minion", || (self.events.count("salt/minion/m1/start") > starts).then_some(()));
        let returned = self.events.wait_return(&jid, "m1");
        // Whatever is sent again has come before this.
        assert_eq!(self.master.json("m1", &["test.ping"]), json!(true));
        assert_eq!(self.events.count(&format!("salt/job/{jid}/ret/m1")), 1, "{args:?} returns once");
        let receipt = self.master.command("salt-run", &["receipts.show", &jid, "--out=json"]).exits(0).json();
        assert_eq!(receipt["m1"]["jid"], json!(jid), "{receipt}");
        json!({"return": returned["return"], "retcode": returned["retcode"], "outcome": receipt["m1"]["outcome"]})
    }

    /// What ran since the last look, in order.
    fn ran(&self) -> Vec<String> {
        let file = self.folder.path().join("runs");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        text.lines().map(str::to_owned).collect()
    }

    /// An SLS file of these commands, one after the other.
    fn serve(&self, name: &str, commands: &[(&str, &str)]) {
        let states = commands.iter().map(|(id, words)| {
            let (program, rest) = words.split_once(' ').unwrap_or((words, ""));
            format!("{id}:\n  cmd.run:\n    - name: {} {rest}\n", self.program(program).display())
        });
        self.master.serve(&format!("{name}.sls"), states.collect::<String>().as_bytes());
    }
}

fn results(run: &Value) -> Vec<(String, bool)> {
    let mut all: Vec<(u64, String, bool)> = run
        .as_object()
        .unwrap_or_else(|| panic!("no run of states: {run}"))
        .iter()
        .map(|(tag, one)| {
            let id = tag.split("_|-").nth(1).unwrap_or_default();
            (one["__run_num__"].as_u64().unwrap_or(u64::MAX), id.to_owned(), one["result"] == json!(true))
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, id, result)| (id, result)).collect()
}

fn holds(path: &Path) -> String {
    run(&program("salt-receipt"), &["verify", path.to_str().expect("UTF-8")]).exits(0).stdout
}

#[test]
fn a_job_that_restarts_its_minion_returns_once() {
    let mut host = Host::start();
    let restart = host.program("restart").display().to_string();

    // As `service.restart salt-minion` does it: the job ends before the minion.
    let asked = host.restarts(&["cmd.run", &format!("{restart} --no-block")]);
    assert_eq!(asked, json!({"return": "asked", "retcode": 0, "outcome": "ran"}));
    assert_eq!(host.ran(), ["restart"]);

    // A command that waits for the new minion: the old one ends it, and says why.
    let cut = host.restarts(&["cmd.run", &restart]);
    assert_eq!((&cut["outcome"], cut["retcode"] != json!(0)), (&json!("killed"), true), "{cut}");
    let why = cut["return"].as_str().unwrap_or_else(|| panic!("{cut}"));
    assert!(why.contains("The minion ended while this job ran"), "{why}");
    assert_eq!(host.ran(), ["restart"]);

    // A run of states goes on to its end, if that comes within `drain_timeout`.
    host.serve("short", &[("a", "note a 0"), ("b", "restart --no-block"), ("c", "note c 0.5")]);
    let run = host.restarts(&["state.apply", "short"]);
    let all = [("a", true), ("b", true), ("c", true)].map(|(id, result)| (id.to_owned(), result));
    assert_eq!((results(&run["return"]), &run["outcome"]), (all.to_vec(), &json!("ran")), "{run}");
    assert_eq!(host.ran(), ["a", "restart", "c"]);

    // A longer one is cut off there: what was done is in the return, and nothing is done again.
    host.serve("long", &[("a", "note a 0"), ("b", "restart --no-block"), ("c", "note c 600"), ("d", "note d 0")]);
    let run = host.restarts(&["state.apply", "long"]);
    let done = results(&run["return"]);
    assert_eq!(done[..2], [("a".to_owned(), true), ("b".to_owned(), true)], "{run}");
    assert!(done[2..].iter().all(|(_, result)| !result), "{run}");
    assert!(run["return"].to_string().contains("The minion ended while this job ran"), "{run}");
    assert_eq!((&run["outcome"], run["retcode"] != json!(0)), (&json!("killed"), true), "{run}");
    assert_eq!(host.ran(), ["a", "restart"]);

    // Neither a gap nor a fork, at the master and on the host.
    let verified = host.master.command("salt-run", &["receipts.verify", "--out=json"]).exits(0).json();
    assert_eq!(verified["m1"]["odd"], json!([]), "{verified}");
    let (cache, pki) = (host.minion.path("cache"), host.minion.path("pki"));
    let words = ["export", "--cachedir", cache.to_str().expect("UTF-8"), "--pki-dir", pki.to_str().expect("UTF-8")];
    let lines = run_receipt(&words);
    let file = host.folder.path().join("lines");
    std::fs::write(&file, lines).expect("our own folder");
    let said = holds(&file);
    assert!(said.contains("receipts hold") && !said.contains("not here"), "{said}");
}

fn run_receipt(words: &[&str]) -> String {
    run(&program("salt-receipt"), words).exits(0).stdout
}
