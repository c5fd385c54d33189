//! Values as JSON.

use std::fmt::Write;

use crate::Value;

/// A value as one line of JSON. Keys that are no text become text; bytes that are no text, and what JSON has no number
/// for, become text.
pub fn to_text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Reads a text of JSON.
///
/// # Errors
/// What is wrong with it, with line and column.
pub fn from_text(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map(from).map_err(|error| error.to_string())
}

fn from(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::None,
        Json::Bool(yes) => Value::Bool(yes),
        Json::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(n), _) => Value::Int(n),
            (None, Some(n)) => Value::Big(n),
            // Without a fraction and larger than any integer here.
            (None, None) => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(items) => Value::List(items.into_iter().map(from).collect()),
        Json::Object(entries) => {
            Value::Dict(entries.into_iter().map(|(key, value)| (key.into(), from(value))).collect())
        }
    }
}

fn write(value: &Value, out: &mut String) {
    let number = |out: &mut String, number: &dyn std::fmt::Display| {
        let _ = write!(out, "{number}");
    };
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(yes) => number(out, yes),
        Value::Int(n) => number(out, n),
        Value::Big(n) => number(out, n),
        Value::Float(n) if n.is_finite() => number(out, &serde_json::json!(n)),
        Value::Text(text) => quoted(text, out),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                separate(at, out);
                write(item, out);
            }
            out.push(']');
        }
        Value::Dict(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                separate(at, out);
                quoted(&key.to_text(), out);
                out.push_str(": ");
                write(value, out);
            }
            out.push('}');
        }
        Value::Float(_) | Value::Bytes(_) | Value::Ext(..) => quoted(&value.to_text(), out),
    }
}

fn separate(at: usize, out: &mut String) {
    if at > 0 {
        out.push_str(", ");
    }
}

fn quoted(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_line() {
        let value = Value::dict([
            ("a", Value::List(vec![Value::Int(-1), Value::Big(u64::MAX), Value::Float(0.5), Value::None])),
            ("b\n", Value::Text("x\"\n\u{1}é".into())),
            ("c", Value::Bool(true)),
            ("d", Value::Float(f64::NAN)),
        ]);
        let text = to_text(&value);
        let expect = "{\"a\": [-1, 18446744073709551615, 0.5, null], \"b\\n\": \"x\\\"\\n\\u0001é\", \"c\": true, \"d\": \"NaN\"}";
        assert_eq!(text, expect);
        let odd = Value::Dict(vec![(Value::Int(5), Value::dict([]))]);
        assert_eq!(to_text(&odd), "{\"5\": {}}");
    }
}
