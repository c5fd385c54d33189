//! `http.query` and its states, by a Python minion and a Brine one, against one server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use brine_tests::salt::{Kind, Master};
use serde_json::{Value, json};

/// Answers by path: `/json`, `/missing`, `/moved`, and at all others what was asked. It ends with the test's process.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head: Vec<String> = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                head.push(line.trim_end().to_owned());
            }
            let Some(first) = head.first().cloned() else { continue };
            let of = |name: &str| {
                let line = head.iter().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
                line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
            };
            let mut body = vec![0; of("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)];
            reader.read_exact(&mut body).expect("a body");
            let path = first.split(' ').nth(1).unwrap_or_default();
            let (status, more, text) = match path {
                "/json" => {
                    ("200 OK", "Content-Type: application/json\r\n", r#"{"a": [1, 2.5, null], "b": "ünï"}"#.to_owned())
                }
                "/missing" => ("404 Not Found", "", "nothing here".to_owned()),
                "/moved" => ("302 Found", "Location: /json\r\n", String::new()),
                _ => {
                    let named = ["content-type", "authorization", "x-own"].map(|name| format!("{name}={:?}", of(name)));
                    let text = format!("{first}\n{}\n{}", named.join("\n"), String::from_utf8_lossy(&body));
                    ("200 OK", "X-Of: the server\r\n", text)
                }
            };
            let length = text.len();
            let _ = write!(
                reader.get_mut(),
                "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            );
        }
    });
    port
}

#[test]
fn queries_are_salts() {
    let port = server();
    // Nobody listens there.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port();
    let master = Master::start("timeout: 30");
    let grants = format!("sandbox: {{modules: {{http: {{network: ['127.0.0.1:{port}', '127.0.0.1:{closed}']}}}}}}");
    let _python = master.minion_kind(Kind::Python, "python", "");
    let _brine = master.minion_kind(Kind::Brine, "brine", &grants);
    let calls: [&[&str]; 12] = [
        &["http.query", "/"],
        &["http.query", "/", "status=True", "text=True"],
        &["http.query", "/json", "decode=True", "status=True"],
        &["http.query", "/json", "decode=True", "decode_type=plain"],
        &["http.query", "/", "method=POST", "data=some text", "header_dict={X-Own: one}"],
        &["http.query", "/x?y=1", "params={a: b c, d: 'ü&'}"],
        &["http.query", "/", "method=POST", "data={a: 1, b: x y}"],
        &["http.query", "/", "username=ada", "password=secret"],
        &["http.query", "/", "header_list=['X-Own: two']", "method=PUT", "data=x"],
        &["http.query", "/missing", "status=True"],
        &["http.query", "/missing", "raise_error=False", "status=True"],
        &["http.query", "/moved", "decode=True"],
    ];
    for call in calls {
        let url = format!("http://127.0.0.1:{port}{}", call[1]);
        let words: Vec<&str> = [&call[..1], &[&url], &call[2..]].concat();
        assert_eq!(master.json("brine", &words), master.json("python", &words), "{call:?}");
    }
    // The words of what went wrong are each system's own.
    let dead = format!("http://127.0.0.1:{closed}/");
    for minion in ["brine", "python"] {
        let answer = master.json(minion, &["http.query", &dead, "status=True"]);
        assert_eq!(answer["status"], json!(0), "{minion}: {answer}");
        assert!(answer["error"].is_string() && answer.get("body").is_none(), "{minion}: {answer}");
        let waited =
            master.json(minion, &["http.wait_for_successful_query", &dead, "wait_for=1", "request_interval=1"]);
        assert!(waited["error"].is_string(), "{minion}: {waited}");
    }
    let elsewhere = master.salt(&["brine", "http.query", "http://127.0.0.1:1/"]).exits(1);
    assert!(elsewhere.stdout.contains("http: {network: [\"127.0.0.1:1\""), "{elsewhere:?}");
    let refused = master.salt(&["brine", "http.query", &dead, "verify_ssl=False"]).exits(1);
    assert!(refused.stdout.contains("verify_ssl is not offered here"), "{refused:?}");

    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let state = |id: &str, path: &str, rest: &str| format!("{id}:\n  http.query:\n    - name: {}\n{rest}", url(path));
    let sls = [
        state("text", "/json", "    - match: ünï\n"),
        state("none", "/json", "    - match: other\n    - status: 200\n"),
        state("both", "/json", "    - match: '\"a\": .1'\n    - match_type: pcre\n    - status: 200\n"),
        state("list", "/json", "    - status: [201, 200]\n    - status_type: list\n"),
        state("code", "/missing", "    - status: 404\n"),
        state("other", "/missing", "    - status: 20.\n    - status_type: pcre\n"),
        state("nothing", "/json", ""),
        format!(
            "wait:\n  http.wait_for_successful_query:\n    - name: {}\n    - status: 200\n    - wait_for: 5\n",
            url("/json")
        ),
    ];
    master.serve("asks.sls", sls.concat().as_bytes());
    for args in [&["state.apply", "asks"][..], &["state.apply", "asks", "test=True"]] {
        let results = |minion: &str| -> Vec<(String, Value, Value, Value)> {
            let all = master.json(minion, args);
            let all = all.as_object().unwrap_or_else(|| panic!("{minion}: {all}"));
            let field = |result: &Value, name: &str| result[name].clone();
            let one = |(tag, result): (&String, &Value)| {
                (tag.clone(), field(result, "result"), field(result, "comment"), field(result, "changes"))
            };
            all.iter().filter(|(tag, _)| !(args.len() == 3 && tag.contains("wait_for"))).map(one).collect()
        };
        assert_eq!(results("brine"), results("python"), "{args:?}");
    }
}
