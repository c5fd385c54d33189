//! A word of a command line as value (`salt.utils.args.yamlify_arg`).

use crate::value::Value;
use crate::yaml::{self, Limits};

/// Parses one argument as Salt does: YAML with exceptions.
pub fn argument(word: &str) -> Value {
    let as_it_is = || Value::str(word);
    let trimmed = word.trim();
    // YAML would read these as nothing
    if matches!(trimmed, "" | "---" | "...") {
        return as_it_is();
    }
    // most words are names
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_' || c == '-' || c == '.';
    if word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(is_name) && !is_constant(word) {
        return as_it_is();
    }
    // YAML 1.1 removes underscores from numbers
    if word.contains('_') && trimmed.chars().all(|c| c.is_ascii_digit() || c == '_') {
        return as_it_is();
    }
    // YAML would fold or drop these
    if word.contains(['\t', '\r', '\n']) {
        return as_it_is();
    }
    if word == "None" {
        return Value::None;
    }
    let Ok(value) = yaml::load(word, &Limits::default()) else { return as_it_is() };
    match &value {
        // YAML would drop the text after `#`
        Value::Str(_) | Value::None if word.contains('#') => as_it_is(),
        Value::None if word == "!" => as_it_is(),
        Value::Str(text) if text.is_empty() && matches!(word, "|" | "!") => as_it_is(),
        Value::Dict(_) if !word.starts_with('{') && !word.contains('#') => as_it_is(),
        Value::List(_) if !word.starts_with('[') && !word.contains('#') => as_it_is(),
        Value::Bytes(_) | Value::Date(_) | Value::DateTime(_) => as_it_is(),
        _ => value,
    }
}

/// What YAML 1.1 reads as something else than text, of words of lower-case letters.
fn is_constant(word: &str) -> bool {
    matches!(word, "yes" | "no" | "true" | "false" | "on" | "off" | "null" | "y" | "n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_yaml_with_exceptions() {
        let cases = [
            ("1_000", "'1_000'"),
            ("0644", "644"),
            ("1", "1"),
            ("yes", "True"),
            ("true", "True"),
            ("null", "None"),
            ("None", "None"),
            ("~", "None"),
            ("a b", "'a b'"),
            ("a: b", "'a: b'"),
            ("{a: b}", "{'a': 'b'}"),
            ("[a", "'[a'"),
            ("x #y", "'x #y'"),
            ("2020-01-02", "'2020-01-02'"),
            ("1.5", "1.5"),
            ("pkg.x-y_z", "'pkg.x-y_z'"),
        ];
        for (word, expect) in cases {
            assert_eq!(format!("{:?}", argument(word)), expect, "{word}");
        }
    }
}
