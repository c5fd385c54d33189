//! The program without a terminal: a script answers as the host, and the screen is text.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde_json::{Value, json};

use crate::app::App;
use crate::draw;
use crate::host::Host;
use crate::snapshot::Known;
use crate::worker::{News, Order, Worker};

/// Answers by function, and what was called with arguments.
#[derive(Clone, Default)]
struct Script {
    answers: BTreeMap<&'static str, Value>,
    called: Arc<Mutex<Vec<String>>>,
}

impl Host for Script {
    fn call(&self, function: &str, arguments: &[&str]) -> Result<Value, String> {
        if !arguments.is_empty() {
            self.called.lock().unwrap().push(format!("{function} {}", arguments.join(" ")));
        }
        self.answers.get(function).cloned().ok_or_else(|| format!("'{function}' is not available."))
    }
}

const HASH: &str = "bede67e109690a0d14c9f0ebcf170791e28fc2edd682949f20757069e096d007";

fn host() -> Script {
    let running = json!([
        {"jid": "20261126100000000001", "function": "cmd.run\u{1b}[31m", "from": "master", "user": "root", "pid": 1, "calls": [
            {"function": "state.apply\u{1b}[31m", "called_by": null, "ms": 30_400, "ms_max": 60_000, "memory": 1_153_434,
             "memory_max": 64 << 20, "cpu_ms": 12_345, "cpu_ms_max": 30_000},
            {"function": "cmd.run", "called_by": "state.apply", "state": "a\u{202e}b", "ms": 90_000, "ms_max": 60_000,
             "memory": 60 << 20, "memory_max": 64 << 20, "cpu_ms": null, "cpu_ms_max": 30_000},
        ]},
        {"jid": "20261126100000000002", "function": "test.ping, test.sleep", "from": "salt-call", "user": "ann", "pid": 2, "calls": []},
    ]);
    let refusals = json!([
        {"time": "2026-11-26 10:00:00", "function": "cmd.run", "jid": "20261126100000000001", "master": "aa:bb", "times": 3,
         "what": "run /usr/bin/whoami", "line": "cmd: {process: [/usr/bin/whoami]}"},
        {"time": "2026-11-26 10:00:01", "function": "odd.one", "jid": "20261126100000000003", "master": null, "times": 1,
         "what": "\u{202e}\u{1b}]0;title\u{7}\nsecond line", "line": null},
    ]);
    let diff = json!({
        "name": "tool", "why": "it asks for more",
        "in_use": {"version": "1.0.0", "sha256": HASH}, "held": {"version": "1.1.0", "sha256": HASH},
        "permissions": {"added": {"brine:host/process": "run programs"}, "removed": {}},
        "functions": {"added": ["tool.new()"], "removed": [], "changed": []},
    });
    let grant = json!({"file": "/etc/salt/minion.d/sandbox.conf", "diff": "-old\n+    process: [/usr/bin/whoami]", "risk": "low"});
    let answers = [
        ("sandbox.running", running),
        ("sandbox.refusals", refusals),
        ("sandbox.check", json!({"findings": ["a wall is missing"]})),
        ("sandbox.list", json!({"tool": {"held": true}, "test": {"held": false}})),
        ("sandbox.diff", diff),
        ("sandbox.grant", grant),
        ("sandbox.approve", json!({})),
    ];
    Script { answers: answers.into(), ..Script::default() }
}

/// The program after its first look.
fn app(host: &Script) -> App {
    let mut app = App::default();
    app.take(News::Looked(Box::new(Known::default().look(host).unwrap())));
    app
}

fn screen(app: &App, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::screen(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells: Vec<&str> = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
    cells.chunks(usize::from(width)).map(|row| row.concat().trim_end().to_owned()).collect()
}

fn press(app: &mut App, keys: &str) -> Vec<Order> {
    let each = keys.chars().map(|key| KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
    each.flat_map(|key| app.press(key)).collect()
}

const SIZES: [(u16, u16); 4] = [(80, 24), (200, 50), (20, 5), (1, 1)];

#[test]
fn every_list_is_drawn_in_every_size_without_what_controls_a_terminal() {
    for (key, shown) in [("1", "test.ping"), ("2", "whoami"), ("3", "tool"), ("4", "a wall is missing")] {
        let mut app = app(&host());
        press(&mut app, key);
        for size in SIZES {
            let text = screen(&app, size).join("\n");
            assert!(size.0 < 80 || text.contains(shown), "{key} {size:?}\n{text}");
            assert!(!text.contains(|c: char| brine_text::is_active(c) && c != '\n'), "{text:?}");
        }
        press(&mut app, "a");
        for size in SIZES {
            screen(&app, size);
        }
        app.press(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
        assert_eq!(app.ended(), key == "1" || key == "4", "of a question, Esc closes only that");
    }
}

#[test]
fn what_a_call_uses_is_shown_beside_its_limits() {
    let mut app = app(&host());
    let small = screen(&app, (80, 24));
    let row = |rows: &[String], of: &str| rows.iter().find(|row| row.contains(of)).unwrap().clone();
    for part in ["root, a master", "30 of 60 s", "1.1 of 64 MiB", "12.3 of 30 s"] {
        assert!(row(&small, "state.apply").contains(part), "{part}\n{}", small.join("\n"));
    }
    // A call that a function made, of which the executor told nothing about the CPU time.
    let nested = row(&small, "↳ cmd.run");
    assert!(nested.contains("90 of 60 s") && nested.contains("60 of 64 MiB") && nested.ends_with("MiB"), "{nested}");
    // Nothing is known of it but its job.
    assert!(row(&small, "test.ping").contains("ann, this host") && !row(&small, "test.ping").contains(" of "));
    let large = screen(&app, (200, 50)).join("\n");
    for part in ["20261126100000000001", "█████░░░░░ 30 of 60 s", "░░░░░░░░░░ 1.1 of 64 MiB", "██████████ 90 of 60 s"]
    {
        assert!(large.contains(part), "{part}\n{large}");
    }
    press(&mut app, "j");
    let text = screen(&app, (80, 24)).join("\n");
    assert!(text.contains("job 20261126100000000001") && text.contains("called by state.apply"), "{text}");
}

#[test]
fn a_limit_that_is_nearly_used_up_needs_a_look() {
    let mut snapshot = Known::default().look(&host()).unwrap();
    snapshot.running.truncate(1);
    for (used, colour) in [(0, Color::Reset), (49_000, Color::Reset), (50_000, Color::Yellow), (60_000, Color::Red)] {
        snapshot.running[0].time.used = used;
        let mut app = App::default();
        app.take(News::Looked(Box::new(snapshot.clone())));
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw::screen(frame, &app)).unwrap();
        let buffer = terminal.backend().buffer();
        let shown = format!("{} of 60 s", used / 1_000);
        let at = (0..24).find_map(|y| {
            let row: Vec<&str> = (0..80).map(|x| buffer[(x, y)].symbol()).collect();
            Some((
                u16::try_from(
                    row.concat()
                        .chars()
                        .collect::<Vec<_>>()
                        .windows(shown.len())
                        .position(|part| part.iter().collect::<String>() == shown)?,
                )
                .unwrap(),
                y,
            ))
        });
        assert_eq!(buffer[at.unwrap()].fg, colour, "{used}");
    }
}

/// The line that grants it is there whatever else has no room, and a fingerprint takes no lines of its own.
#[test]
fn what_is_decided_on_comes_first() {
    let mut snapshot = Known::default().look(&host()).unwrap();
    snapshot.refusals[0].by = vec!["c3"; 32].join(":");
    let mut app = App::default();
    app.take(News::Looked(Box::new(snapshot)));
    press(&mut app, "2");
    let text = screen(&app, (80, 24)).join("\n");
    assert!(text.contains("asked by the master c3:c3:c3:c3…") && !text.contains("c3:c3:c3:c3:"), "{text}");
    let small = screen(&app, (80, 10)).join("\n");
    assert!(small.contains("granted by: cmd: {process: [/usr/bin/whoami]}"), "{small}");
}

#[test]
fn a_grant_needs_a_look_at_what_it_changes_and_a_yes() {
    let host = host();
    let mut app = app(&host);
    let line = "cmd: {process: [/usr/bin/whoami]}".to_owned();
    assert_eq!(press(&mut app, "2g"), [Order::Preview { line: line.clone() }]);
    assert_eq!(press(&mut app, "y"), [], "before the host said what changes");
    app.take(News::Preview { line: line.clone(), answer: host.call("sandbox.grant", &[]) });
    let text = screen(&app, (80, 24)).join("\n");
    for part in ["Grant cmd: {process: [/usr/bin/whoami]}?", "in /etc/salt/minion.d/sandbox.conf:", "-old", "risk: low"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains("+    process: [/usr/bin/whoami]"), "{text}");
    assert_eq!(press(&mut app, "n"), []);
    assert!(app.question().is_none());
    assert_eq!(press(&mut app, "y"), [], "nothing is asked any more");
    press(&mut app, "g");
    app.take(News::Preview { line: line.clone(), answer: host.call("sandbox.grant", &[]) });
    assert_eq!(press(&mut app, "y"), [Order::Grant { line }]);
    app.take(News::Done(Err("the file is not the owner's".to_owned())));
    assert!(screen(&app, (80, 24)).join("\n").contains("the file is not the owner's"));
}

#[test]
fn what_the_host_refuses_to_grant_cannot_be_agreed_to() {
    let mut app = app(&host());
    press(&mut app, "2g");
    app.take(News::Preview { line: "x".to_owned(), answer: Err("only the owner".to_owned()) });
    assert!(screen(&app, (80, 24)).join("\n").contains("only the owner"));
    assert_eq!(press(&mut app, "y"), []);
    assert!(app.question().is_some());
    press(&mut app, "nj");
    assert_eq!(press(&mut app, "g"), [], "no line grants it");
}

#[test]
fn an_update_is_admitted_by_its_content() {
    let mut app = app(&host());
    press(&mut app, "3a");
    let text = screen(&app, (80, 24)).join("\n");
    for part in
        ["Admit module tool 1.1.0?", "- version 1.0.0", "+ may run programs (brine:host/process)", "+ tool.new()"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(press(&mut app, "y"), [Order::Approve { module: "tool".to_owned(), sha256: HASH.to_owned() }]);
}

#[test]
fn what_is_declined_is_hidden_until_it_comes_again() {
    let host = host();
    let mut app = app(&host);
    assert_eq!(press(&mut app, "2r"), []);
    assert_eq!(app.refusals().len(), 1);
    app.take(News::Looked(Box::new(Known::default().look(&host).unwrap())));
    assert_eq!(app.refusals().len(), 1);
    let mut again = host;
    again.answers.get_mut("sandbox.refusals").unwrap()[0]["times"] = json!(4);
    app.take(News::Looked(Box::new(Known::default().look(&again).unwrap())));
    assert_eq!(app.refusals().len(), 2);
    press(&mut app, "3r");
    assert!(app.held().is_empty());
}

#[test]
fn the_thread_looks_and_carries_out_orders() {
    let host = host();
    let worker = Worker::start(host.clone(), Duration::from_secs(3_600)).unwrap();
    let wait = |what: fn(&News) -> bool| {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            if worker.news().any(|news| what(&news)) {
                return;
            }
            assert!(Instant::now() < until, "it tells nothing");
            std::thread::yield_now();
        }
    };
    wait(|news| matches!(news, News::Looked(_)));
    worker.order(Order::Grant { line: "cmd: {grains: true}".to_owned() });
    wait(|news| matches!(news, News::Done(Ok(_))));
    worker.order(Order::Approve { module: "tool".to_owned(), sha256: HASH.to_owned() });
    wait(|news| matches!(news, News::Done(Ok(_))));
    let called = host.called.lock().unwrap().join("\n");
    assert!(called.contains("sandbox.grant cmd: {grains: true}\n"), "{called}");
    assert!(called.contains(&format!("sandbox.approve tool {HASH}")), "{called}");
}

#[test]
fn a_host_that_does_not_answer_is_said() {
    let mut app = App::default();
    let why = Known::default().look(&Script::default()).unwrap_err();
    app.take(News::Lost(why));
    for size in SIZES {
        screen(&app, size);
    }
    assert!(screen(&app, (80, 24)).join("\n").contains("'sandbox.running' is not available."));
}
