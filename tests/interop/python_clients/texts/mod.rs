//! Messages of commands: Python's `salt-key` and `salt-call` and ours, called with the same words and the same master,
//! have the same output and exit code. Jids are masked.

mod salt;

use brine_kit::process::{Output, run};
use brine_tests::salt::{Kind, Master, Minion, line};

/// Masks jids, which differ from call to call.
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

/// Calls both and compares output and exit code.
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

/// Keys in every state. Each call gets a fresh copy.
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
    // Older lines order and word some output differently. Ours follows the newest.
    if line() < 3008 {
        return;
    }
    let golden = include_str!("../../../../cli/tests/salt_key.json");
    let golden: serde_json::Value = serde_json::from_str(golden).expect("JSON");
    let pem = golden["pems"][0].as_str().expect("a key");
    let folder = |kind: Kind| {
        let master = Master::prepare(kind, "");
        // Python's command writes a file there for a running master, but does not make the folder.
        std::fs::create_dir_all(master.path("cache")).expect("our own folder");
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
    // 3008 hashes the whole file, so its fingerprints differ from those that minions show.
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
