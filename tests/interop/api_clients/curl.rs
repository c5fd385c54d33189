//! curl, as the documentation of Salt's salt-api calls it.

use std::path::Path;

use brine_kit::process::{Daemon, Output, run};
use brine_kit::wait::wait_for;
use serde_json::{Value, json};

use super::{Api, PASSWORD, start};

fn curl(api: &Api, path: &str, words: &[&str]) -> Output {
    let (certificate, url) = (api.certificate.display().to_string(), format!("{}{path}", api.url));
    let mut all = vec!["-sS", "--max-time", "60", "--cacert", &certificate, &url];
    all.extend(words);
    run(Path::new("curl"), &all).exits(0)
}

fn log_in() -> Vec<String> {
    let fields = ["username=ann", &format!("password={PASSWORD}"), "eauth=sharedsecret"];
    fields.iter().flat_map(|field| ["-d".to_owned(), (*field).to_owned()]).collect()
}

/// The status, behind what the answer says.
const STATUS: [&str; 2] = ["-w", "\n%{http_code}"];

#[test]
fn curl_as_in_salts_documentation() {
    let api = start();
    let jar = api.master.path("cookies.txt").display().to_string();
    let creds = log_in();
    let creds: Vec<&str> = creds.iter().map(String::as_str).collect();
    let yaml = ["-H", "Accept: application/x-yaml"];

    // A log-in that keeps the cookie, and a call by it.
    let answer = curl(&api, "/login", &[&creds[..], &yaml, &["-c", &jar]].concat()).stdout;
    assert!(answer.starts_with("return:\n") && answer.contains("eauth: sharedsecret\n"), "{answer}");
    let token = answer.lines().find_map(|line| line.trim_start_matches(['-', ' ']).strip_prefix("token: "));
    let token = token.expect("a token");
    let call = ["-d", "client=local", "-d", "tgt=one", "-d", "fun=test.ping"];
    assert_eq!(curl(&api, "", &[&call[..], &yaml, &["-b", &jar]].concat()).stdout, "return:\n- one: true\n");
    let header = format!("X-Auth-Token: {token}");
    let by_header = ["-H", &header];
    let answer = curl(&api, "", &[&call[..], &by_header].concat()).stdout;
    assert_eq!(answer, r#"{"return": [{"one": true}]}"#, "scripts look for this text");

    // JSON, a list of chunks, and one that names a wrong type.
    let json_type = ["-H", "Content-Type: application/json"];
    let chunks = r#"[{"client": "local", "tgt": "one", "fun": "test.fib", "arg": ["10"]},
        {"client": "runner", "fun": "jobs.lookup_jid", "kwarg": {"jid": "20200101000000000000"}}]"#;
    let answer = curl(&api, "", &[&json_type[..], &by_header, &["-d", chunks]].concat()).json();
    assert_eq!((&answer["return"][0]["one"][0], &answer["return"][1]), (&json!(55), &json!({})), "{answer}");
    let refused = curl(&api, "", &[&by_header[..], &["-H", "Content-Type: text/html", "-d", "x"], &STATUS].concat());
    assert!(refused.stdout.ends_with("\n406"), "{refused:?}");

    // Without a session.
    let answer = curl(&api, "/run", &[&creds[..], &call].concat()).json();
    assert_eq!(answer, json!({"return": [{"one": true}]}));

    // Jobs that nobody waits for, with the way to their results.
    let answer = curl(&api, "/minions", &[&by_header[..], &["-d", "tgt=one", "-d", "fun=test.ping"]].concat()).json();
    let link = answer["_links"]["jobs"][0]["href"].as_str().expect("a link");
    let info = curl(&api, link, &by_header).json();
    assert_eq!(info["info"][0]["Function"], json!("test.ping"), "{info}");

    // A new minion's keys.
    let tar = api.master.path("jerry-salt-keys.tar").display().to_string();
    let fields = ["-d", "mid=jerry", "-o", &tar];
    curl(&api, "/keys", &[&creds[..], &fields].concat());
    let folder = api.master.path("").display().to_string();
    let listed = run(Path::new("tar"), &["-xvf", &tar, "-C", &folder]).exits(0).stdout;
    let mut files: Vec<&str> = listed.lines().collect();
    files.sort_unstable();
    assert_eq!(files, ["minion.pem", "minion.pub"]);
    let public = std::fs::read_to_string(api.master.path("minion.pub")).expect("it was in the archive");
    let accepted = std::fs::read_to_string(api.master.path("pki/minions/jerry")).expect("an accepted key");
    assert_eq!(public.trim(), accepted.trim());

    // Hooks, and events as the documentation's scripts read them.
    let file = api.master.path("events.txt");
    let stream = follow(&api, &header, &file);
    let answer =
        curl(&api, "/hook/mycompany/build/success", &[&by_header[..], &["-d", "revision=aa22a3c4b2e7"]].concat());
    assert_eq!(answer.json(), json!({"success": true}));
    let answer = curl(
        &api,
        "",
        &[&by_header[..], &["-d", "client=local_async", "-d", "tgt=one", "-d", "fun=test.ping"]].concat(),
    );
    let jid = answer.json()["return"][0]["jid"].as_str().expect("a jid").to_owned();
    let ret = format!("tag: salt/job/{jid}/ret/one\n");
    wait_for("the event of the return", || {
        stream.log_text().split_once(&ret).is_some_and(|(_, rest)| rest.contains("\n\n")).then_some(())
    });
    drop(stream);
    // Records between blank lines, fields by lines, the first one is the tag: Salt's own awk script.
    let script = r#"BEGIN{RS=""; FS="\n"} $1 ~ "salt/job/[0-9]+/ret/" { sub("data: ", "", $2); print $2 }"#;
    let printed = run(Path::new("awk"), &[script, &file.display().to_string()]).exits(0).stdout;
    let event: Value = serde_json::from_str(printed.lines().last().expect("an event")).expect("JSON");
    assert_eq!((&event["data"]["id"], &event["data"]["return"]), (&json!("one"), &json!(true)), "{event}");

    let answer = curl(&api, "/logout", &[&by_header[..], &["-d", ""]].concat()).json();
    assert_eq!(answer["return"], json!("Your token has been cleared"));
    let refused = curl(&api, "/minions", &[&by_header[..], &STATUS].concat());
    assert!(refused.stdout.ends_with("\n401"), "{refused:?}");
}

/// Follows the events into a file. They have begun.
fn follow(api: &Api, header: &str, file: &Path) -> Daemon {
    let (certificate, url) = (api.certificate.display().to_string(), format!("{}/events", api.url));
    let words = ["-NsS", "--max-time", "60", "--cacert", &certificate, "-H", header, &url];
    let stream = Daemon::start(Path::new("curl"), &words, file);
    wait_for("the stream to begin", || stream.log_text().starts_with("retry: 400\n").then_some(()));
    stream
}
