//! The units of the package, as systemd reads them.

use std::fs;
use std::path::Path;

use brine_kit::files::set_mode;
use brine_kit::process::run;

const ANALYZE: &str = "/usr/bin/systemd-analyze";

/// What `systemd-analyze verify` says of these files.
fn verified(files: &[std::path::PathBuf]) -> (bool, String) {
    // Manual pages are not installed where this runs.
    let files = files.iter().map(|file| file.to_str().expect("a name of ours"));
    let words: Vec<&str> = ["verify", "--man=no"].into_iter().chain(files).collect();
    let said = run(Path::new(ANALYZE), &words);
    (said.code == 0, said.stderr)
}

#[test]
fn systemd_understands_the_units() {
    if !Path::new(ANALYZE).exists() {
        return brine_kit::missing("systemd-analyze", "install systemd");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prefix = folder.path().join("usr");
    fs::create_dir_all(prefix.join("bin")).expect("our own folder");
    for program in ["salt-api", "salt-master", "salt-minion"] {
        let program = prefix.join("bin").join(program);
        fs::write(&program, "#!/bin/sh\n").expect("our own folder");
        set_mode(&program, 0o755);
    }
    let mut files = Vec::new();
    for unit in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../pkg")).expect("our own folder").flatten() {
        let name = unit.file_name().into_string().expect("a name of ours");
        if name.ends_with(".service") {
            let text = fs::read_to_string(unit.path()).expect("our own file");
            let filled = text.replace("@PREFIX@", &prefix.display().to_string());
            assert_ne!(filled, text, "{name} names its program by the prefix");
            // One of several minions of a host.
            let file = folder.path().join(name.replace('@', "@edge"));
            fs::write(&file, filled).expect("our own folder");
            files.push(file);
        }
    }
    assert!(files.len() >= 4, "{files:?}");
    assert_eq!(verified(&files), (true, String::new()));
    // It would say so: an unknown setting is a line, and a program that is not there an error.
    let text = fs::read_to_string(&files[0]).expect("our own file");
    let bad = folder.path().join("bad.service");
    fs::write(&bad, text.replace("Type=", "Typo=")).expect("our own folder");
    assert!(verified(&[bad]).1.contains("Typo"));
}
