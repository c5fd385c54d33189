//! Returns that were too large for the event bus. The master stores them whole and fires them with `VALUE_TRIMMED` in
//! place of the large values (`max_event_size`, §8.1). Python's `salt` prints that text; this client fetches the whole
//! return from the job store.

use std::time::Duration;

use brine_protocol::value::{Value, ValueExt};

use super::LocalClient;
use crate::RunnerClient;

/// The text in place of a value that was too large.
const TRIMMED: &str = "VALUE_TRIMMED";
/// The time for the master's look-up of a return.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Whether a value of a return was left out.
pub(super) fn is_trimmed(ret: &Value) -> bool {
    match ret {
        Value::Map(entries) => entries.iter().any(|(_, value)| is_trimmed(value)),
        other => other.text() == Some(TRIMMED),
    }
}

/// Fetches the return of `id` from the job store. A failure is logged, and the trimmed return is displayed.
pub(super) async fn fetch(client: &LocalClient, jid: &str, id: &str) -> Option<Value> {
    let runner = RunnerClient::new(client.opts.clone());
    // Fetches only this minion's return, because all large returns of a job together may be too large again. A Python
    // master does not know this argument.
    let narrow = vec![("minion".to_owned(), Value::from(id))];
    for kwargs in [narrow, Vec::new()] {
        match runner.cmd("jobs.lookup_jid", vec![jid.into()], kwargs, Some(TIMEOUT)).await {
            Ok(done) => {
                if let Some(whole) = done.ret.get(id).filter(|_| done.success) {
                    return Some(whole.clone());
                }
            }
            Err(error) => {
                warn(jid, id, &error);
                return None;
            }
        }
    }
    warn(jid, id, &"the master has not stored it");
    None
}

fn warn(jid: &str, id: &str, why: &dyn std::fmt::Display) {
    tracing::warn!(
        "the return of {id} is too large for the event bus (max_event_size) and could not be fetched: {why}; try salt-run \
         jobs.lookup_jid {jid}"
    );
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::map;

    use super::*;

    #[test]
    fn what_was_left_out_is_seen() {
        assert!(is_trimmed(&Value::from(TRIMMED)));
        assert!(is_trimmed(&map([("a", map([("b", Value::from(TRIMMED)), ("c", Value::from(1))]))])));
        for whole in [Value::from("VALUE_TRIMMED "), Value::Nil, map([(TRIMMED, 1)]), Value::Array(vec![])] {
            assert!(!is_trimmed(&whole), "{whole}");
        }
    }
}
