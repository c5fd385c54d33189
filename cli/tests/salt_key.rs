//! `salt-key` with `pki_dir`s in temporary folders. Texts, exit codes and files equal those of Python Salt's salt-key
//! (salt_key.json, made by make_salt_key_golden.py); then follow the improvements over it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::net::UnixListener;

use assert_cmd::Command;
use brine_kit::files::mode;
use serde_json::Value;

struct Keys {
    folder: tempfile::TempDir,
    golden: Value,
}

impl Keys {
    fn new() -> Self {
        let golden: Value = serde_json::from_str(include_str!("salt_key.json")).unwrap();
        let folder = tempfile::Builder::new().prefix("sk").tempdir().unwrap();
        let root = folder.path().display();
        let conf = format!(
            "root_dir: {root}\npki_dir: {root}/pki\ncachedir: {root}/cache\nsock_dir: {root}/sock\nlog_file: {root}/log\n\
             user: root\nid: m_master\n"
        );
        for sub in ["conf", "cache", "sock"] {
            std::fs::create_dir(folder.path().join(sub)).unwrap();
        }
        std::fs::write(folder.path().join("conf/master"), conf).unwrap();
        let mut count = 0;
        let pems = golden["pems"].as_array().unwrap();
        for (state, names) in golden["keys"].as_object().unwrap() {
            let dir = folder.path().join("pki").join(state);
            std::fs::create_dir_all(&dir).unwrap();
            for name in names.as_array().unwrap() {
                std::fs::write(dir.join(name.as_str().unwrap()), pems[count % pems.len()].as_str().unwrap()).unwrap();
                count += 1;
            }
        }
        Self { folder, golden }
    }

    fn path(&self, sub: &str) -> std::path::PathBuf {
        self.folder.path().join(sub)
    }

    fn run(&self, args: &[&str], stdin: &str) -> std::process::Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_salt-key"));
        command.arg("-c").arg(self.path("conf")).args(args).write_stdin(stdin).env_remove("SUDO_USER");
        command.output().unwrap()
    }

    fn tree(&self) -> Value {
        let names = |state: &str| -> Vec<String> {
            let mut names: Vec<_> = std::fs::read_dir(self.path("pki").join(state))
                .into_iter()
                .flatten()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let states = ["minions", "minions_pre", "minions_rejected", "minions_denied"];
        states
            .into_iter()
            .map(|state| (state.to_owned(), names(state).into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn does_what_python_salts_salt_key_does() {
    let calls = Keys::new().golden["calls"].as_array().unwrap().clone();
    let mut wrong = Vec::new();
    for call in &calls {
        let keys = Keys::new();
        let args: Vec<_> = call["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
        let done = keys.run(&args, call["stdin"].as_str().unwrap());
        let dropfile = std::fs::read_to_string(keys.path("cache/.dfn")).map_or(Value::Null, Value::from);
        for (what, got, want) in [
            ("exit code", Value::from(done.status.code()), &call["code"]),
            ("stdout", Value::from(text(&done.stdout)), &call["stdout"]),
            ("keys", keys.tree(), &call["tree"]),
            ("dropfile", dropfile, &call["dropfile"]),
        ] {
            if got != *want {
                wrong.push(format!(
                    "{args:?} {:?}: {what}\n   got {got}\n  want {want}\n  {}",
                    call["stdin"],
                    text(&done.stderr)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(calls.len() > 60);
}

#[test]
fn files_are_for_their_owner_only() {
    let keys = Keys::new();
    for (args, path, expect) in [
        (&["-y", "-a", "web2"][..], "pki/minions/web2", 0o600),
        (&["-y", "-r", "web3"], "pki/minions_rejected/web3", 0o600),
        (&["-y", "-d", "db1"], "cache/.dfn", 0o400),
    ] {
        assert!(keys.run(args, "").status.success());
        assert_eq!(mode(keys.path(path)), expect, "{path}");
    }
}

#[test]
fn fingerprints_are_those_that_minions_show() {
    let keys = Keys::new();
    let done = keys.run(&["-f", "web2", "--out=json"], "");
    let shown: Value = serde_json::from_slice(&done.stdout).unwrap();
    let finger = shown["minions_pre"]["web2"].as_str().unwrap();
    assert_eq!((finger.len(), finger.split(':').count()), (95, 32), "{finger}");
    std::fs::write(keys.path("pki/master.pub"), keys.golden["pems"][0].as_str().unwrap()).unwrap();
    let all = text(&keys.run(&["-F"], "").stdout);
    let headings: Vec<_> = all.lines().filter(|line| line.ends_with("Keys:")).collect();
    assert_eq!(headings, ["Local Keys:", "Accepted Keys:", "Denied Keys:", "Unaccepted Keys:", "Rejected Keys:"]);
    assert!(all.contains(&format!("master.pub:  {finger}")) || all.contains("master.pub:  "), "{all}");
}

#[test]
fn garbage_is_not_accepted() {
    let keys = Keys::new();
    for content in [&b"garbage"[..], b"", b"\xff\xfe", b"-----BEGIN PUBLIC KEY-----\n"] {
        std::fs::write(keys.path("pki/minions_pre/web2"), content).unwrap();
        let done = keys.run(&["-y", "-a", "web2"], "");
        // Salt's command exits with 0.
        assert_eq!(done.status.code(), Some(0));
        assert_eq!(text(&done.stderr), "Unable to accept invalid key for web2.\n");
        assert!(!text(&done.stdout).contains("web2 accepted"));
        assert!(keys.path("pki/minions_pre/web2").exists() && !keys.path("pki/minions/web2").exists());
    }
    assert!(text(&keys.run(&["-y", "-a", "web*"], "").stdout).contains("web3 accepted"));
}

#[test]
fn links_in_the_store_are_ignored() {
    let keys = Keys::new();
    let secret = keys.path("secret");
    std::fs::write(&secret, "secret").unwrap();
    std::os::unix::fs::symlink(&secret, keys.path("pki/minions_pre/linked")).unwrap();
    assert!(!text(&keys.run(&["-L"], "").stdout).contains("linked"));
    assert!(!text(&keys.run(&["-p", "linked"], "").stdout).contains("secret"));
    keys.run(&["-y", "-D"], "");
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret");
}

#[test]
fn names_cannot_drive_the_terminal() {
    let keys = Keys::new();
    std::fs::write(keys.path("pki/minions_pre/a\x1b[2Jb\u{7}"), "x").unwrap();
    let done = keys.run(&["-l", "pre", "--force-color"], "");
    let shown = text(&done.stdout) + &text(&done.stderr);
    assert!(!shown.contains("\x1b[2J") && !shown.contains('\u{7}'), "{shown:?}");
    assert!(text(&done.stderr).contains("not the key of a minion"), "{shown}");
}

#[test]
fn a_running_master_is_told() {
    use brine_protocol::event::FrameDecoder;
    use brine_protocol::value::ValueExt as _;
    use std::io::Read as _;

    let keys = Keys::new();
    let bus = UnixListener::bind(keys.path("sock/master_event_pull.ipc")).unwrap();
    let told = std::thread::spawn(move || {
        let (mut stream, _) = bus.accept().unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let mut decoder = FrameDecoder::default();
        decoder.buffer().extend_from_slice(&bytes);
        let mut events = Vec::new();
        while let Some(event) = decoder.next_event().unwrap() {
            events.push(event);
        }
        events
    });
    assert!(keys.run(&["-y", "-a", "web*"], "").status.success());
    let events = told.join().unwrap();
    let facts: Vec<_> = events
        .iter()
        .map(|event| (event.tag.as_str(), event.data.get_text("act").unwrap(), event.data.get_text("id").unwrap()))
        .collect();
    assert_eq!(facts, [("salt/key", "accepted", "web2"), ("salt/key", "accepted", "web3")]);
    assert_eq!(events[0].data.get_bool("result"), Some(true));
    assert!(
        events[0].data.get_text("pub").unwrap().starts_with("-----BEGIN PUBLIC KEY-----")
            && events[0].data.has("_stamp")
    );
}

#[test]
fn the_cached_data_of_deleted_minions_goes() {
    for (args, left) in [
        (&["-y", "-d", "db1"][..], false),
        (&["-y", "-d", "db1", "--preserve-minions=True"], true),
        // the id still has a denied key
        (&["-y", "-r", "db1", "--include-accepted"], true),
    ] {
        let keys = Keys::new();
        std::fs::create_dir(keys.path("cache/grains")).unwrap();
        std::fs::write(keys.path("cache/grains/db1.p"), "x").unwrap();
        std::fs::write(keys.path("cache/grains/web1.p"), "x").unwrap();
        assert!(keys.run(args, "").status.success());
        assert_eq!(keys.path("cache/grains/db1.p").exists(), left, "{args:?}");
        assert!(keys.path("cache/grains/web1.p").exists());
    }
}

#[test]
fn key_pairs() {
    let keys = Keys::new();
    let dir = keys.path("new").display().to_string();
    let done = keys.run(&["--gen-keys=web9", "--gen-keys-dir", &dir], "");
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stdout).starts_with("return:\n    "), "{}", text(&done.stdout));
    assert_eq!(mode(keys.path("new/web9.pem")), 0o400);
    assert!(std::fs::read_to_string(keys.path("new/web9.pub")).unwrap().starts_with("-----BEGIN PUBLIC KEY-----"));
    // a second call keeps the pair
    let again = keys.run(&["--gen-keys=web9", "--gen-keys-dir", &dir], "");
    assert_eq!(text(&again.stdout), text(&done.stdout));
    for args in [&["--gen-keys=../evil"][..], &["--gen-keys=x", "--keysize=1024"], &["--gen-keys=x", "--keysize=99999"]]
    {
        assert_eq!(keys.run(args, "").status.code(), Some(64), "{args:?}");
    }
    // The error names the bounds of Salt and of this command.
    let refused = text(&keys.run(&["--gen-keys=x", "--keysize=32769"], "").stderr);
    assert!(
        refused.contains("error: The maximum value for keysize is 32768") && refused.contains("4096 here"),
        "{refused}"
    );
}

#[test]
fn the_masters_key_is_signed_for_minions() {
    use base64::Engine as _;
    use brine_protocol::keys::{PublicKey, SignAlg};

    let keys = Keys::new();
    let done = keys.run(&["--gen-signature"], "");
    assert_eq!(
        (done.status.code(), text(&done.stdout)),
        (Some(1), "return:\n    No usable private-key found\n".to_owned())
    );
    let done = keys.run(&["--gen-signature", "--auto-create"], "");
    assert!(text(&done.stdout).contains("No usable public-key found"), "{}", text(&done.stdout));
    assert!(!keys.path("pki/master_sign.pem").exists(), "no key is made for nothing");

    std::fs::write(keys.path("pki/master.pub"), keys.golden["pems"][0].as_str().unwrap()).unwrap();
    let done = keys.run(&["--gen-signature", "--auto-create"], "");
    assert_eq!((done.status.code(), text(&done.stdout)), (Some(0), "return:\n    True\n".to_owned()));
    assert_eq!(mode(keys.path("pki/master_sign.pem")), 0o400);
    let signature = |path: &str| {
        let text = std::fs::read_to_string(keys.path(path)).unwrap();
        base64::engine::general_purpose::STANDARD.decode(text.trim_end()).unwrap()
    };
    let signed = keys.golden["pems"][0].as_str().unwrap().trim();
    let signer = PublicKey::load(&keys.path("pki/master_sign.pub")).unwrap();
    let first = signature("pki/m_master_pubkey_signature");
    assert!(signer.verify(SignAlg::Pkcs1v15Sha1, signed.as_bytes(), &first));

    // An existing signing key stays; in another folder with other keys, one is made.
    let again = keys.run(&["--gen-signature"], "");
    assert!(
        again.status.code() == Some(1) && text(&again.stdout).contains("already exists"),
        "{}",
        text(&again.stdout)
    );
    std::fs::create_dir(keys.path("other")).unwrap();
    let (private, public, folder) =
        (keys.path("pki/master_sign.pem"), keys.path("pki/minions/web1"), keys.path("other"));
    let args = ["--gen-signature", "--priv", private.to_str().unwrap(), "--pub", public.to_str().unwrap()];
    let done = keys.run(&[&args[..], &["--signature-path", folder.to_str().unwrap()]].concat(), "");
    assert_eq!(text(&done.stdout), "return:\n    True\n");
    assert!(!signer.verify(SignAlg::Pkcs1v15Sha1, b"else", &signature("other/m_master_pubkey_signature")));
    let gone = keys.run(&["--gen-signature", "--priv=/no/such.pem"], "");
    assert!(text(&gone.stdout).contains("Private-key /no/such.pem does not exist"));
}

#[test]
fn fingerprints_by_another_hash() {
    let keys = Keys::new();
    let length = |hash: &str| {
        let done = keys.run(&["-f", "web2", "--out=json", "--finger-hash", hash], "");
        let shown: Value = serde_json::from_slice(&done.stdout).unwrap();
        shown["minions_pre"]["web2"].as_str().unwrap().len()
    };
    assert_eq!((length("sha1"), length("sha256"), length("sha512")), (59, 95, 191));
    let wrong = keys.run(&["-f", "web2", "--finger-hash=md4"], "");
    assert!(
        wrong.status.code() == Some(64) && text(&wrong.stderr).contains("md4 is no hash"),
        "{}",
        text(&wrong.stderr)
    );
    let conf = std::fs::read_to_string(keys.path("conf/master")).unwrap();
    std::fs::write(keys.path("conf/master"), conf + "hash_type: sha1\n").unwrap();
    let done = text(&keys.run(&["-f", "web2"], "").stdout);
    assert_eq!(done.lines().last().unwrap().len(), "web2:  ".len() + 59, "{done}");
}

#[test]
fn files_are_given_to_the_user_that_was_named() {
    use std::os::unix::fs::MetadataExt as _;
    let keys = Keys::new();
    let unknown = keys.run(&["-u", "no-such-user", "-L"], "");
    assert_eq!(
        (unknown.status.code(), text(&unknown.stderr)),
        (Some(67), "User not found: \"no-such-user\"\n".to_owned())
    );
    let dir = keys.path("new").display().to_string();
    let made = keys.run(&["-u", "nobody", "--gen-keys=web9", "--gen-keys-dir", &dir], "");
    if !rustix::process::geteuid().is_root() {
        assert_eq!(made.status.code(), Some(67), "only root gives files away");
        return;
    }
    assert!(keys.run(&["-u", "nobody", "-y", "-a", "web2"], "").status.success());
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let nobody = passwd.lines().find_map(|line| line.strip_prefix("nobody:x:")?.split(':').next()).unwrap();
    for path in ["new/web9.pem", "new/web9.pub", "pki/minions/web2"] {
        assert_eq!(std::fs::metadata(keys.path(path)).unwrap().uid().to_string(), nobody, "{path}");
    }
}

#[test]
fn wrong_calls() {
    let keys = Keys::new();
    for (args, code, words) in [
        (&["-D", "x"][..], 64, "Delete all takes no arguments. Use -d to delete specified keys"),
        (&["-l", "bogus"], 64, "'bogus' is not a valid argument to '--list'"),
        (&["--bogus"], 64, "no such option: --bogus"),
        (&["-a"], 64, "option requires 1 argument"),
    ] {
        let done = keys.run(args, "");
        assert_eq!(done.status.code(), Some(code), "{args:?}");
        let stderr = text(&done.stderr);
        assert!(
            stderr.starts_with("Usage: salt-key [options]\n\nsalt-key: error: ") && stderr.contains(words),
            "{stderr}"
        );
    }
    // no answer counts as no
    let done = keys.run(&["-a", "web2"], "");
    assert_eq!(done.status.code(), Some(1));
    assert!(keys.path("pki/minions_pre/web2").exists());
}

#[test]
fn version_and_help() {
    let keys = Keys::new();
    assert_eq!(
        text(&keys.run(&["--version"], "").stdout),
        concat!("salt-key ", env!("CARGO_PKG_VERSION"), " (Brine)\n")
    );
    let help = text(&keys.run(&["--help"], "").stdout);
    assert!(help.starts_with("Usage: salt-key [options]\n\nLists the keys of minions"), "{help}");
    assert!(help.contains("--include-denied") && help.contains("Actions:"), "{help}");
}

/// Names of keys are made visible also in a pipe, because their reader is a person or a program that requests JSON.
#[test]
fn ids_in_lists_are_shown_such_that_none_looks_like_another() {
    let keys = Keys::new();
    let pre = keys.path("pki/minions_pre");
    std::fs::create_dir_all(&pre).unwrap();
    let pem = keys.golden["pems"][0].as_str().unwrap().to_owned();
    let ids = [
        ("zz1", "zz1"),
        ("zz1\u{202e}", "zz1\\u202e"),
        ("zz\u{200b}1", "zz\\u200b1"),
        ("zz1\u{ad}", "zz1\\xad"),
        ("zz1\u{feff}", "zz1\\ufeff"),
        ("zz1\u{e0041}", "zz1\\U000e0041"),
        ("zz1 ", "zz1\\x20"),
        ("zz1\u{3164}", "zz1\\u3164"),
    ];
    for (id, _) in ids {
        std::fs::write(pre.join(id), &pem).unwrap();
    }
    let hidden = |text: &str| text.chars().any(|c| c != '\n' && brine_protocol::text::is_active(c));
    let text = |args: &[&str]| {
        let output = keys.run(args, "");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for args in [&["-l", "un", "--no-color"][..], &["-L", "--no-color"], &["-f", "zz*", "--no-color"]] {
        let listed = text(args);
        for (_, shown) in ids {
            let is_line = |line: &str| {
                line.trim_end().strip_prefix(shown).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            };
            assert_eq!(listed.lines().filter(|line| is_line(line)).count(), 1, "{shown} in {listed}");
        }
        assert!(!hidden(&listed), "{listed}");
    }
    let json: Value = serde_json::from_str(&text(&["-l", "un", "--out=json"])).unwrap();
    for (id, _) in ids {
        assert!(json["minions_pre"].as_array().unwrap().iter().any(|listed| listed == id), "{id:?} in {json}");
    }
    for args in [&["-y", "-a", "zz1\u{202e}"][..], &["-y", "-d", "zz1\u{ad}"], &["-a", "no\u{202e}"], &["-p", "zz*"]] {
        let said = text(args);
        assert!(!hidden(&said) && said.contains("\\"), "{args:?}: {said}");
    }
}
