//! The fields of a receipt as a value, for outputters.

use brine_protocol::value::{Value, ValueExt};

use crate::Receipt;

/// The fields as the JSON has them, and `hash`, which the next receipt names.
pub fn fields(receipt: &Receipt) -> Value {
    let json: serde_json::Value = serde_json::from_slice(&receipt.to_json()).unwrap_or_default();
    let mut fields = to_value(&json["predicate"]);
    fields.insert("hash", receipt.hash().to_string());
    fields
}

fn to_value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(truth) => Value::from(*truth),
        serde_json::Value::Number(number) => number.as_i64().map_or_else(
            || number.as_u64().map_or_else(|| Value::from(number.as_f64().unwrap_or_default()), Value::from),
            Value::from,
        ),
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => Value::Array(items.iter().map(to_value).collect()),
        serde_json::Value::Object(entries) => {
            Value::Map(entries.iter().map(|(name, value)| (Value::from(name.as_str()), to_value(value))).collect())
        }
    }
}
