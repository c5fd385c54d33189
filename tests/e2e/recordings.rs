//! Recordings of calls: who may ask for them, and what of a job's secrets is in them.

use std::fs;
use std::path::PathBuf;

use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

fn minion(master: &Master, sandbox: &str) -> Minion {
    master.minion_kind(Kind::Brine, "web1", sandbox)
}

fn recordings(minion: &Minion) -> Vec<PathBuf> {
    let folder = fs::read_dir(minion.path("cache/recordings")).into_iter().flatten();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn names(files: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Without the job's id.
        name.split_once('-').expect("an id").1.to_owned()
    };
    files.iter().map(name).collect()
}

/// A master asks for a recording of one job, which happens where the owner permits it and nowhere else.
#[test]
fn a_master_asks_and_the_owner_permits() {
    let master = Master::start("");
    let minion = minion(&master, "sandbox: {modules: {test: {record: asked}, grains: {record: 'off'}}}");
    assert_eq!(master.json("web1", &["test.echo", "one"]), json!("one"));
    assert_eq!(names(&recordings(&minion)), [""; 0]);
    assert_eq!(master.json("web1", &["--executor-opts", "{record: true}", "test.echo", "two"]), json!("two"));
    assert_eq!(names(&recordings(&minion)), ["test.echo-1.recording"]);
    for module in ["grains", "disk"] {
        let function = if module == "grains" { "grains.ls" } else { "disk.usage" };
        let refused = master.salt(&["--executor-opts", "{record: true}", "web1", function]).exits(1);
        let line = format!("as in sandbox: {{modules: {{{module}: {{record: asked}}}}}}");
        assert!(refused.stdout.contains("was not run") && refused.stdout.contains(&line), "{refused:?}");
    }
    let odd = master.salt(&["--executor-opts", "{record: maybe}", "web1", "test.ping"]).exits(1);
    assert!(odd.stdout.contains("executor_opts say record: 'maybe'; write true or false"), "{odd:?}");
    assert_eq!(recordings(&minion).len(), 1);
}

/// A state that is given a secret of the pillar by its SLS file, and a program that is given it as a variable.
#[test]
fn secrets_of_the_pillar_are_not_in_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().canonicalize().expect("a path");
    let config = format!(
        "sandbox:\n  modules:\n    '*': {{record: true}}\n    file: {{changes: {{{0}: rw}}}}\n    cmd: {{process: {{programs: any, \
         env: [DB_PASS]}}}}\n    state: {{files: any, pillar: any, functions: any, states: true}}\n    pillar: {{pillar: any}}\n",
        folder.display()
    );
    let minion = Minion::prepare(Kind::Brine, "web1", 1, &config);
    let write = |path: &str, text: &str| {
        let path = minion.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write(
        "srv/salt/db.sls",
        &format!(
            "{}/db.conf:\n  file.managed:\n    - contents: 'password={{{{ pillar[\"db\"] }}}}'\n",
            folder.display()
        ),
    );
    write("srv/pillar/top.sls", "base: {'*': [db]}\n");
    write("srv/pillar/db.sls", "db: correct-horse-battery\n");
    let root = |option: &str, path: &str| format!("--{option}={}", minion.path(path).display());
    let (files, pillar) = (root("file-root", "srv/salt"), root("pillar-root", "srv/pillar"));
    let local = ["--local", &files, &pillar];
    let applied = minion.salt_call(&[&local[..], &["state.sls", "db"]].concat()).exits(0);
    assert!(applied.stdout.contains("Succeeded: 1"), "{applied:?}");
    assert_eq!(fs::read_to_string(folder.join("db.conf")).expect("managed"), "password=correct-horse-battery\n");
    minion.salt_call(&[&local[..], &["cmd.run", "/bin/echo hi", "env={DB_PASS: swordfish}"]].concat()).exits(0);
    minion.salt_call(&[&local[..], &["pillar.get", "db"]].concat()).exits(0);
    let files = recordings(&minion);
    let names = names(&files);
    for expect in ["state.sls-1", "file.states.managed-1", "cmd.run-1", "pillar.get-1"] {
        assert!(names.contains(&format!("{expect}.recording")), "{expect}: {names:?}");
    }
    for file in files {
        let bytes = fs::read(&file).expect("a recording");
        for secret in ["correct-horse-battery", "swordfish"] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", file.display());
        }
    }
}
