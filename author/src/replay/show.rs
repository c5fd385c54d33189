//! What was asked and returned, in words for an author.

use std::io::{IsTerminal, Write};

use brine_cli::output::{self, Style};
use brine_protocol::msgpack::{Limits, decode};
use brine_protocol::value::{Value, ValueExt, map};
use brine_recording::Recording;
use brine_sandbox::{Outcome, Replayed};

use crate::failure::Failure;

/// Upper bound on the characters of what was asked or returned.
const MAX_SHOWN: usize = 300;

/// Bounds on a value from a recording.
const LIMITS: Limits = Limits { max_bytes: 32 << 20, max_depth: 128, max_items: 1_000_000 };

/// Returns the first difference between a call and its recording. None: it asked and returned the same.
pub(super) fn difference(recording: &Recording, replayed: &Replayed) -> Option<String> {
    if let Some(difference) = &replayed.difference {
        let number = difference.at + 1;
        return Some(match (&difference.recorded, &difference.asked) {
            (Some(recorded), Some(now)) => {
                format!("call {number} of the host\n  recorded: {}\n  now:      {}", asked(recorded), asked(now))
            }
            (Some(recorded), None) => format!(
                "call {number} of the host\n  recorded: {}\n  now:      nothing, it {}",
                asked(recorded),
                ended(&replayed.outcome)
            ),
            (None, Some(now)) => format!(
                "call {number} of the host\n  recorded: nothing, it {}\n  now:      {}",
                ended(&recording.end.outcome),
                asked(now)
            ),
            (None, None) => {
                let calls = calls(recording.calls.len());
                format!("the recording had reached its largest size: it is the same for {calls}, and ends there")
            }
        });
    }
    if recording.end.is_same(&replayed.outcome) {
        return None;
    }
    let (was, now) = (ended(&recording.end.outcome), ended(&replayed.outcome));
    Some(format!("the return\n  recorded: it {was}\n  now:      it {now}"))
}

/// `1 call of the host`
pub(super) fn calls(count: usize) -> String {
    format!("{count} call{} of the host", if count == 1 { "" } else { "s" })
}

/// Prints what the call returned, as `run` does.
pub(super) fn outcome(outcome: &Outcome, out: Option<&str>) -> Result<(), Failure> {
    let (value, retcode) = match outcome {
        Outcome::Returned { value, retcode } => {
            let value = decode(value, &LIMITS);
            (value.map_err(|error| Failure::failed(format!("the return cannot be shown: {error}")))?, *retcode)
        }
        Outcome::Failed { message, retcode, .. } => (Value::from(message.as_str()), *retcode),
    };
    let terminal = std::io::stdout().is_terminal();
    let style = Style { retcode: i64::from(retcode), ..if terminal { Style::terminal() } else { Style::default() } };
    let text = output::render(out.unwrap_or("nested"), &map([("local", value)]), &style);
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let mut stdout = std::io::stdout().lock();
    // The reader closed the pipe and does not want the rest.
    let _ = write!(stdout, "{text}{newline}").and_then(|()| stdout.flush());
    Ok(())
}

/// How a call ended, after "it".
fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Returned { value, retcode } => {
            let shown =
                decode(value, &LIMITS).map_or_else(|_| "what is no value".to_owned(), |value| value.python_repr());
            let code = if *retcode == 0 { String::new() } else { format!(" (retcode {retcode})") };
            format!("returned {}{code}", short(&shown))
        }
        Outcome::Failed { message, .. } => format!("failed: {}", short(message)),
    }
}

/// A call of the host: `grains.get(key='os', delimiter=None)`.
fn asked((name, asked): &(String, Vec<u8>)) -> String {
    let text = decode(asked, &LIMITS).map_or_else(|_| "…".to_owned(), |asked| arguments(&asked));
    short(&format!("{name}({text})"))
}

/// The arguments of a call. A request to the broker is a map of the interface, in it one of the operation, in it one of
/// the arguments.
fn arguments(asked: &Value) -> String {
    let repr = |value: &Value| value.python_repr();
    match asked {
        Value::Array(items) => items.iter().map(repr).collect::<Vec<_>>().join(", "),
        Value::Map(_) => {
            let mut inner = asked;
            for _ in 0..2 {
                match inner.entries() {
                    Some([(_, value)]) => inner = value,
                    _ => break,
                }
            }
            match inner.entries() {
                Some(entries) => {
                    let each = entries.iter().map(|(name, value)| format!("{}={}", name.python_str(), repr(value)));
                    each.collect::<Vec<_>>().join(", ")
                }
                // An operation without arguments is its name.
                None if inner.text().is_some() => String::new(),
                None => repr(inner),
            }
        }
        other => repr(other),
    }
}

fn short(text: &str) -> String {
    brine_protocol::text::short(text, MAX_SHOWN)
}
