//! docs/modules.md: runs its commands as written, one after the other, against a master and a minion. Only `/srv/salt`
//! is another folder. The commands are for C, whose build takes a second. The other languages differ by one word, and
//! other tests here build them.

use std::fs;
use std::path::Path;

use brine_kit::files::set_mode;
use brine_kit::process::run_with;
use brine_kit::programs::{program, program_folder};
use brine_tests::fits;

use crate::build::{folder, source};
use crate::start;

#[test]
fn from_nothing_to_hello_world() {
    let (master, _minion) = start("{}");
    let work = tempfile::tempdir().unwrap();
    // `salt` as on the master's host, with its configuration in the default place.
    let bin = work.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let script = format!("#!/bin/sh\nexec '{}' -c '{}' \"$@\"\n", program("salt").display(), master.conf());
    fs::write(bin.join("salt"), script).unwrap();
    set_mode(bin.join("salt"), 0o755);
    let system = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{system}", bin.display(), program_folder().display());
    let cache = folder().join("cache");
    let env = [("PATH", path.as_str()), ("XDG_CACHE_HOME", cache.to_str().unwrap())];

    let mut place = work.path().to_owned();
    let commands = console(&fs::read_to_string(source("docs/modules.md")).unwrap());
    assert!(commands.len() > 5);
    for (command, expect) in commands {
        if let Some(folder) = command.strip_prefix("cd ") {
            place.push(folder);
            continue;
        }
        let command = command.replace("/srv/salt", master.path("srv/salt").to_str().unwrap());
        let line = format!("cd '{}' && {command}", place.display());
        let output = run_with(Path::new("/bin/sh"), &["-c", &line], &env);
        assert!(fits(&output.stdout, &expect), "{command}\n{output:?}\nexpected:\n{expect}");
    }
}

/// Returns the commands of a document's consoles, each with its expected output.
fn console(document: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            commands.push((command.to_owned(), String::new()));
        } else if let Some((_, expect)) = commands.last_mut().filter(|_| inside) {
            expect.push_str(line);
            expect.push('\n');
        }
    }
    commands
}
