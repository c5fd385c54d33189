//! Sets a value: `file.replace` writes it, with the grants of its own module.

use brine_guest::host::functions;
use brine_guest::{Value, path};

use crate::conf::{self, SCRIPTS};

/// Sets a command, or with `setting` one of a log. Returns whether it is set.
///
/// # Errors
/// One line, when the configuration has something else there, or cannot be changed.
pub(crate) fn set(key: &str, value: &Value, setting: &Value, file: &str) -> Result<Value, String> {
    let conf = conf::read(file)?;
    let file = holder(&conf, key).unwrap_or_else(|| file.to_owned());
    let (pattern, flags, place, line) = if *setting == Value::None {
        let now = conf.get(key).cloned().unwrap_or(Value::Bool(false));
        if let Value::Dict(_) = now {
            return Err(format!(
                "Error: {key} includes a dict, and a specific setting inside the dict was not declared"
            ));
        }
        if value.same(&now) {
            return Ok(Value::Bool(true));
        }
        let line = match value {
            Value::Bool(true) => key.to_owned(),
            value if value.truthy() => format!("{key} {}", value.to_text()),
            _ => String::new(),
        };
        (format!("^{key}.*"), 8, "prepend_if_not_found", line)
    } else {
        let Some(commands) = commands(&conf, key, value, setting)? else { return Ok(Value::Bool(true)) };
        (format!("^{key}.*?{{.*?}}"), 24, "append_if_not_found", stanza(key, &commands))
    };
    let keywords = Value::dict([
        ("path", file.into()),
        ("pattern", pattern.into()),
        ("repl", line.into()),
        ("flags", Value::Int(flags)),
        ("backup", Value::Bool(false)),
        ("show_changes", Value::Bool(false)),
        (place, Value::Bool(true)),
    ]);
    functions::call("file.replace", &[], &keywords.into())?.value()
}

/// The included file that has a command or a log.
fn holder(conf: &Value, key: &str) -> Option<String> {
    let Some(Value::Dict(files)) = conf.get("include files") else { return None };
    let has = |keys: &Value| matches!(keys, Value::List(keys) if keys.iter().any(|known| known.text() == Some(key)));
    let (name, _) = files.iter().rfind(|(_, keys)| has(keys))?;
    Some(path::join(&conf.get("include")?.to_text(), &name.to_text()))
}

/// The commands of a log with one of them set, or left out if the setting is false; none if it has that value.
fn commands(conf: &Value, key: &str, command: &Value, setting: &Value) -> Result<Option<Vec<(Value, Value)>>, String> {
    let mut commands = match conf.get(key) {
        Some(Value::Dict(commands)) => commands.clone(),
        Some(other) if other.truthy() => {
            return Err(
                "Error: A setting for a dict was declared, but the configuration line given is not a dict".into()
            );
        }
        _ => Vec::new(),
    };
    let at = commands.iter().position(|(known, _)| known == command);
    let now = at.map_or(&Value::Bool(false), |at| &commands[at].1);
    if setting.same(now) {
        return Ok(None);
    }
    match (at, setting.truthy()) {
        (Some(at), true) => commands[at].1 = setting.clone(),
        (None, true) => commands.push((command.clone(), setting.clone())),
        (Some(at), false) => drop(commands.remove(at)),
        (None, false) => return Err(format!("'{}'", command.to_text())),
    }
    Ok(Some(commands))
}

/// A log and its commands, as Salt writes them.
fn stanza(key: &str, commands: &[(Value, Value)]) -> String {
    let mut lines = String::new();
    for (name, value) in commands {
        let name = name.to_text();
        lines += &match value {
            Value::List(body) if SCRIPTS.contains(&name.as_str()) => {
                let body: String = body.iter().map(|line| format!("        {}\n", line.to_text())).collect();
                format!("    {name}\n{body}    endscript\n")
            }
            Value::Bool(true) => format!("    {name} \n"),
            value => format!("    {name} {}\n", value.to_text()),
        };
    }
    format!("{key} {{\n{lines}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conf() -> Value {
        let wtmp = Value::dict([
            ("monthly", Value::Bool(true)),
            ("rotate", Value::Int(1)),
            ("postrotate", vec!["true"].into()),
        ]);
        let files = Value::dict([("apt", vec!["/var/log/apt"].into()), ("wtmp", vec!["/var/log/wtmp"].into())]);
        Value::dict([
            ("rotate", Value::Int(4)),
            ("include", "/etc/logrotate.d".into()),
            ("include files", files),
            ("/var/log/wtmp", wtmp),
        ])
    }

    #[test]
    fn a_log_is_written_as_salt_writes_it() {
        let conf = conf();
        let set = |command: &str, setting: Value| commands(&conf, "/var/log/wtmp", &command.into(), &setting);
        let written = stanza("/var/log/wtmp", &set("rotate", Value::Int(3)).unwrap().unwrap());
        let expect = "/var/log/wtmp {\n    monthly \n    rotate 3\n    postrotate\n        true\n    endscript\n}";
        assert_eq!(written, expect);
        assert_eq!(set("rotate", Value::Int(1)), Ok(None));
        assert_eq!(set("monthly", Value::Bool(false)).unwrap().unwrap().len(), 2);
        assert_eq!(set("daily", Value::Bool(false)), Ok(None));
        assert_eq!(set("daily", "".into()), Err("'daily'".into()));
        assert!(commands(&conf, "rotate", &"x".into(), &Value::Int(1)).is_err());
        assert_eq!(commands(&conf, "/new", &"x".into(), &Value::Int(1)).unwrap().unwrap().len(), 1);
        assert_eq!(holder(&conf, "/var/log/wtmp").as_deref(), Some("/etc/logrotate.d/wtmp"));
        assert_eq!(holder(&conf, "rotate"), None);
    }
}
