//! Returners on minions: modules that are given the returns of jobs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, Sender, channel};

use brine_kit::wait::{DEADLINE, wait_for};
use brine_tests::postgres::Server;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

/// Answers each request with the next of these statuses, then with 200, and hands out the bodies. It ends with the test's process.
fn server(statuses: &'static [u16]) -> (u16, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let (bodies, received) = channel();
    std::thread::spawn(move || {
        let mut statuses = statuses.iter().copied();
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            answer(stream, &mut statuses, &bodies);
        }
    });
    (port, received)
}

/// Answers the requests of one connection.
fn answer(mut stream: TcpStream, statuses: &mut impl Iterator<Item = u16>, bodies: &Sender<Value>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a number");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let status = statuses.next().unwrap_or(200);
        let _ = bodies.send(json!({"status": status, "body": serde_json::from_slice::<Value>(&body).expect("JSON")}));
        write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n").expect("it reads on");
    }
}

#[test]
fn returns_go_to_the_modules_that_jobs_and_the_owner_name() {
    let folder = tempfile::tempdir().expect("a folder");
    // The sandbox's user writes there.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
    let file = folder.path().join("events");
    let (port, received) = server(&[503]);
    let master = Master::start("");
    let mut minion = master.minion_kind(
        Kind::Brine,
        "web1",
        &format!(
            "rawfile_json.filename: {}\nhttp.url: http://127.0.0.1:{port}/in\nhttp.headers: {{X-Of: brine}}\nsandbox:\n  modules:\n    \
             rawfile_json: {{filesystem: {{{}: rw}}}}\n    http: {{network: [\"127.0.0.1:{port}\"]}}\n",
            file.display(),
            folder.path().display()
        ),
    );
    let lines = || std::fs::read_to_string(&file).unwrap_or_default();
    // One that takes it at once, one that takes it the second time, and one that is not here and the master's to know.
    master.salt(&["web1", "test.echo", "a\nb", "--return", "rawfile_json,http,nothing_here"]).exits(0);
    let line: Value = wait_for("the line", || serde_json::from_str(&lines()).ok());
    assert_eq!((&line["fun"], &line["return"], &line["id"]), (&json!("test.echo"), &json!("a\nb"), &json!("web1")));
    assert_eq!(line["success"], json!(true));
    let first = received.recv_timeout(DEADLINE).expect("a request");
    let second = received.recv_timeout(DEADLINE).expect("it is tried again");
    assert_eq!((&first["status"], &second["status"]), (&json!(503), &json!(200)));
    assert_eq!((&first["body"], &second["body"]["jid"]), (&second["body"], &line["jid"]));
    wait_for("nothing is kept any more", || {
        let kept = std::fs::read_dir(minion.path("cache/returners")).ok()?.count();
        (kept == 0).then_some(())
    });
    // A job that names none has none, but for the owner's; what a returner could not take outlives the minion.
    master.salt(&["web1", "test.ping"]).exits(0);
    assert_eq!(lines().lines().count(), 1);
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    std::fs::remove_file(&file).expect("it is there");
    let conf = minion.path("conf/minion");
    let text = std::fs::read_to_string(&conf).expect("just written");
    std::fs::write(&conf, text + "return: rawfile_json\n").expect("our own folder");
    minion.stop();
    minion.up();
    wait_for("the minion", || (master.json("web1", &["test.ping"]) == true).then_some(()));
    master.salt(&["web1", "test.echo", "kept"]).exits(0);
    // A file that is still being written has another name.
    let is_kept = |file: std::fs::DirEntry| {
        !file.file_name().to_string_lossy().starts_with('.')
            && std::fs::read(file.path()).is_ok_and(|bytes| bytes.windows(4).any(|part| part == b"kept"))
    };
    wait_for("it is kept", || {
        std::fs::read_dir(minion.path("cache/returners")).ok()?.flatten().any(is_kept).then_some(())
    });
    minion.kill();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
    minion.up();
    wait_for("what was kept", || lines().lines().any(|line| line.contains("\"return\": \"kept\"")).then_some(()));
}

/// Calls of one returner run at the same time, and write the same file.
#[test]
fn returns_that_come_together_are_all_in_the_file() {
    const JOBS: usize = 24;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
    let file = folder.path().join("events");
    let master = Master::start("");
    let settings = format!(
        "return: rawfile_json\nrawfile_json.filename: {}\nsandbox: {{modules: {{rawfile_json: {{filesystem: {{{}: rw}}}}}}}}\n",
        file.display(),
        folder.path().display()
    );
    let _minion = master.minion_kind(Kind::Brine, "web1", &settings);
    // Longer than what wasi's streams take at once, with one byte of their own each.
    let words: Vec<String> = (0..JOBS).map(|i| char::from(b'a' + i as u8).to_string().repeat(100_000)).collect();
    for word in &words {
        master.start_job(&["web1", "test.echo", word]);
    }
    let lines = wait_for("all returns", || {
        let text = std::fs::read_to_string(&file).ok()?;
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        words.iter().all(|word| lines.iter().any(|line| line["return"] == word.as_str())).then_some(lines)
    });
    assert_eq!(lines.len(), JOBS);
}

/// A file may be granted alone, and links may lead to one of another granted directory.
#[test]
fn a_file_is_appended_to_as_it_was_granted() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = std::fs::canonicalize(folder.path()).expect("it is there");
    let path = |name: &str| place.join(name).display().to_string();
    for name in ["", "a", "b"] {
        std::fs::create_dir_all(path(name)).expect("ours");
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o777)).expect("ours");
    }
    std::fs::write(path("alone"), "").expect("ours");
    std::fs::set_permissions(path("alone"), std::fs::Permissions::from_mode(0o666)).expect("ours");
    std::os::unix::fs::symlink(path("b/events"), path("a/absolute")).expect("ours");
    std::os::unix::fs::symlink("../b/events", path("a/relative")).expect("ours");
    std::fs::write(path("b/events"), "").expect("ours");
    std::fs::set_permissions(path("b/events"), std::fs::Permissions::from_mode(0o666)).expect("ours");
    let both = format!("{}: rw, {}: rw", path("a"), path("b"));
    let cases = [
        ("alone", format!("{}: rw", path("alone")), "alone"),
        ("a/new", format!("{}: rw", path("a")), "a/new"),
        ("a/absolute", both.clone(), "b/events"),
        ("a/relative", both, "b/events"),
    ];
    for (named, granted, written) in cases {
        let settings = format!(
            "rawfile_json.filename: {}\nsandbox: {{modules: {{rawfile_json: {{filesystem: {{{granted}}}}}}}}}\n",
            path(named)
        );
        let minion = Minion::prepare(Kind::Brine, "web1", 1, &settings);
        let before = std::fs::read_to_string(path(written)).unwrap_or_default().lines().count();
        for _ in 0..2 {
            let called = minion.salt_call(&["--local", "--return=rawfile_json", "test.echo", named]).exits(0);
            assert!(!called.stderr.contains("did not take"), "{named}: {}", called.stderr);
        }
        let text = std::fs::read_to_string(path(written)).expect("it was written");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), before + 2, "{named}");
        assert_eq!(lines.last().expect("a line")["return"], named);
    }
}

#[test]
fn a_minion_writes_returns_to_postgresql_by_itself() {
    let Some(server) = Server::start() else { return };
    let master = Master::start("");
    let port = server.port;
    let settings = |password: &str, network: &str| {
        format!(
            "returner.postgres.host: 127.0.0.1\nreturner.postgres.port: {port}\nreturner.postgres.db: plain\n\
             returner.postgres.passwd: {password}\nsandbox: {{modules: {{postgres.returner: {{network: [{network}]}}}}}}\n"
        )
    };
    let granted = format!("\"127.0.0.1:{port}\"");
    let minion = master.minion_kind(Kind::Brine, "web1", &settings("salt secret", &granted));
    let wrong = master.minion_kind(Kind::Brine, "web2", &settings("another", &granted));
    let refused = master.minion_kind(Kind::Brine, "web3", &settings("salt secret", ""));
    // It is told that the returner is not the minion's, and the master has no server.
    let without = master.minion_kind(Kind::Brine, "web4", "");
    master.salt(&["web*", "test.echo", "it's \u{fc}\n", "--return", "postgres"]).exits(0);
    let rows = || server.sql("plain", "select id, fun, return, success, full_ret::jsonb->>'retcode' from salt_returns");
    let expected = "web1|test.echo|\"it's \\u00fc\\n\"|true|0";
    let row = wait_for("the row", || Some(rows()).filter(|rows| !rows.is_empty()));
    assert_eq!(row.replace('\u{fc}', "\\u00fc"), expected);
    let log = |minion: &Minion| std::fs::read_to_string(minion.path("minion.out")).unwrap_or_default();
    let said = |minion: &Minion, words: &str| {
        wait_for(words, || log(minion).contains(words).then_some(()));
        assert!(!log(minion).contains("salt secret") && !log(minion).contains("another"));
    };
    said(&wrong, "the server says: password authentication failed for user \"salt\" (28P01)");
    said(
        &refused,
        &format!(
            "the returner postgres failed, and is called again later: 127.0.0.1:{port}: no connection: access-denied"
        ),
    );
    assert!(!log(&without).contains("the returner postgres failed"));
    // By hand.
    minion.salt_call(&["--local", "--return=postgres", "test.echo", "by hand"]).exits(0);
    assert_eq!(server.sql("plain", "select return from salt_returns where return like '%hand%'"), "\"by hand\"");
}
