//! Names and values in SQL: the one place where a text of a caller becomes a part of a statement.
//!
//! A statement reaches psql as its input, where psql looks for its own commands and variables: both are only found outside
//! of quotes, and no text gets there.

use brine_guest::Result;

/// A name, in quotes: of a role, a database, a schema.
pub(crate) fn name(text: &str) -> Result<String> {
    Ok(format!("\"{}\"", whole(text)?.replace('"', "\"\"")))
}

/// A value, in quotes. A backslash is one whatever the server takes for a plain text (`standard_conforming_strings`).
pub(crate) fn value(text: &str) -> Result<String> {
    let quoted = whole(text)?.replace('\'', "''");
    Ok(match quoted.contains('\\') {
        true => format!(" E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    })
}

/// An object in a schema.
pub(crate) fn within(schema: &str, object: &str) -> Result<String> {
    Ok(format!("{}.{}", name(schema)?, name(object)?))
}

/// PostgreSQL has no NUL, and psql would end there.
fn whole(text: &str) -> Result<&str> {
    if text.contains('\0') { Err("a name or value for PostgreSQL has a NUL byte".into()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_quotes() {
        for (text, as_name, as_value) in [
            ("app", "\"app\"", "'app'"),
            ("My App", "\"My App\"", "'My App'"),
            ("a\"; DROP DATABASE b; --", "\"a\"\"; DROP DATABASE b; --\"", "'a\"; DROP DATABASE b; --'"),
            ("a'; DROP DATABASE b; --", "\"a'; DROP DATABASE b; --\"", "'a''; DROP DATABASE b; --'"),
            ("\\'; SELECT 1; --", "\"\\'; SELECT 1; --\"", " E'\\\\''; SELECT 1; --'"),
            ("\n\\! id\n", "\"\n\\! id\n\"", " E'\n\\\\! id\n'"),
            (":'x' :\"y\"", "\":'x' :\"\"y\"\"\"", "':''x'' :\"y\"'"),
            ("", "\"\"", "''"),
        ] {
            assert_eq!(name(text).as_deref(), Ok(as_name), "{text}");
            assert_eq!(value(text).as_deref(), Ok(as_value), "{text}");
        }
        assert!(name("a\0b").is_err() && value("\0").is_err());
        assert_eq!(within("s\"", "t").as_deref(), Ok("\"s\"\"\".\"t\""));
    }
}
