//! Values as Salt's outputter `nested` lays them out, without colours: in the text of some errors.

use brine_guest::Value;

/// Lays out a value: lines without a line end after the last.
pub fn nested(value: &Value) -> String {
    let mut lines = Vec::new();
    display(value, 0, "", &mut lines);
    lines.join("\n")
}

fn display(value: &Value, indent: usize, prefix: &str, lines: &mut Vec<String>) {
    let line = |prefix: &str, text: &str| format!("{}{prefix}{text}", " ".repeat(indent));
    match value {
        Value::Text(text) => {
            for (number, each) in text.lines().enumerate() {
                let after = " ".repeat(prefix.len());
                lines.push(line(if number == 0 { prefix } else { &after }, each));
            }
        }
        Value::List(items) => {
            for item in items {
                match item {
                    Value::List(_) | Value::Dict(_) => {
                        lines.push(line("", "|_"));
                        display(item, indent + 2, if matches!(item, Value::Dict(_)) { "" } else { "- " }, lines);
                    }
                    item => display(item, indent, "- ", lines),
                }
            }
        }
        Value::Dict(entries) => {
            if indent > 0 {
                lines.push(line("", "----------"));
            }
            let mut entries: Vec<(String, &Value)> =
                entries.iter().map(|(key, value)| (key.to_text(), value)).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            for (key, value) in entries {
                lines.push(line(prefix, &format!("{key}:")));
                display(value, indent + 4, "", lines);
            }
        }
        other => lines.push(line(prefix, &other.to_text())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Salt 3008.3.
    #[test]
    fn a_value_is_laid_out_as_salt_does() {
        let value = Value::dict([
            ("errors", vec!["E: one\nE: two", "E: three"].into()),
            ("changes", Value::dict([("a", Value::dict([("old", "".into()), ("new", "1".into())]))])),
            ("n", Value::Int(3)),
            ("none", Value::None),
        ]);
        let expected = "changes:\n    ----------\n    a:\n        ----------\n        new:\n            1\n        old:\nerrors:\n    - E: one\n      E: two\n    - E: three\nn:\n    3\nnone:\n    None";
        assert_eq!(nested(&value), expected);
    }
}
