//! The configuration as a dict, as Salt reads it.

use brine_guest::{Value, changes, path};

/// The beginnings of scripts, which go on to a line `endscript`.
pub(crate) const SCRIPTS: [&str; 5] = ["firstaction", "lastaction", "prerotate", "postrotate", "preremove"];
/// Upper bound on the files that one includes, and on files within files.
const MAX_FILES: usize = 1000;
const MAX_DEPTH: usize = 8;

/// Reads a file and those that it includes.
///
/// # Errors
/// One line, when one cannot be read.
pub(crate) fn read(file: &str) -> Result<Value, String> {
    read_within(file, 0)
}

fn read_within(file: &str, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err(format!("'{file}' is included by more than {MAX_DEPTH} files"));
    }
    let text = changes::read_text(file)?.ok_or_else(|| format!("[Errno 2] No such file or directory: '{file}'"))?;
    parse(&text, &mut |folder| {
        let names = changes::list(folder)?;
        if names.len() > MAX_FILES {
            return Err(format!("'{folder}' has more than {MAX_FILES} files"));
        }
        let read = |name: String| Ok((name.clone(), read_within(&path::join(folder, &name), depth + 1)?));
        names.into_iter().map(|(name, _)| read(name)).collect()
    })
}

type Entries = Vec<(Value, Value)>;
/// Reads the files of a folder.
type Include<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<(String, Value)>, String>;

fn put(dict: &mut Entries, key: &str, value: Value) {
    match dict.iter_mut().find(|(known, _)| known.text() == Some(key)) {
        Some((_, known)) => *known = value,
        None => dict.push((key.into(), value)),
    }
}

/// Whether a word that stands alone names a log.
fn is_log(word: &str) -> bool {
    word.starts_with(['/', '~', '"', '\'']) || word.contains(['*', '?', '['])
}

/// A whole number, where the text is one.
pub(crate) fn number(value: &Value) -> Value {
    value.to_text().trim().parse().map_or_else(|_| value.clone(), Value::Int)
}

fn parse(text: &str, include: Include<'_>) -> Result<Value, String> {
    let mut all: Entries = Vec::new();
    // The logs of the braces that are open, and their commands.
    let mut open: Option<(Vec<String>, Entries)> = None;
    // Logs alone on their lines, whose brace is to come.
    let mut waiting: Vec<String> = Vec::new();
    let mut script: Option<(&str, Vec<Value>)> = None;
    for line in text.lines().map(str::trim) {
        if let Some((name, mut body)) = script.take() {
            if line == "endscript" {
                let of = open.as_mut().map_or(&mut all, |(_, commands)| commands);
                put(of, name, Value::List(body));
            } else {
                body.push(line.into());
                script = Some((name, body));
            }
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.contains('{') && !line.contains('}') {
            let here = words.iter().filter(|word| **word != "{").map(|word| (*word).to_owned());
            open = Some((waiting.drain(..).chain(here).collect(), Vec::new()));
            continue;
        }
        if line.contains('}') {
            let (names, commands) = open.take().unwrap_or_default();
            for name in names {
                put(&mut all, &name, Value::Dict(commands.clone()));
            }
            continue;
        }
        if open.is_none() && words.len() == 1 {
            match is_log(words[0]) {
                true => waiting.push(words[0].to_owned()),
                false => put(&mut all, words[0], Value::Bool(true)),
            }
            continue;
        }
        if words[0] == "include" {
            let folder = *words.get(1).ok_or("list index out of range")?;
            put(&mut all, "include", folder.into());
            let mut files = Entries::new();
            for (name, conf) in include(folder)? {
                let Value::Dict(entries) = conf else { continue };
                files.push((name.into(), Value::List(entries.iter().map(|(key, _)| key.clone()).collect())));
                for (key, value) in entries {
                    put(&mut all, &key.to_text(), value);
                }
            }
            put(&mut all, "include files", Value::Dict(files));
        }
        if words.len() == 1
            && let Some(name) = SCRIPTS.into_iter().find(|name| *name == words[0])
        {
            script = Some((name, Vec::new()));
            continue;
        }
        let value = match words[..] {
            [_] => Value::Bool(true),
            [_, one] => number(&one.into()),
            _ => words[1..].join(" ").into(),
        };
        put(open.as_mut().map_or(&mut all, |(_, commands)| commands), words[0], value);
    }
    for name in waiting {
        put(&mut all, &name, Value::Bool(true));
    }
    Ok(Value::Dict(all))
}

/// The value of a command, or with `command` that of one for a log; False where there is none.
///
/// # Errors
/// Python's sentence, where the value is none of a log.
pub(crate) fn get(conf: &Value, key: &str, command: &Value) -> Result<Value, String> {
    let found = conf.get(key).cloned().unwrap_or(Value::Bool(false));
    if !command.truthy() || !found.truthy() {
        return Ok(found);
    }
    match &found {
        Value::Dict(_) => Ok(found.get(&command.to_text()).cloned().unwrap_or(Value::Bool(false))),
        Value::Bool(_) => Err("'bool' object has no attribute 'get'".into()),
        Value::Int(_) => Err("'int' object has no attribute 'get'".into()),
        Value::List(_) => Err("'list' object has no attribute 'get'".into()),
        _ => Err("'str' object has no attribute 'get'".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# comment\nweekly\nrotate 4\ncreate 0640 root adm\ninclude /etc/logrotate.d\n\
        /var/log/a /var/log/b {\n  missingok\n  rotate 1\n  postrotate\n    kill # not a comment\n  endscript\n}\n\
        /var/log/c\n/var/log/d.*\n{\n  daily\n}\ncompress\n";

    fn conf() -> Value {
        parse(TEXT, &mut |folder| {
            assert_eq!(folder, "/etc/logrotate.d");
            Ok(vec![("apt".into(), Value::dict([("/var/log/apt", Value::dict([("rotate", Value::Int(12))]))]))])
        })
        .unwrap()
    }

    #[test]
    fn configurations_are_read() {
        let conf = conf();
        let of = |key: &str, command: &str| get(&conf, key, &command.into()).unwrap();
        assert_eq!(of("weekly", ""), Value::Bool(true));
        assert_eq!(of("rotate", ""), Value::Int(4));
        assert_eq!(of("create", ""), "0640 root adm".into());
        assert_eq!(of("/var/log/b", "rotate"), Value::Int(1));
        assert_eq!(of("/var/log/a", "postrotate"), vec!["kill # not a comment"].into());
        assert_eq!(of("/var/log/c", "daily"), Value::Bool(true));
        assert_eq!(of("/var/log/d.*", "weekly"), Value::Bool(false));
        assert_eq!(of("/var/log/apt", "rotate"), Value::Int(12));
        assert_eq!(of("compress", ""), Value::Bool(true));
        assert_eq!(of("nothing", "x"), Value::Bool(false));
        assert_eq!(get(&conf, "rotate", &"x".into()), Err("'int' object has no attribute 'get'".into()));
        assert_eq!(conf.get("include files"), Some(&Value::dict([("apt", vec!["/var/log/apt"].into())])));
    }

    #[test]
    fn numbers_are_numbers() {
        assert_eq!(number(&"0644".into()), Value::Int(644));
        assert_eq!(number(&"1k".into()), "1k".into());
    }
}
