//! The commands' own words: Python's `salt`, `salt-key`, `salt-cp` and `salt-call` and ours, called the same way with the same master,
//! print the same and end with the same code. Jids are all the same here.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brine_tests::process::{Output, run};
use brine_tests::salt::{Kind, Master, Minion, line};

use super::{minions, start};

/// What both are called with. `one` and `two` are there, `down` is accepted and is not.
const SALT: &[&[&str]] = &[
    &["one", "test.ping"],
    &["one", "test.echo", "two\nlines, žluť"],
    &["one", "test.retcode", "7"],
    &["one", "test.pingg"],
    &["one", "test.ping,test.echo", ",hi"],
    &["nobody", "test.ping"],
    &["-v", "one", "test.ping"],
    &["--show-jid", "one", "test.ping"],
    &["--async", "one", "test.ping"],
    &["--summary", "-v", "one", "test.retcode", "3"],
    &["--summary", "-v", "-t", "1", "down", "test.ping"],
    &["-t", "1", "down", "test.ping"],
    &["-t", "1", "--hide-timeout", "down", "test.ping"],
    &["--out=json", "-t", "1", "down", "test.ping"],
    &["--force-color", "one", "test.echo", "{a: [1, {b: c}], d: null}"],
    &["--out=json", "one", "test.arg", "1", "a=b"],
    &["--out=json", "--out-indent=-1", "one", "test.arg", "1", "a=b"],
    &["--out=yaml", "--out-indent=4", "one", "test.echo", "{a: [1, {b: c}]}"],
    &["--out=txt", "one", "test.echo", "a\nb"],
    &["--out=pprint", "one", "test.arg", "1", "a=b"],
    &["--out=table", "one", "test.echo", "[{name: a, size: 1}, {name: bb, size: 22}]"],
    &["--out=no_return", "one", "test.echo", "x"],
    &["--out=highstate", "one", "test.ping"],
    &["--out=bogus", "one", "test.ping"],
    &["--preview-target", "--out=json", "*"],
    &["-N", "none", "test.ping"],
];

/// In Salt only until 3007.
const SALT_3007: &[&[&str]] =
    &[&["--out=newline_values_only", "one", "test.echo", "[1, b]"], &["--out=quiet", "one", "test.ping"]];

/// A text without what differs from call to call: jids.
fn masked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let length = rest[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - at);
        let digits = &rest[at..at + length];
        out.push_str(&rest[..at]);
        out.push_str(if length == 20 { "JID" } else { digits });
        rest = &rest[at + length..];
    }
    out + rest
}

/// Calls both; what they print and how they end has to be the same.
fn same(what: &[&str], wrong: &mut Vec<String>, call: impl Fn(Kind) -> Output) {
    let said = |kind: Kind| {
        let output = call(kind);
        (output.code, masked(&output.stdout), output.stderr)
    };
    let ((code, stdout, stderr), (python_code, python, python_stderr)) = (said(Kind::Brine), said(Kind::Python));
    if (code, &stdout) != (python_code, &python) {
        wrong.push(format!(
            "{what:?}: {code} {stdout:?}\n   {stderr:?}\n  Python: {python_code} {python:?}\n   {python_stderr:?}"
        ));
    }
}

#[track_caller]
fn all_same(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn salt() {
    let master = start("gather_job_timeout: 1");
    let _minions = minions(&master);
    std::fs::write(master.path("pki/minions/down"), std::fs::read(master.path("pki/minions/one")).expect("a key"))
        .expect("our own folder");
    let mut wrong = Vec::new();
    let earlier = if line() < 3008 { SALT_3007 } else { &[] };
    for args in SALT.iter().chain(earlier) {
        same(args, &mut wrong, |kind| master.command_of(kind, "salt", args));
    }
    all_same(&wrong);
}

/// Keys in every state; each call gets them anew.
const KEYS: &[(&str, &[&str])] = &[
    ("minions", &["db1", "web1"]),
    ("minions_pre", &["Alpha", "web2", "web3", "žluť"]),
    ("minions_rejected", &["bad1"]),
    ("minions_denied", &["evil"]),
];

const SALT_KEY: &[&[&str]] = &[
    &["-L"],
    &["-L", "--out=json"],
    &["-L", "--force-color"],
    &["-l", "acc"],
    &["-l", "un", "--out=yaml"],
    &["-l", "rej"],
    &["-l", "den", "--out=txt"],
    &["-y", "-a", "web*"],
    &["-y", "-A"],
    &["-y", "-a", "nosuch"],
    &["-y", "-a", "bad1", "--include-rejected"],
    &["-y", "-a", "evil", "--include-denied"],
    &["-y", "-r", "web2"],
    &["-y", "-r", "db1", "--include-accepted"],
    &["-y", "-R"],
    &["-y", "-d", "web1"],
    &["-y", "-d", "nosuch"],
    &["-y", "-D"],
    &["-p", "web2"],
    &["-P"],
    &["-f", "nosuch"],
];

#[test]
fn salt_key() {
    let golden = include_str!("../../../client/tests/salt_key.json");
    let golden: serde_json::Value = serde_json::from_str(golden).expect("JSON");
    let pem = golden["pems"][0].as_str().expect("a key");
    let folder = |kind: Kind| {
        let master = Master::prepare(kind, "");
        for (state, ids) in KEYS {
            std::fs::create_dir_all(master.path("pki").join(state)).expect("our own folder");
            for id in *ids {
                std::fs::write(master.path("pki").join(state).join(id), pem).expect("our own folder");
            }
        }
        master
    };
    let mut wrong = Vec::new();
    for args in SALT_KEY {
        same(args, &mut wrong, |kind| folder(kind).command("salt-key", args));
    }
    // 3008 hashes the whole file, so its fingerprints are not those that minions show.
    if line() < 3008 {
        for args in [&["-f", "web2"][..], &["-F"], &["-f", "web*", "--out=json"]] {
            same(args, &mut wrong, |kind| folder(kind).command("salt-key", args));
        }
    }
    all_same(&wrong);
}

#[test]
fn a_signature_of_the_masters_key_is_good_for_python() {
    let mut master = Master::start("");
    master.stop();
    let made = master.command("salt-key", &["--gen-signature", "--auto-create", "--out=json"]).exits(0);
    assert_eq!(made.json(), serde_json::json!({"return": true}));
    let check = "import base64, glob, sys, salt.crypt\n\
                 pki = sys.argv[1]\n\
                 signature = base64.b64decode(open(glob.glob(pki + '/*_pubkey_signature')[0]).read())\n\
                 key = salt.crypt.clean_key(open(pki + '/master.pub').read())\n\
                 print(salt.crypt.verify_signature(pki + '/master_sign.pub', key, signature))";
    let pki = master.path("pki").display().to_string();
    let checked = run(&brine_tests::salt::python(), &["-c", check, &pki]).exits(0);
    assert_eq!(checked.stdout.trim(), "True", "{checked:?}");
}

#[test]
fn salt_call() {
    let minion = |kind: Kind| Minion::prepare(kind, "web1", 1, "file_client: local\nlog_level: quiet");
    let minions = [minion(Kind::Brine), minion(Kind::Python)];
    let mut wrong = Vec::new();
    for args in [
        &["test.ping"][..],
        &["--out=json", "test.echo", "{a: [1, null], b: ž}"],
        &["--out=txt", "test.echo", "a\nb"],
        &["--force-color", "test.echo", "{a: [1]}"],
        &["--retcode-passthrough", "test.retcode", "7"],
        &["test.retcode", "7"],
        &["test.false"],
        &["--out=json", "--no-parse=text", "test.echo", "text=12"],
        &["nomodule.fun"],
    ] {
        same(args, &mut wrong, |kind| {
            let minion = minions.iter().find(|minion| minion.kind() == kind).expect("both");
            minion.salt_call(&[&["--local"], args].concat())
        });
    }
    all_same(&wrong);
}

/// Files and their content below a folder.
fn tree(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(next) = dirs.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = entry.strip_prefix(dir).expect("below it").display().to_string();
            if entry.is_dir() {
                found.push((format!("{name}/"), Vec::new()));
                dirs.push(entry);
            } else {
                found.push((name, std::fs::read(&entry).expect("a file")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn salt_cp() {
    let master = start("salt_cp_chunk_size: 5000");
    let there = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(there.path(), PermissionsExt::from_mode(0o777)).expect("our own folder");
    let grants = format!("sandbox: {{modules: {{cp: {{filesystem: {{{}: rw}}}}}}}}", there.path().display());
    let _brine = master.minion_kind(Kind::Brine, "brine", &grants);
    let _python = master.minion_kind(Kind::Python, "python", "");

    let here = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| here.path().join(name).display().to_string();
    std::fs::create_dir_all(path("tree/sub/empty")).expect("our own folder");
    std::fs::write(path("tree/text"), "žluť\n").expect("our own folder");
    std::fs::write(path("tree/sub/data"), (0..20_000u32).map(|n| (n * n % 251) as u8).collect::<Vec<_>>())
        .expect("our own folder");
    let mut wrong = Vec::new();
    let calls: [(&[&str], &[&str], &str); 6] = [
        (&[], &["tree/text"], "copy"),
        (&[], &["tree/text"], ""),
        (&["-C"], &["tree/sub/data"], "made/for/it"),
        (&["-C", "-n"], &["tree"], "all"),
        (&["-C"], &["tree", "tree/text"], "all2/"),
        (&["-L", "-C"], &["tree/text", "tree/sub/data"], "two"),
    ];
    for (at, (options, sources, dest)) in calls.iter().enumerate() {
        for minion in ["brine", "python"] {
            let into = |kind: Kind| there.path().join(format!("{at}-{minion}-{kind:?}"));
            for kind in [Kind::Brine, Kind::Python] {
                std::fs::create_dir(into(kind)).expect("our own folder");
                std::fs::set_permissions(into(kind), PermissionsExt::from_mode(0o777)).expect("our own folder");
            }
            let sources: Vec<String> = sources.iter().map(|source| path(source)).collect();
            same(options, &mut wrong, |kind| {
                let dest = format!("{}/{dest}", into(kind).display());
                let mut args = options.to_vec();
                args.push(minion);
                args.extend(sources.iter().map(String::as_str));
                args.push(&dest);
                let mut output = master.command_of(kind, "salt-cp", &args);
                output.stdout = output.stdout.replace(&format!("-{kind:?}"), "");
                output
            });
            let (ours, pythons) = (tree(&into(Kind::Brine)), tree(&into(Kind::Python)));
            assert!(!ours.is_empty() && ours == pythons, "{options:?} {dest} on {minion}: {wrong:?}");
        }
    }
    all_same(&wrong);
}
