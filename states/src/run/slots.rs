//! Slots: an argument `__slot__:salt:MODULE.FUNCTION(…)` has the value that the function returns when the state runs.
//!
//! Behind the call may follow a path into the value (`.a.b`) and a text to append (`~ text`). What is no slot stays as it
//! is, as in Salt.

use brine_render::{Dict, Value};

use super::core::Core;
use super::step::{Answer, Check, Step};
use crate::fault::Res;
use crate::python;

const SLOT: &str = "__slot__:";
/// Upper bound on the nesting of arguments that are looked at.
const DEPTH: usize = 50;

/// A call of a function: its name, positional and named arguments, all texts.
#[derive(Debug, Default, PartialEq)]
struct Slot {
    function: String,
    positional: Vec<String>,
    keyword: Vec<(String, String)>,
}

impl Core<'_> {
    /// Puts the values of slots into the arguments of a call. The inner error is an exception of a function.
    pub(super) async fn fill_slots(&self, arguments: &Dict) -> Res<Result<(), String>> {
        for (name, value) in python::entries(arguments) {
            if !has_slot(&value, DEPTH) {
                continue;
            }
            match Box::pin(self.filled(value, DEPTH)).await? {
                Ok(value) => arguments.set(&python::name(&name), value),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(()))
    }

    async fn filled(&self, value: Value, depth: usize) -> Res<Result<Value, String>> {
        if !has_slot(&value, depth) {
            return Ok(Ok(value));
        }
        match value {
            Value::Str(text) => self.slot(&text).await,
            Value::List(items) => {
                let items = items.borrow().clone();
                let mut filled = Vec::new();
                for item in items {
                    match Box::pin(self.filled(item, depth - 1)).await? {
                        Ok(item) => filled.push(item),
                        Err(why) => return Ok(Err(why)),
                    }
                }
                Ok(Ok(Value::list(filled)))
            }
            Value::Dict(entries) => {
                let filled = Dict::default();
                for (key, item) in python::entries(&entries) {
                    match Box::pin(self.filled(item, depth - 1)).await? {
                        Ok(item) => python::set_item(&Value::Dict(filled.clone()), &key, item)?,
                        Err(why) => return Ok(Err(why)),
                    }
                }
                Ok(Ok(filled.into()))
            }
            other => Ok(Ok(other)),
        }
    }

    async fn slot(&self, text: &str) -> Res<Result<Value, String>> {
        let call = text.strip_prefix(SLOT).and_then(|rest| rest.strip_prefix("salt:"));
        let parsed = call.and_then(|call| Some((call, parse(call)?)));
        let Some((call, slot)) = parsed.filter(|(_, slot)| self.host.has_function(&slot.function)) else {
            self.host.warn(&format!("Malformed slot: {text}"));
            return Ok(Ok(text.into()));
        };
        let keyword: Dict = slot.keyword.into_iter().map(|(key, value)| (key.as_str().into(), value.into())).collect();
        let positional = Value::list(slot.positional.into_iter().map(Value::from));
        let check = Check::Function { name: slot.function, positional, keyword };
        let mut value = match self.ask(Step::Check(check)).await {
            Answer::Value { value, .. } => value,
            Answer::Raised(why, _) => return Ok(Err(why)),
            other => return Err(other.unexpected()),
        };
        let (before, append) = call.split_once('~').map_or((call, None), |(before, append)| (before, Some(append)));
        let path = before.rfind(')').map_or("", |end| before[end + 1..].trim());
        if let Some((_, path)) = path.split_once('.') {
            value = traversed(&value, path.trim());
        }
        if let (Some(append), Value::Str(own)) = (append, &value) {
            value = format!("{own}{}", append.trim()).into();
        }
        Ok(Ok(value))
    }
}

fn has_slot(value: &Value, depth: usize) -> bool {
    depth > 0
        && match value {
            Value::Str(text) => text.starts_with(SLOT),
            Value::List(items) => items.borrow().iter().any(|item| has_slot(item, depth - 1)),
            Value::Dict(entries) => entries.borrow().iter().any(|(_, item)| has_slot(item, depth - 1)),
            _ => false,
        }
}

/// The value at a path; None if there is none.
fn traversed(value: &Value, path: &str) -> Value {
    let mut at = value.clone();
    for part in path.split('.') {
        let found = match &at {
            Value::Dict(dict) => dict.get(part),
            Value::List(list) => part.parse::<usize>().ok().and_then(|index| list.borrow().get(index).cloned()),
            _ => None,
        };
        match found {
            Some(found) => at = found,
            None => return Value::None,
        }
    }
    at
}

/// A word of a call: what was quoted is no bracket, comma or equals sign.
#[derive(Debug, PartialEq)]
enum Word {
    Text(String),
    Sign(char),
}

/// Reads `test.arg(a, 'b c', k=v)`.
fn parse(call: &str) -> Option<Slot> {
    let mut words = words(call)?.into_iter();
    let mut slot = Slot::default();
    loop {
        match words.next()? {
            Word::Sign('(') => break,
            Word::Sign(sign) => slot.function.push(sign),
            Word::Text(text) => slot.function.push_str(&text),
        }
    }
    if slot.function.is_empty() {
        return None;
    }
    let (mut key, mut word, mut brackets) = (None, None::<String>, Vec::new());
    for next in words {
        match next {
            Word::Sign(sign @ (',' | ')')) if brackets.is_empty() => {
                match (key.take(), word.take()) {
                    (Some(key), word) => slot.keyword.push((key, word.unwrap_or_default())),
                    (None, Some(word)) => slot.positional.push(word),
                    (None, None) => {}
                }
                if sign == ')' {
                    return Some(slot);
                }
            }
            Word::Sign('=') if brackets.is_empty() => key = Some(word.take().unwrap_or_default()),
            Word::Sign(sign) => {
                match sign {
                    '[' => brackets.push(']'),
                    '{' => brackets.push('}'),
                    '(' => brackets.push(')'),
                    ']' | '}' | ')' if brackets.pop() != Some(sign) => return None,
                    _ => {}
                }
                word.get_or_insert_default().push(sign);
            }
            Word::Text(text) => word.get_or_insert_default().push_str(&text),
        }
    }
    None
}

/// Splits as Python's `shlex` does: words of letters, digits and `_`, quoted parts among them, and single signs.
fn words(text: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(&letter) = letters.peek() {
        if letter.is_whitespace() {
            letters.next();
        } else if letter == '#' {
            break;
        } else if is_of_word(letter) {
            let mut word = String::new();
            while let Some(letter) = letters.next_if(|letter| is_of_word(*letter)) {
                match letter {
                    '\\' => word.push(letters.next()?),
                    '\'' | '"' => loop {
                        match letters.next()? {
                            end if end == letter => break,
                            '\\' => match letters.next()? {
                                escaped if escaped == '\\' || escaped == letter => word.push(escaped),
                                other => word.extend(['\\', other]),
                            },
                            other => word.push(other),
                        }
                    },
                    other => word.push(other),
                }
            }
            words.push(Word::Text(word));
        } else {
            letters.next();
            words.push(Word::Sign(letter));
        }
    }
    Some(words)
}

fn is_of_word(letter: char) -> bool {
    letter == '_' || letter == '\\' || letter == '\'' || letter == '"' || letter.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_as_pythons_shlex_does() {
        let read = |call: &str| {
            let slot = parse(call)?;
            let keyword: Vec<String> = slot.keyword.iter().map(|(key, value)| format!("{key}={value}")).collect();
            Some(format!("{} [{}] [{}]", slot.function, slot.positional.join("|"), keyword.join("|")))
        };
        for (call, expect) in [
            ("test.echo(hello)", Some("test.echo [hello] []")),
            ("test.arg('a b', \"c, d\", k=v)", Some("test.arg [a b|c, d] [k=v]")),
            ("test.arg(a, [1, 2], {x: (y)}, k = [3,4]).x ~ y", Some("test.arg [a|[1,2]|{x:(y)}] [k=[3,4]]")),
            ("cmd.run(ls -l /x)", Some("cmd.run [ls-l/x] []")),
            ("a.b()", Some("a.b [] []")),
            ("a.b('it\\'s')", Some("a.b [it's] []")),
            ("a.b(", None),
            ("a.b(']')", Some("a.b []] []")),
            ("a.b(])", None),
            ("a.b('", None),
            ("(x)", None),
            ("a.b", None),
        ] {
            assert_eq!(read(call).as_deref(), expect, "{call}");
        }
    }
}
