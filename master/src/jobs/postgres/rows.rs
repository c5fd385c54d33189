//! Jobs and returns as rows of Salt's tables.

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::value::{Value, ValueExt, from_json, map, to_json};
use tokio_postgres::{Error, Row as Sql};

use crate::jobs::outbox;
use crate::jobs::query::{JobReturn, StoredJob};
use crate::jobs::record::{NewReturn, Record};
use crate::jobs::returner::{KeptEvent, ReturnerKind};

/// Longest `salt_returns.fun` in characters. `full_ret` has the whole text.
const FUN_MAX: usize = 50;
/// Longest `salt_events.tag` in characters.
const TAG_MAX: usize = 255;

/// A row to write.
pub(super) enum Row {
    Job { jid: String, load: String },
    Return { fun: String, jid: String, ret: String, id: String, success: &'static str, full: String, at: f64 },
}

impl Row {
    pub(super) fn new(record: &Record, kind: ReturnerKind) -> Self {
        match record {
            Record::Job(job) => {
                let load = crate::jobs::query::decode(&outbox::job_load(job, &job.minions));
                Self::Job { jid: job.jid.as_str().to_owned(), load: json(&load, kind) }
            }
            Record::Return(new) => {
                let full = crate::jobs::query::decode(&new.load);
                Self::Return {
                    fun: new.fun.chars().take(FUN_MAX).collect(),
                    jid: new.jid.as_str().to_owned(),
                    ret: json(full.get("return").unwrap_or(&Value::Nil), kind),
                    id: new.minion.as_str().to_owned(),
                    // The texts that psycopg2 writes for True and False.
                    success: if new.success { "true" } else { "false" },
                    full: json(&full, kind),
                    at: new.at_ms as f64 / 1_000.0,
                }
            }
        }
    }
}

/// A row for an event.
pub(super) struct EventRow {
    pub(super) tag: String,
    pub(super) data: String,
    pub(super) at: f64,
}

impl EventRow {
    pub(super) fn new(event: &KeptEvent, kind: ReturnerKind) -> Self {
        let tag = event.tag.chars().filter(|c| *c != '\0').take(TAG_MAX).collect();
        Self { tag, data: json(&event.data, kind), at: event.at_ms as f64 / 1_000.0 }
    }
}

/// Encodes JSON like Salt's returner, which writes bytes as text. JSONB has no NUL, so it becomes U+FFFD.
fn json(value: &Value, kind: ReturnerKind) -> String {
    let text = to_json(value).to_string();
    if kind == ReturnerKind::Postgres || !text.contains("\\u0000") {
        return text;
    }
    without_nul(to_json(value)).to_string()
}

fn without_nul(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value as Json;
    let text = |text: String| text.replace('\0', "\u{fffd}");
    match value {
        Json::String(string) => Json::String(text(string)),
        Json::Array(items) => items.into_iter().map(without_nul).collect(),
        Json::Object(entries) => entries.into_iter().map(|(key, value)| (text(key), without_nul(value))).collect(),
        other => other,
    }
}

/// Returns the lowest jid that a job published at this time would have.
pub(super) fn jid_at(unix_ms: i64) -> String {
    Jid::at(unix_ms).map_or_else(String::new, |jid| jid.as_str().to_owned())
}

/// Reads a job; `None` if no master could have published it.
pub(super) fn job(row: &Sql) -> Result<Option<StoredJob>, Error> {
    let (jid, load): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let (Ok(jid), Some(load)) = (Jid::try_from(jid.as_str()), parsed(&load)) else { return Ok(None) };
    let started_ms = jid.timestamp().map_or(0, |at| at.as_millisecond());
    Ok(Some(StoredJob::from_load(jid, started_ms, load)))
}

/// Reads a return; `None` if its minion's id is invalid.
pub(super) fn ret(row: &Sql, jid: &Jid) -> Result<Option<JobReturn>, Error> {
    let (id, full, ret): (String, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let (success, at_ms): (String, Option<i64>) = (row.try_get(3)?, row.try_get(4)?);
    let Ok(minion) = MinionId::try_from(id.as_str()) else { return Ok(None) };
    let load = parsed(&full).unwrap_or_else(|| {
        let ret = parsed_any(&ret).unwrap_or_else(|| Value::from(ret));
        map([("return", ret), ("success", Value::from(success.eq_ignore_ascii_case("true")))])
    });
    Ok(Some(NewReturn::from_load(jid.clone(), minion, at_ms.unwrap_or(0), &load).into()))
}

/// Parses a JSON map.
fn parsed(text: &str) -> Option<Value> {
    parsed_any(text).filter(|value| value.entries().is_some())
}

/// Parses Python's JSON. NaN and infinities, which Python writes, make it unreadable.
fn parsed_any(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().as_ref().map(from_json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jsonb_gets_no_nul() {
        let value = map([("a\0", map([("b", "c\0d")]))]);
        assert_eq!(json(&value, ReturnerKind::Pgjsonb), "{\"a\u{fffd}\":{\"b\":\"c\u{fffd}d\"}}");
        assert_eq!(json(&value, ReturnerKind::Postgres), r#"{"a\u0000":{"b":"c\u0000d"}}"#);
        // After a backslash it is plain text.
        let written = map([("a", r"\u0000")]);
        assert_eq!(json(&written, ReturnerKind::Pgjsonb), r#"{"a":"\\u0000"}"#);
    }

    #[test]
    fn jids_of_a_time() {
        assert_eq!(jid_at(1_795_182_460_245), "20261120134740245000");
    }
}
