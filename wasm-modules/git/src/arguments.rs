//! Arguments as Salt's functions take them.

use brine_guest::{Data, Result, Value};

/// The text of an argument; none if it is missing or None.
pub(crate) fn text(argument: Option<&Data>) -> Result<Option<String>> {
    let value = argument.map(Data::value).transpose()?.filter(|value| *value != Value::None);
    Ok(value.map(|value| value.to_text()))
}

/// [`text`], and an empty one counts as missing.
pub(crate) fn full(argument: Option<&Data>) -> Result<Option<String>> {
    Ok(text(argument)?.filter(|text| !text.is_empty()))
}

/// Whether an argument is Python's truth.
pub(crate) fn flag(argument: Option<&Data>, default: bool) -> Result<bool> {
    argument.map_or(Ok(default), |argument| Ok(argument.value()?.truthy()))
}

/// Texts: a list, or one text with commas; none if the argument is missing or None.
pub(crate) fn texts(argument: Option<&Data>) -> Result<Option<Vec<String>>> {
    Ok(match argument.map(Data::value).transpose()? {
        None | Some(Value::None) => None,
        Some(Value::List(items)) => Some(items.iter().map(Value::to_text).collect()),
        Some(other) => Some(other.to_text().split(',').map(str::to_owned).collect()),
    })
}

/// Options: a list of words, or a line of them, as a shell reads plain words. `--` at the end of a line is left out.
pub(crate) fn options(argument: Option<&Data>) -> Result<Vec<String>> {
    let mut words = match argument.map(Data::value).transpose()? {
        None | Some(Value::None) => return Ok(Vec::new()),
        Some(Value::List(items)) => return Ok(items.iter().map(Value::to_text).collect()),
        Some(Value::Text(line)) => split(&line)?,
        Some(other) => vec![other.to_text()],
    };
    if words.last().is_some_and(|word| word == "--") {
        words.pop();
    }
    Ok(words)
}

/// The words of a line, with a shell's quotes.
pub(crate) fn split(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    let open = || format!("the options {line:?} end within quotes");
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().push(chars.next().ok_or_else(open)?),
            quote @ ('\'' | '"') => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or_else(open)? {
                        c if c == quote => break,
                        '\\' if quote == '"' => match chars.next().ok_or_else(open)? {
                            c @ ('"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_words() {
        let of = |text: &str| options(Some(&text.into())).unwrap();
        assert_eq!(of(r#"--a 'b c' d\ e "f\"g" --"#), ["--a", "b c", "d e", "f\"g"]);
        assert_eq!(options(Some(&vec!["a b", "--"].into())), Ok(vec!["a b".into(), "--".into()]));
        assert!(split("'a").is_err() && split("a\\").is_err());
        assert_eq!(options(None), Ok(vec![]));
    }

    #[test]
    fn texts_are_lists_or_have_commas() {
        assert_eq!(texts(Some(&"a,b c".into())), Ok(Some(vec!["a".into(), "b c".into()])));
        assert_eq!(texts(Some(&Value::Int(1).into())), Ok(Some(vec!["1".into()])));
        assert_eq!(full(Some(&"".into())), Ok(None));
        assert_eq!(text(Some(&Value::None.into())), Ok(None));
    }
}
