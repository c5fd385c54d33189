//! An entry of the journal, as journalctl writes it in JSON and as Salt has it: numbers are numbers, ids are shown as Python
//! shows them.

use brine_guest::Value;
use serde_json::Value as Json;

/// Fields that are whole numbers to Python's systemd.
const NUMBERS: [&str; 24] = [
    "PRIORITY",
    "LEADER",
    "SESSION_ID",
    "USERSPACE_USEC",
    "INITRD_USEC",
    "KERNEL_USEC",
    "_UID",
    "_GID",
    "_PID",
    "SYSLOG_FACILITY",
    "SYSLOG_PID",
    "_AUDIT_SESSION",
    "_AUDIT_LOGINUID",
    "_SYSTEMD_OWNER_UID",
    "CODE_LINE",
    "ERRNO",
    "EXIT_STATUS",
    "COREDUMP_PID",
    "COREDUMP_UID",
    "COREDUMP_GID",
    "COREDUMP_SESSION",
    "COREDUMP_SIGNAL",
    "_AUDIT_FIELD_APPARMOR",
    "_AUDIT_TYPE",
];
/// Fields that are UUIDs to it.
const IDS: [&str; 3] = ["MESSAGE_ID", "_MACHINE_ID", "_BOOT_ID"];
/// Hexadecimal digits of a UUID.
const ID: usize = 32;

/// An entry.
pub struct Entry(Vec<(Value, Value)>);

/// Whether a text is the name of a field.
pub fn is_field(name: &str) -> bool {
    let is = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_';
    !name.is_empty() && name.len() <= 64 && name.bytes().all(is) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Where the entry of a line is.
pub fn cursor(line: &str) -> Option<String> {
    let entry: Json = serde_json::from_str(line).ok()?;
    entry.get("__CURSOR")?.as_str().map(str::to_owned)
}

/// The entry of a line. None if it is none.
pub fn read(line: &str) -> Option<Entry> {
    let Ok(Json::Object(fields)) = serde_json::from_str(line) else { return None };
    let converted = fields.into_iter().map(|(field, value)| {
        let value = converted(&field, plain(value));
        (field.into(), value)
    });
    Some(Entry(converted.collect()))
}

/// journalctl writes text, lists of text or of bytes, and nothing for what is large.
fn plain(json: Json) -> Value {
    match json {
        Json::String(text) => text.into(),
        Json::Number(number) => number.as_i64().map_or_else(|| number.to_string().into(), Value::Int),
        Json::Bool(yes) => yes.into(),
        Json::Array(items) => Value::List(items.into_iter().map(plain).collect()),
        Json::Null | Json::Object(_) => Value::None,
    }
}

fn converted(name: &str, value: Value) -> Value {
    match value {
        Value::Text(text) if NUMBERS.contains(&name) => text.parse().map_or(Value::Text(text), Value::Int),
        Value::Text(text) if IDS.contains(&name) && text.len() == ID && text.is_ascii() => {
            let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
            format!("UUID('{}')", parts.join("-")).into()
        }
        // Bytes that are no text are a list of numbers.
        Value::List(items) if items.iter().all(|item| matches!(item, Value::Int(0..=255))) => {
            let byte = |item: &Value| if let Value::Int(byte) = item { u8::try_from(*byte).ok() } else { None };
            let bytes: Vec<u8> = items.iter().filter_map(byte).collect();
            String::from_utf8_lossy(&bytes).into_owned().into()
        }
        other => other,
    }
}

impl Entry {
    /// Whether a field has a value.
    pub fn has(&self, field: &str, value: &Value) -> bool {
        self.0.iter().any(|(name, own)| name.text() == Some(field) && own == value)
    }

    /// The event of the entry, for the service of this name.
    pub fn event(&self, service: &str) -> Value {
        let mut fields = self.0.clone();
        fields.retain(|(field, _)| field.text() != Some("tag"));
        fields.push(("tag".into(), service.into()));
        Value::Dict(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_names_of_the_journal() {
        for name in ["MESSAGE", "_PID", "A1"] {
            assert!(is_field(name), "{name}");
        }
        for name in ["", "message", "-n", "--vacuum-size", "1A", "A=B", "+", "A B", &"A".repeat(65)] {
            assert!(!is_field(name), "{name}");
        }
    }

    #[test]
    fn odd_lines_are_no_entries_or_text() {
        for line in ["", "[]", "5", "{", "{\"a\":"] {
            assert!(read(line).is_none(), "{line}");
        }
        let entry =
            read(r#"{"MESSAGE":[104,105,255],"_PID":"x","_BOOT_ID":"short","MANY":["a","b"],"LARGE":null}"#).unwrap();
        assert!(entry.has("MESSAGE", &"hi\u{fffd}".into()) && entry.has("_PID", &"x".into()));
        assert!(entry.has("_BOOT_ID", &"short".into()) && entry.has("LARGE", &Value::None));
        assert!(entry.has("MANY", &Value::List(vec!["a".into(), "b".into()])));
    }
}
