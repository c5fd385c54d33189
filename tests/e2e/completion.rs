//! Shell completion and manual pages.

use std::collections::BTreeSet;

use brine_kit::process::run_with;
use brine_kit::programs::{example, program};
use brine_tests::salt::{Master, Minion};

/// Returns a program's completions at the end of a line, in fish's protocol.
fn offered(master: &Master, minion: &Minion, line: &[&str]) -> BTreeSet<String> {
    let home = master.path("home");
    std::fs::create_dir_all(&home).expect("our own folder");
    let conf = if line[0] == "salt-call" { minion.conf() } else { master.conf() };
    let mut args = vec!["--", line[0], "-c", &conf];
    args.extend(&line[1..]);
    let home = home.to_string_lossy();
    let env = [("COMPLETE", "fish"), ("XDG_CACHE_HOME", ""), ("HOME", &home)];
    let output = run_with(&program(line[0]), &args, &env).exits(0);
    // Each line is a completion, a tabulator and a description.
    output.stdout.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn targets_functions_runners_and_options() {
    let master = Master::start("nodegroups: {web: 'L@web1', db: 'db*'}");
    let hello = std::fs::read(example("hello")).expect("built by make modules");
    master.serve("_modules/hello.wasm", &hello);
    let minion = master.minion("web1");
    // Modules from the master are completed like standard ones.
    master.salt(&["web1", "hello.world"]).exits(0);
    for (line, expected) in [
        (&["salt", ""][..], &["web1"][..]),
        (&["salt", "-L", "db1,"], &["db1,web1"]),
        (&["salt", "-N", ""], &["db", "web"]),
        (&["salt", "-G", "os"], &[]),
        (&["salt", "*", "hello."], &["hello.world"]),
        (&["salt", "'web*'", "test.pi"], &["test.ping"]),
        (&["salt", "no*", "test.pi"], &["test.ping"]),
        (&["salt", "*", "test.ping,hel"], &["test.ping,hello.world"]),
        (&["salt", "-d", "*", "hel"], &["hello", "hello.world"]),
        (&["salt", "*", "test.echo", "te"], &[]),
        (&["salt", "--preview"], &["--preview-target"]),
        (&["salt-cp", "we"], &["web1"]),
        (&["salt-cp", "*", "/etc/os-rel"], &["/etc/os-release"]),
        (&["salt-run", "jobs.loo"], &["jobs.lookup_jid"]),
        (&["salt-run", "doc."], &["doc.execution", "doc.runner", "doc.wheel"]),
        (&["salt-key", "-d", ""], &["web1"]),
        (&["salt-key", "-a", ""], &[]),
        (&["salt-key", "-l", "den"], &["denied"]),
        (&["salt-call", "test.pi"], &["test.ping"]),
        (&["salt-call", "--local", "sys.list_f"], &["sys.list_functions"]),
        (&["salt-master", "--log-file-"], &["--log-file-level"]),
        (&["salt-minion", "--pid"], &["--pid-file"]),
    ] {
        let expected = expected.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(offered(&master, &minion, line), expected, "{line:?}");
    }
}

/// Without a minion or a master, completion is empty and returns at once.
#[test]
fn nobody_to_ask() {
    let mut master = Master::start("");
    let mut minion = master.minion("web1");
    minion.stop();
    assert_eq!(offered(&master, &minion, &["salt", "*", "test.pi"]), BTreeSet::new());
    master.stop();
    assert_eq!(offered(&master, &minion, &["salt", "*", "test.pi"]), BTreeSet::new());
    assert_eq!(offered(&master, &minion, &["salt", "we"]), ["web1".to_owned()].into());
}

/// The script that bash loads, and the function that it calls when the key is pressed.
#[test]
fn in_bash() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    let salt = program("salt");
    let bin = salt.parent().expect("a folder").to_string_lossy();
    let (conf, home) = (master.conf(), master.path("home").to_string_lossy().into_owned());
    let script = format!(
        "PATH='{bin}':$PATH; source <(COMPLETE=bash salt); COMP_WORDS=(salt -c '{conf}' \"'*'\" test.pi); COMP_CWORD=4; COMP_TYPE=9
         _clap_complete_salt salt test.pi \"'*'\"; echo \"${{COMPREPLY[@]}}\""
    );
    let output = run_with("bash".as_ref(), &["-c", &script], &[("HOME", &home), ("XDG_CACHE_HOME", "")]).exits(0);
    assert_eq!(output.stdout, "test.ping\n", "{output:?}");
}

#[test]
fn manual_pages() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = dir.path().to_string_lossy();
    for name in [
        "salt",
        "salt-cp",
        "salt-key",
        "salt-run",
        "salt-call",
        "salt-master",
        "salt-minion",
        "salt-sandbox",
        "salt-api",
        "salt-module",
    ] {
        run_with(&program(name), &[], &[("BRINE_MAN_PAGES", &folder)]).exits(0);
        let page = std::fs::read_to_string(dir.path().join(format!("{name}.1"))).expect("a page");
        let (title, option) =
            (format!(".TH {name} 1 "), if name == "salt-module" { "version" } else { "config\\-dir" });
        for part in [title.as_str(), ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", option] {
            assert!(page.contains(part), "{name}: {part}: {page}");
        }
    }
    assert!(dir.path().join("salt-module-new.1").exists());
    let nowhere = run_with(&program("salt"), &[], &[("BRINE_MAN_PAGES", "/proc/none")]).exits(73);
    assert!(nowhere.stderr.contains("the manual pages cannot be written to /proc/none: "), "{nowhere:?}");
}
