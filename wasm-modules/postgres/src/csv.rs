//! What psql prints with `COPY … TO STDOUT WITH CSV HEADER`, and PostgreSQL's arrays, which are of the same kind.

use brine_guest::Value;

/// A row: its columns with their names.
pub(crate) type Row = Vec<(String, String)>;

/// The rows of an output whose first line names the columns. As in Salt, a missing value is an empty text.
pub(crate) fn rows(text: &str) -> Vec<Row> {
    let mut lines = records(text, ',', false).into_iter().filter(|record| !record.is_empty());
    let Some(names) = lines.next() else { return Vec::new() };
    lines.map(|fields| names.iter().cloned().zip(fields).collect()).collect()
}

/// The column of a row; empty if there is none.
pub(crate) fn column<'a>(row: &'a Row, name: &str) -> &'a str {
    row.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

/// A row as a dict.
pub(crate) fn dict(row: &Row) -> Value {
    Value::dict(row.iter().map(|(name, value)| (name.as_str(), value.as_str().into())))
}

/// The items of an array, such as `{a,"b c"}`.
pub(crate) fn items(array: &str) -> Vec<String> {
    let inner = array.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(array);
    records(inner, ',', true).into_iter().next().unwrap_or_default()
}

/// Records of fields. A quote within quotes is doubled, or with `escapes` has a backslash before it.
fn records(text: &str, comma: char, escapes: bool) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let mut record: Vec<String> = Vec::new();
    let mut field = String::new();
    // Whether the record has anything, and whether a quote is open.
    let (mut begun, mut quoted) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        begun |= c != '\n' && c != '\r';
        match c {
            '\\' if escapes => field.extend(chars.next()),
            '"' if quoted && !escapes && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            c if quoted => field.push(c),
            c if c == comma => record.push(std::mem::take(&mut field)),
            '\r' => {}
            '\n' => {
                if begun {
                    record.push(std::mem::take(&mut field));
                }
                records.push(std::mem::take(&mut record));
                begun = false;
            }
            c => field.push(c),
        }
    }
    if begun {
        record.push(field);
        records.push(record);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_columns_of_the_first_line() {
        let text = "name,\"the \"\"acl\"\"\"\na,\"{b=c/d,\"\"=T/d\"\"}\"\n\"x\ny\",\n\n";
        let found = rows(text);
        assert_eq!(found.len(), 2);
        assert_eq!(column(&found[0], "the \"acl\""), "{b=c/d,\"=T/d\"}");
        assert_eq!((column(&found[1], "name"), column(&found[1], "other")), ("x\ny", ""));
        assert_eq!(dict(&found[1]).get("name"), Some(&"x\ny".into()));
        assert!(rows("").is_empty() && rows("name\n").is_empty());
    }

    #[test]
    fn arrays_have_items() {
        assert_eq!(items("{a,b}"), ["a", "b"]);
        assert_eq!(items(r#"{"a,b","c\"d",e\\f}"#), ["a,b", "c\"d", "e\\f"]);
        assert!(items("{}").is_empty() && items("").is_empty());
    }
}
