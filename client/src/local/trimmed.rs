//! Returns that were too large for the event bus: the master stores them whole and fires them with `VALUE_TRIMMED` in the place of what
//! was too large (`max_event_size`, §8.1). Python's `salt` prints just that; here the whole return is fetched from the job store.

use std::time::Duration;

use brine_protocol::value::{Value, ValueExt};

use super::LocalClient;
use crate::RunnerClient;

/// What stands in the place of a value that was too large.
const TRIMMED: &str = "VALUE_TRIMMED";
/// How long the master has to look up a return.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Whether something of a return was left out.
pub(super) fn is_trimmed(ret: &Value) -> bool {
    match ret {
        Value::Map(entries) => entries.iter().any(|(_, value)| is_trimmed(value)),
        other => other.text() == Some(TRIMMED),
    }
}

/// The return of `id` as the master stored it; what is wrong otherwise is told, and what the bus brought is shown.
pub(super) async fn fetch(client: &LocalClient, jid: &str, id: &str) -> Option<Value> {
    let runner = RunnerClient::new(client.opts.clone());
    // Only this minion's: all of a job's large returns together may be too large again. A Python master knows no such argument.
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
