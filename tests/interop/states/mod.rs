//! States for real, by Python Salt and by Brine, each in a root that is thrown away: the results state by state, and what
//! is there afterwards. Both run without a master. All files are applied in the same two roots, because Brine compiles its
//! modules once in each.

mod accounts;
mod archives;
mod files;
mod grains;
mod judged;
mod system;
mod web;

use brine_kit::ThrowawayRoot;
use brine_kit::programs::program;
use brine_tests::compiled;
use brine_tests::salt::{line, python};
use serde_json::Value;
use tempfile::TempDir;

use web::Web;

/// What the states see as the pillar.
const PILLAR: &str = "pillar={a: 1, b: {c: x}, l: [1], s: t}";

/// One of the two, in its root.
struct Side {
    brine: bool,
    root: ThrowawayRoot,
    /// Its configuration and the SLS files.
    folder: TempDir,
}

impl Side {
    fn new(brine: bool, web: &Web) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = format!(
            "id: m\nroot_dir: /var/lib/applied\ncachedir: {0}/cache\nfile_client: local\nlog_level: error\n\
             file_roots: {{base: [{0}]}}\n\
             sandbox: {{profiles: [states], modules: {{file: {{{web}}}, archive: {{{web}}}, \
             network: {{network: [\"127.0.0.1:*\"]}}, \
             file.states.managed: {{limits: {{wall: 10s}}}}}}}}\n",
            folder.path().display(),
            web = format!("network: [\"127.0.0.1:{}\"]", web.port),
        );
        std::fs::write(folder.path().join("minion"), settings).expect("our own folder");
        if brine {
            compiled::lay_out(&folder.path().join(compiled::COMPILED));
        }
        let root = ThrowawayRoot::new(&[folder.path(), Self::salt_call(brine).parent().expect("a folder")])?;
        Some(Self { brine, root, folder })
    }

    fn salt_call(brine: bool) -> std::path::PathBuf {
        if brine { program("salt-call") } else { python().with_file_name("salt-call") }
    }

    /// Applies an SLS file and returns name, result, comment and changes of each state.
    fn apply(&self, text: &str, test: bool) -> Value {
        std::fs::write(self.folder.path().join("applied.sls"), text).expect("our own folder");
        let call: [&str; 2] = if self.brine { ["state.template_str", text] } else { ["state.apply", "applied"] };
        let conf = self.folder.path().display().to_string();
        let test = if test { "test=True" } else { "test=False" };
        let args = [&["-c", &conf, "--local", "--out=json"], &call[..], &[test, PILLAR]].concat();
        let output = self.root.run(&Self::salt_call(self.brine), &args);
        let json: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {output:?}"));
        let states = json["local"].as_object().unwrap_or_else(|| panic!("no states: {output:?}"));
        let kept = ["name", "result", "comment", "changes"];
        let of = |state: &Value| {
            let mut state = state.clone();
            // A process of another run, or none here.
            if let Some(changes) = state["changes"].as_object_mut() {
                changes.remove("pid");
            }
            kept.iter().map(|key| ((*key).to_owned(), state[*key].clone())).collect()
        };
        states.iter().map(|(id, state)| (id.clone(), Value::Object(of(state)))).collect()
    }

    /// What was written, but for the minion's own folder and temporary files.
    fn written(&self) -> Vec<String> {
        let mut written = self.root.changed();
        written.retain(|path| !path.starts_with("/var/lib/applied") && !path.starts_with("/tmp"));
        written
    }
}

/// Applies an SLS file by both: with test=True, for real, and again. The dry run may write nothing. The results have to be the same, but
/// those of the dry run where `fetches` says that Python fetches what Brine does not.
fn compare(what: &str, [python, brine]: &[Side; 2], text: &str, fetches: bool) {
    let mut wrong = Vec::new();
    for (run, test) in [("dry run", true), ("first", false), ("second", false)] {
        let before = brine.written();
        let (theirs, ours) = (python.apply(text, test), brine.apply(text, test));
        if test {
            assert_eq!(brine.written(), before, "the dry run of {what} wrote");
        }
        let (theirs, ours) = (theirs.as_object().expect("states"), ours.as_object().expect("states"));
        assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "{what}, {run}");
        if test && fetches {
            for (id, state) in ours.iter().filter(|(_, state)| state["result"] == true) {
                assert_eq!(theirs[id]["result"], true, "the dry run of {id}: {state}");
            }
            continue;
        }
        for (id, state) in theirs.iter().filter(|(id, state)| **state != ours[*id]) {
            wrong.push(format!("{run}, {id}:\n  Python {state}\n  Brine  {}", ours[id]));
        }
        // What stands for hashes is the same; hashes stand nowhere.
        assert!(!ours.values().any(|state| state.to_string().contains("$6$")), "{ours:?}");
    }
    assert!(wrong.is_empty(), "{what}: {} results differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn states_do_what_pythons_do() {
    // The results of older lines differ.
    if line() < 3008 {
        return;
    }
    let web = Web::start();
    let (Some(python), Some(brine)) = (Side::new(false, &web), Side::new(true, &web)) else { return };
    let sides = [python, brine];
    for side in &sides {
        side.root.shell(&archives::made());
        side.root.shell(files::MADE);
        side.root.shell(system::MADE);
        side.root.shell(judged::MADE);
    }
    let same = |there: &str| {
        let [python, brine] = &sides;
        assert_eq!(python.root.shell(there), brine.root.shell(there));
    };
    compare("texts of files", &sides, files::TEXTS, false);
    compare("files of the web", &sides, &files::made(&web), true);
    same(files::THERE);
    files::none_is_taken_in(&sides[1], &web);
    compare("users and groups", &sides, &accounts::made(), false);
    compare("changed users and groups", &sides, accounts::CHANGED, false);
    compare("archives", &sides, archives::STATES, false);
    compare("the system", &sides, &format!("{}{}", system::STATES, judged::made(&web)), false);
    compare("the changed system", &sides, system::CHANGED, false);
    [accounts::THERE, archives::THERE, system::THERE, judged::THERE].into_iter().for_each(same);
    archives::none_leads_out(&sides[1]);
    system::alternatives(&sides[1]);
    grains::check(&sides);
}
