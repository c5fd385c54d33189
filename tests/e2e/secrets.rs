//! CVE-2021-25284, credentials in logs: daemons log at the finest level, with a secret in every possible place. No
//! secret may appear in any log or output.

use std::path::Path;

use brine_kit::process::Output;
use brine_protocol::keys::PrivateKey;
use brine_protocol::sealed::Vault;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

const PASSWORD: &str = "planted-password-of-fred";
const WRONG: &str = "planted-wrong-password";
const SHARED: &str = "planted-shared-secret";
const STATIC: &str = "planted-static-token-0123456789abcdef";
/// The hash of the token in the configuration.
const STATIC_SHA256: &str = "bba2decc86081f6c21d655d861a12fabb27e734a5c6bf836940a4d4b7a0bb1ec";
const WRONG_TOKEN: &str = "b1a27ed0b1a27ed0b1a27ed0b1a27ed0b1a27ed0b1a27ed0b1a27ed0b1a27ed0";
const DATABASE: &str = "planted-database-password";
const OF_THE_MINION: &str = "planted-secret-of-the-minion";

/// The secrets, each with a description for the failure message.
struct Secrets(Vec<(String, String)>);

impl Secrets {
    fn add(&mut self, what: &str, secret: &str) {
        assert!(secret.len() >= 16, "{what} is too short to look for");
        self.0.push((what.to_owned(), secret.to_owned()));
    }

    /// Adds a file that contains one secret.
    fn file(&mut self, path: &Path) {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.add(&path.display().to_string(), text.trim());
    }

    /// Adds the key of a session. Its file is encrypted with what follows from the master's key.
    fn session(&mut self, master: &Path, path: &Path) {
        let key = PrivateKey::load(master).expect("the master's key");
        let file = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let opened = Vault::of(&key).open("web1", &file).expect("made by this master");
        let text = String::from_utf8_lossy(&opened[opened.len() - 76..]).into_owned();
        assert!(!String::from_utf8_lossy(&file).contains(&text[..16]), "it is not encrypted");
        self.add(&path.display().to_string(), &text);
    }

    /// Adds the lines of a private key, because each line reveals a part.
    fn private_key(&mut self, path: &Path) {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let body: Vec<&str> = text.lines().filter(|line| line.len() == 64 && !line.contains(' ')).collect();
        assert!(body.len() > 10, "{} is no private key", path.display());
        // The first lines of all keys of one format are alike.
        body.iter().skip(1).for_each(|line| self.add(&path.display().to_string(), line));
    }

    fn are_not_in(&self, place: &str, text: &str) {
        for (what, secret) in &self.0 {
            if let Some(at) = text.find(secret.as_str()) {
                let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
                panic!("{place} holds {what}: {}", text[start..at].chars().take(400).collect::<String>());
            }
        }
    }
}

#[test]
fn cve_2021_25284_no_secret_is_in_a_log_an_event_an_audit_line_or_an_answer() {
    let mut master = Master::prepare(Kind::Brine, "");
    let dir = master.folder.path().display().to_string();
    let config = master.path("conf/master");
    let text = std::fs::read_to_string(&config).expect("our own folder");
    std::fs::write(master.path("users"), format!("fred:{PASSWORD}\n")).expect("our own folder");
    let more = format!(
        "log_level_logfile: all\naudit_log: {dir}/audit\nsharedsecret: {SHARED}\ntoken_file: {dir}/token\n\
         returner.pgjsonb.pass: {DATABASE}\nexternal_auth:\n  file: {{^filename: {dir}/users, fred: ['.*', '@runner', '@wheel']}}\n  \
         sharedsecret: {{front: ['.*']}}\n  statictoken: {{^tokens: {{ci: {STATIC_SHA256}}}, ci: ['.*']}}\n"
    );
    std::fs::write(&config, text + &more).expect("our own folder");
    master.log_level = "all";
    master.up();
    let events = master.events();
    let more = format!("log_level_logfile: all\nmysql.pass: {OF_THE_MINION}");
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, &more);
    minion.log_level = "all";
    master.accept(&mut minion);

    let mut secrets = Secrets(Vec::new());
    for (what, secret) in [
        ("a password", PASSWORD),
        ("a wrong password", WRONG),
        ("the shared secret", SHARED),
        ("a static token", STATIC),
        ("a wrong token", WRONG_TOKEN),
        ("the database's password", DATABASE),
        ("a setting of the minion", OF_THE_MINION),
    ] {
        secrets.add(what, secret);
    }
    let mut said: Vec<(String, Output)> = Vec::new();
    let mut ask = |program: &str, words: &[&str]| {
        let mut all = vec!["-l", "all"];
        all.extend(words);
        let output = master.command(program, &all);
        let code = output.code;
        said.push((format!("{program} {words:?}"), output));
        code
    };
    let fred = |password: &'static str| ["-a", "file", "--username=fred", "--password", password];
    let with = |log_in: [&'static str; 5], rest: &[&'static str]| -> Vec<&'static str> {
        log_in.iter().chain(rest).copied().collect()
    };
    assert_eq!(ask("salt", &["web1", "test.ping"]), 0);
    assert_eq!(ask("salt", &with(fred(PASSWORD), &["web1", "test.ping"])), 0);
    ask("salt", &with(fred(WRONG), &["web1", "test.ping"]));
    assert_eq!(ask("salt-run", &with(fred(PASSWORD), &["jobs.active"])), 0);
    ask("salt-run", &with(fred(WRONG), &["jobs.active"]));
    let front = ["-a", "sharedsecret", "--username=front", "--password", SHARED];
    assert_eq!(ask("salt", &with(front, &["web1", "test.ping"])), 0);
    let ci = ["-a", "statictoken", "--username=ci", "--password", STATIC];
    ask("salt", &with(ci, &["web1", "test.ping"]));
    assert_eq!(ask("salt-run", &with(fred(PASSWORD), &["-T", "jobs.active"])), 0);
    secrets.file(&master.path("token"));
    assert_eq!(ask("salt-run", &["-T", "jobs.active"]), 0);
    std::fs::write(master.path("token"), WRONG_TOKEN).expect("our own folder");
    let key = std::fs::read_to_string(master.path("cache/.root_key")).expect("the master's key");
    ask("salt-run", &["-T", "jobs.active"]);
    assert_eq!(ask("salt-key", &["-L"]), 0);
    // Deleting a key replaces the publish key. A session ends, and another begins.
    assert_eq!(ask("salt", &["web1", "config.get", "no_such_setting"]), 0);
    secrets.add("the key of root", key.trim());
    secrets.session(&master.path("pki/master.pem"), &master.path("cache/brine_sessions/web1"));
    secrets.private_key(&master.path("pki/master.pem"));
    secrets.private_key(&minion.path("pki/minion.pem"));
    let local = minion.salt_call(&["-l", "all", "test.ping"]);
    said.push(("salt-call".to_owned(), local));
    minion.stop();
    master.stop();

    for (what, output) in &said {
        secrets.are_not_in(&format!("the output of {what}"), &output.stdout);
        secrets.are_not_in(&format!("the log of {what}"), &output.stderr);
    }
    for (what, path) in [
        ("the master's log", master.path("log")),
        ("the master's console", master.path("master.out")),
        ("the audit log", master.path("audit")),
        ("the minion's log", minion.path("log")),
        ("the minion's console", minion.path("minion.out")),
    ] {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(!text.is_empty(), "{what} is empty");
        if what != "the audit log" {
            assert!(text.contains("TRACE") || text.contains("DEBUG"), "{what} has not all");
        }
        secrets.are_not_in(what, &text);
    }
    let all = json!(events.all()).to_string();
    assert!(all.contains("salt/auth") && all.contains("/ret/web1"), "{all}");
    secrets.are_not_in("the event bus", &all);
}
