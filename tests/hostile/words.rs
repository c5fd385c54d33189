//! Output of a module: wherever it is shown it is text, whatever a terminal or a log would make of it.

use brine_kit::logs::Log;
use brine_kit::wat::wasm;

use crate::asks::NOTHING;
use crate::guests::fine;
use crate::rig::{AT_ONCE, Rig, fails, hostile, returns, text};

/// Clears the screen, changes the title, overwrites a line and begins another.
const ESCAPES: &str = "a\u{1b}[2J\u{1b}]0;title\u{7}b\rc\nd\u{9b}31me\u{202e}f\u{8}";

/// The same text in an error.
const SHOWN: &str = "a\\x1b[2J\\x1b]0;title\\x07b\\rc\\nd\\x9b31me\\u202ef\\x08";

#[tokio::test(flavor = "multi_thread")]
async fn escape_codes() {
    let log = Log::capture(tracing::Level::INFO);
    let rig = Rig::start(&format!("  modules:\n    hostile: {NOTHING}\n")).await;
    rig.install("hostile", &hostile()).await;
    // An error is one line without control characters; `attack` checks this.
    rig.attack("hostile.say", vec![text(ESCAPES), true.into()], AT_ONCE, &fails(SHOWN)).await;
    let trap =
        "hostile.trap trapped: it gave up (`unreachable` was executed); its last log line: panicked at …: a\\x1b[2J…";
    rig.attack("hostile.trap", vec![text(ESCAPES)], AT_ONCE, &fails(trap)).await;
    rig.attack("hostile.fire", vec![text(ESCAPES)], AT_ONCE, &fails("the tag has control characters")).await;
    rig.attack(
        "hostile.run",
        vec![crate::rig::texts(&[ESCAPES])],
        AT_ONCE,
        &fails("the program has control characters"),
    )
    .await;
    rig.attack(
        "hostile.stat",
        vec![text(&format!("/{ESCAPES}")), true.into()],
        AT_ONCE,
        &fails("/a\\x1b[2J… is in no directory that was granted to module hostile; …"),
    )
    .await;
    rig.attack("hostile.call", vec![text(ESCAPES)], AT_ONCE, &fails("the name of a function has control characters"))
        .await;
    rig.attack(&format!("hostile.{ESCAPES}"), vec![], AT_ONCE, &fails("'hostile.a…' is not available.…")).await;
    rig.attack(&format!("{ESCAPES}.ping"), vec![], AT_ONCE, &fails("'a…' is not available.…")).await;
    rig.attack(
        "hostile.say",
        vec![text(ESCAPES), text(ESCAPES)],
        AT_ONCE,
        &fails("Passed invalid arguments to hostile.say: …"),
    )
    .await;
    let kwargs = vec![(ESCAPES.to_owned(), true.into())];
    rig.attack_with("hostile.say", vec![], kwargs, AT_ONCE, &fails("Passed invalid arguments to hostile.say: …")).await;
    rig.refused(ESCAPES, &wasm(fine()), AT_ONCE, "\"a\\u{1b}[2J… cannot be a module's name: …").await;
    // A return is data and passes unchanged. Outputters escape it, as their tests check.
    rig.attack("hostile.say", vec![text(ESCAPES), false.into()], AT_ONCE, &returns(ESCAPES)).await;
    // The log: a module's lines are marked as such and stay separate lines.
    rig.attack("hostile.log", vec![text(&format!("{ESCAPES}\nERROR forged line")), 1.into()], AT_ONCE, &returns("nil"))
        .await;
    let lines = log.text();
    assert!(lines.contains("forged line"), "{lines}");
    for line in lines.lines() {
        assert!(!line.contains(char::is_control), "{line:?}");
        assert!(!line.trim_start().starts_with("ERROR forged"), "{line:?}");
    }
    rig.end().await;
}
