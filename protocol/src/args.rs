//! Arguments on a command line (§11.1): each word is YAML, `name=value` is a keyword.

use indexmap::IndexMap;

use crate::config::yaml;
use crate::ids::Jid;
use crate::value::Value;

/// The `arg` list of a job from the arguments of a command line; keywords come last as the `__kwarg__` map.
pub fn parse_input(words: &[String]) -> Vec<Value> {
    let (args, kwargs) = split_input(words);
    condition_input(args, kwargs)
}

/// As [`parse_input`]; the values of these keywords are not parsed and stay text.
pub fn parse_input_but(words: &[String], no_parse: &[String]) -> Vec<Value> {
    let (texts, rest): (Vec<_>, Vec<_>) = words
        .iter()
        .partition(|word| parse_kwarg(word).is_some_and(|(name, _)| no_parse.iter().any(|kept| kept == name)));
    let rest: Vec<String> = rest.into_iter().cloned().collect();
    let (args, kwargs) = split_input(&rest);
    let mut kwargs: Keywords = kwargs.into_iter().collect();
    kwargs.extend(texts.iter().filter_map(|word| parse_kwarg(word)).map(|(name, text)| (name.to_owned(), text.into())));
    condition_input(args, kwargs)
}

/// As [`parse_input`], with the keywords apart.
pub fn split_input(words: &[String]) -> (Vec<Value>, Vec<(String, Value)>) {
    let (mut args, mut kwargs) = (Vec::new(), Keywords::new());
    for word in words {
        match parse_kwarg(word) {
            Some((name, value)) => drop(kwargs.insert(name.to_owned(), yamlify(value))),
            None => args.push(yamlify(word)),
        }
    }
    (args, kwargs.into_iter().collect())
}

/// The `arg` list of a job from parsed arguments: jids become text, keywords come last as the `__kwarg__` map.
pub fn condition_input(args: Vec<Value>, kwargs: impl IntoIterator<Item = (String, Value)>) -> Vec<Value> {
    let mut out: Vec<Value> = args.into_iter().map(jid_as_text).collect();
    let mut kwargs = kwargs.into_iter().map(|(key, value)| (Value::from(key), value)).peekable();
    if kwargs.peek().is_some() {
        let mark = (Value::from("__kwarg__"), Value::from(true));
        out.push(Value::Map(std::iter::once(mark).chain(kwargs).collect()));
    }
    out
}

/// Keyword arguments in the order in which each came first; a later value replaces an earlier one. Others say how many there are, so that they
/// are found by their hash.
pub(crate) type Keywords = IndexMap<String, Value>;

/// Splits `name=value`; none if the word has another form.
pub fn parse_kwarg(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let mut chars = name.chars();
    let first = chars.next()?;
    let is_name = (first.is_alphabetic() || first == '_')
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
        && !value.starts_with('=');
    // As Python's `.*$`: a line end is allowed only at the end and is not part of the value.
    let value = value.strip_suffix('\n').unwrap_or(value);
    (is_name && !value.contains('\n')).then_some((name, value))
}

fn jid_as_text(value: Value) -> Value {
    match &value {
        Value::Integer(n) if Jid::new(n.to_string()).is_ok() => Value::from(n.to_string()),
        _ => value,
    }
}

/// Parses one argument as Salt does: YAML with exceptions. Whoever sends it chooses it: see [`yaml::load_foreign`].
pub fn yamlify(word: &str) -> Value {
    let as_it_is = || Value::from(word);
    let trimmed = word.trim();
    // YAML would read these as nothing.
    if matches!(trimmed, "" | "---" | "...") {
        return as_it_is();
    }
    // YAML 1.1 removes underscores from numbers.
    if word.contains('_') && trimmed.chars().all(|c| c.is_ascii_digit() || c == '_') {
        return as_it_is();
    }
    // YAML would fold or drop these.
    if word.contains(['\t', '\r', '\n']) {
        return as_it_is();
    }
    if word == "None" {
        return Value::Nil;
    }
    let Ok(value) = yaml::load_foreign(word) else { return as_it_is() };
    match &value {
        // YAML would drop the text after `#`.
        Value::String(_) | Value::Nil if word.contains('#') => as_it_is(),
        Value::Nil if word == "!" => as_it_is(),
        Value::String(text) if text.as_bytes().is_empty() && matches!(word, "|" | "!") => as_it_is(),
        Value::Map(_) if !word.starts_with('{') && !word.contains('#') => as_it_is(),
        Value::Array(_) if !word.starts_with('[') && !word.contains('#') => as_it_is(),
        Value::Binary(_) | Value::Ext(..) => as_it_is(),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{list, map, text};

    fn words(words: &[&str]) -> Vec<Value> {
        parse_input(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn keywords_go_last_and_later_ones_win() {
        assert_eq!(
            words(&["a=1", "x", "b=[1, y]", "a=2"]),
            [
                text("x"),
                map([
                    ("__kwarg__", Value::from(true)),
                    ("a", Value::from(2)),
                    ("b", list([Value::from(1), text("y")]))
                ])
            ]
        );
    }

    /// Of a few hundred bytes, which would become half a million values.
    #[test]
    fn a_word_of_aliases_stays_a_word() {
        let tens = |of: &str| [of; 9].join(",");
        let bomb = format!(
            "[&a [{}],&b [{}],&c [{}],&d [{}],&e [{}],{}]",
            tens("1"),
            tens("*a"),
            tens("*b"),
            tens("*c"),
            tens("*d"),
            tens("*e")
        );
        assert_eq!(yamlify(&bomb), text(&bomb));
        assert_eq!(yamlify("[&a x, *a]"), list(["x", "x"]));
    }

    #[test]
    fn many_keywords_are_found_at_once() {
        let many: Vec<String> = (0..100_000).map(|n| format!("k{n}={n}")).collect();
        let began = std::time::Instant::now();
        let (args, kwargs) = split_input(&many);
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
        assert_eq!((args.len(), kwargs.len()), (0, 100_000));
    }

    #[test]
    fn a_keyword_has_a_name() {
        let cases = [
            ("a=b", Some(("a", "b"))),
            ("_a.b-c=", Some(("_a.b-c", ""))),
            ("é=1", Some(("é", "1"))),
            ("a=b=c", Some(("a", "b=c"))),
            ("a=b\n", Some(("a", "b"))),
            ("a==b", None),
            ("=b", None),
            ("1a=b", None),
            ("-a=b", None),
            ("a b=c", None),
            ("a=b\nc", None),
            ("a", None),
        ];
        for (word, expect) in cases {
            assert_eq!(parse_kwarg(word), expect, "{word:?}");
        }
    }

    #[test]
    fn words_that_yaml_would_spoil_stay() {
        for word in [
            "1_000",
            "#x",
            "x #y",
            "a: b",
            "- a",
            "a\tb",
            "---",
            "  ",
            "{a",
            "[a",
            "!",
            "|",
            "=",
            "*x",
            "!!binary aGk=",
        ] {
            assert_eq!(yamlify(word), text(word), "{word:?}");
        }
        assert_eq!(yamlify("None"), Value::Nil);
        assert_eq!(yamlify("~"), Value::Nil);
        assert_eq!(yamlify("0644"), Value::from(644));
        assert_eq!(yamlify("1:30"), Value::from(90));
    }
}
