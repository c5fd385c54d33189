//! JSON as Python writes it: a blank behind each comma and colon, so that scripts which look for `"token": "…"` in the
//! text find it.

use std::io::{self, Write};

use brine_protocol::value::{self, Value};
use serde::Serialize as _;
use serde_json::ser::{Formatter, Serializer};

/// The value as JSON, in one line.
pub fn line(value: &Value) -> String {
    line_of(&value::to_json(value))
}

/// The JSON in one line.
pub fn line_of(json: &serde_json::Value) -> String {
    let mut text = Vec::new();
    // Neither can a vector refuse bytes, nor has JSON a key that is no text.
    let written = json.serialize(&mut Serializer::with_formatter(&mut text, Blanks));
    debug_assert!(written.is_ok(), "{written:?}");
    String::from_utf8(text).unwrap_or_default()
}

struct Blanks;

fn comma<W: ?Sized + Write>(writer: &mut W, first: bool) -> io::Result<()> {
    if first { Ok(()) } else { writer.write_all(b", ") }
}

impl Formatter for Blanks {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        comma(writer, first)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        comma(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blanks_are_where_python_has_them() {
        let json = json!({"return": [{"a": [1, 2.5, null, true], "b": {}, "c": "x,y:z", "ä": []}, {}]});
        let text = r#"{"return": [{"a": [1, 2.5, null, true], "b": {}, "c": "x,y:z", "ä": []}, {}]}"#;
        assert_eq!(line_of(&json), text);
        assert_eq!(line(&value::from_json(&json)), text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), json);
    }
}
