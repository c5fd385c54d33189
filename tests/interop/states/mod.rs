//! States for real, by Python Salt and by Brine, each in a root that is thrown away: the results state by state, and what
//! is there afterwards. Both run without a master.

mod accounts;
mod archives;

use std::path::Path;

use brine_kit::ThrowawayRoot;
use brine_kit::programs::program;
use brine_tests::salt::{line, python};
use serde_json::Value;

/// What one of the two does with SLS files.
struct Applied {
    /// For each file: with test=True, applied, and applied again.
    results: Vec<[Value; 3]>,
    /// The output of the last line of shell.
    there: String,
    /// What the dry run of the first file wrote, but for the minion's own folder.
    dry: Vec<String>,
}

/// Applies SLS files by both, and compares. `before` is a line of shell that prepares the root, `after` one that shows what
/// is there. Returns none where there can be no such root, and for older lines, whose results differ.
fn both(before: &str, files: &[&str], after: &str) -> Option<[Applied; 2]> {
    if line() < 3008 {
        return None;
    }
    Some([apply(false, before, files, after)?, apply(true, before, files, after)?])
}

/// [`both`] by Brine alone.
fn brine(before: &str, files: &[&str], after: &str) -> Option<Applied> {
    apply(true, before, files, after)
}

fn apply(brine: bool, before: &str, files: &[&str], after: &str) -> Option<Applied> {
    let folder = tempfile::tempdir().expect("a folder");
    for (place, text) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("s{place}.sls")), text).expect("our own folder");
    }
    let conf = folder.path().join(if brine { "brine" } else { "python" });
    std::fs::create_dir_all(&conf).expect("our own folder");
    let roots = folder.path().display();
    let settings = format!(
        "id: m\nroot_dir: /var/lib/applied\nfile_client: local\nlog_level: error\nfile_roots: {{base: [{roots}]}}\n\
         sandbox: {{profiles: [states]}}\n"
    );
    std::fs::write(conf.join("minion"), settings).expect("our own folder");
    let salt_call = if brine { program("salt-call") } else { python().with_file_name("salt-call") };
    let root = ThrowawayRoot::new(&[folder.path(), salt_call.parent().expect("a folder"), Path::new("/tmp")])?;
    if !before.is_empty() {
        root.shell(before);
    }
    let prepared = root.changed();
    let mut dry = Vec::new();
    let mut results = Vec::new();
    for (place, text) in files.iter().enumerate() {
        let results_of = ["True", "False", "False"].map(|test| {
            let (test, sls) = (format!("test={test}"), format!("s{place}"));
            let call: [&str; 2] = if brine { ["state.template_str", text] } else { ["state.apply", &sls] };
            let conf = conf.display().to_string();
            let program = salt_call.display().to_string();
            // Python's salt-call asks for its folder, which has to be one of the new root.
            let enter = ["-c", "cd / && exec \"$0\" \"$@\"", &program];
            let args = [&enter[..], &["-c", &conf, "--local", "--out=json"], &call[..], &[&test]].concat();
            let output = root.run(Path::new("/bin/sh"), &args);
            if place == 0 && test == "test=True" {
                dry = root.changed();
            }
            let json: Value =
                serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {output:?}"));
            let local = json["local"].as_object().unwrap_or_else(|| panic!("no states: {output:?}"));
            let kept = ["name", "result", "comment", "changes"];
            let of = |state: &Value| kept.iter().map(|key| ((*key).to_owned(), state[*key].clone())).collect();
            local.iter().map(|(id, state)| (id.clone(), Value::Object(of(state)))).collect()
        });
        results.push(results_of.map(Value::Object));
    }
    let own =
        |path: &String| path.starts_with("/var/lib/applied") || path.starts_with("/tmp") || prepared.contains(path);
    dry.retain(|path| !own(path));
    Some(Applied { results, there: root.shell(after), dry })
}

/// Compares what both did.
fn assert_same([python, brine]: &[Applied; 2]) {
    for (place, (python, brine)) in python.results.iter().zip(&brine.results).enumerate() {
        for (run, (python, brine)) in ["dry", "first", "second"].iter().zip(python.iter().zip(brine)) {
            let (python, brine) = (python.as_object().expect("states"), brine.as_object().expect("states"));
            let ids: Vec<&String> = python.keys().collect();
            assert_eq!(ids, brine.keys().collect::<Vec<_>>(), "file {place}, {run}");
            for id in ids {
                assert_eq!(python[id], brine[id], "Python's and Brine's {id} of file {place}, {run}");
            }
        }
    }
    assert_eq!(python.there, brine.there);
    assert!(brine.dry.is_empty(), "the dry run wrote {:?}", brine.dry);
}
