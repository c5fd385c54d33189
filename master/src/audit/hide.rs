//! Removes secrets from arguments in the audit log.
//!
//! Salt hides only its own keywords (`__…`) in what it shows. A log that is kept for years must be stricter: arguments
//! with the name of a secret are hidden. Functions that take secrets by position are listed in [`FUNCTIONS`] and in
//! `audit_log_hide`.

use brine_protocol::args::parse_kwarg;
use brine_protocol::target::fnmatch;
use brine_protocol::value::{Value, ValueExt};

/// Replaces a secret.
const HIDDEN: &str = "**********";
/// Parts of the names of secrets, in lower case.
const WORDS: [&str; 10] =
    ["passw", "secret", "token", "private", "credential", "api_key", "apikey", "passphrase", "auth_key", "access_key"];
/// Functions whose arguments are all hidden, as globs.
const FUNCTIONS: [&str; 9] = [
    "shadow.*",
    "*passw*",
    "*secret*",
    "*token*",
    "mysql.user_*",
    "postgres.user_*",
    "rabbitmq.*_user",
    "*.login",
    "nacl.*",
];
/// Bound on the depth of nested values; deeper ones are hidden.
const DEPTH_MAX: usize = 32;

/// Returns the arguments of a call of `fun` without secrets. `fun` is one function, or several with one list of
/// arguments each.
pub(super) fn args(fun: &str, args: &[Value], more: &[String]) -> Value {
    let mut globs = FUNCTIONS.into_iter().chain(more.iter().map(String::as_str));
    if globs.any(|glob| fun.split(',').any(|fun| fnmatch(glob, fun))) && !args.is_empty() {
        return Value::Array(vec![HIDDEN.into()]);
    }
    Value::Array(args.iter().map(|arg| shown(arg, DEPTH_MAX)).collect())
}

fn shown(value: &Value, depth: usize) -> Value {
    if depth == 0 {
        return HIDDEN.into();
    }
    match value {
        Value::Array(items) => Value::Array(items.iter().map(|item| shown(item, depth - 1)).collect()),
        Value::Map(entries) => {
            let entries = entries.iter().filter(|(name, _)| !name.text().is_some_and(|name| name.starts_with("__")));
            let each = entries.map(|(name, value)| {
                let hide = is_secret(&name.python_str());
                (name.clone(), if hide { HIDDEN.into() } else { shown(value, depth - 1) })
            });
            Value::Map(each.collect())
        }
        text => match text.text().and_then(parse_kwarg) {
            Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}").into(),
            _ => text.clone(),
        },
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    WORDS.into_iter().any(|word| name.contains(word)) || name == "key" || name == "pwd"
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{list, map, text};

    #[test]
    fn secrets_are_hidden_by_name_wherever_they_are() {
        let inner = map([("DB_PASSWORD", "s1"), ("HOME", "/root")]);
        let given = [
            text("uptime"),
            text("password=s2"),
            text("shell=/bin/sh"),
            list([map([("api_key", "s3")])]),
            map([("__kwarg__", Value::from(true)), ("env", inner), ("Token", text("s4")), ("x", 1.into())]),
        ];
        let said = to_text(&args("cmd.run", &given, &[]));
        for secret in ["s1", "s2", "s3", "s4", "__kwarg__"] {
            assert!(!said.contains(secret), "{secret}: {said}");
        }
        for kept in ["uptime", "shell=/bin/sh", "/root", "password=***", "\"x\":1"] {
            assert!(said.contains(kept), "{kept}: {said}");
        }
    }

    #[test]
    fn functions_that_take_secrets_by_position_show_none() {
        let given = [text("root"), text("s1")];
        let mine = ["our.*".to_owned()];
        for fun in ["shadow.set_password", "user.chpasswd", "test.ping,shadow.set_password", "our.thing"] {
            assert_eq!(args(fun, &given, &mine), list([HIDDEN]), "{fun}");
        }
        assert_eq!(args("test.arg", &given, &mine), list(given.clone()));
        assert_eq!(args("shadow.info", &[], &mine), list(Vec::<Value>::new()));
    }

    #[test]
    fn depth_is_bounded() {
        let mut deep = text("s1");
        for _ in 0..100 {
            deep = list([deep]);
        }
        assert!(!to_text(&args("x.y", &[deep], &[])).contains("s1"));
    }

    fn to_text(value: &Value) -> String {
        brine_protocol::value::to_json(value).to_string()
    }
}
