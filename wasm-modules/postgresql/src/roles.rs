//! The states of roles: those of users and of groups.

use brine_guest::states::{StateResult, is_dry_run, no_changes};
use brine_guest::{Result, Value};

use crate::given::Given;
use crate::password::Method;
use crate::states::{Call, changed, would};

/// What makes a user of a role, or a group.
pub struct Kind {
    /// In names of functions and in sentences.
    pub word: &'static str,
    /// At the begin of sentences.
    pub title: &'static str,
    /// The argument of functions that is the role's name.
    pub name: &'static str,
}

/// The arguments that a role has, with what the functions call them.
const FLAGS: [(&str, &str); 6] = [
    ("createdb", "can create databases"),
    ("inherit", "inherits privileges"),
    ("login", "can login"),
    ("createroles", "can create roles"),
    ("replication", "replication"),
    ("superuser", "superuser"),
];

/// The state `present`. `random` gives 64 bits that nobody can predict.
///
/// # Errors
/// Why it could not be looked at or changed.
pub fn present(given: &Given, kind: &Kind, random: impl Fn() -> u64) -> Result<StateResult> {
    let (name, Kind { word, title, .. }) = (given.name("name"), kind);
    let method = Method::read(given.value("encrypted"))?;
    let looks = !given.is_set("refresh_password");
    let known = Call::to_server(given).and(given, &["name"]).with("return_password", looks).value("role_get")?;
    let is_new = known == Value::None;
    let mut password = given.text("password");
    if is_new {
        password = password.or_else(|| given.text("default_password"));
    }
    if let Some(said) = &password {
        let kept = known.get("password").and_then(Value::text).unwrap_or_default();
        password = match !is_new && looks && method.fits(&name, said, kept)? {
            true => None,
            false => Some(method.hash(&name, said, random)?),
        };
    }
    let update = if is_new { Vec::new() } else { differences(given, &known, password.is_some())? };
    if !is_new && update.is_empty() {
        return Ok(StateResult::good(format!("{title} {name} is already present")));
    }
    let mode = if is_new { "create" } else { "update" };
    let changes = Value::dict(update);
    if is_dry_run() {
        let changes = if is_new { no_changes() } else { Value::Dict(vec![(name.as_str().into(), changes)]) };
        return Ok(StateResult::would(format!("{title} {name} is set to be {mode}d"), changes));
    }
    let said = ["createdb", "createroles", "superuser", "login", "inherit", "replication", "groups"];
    let encrypted = match given.value("encrypted") {
        Value::None => "md5".into(),
        said => said.clone(),
    };
    let call = Call::to_server(given).with(kind.name, name.as_str()).and(given, &said[..]);
    let mut call = call.with("encrypted", encrypted).with("rolepassword", password);
    if given.value("valid_until") != &Value::None {
        call = call.and(given, &["valid_until"]);
    }
    Ok(match call.is(&format!("{word}_{mode}"))? {
        true if is_new => changed(format!("The {word} {name} has been {mode}d"), &name, "Present"),
        true => changed(format!("The {word} {name} has been {mode}d"), &name, changes),
        false => StateResult::bad(format!("Failed to {mode} {word} {name}")),
    })
}

/// What is not as it is to be: as Salt shows it, a password as True.
fn differences(given: &Given, known: &Value, password: bool) -> Result<Vec<(&'static str, Value)>> {
    let mut update = Vec::new();
    for (argument, column) in FLAGS {
        let said = given.value(argument);
        if *said != Value::None && known.get(column) != Some(said) {
            update.push((argument, said.clone()));
        }
    }
    if password {
        update.push(("password", true.into()));
    }
    if let Some(until) = given.text("valid_until") {
        let is = match known.get("expiry time") {
            Some(Value::Ext(_, time)) => Some(String::from_utf8_lossy(time).into_owned()),
            _ => None,
        };
        if time(given, &until)? != is {
            update.push(("valid_until", given.value("valid_until").clone()));
        }
    }
    let has = match known.get("groups") {
        Some(Value::List(groups)) => groups.as_slice(),
        _ => &[],
    };
    let missing: Vec<String> = given.names("groups").unwrap_or_default();
    let missing: Vec<String> =
        missing.into_iter().filter(|group| !has.iter().any(|known| known.text() == Some(group))).collect();
    if !missing.is_empty() {
        update.push(("groups", missing.into()));
    }
    Ok(update)
}

/// A time as the functions return it; none for one without an end. What is no plain time is read by the server.
fn time(given: &Given, text: &str) -> Result<Option<String>> {
    if text == "infinity" {
        return Ok(None);
    }
    if let Some(time) = plain(text) {
        return Ok(Some(time));
    }
    let quoted = text.replace('\'', "''").replace('\\', "\\\\");
    let query = format!("SELECT pg_catalog.to_char(E'{quoted}'::timestamp(0), 'YYYY-MM-DD HH24:MI:SS') AS dt");
    let rows = Call::to_server(given).with("query", query).value("psql_query")?;
    let Value::List(rows) = rows else { return Err("postgres.psql_query is no list".into()) };
    let row = rows.first().ok_or_else(|| format!("valid_until is no time: {text}"))?;
    Ok(row.get("dt").and_then(Value::text).and_then(plain))
}

/// `2025-01-01`, or with a time of the day, as Salt sends a time. None for all else.
fn plain(text: &str) -> Option<String> {
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (date, time),
        None => (text, "00:00:00"),
    };
    let time = if time.len() == 5 { format!("{time}:00") } else { time.to_owned() };
    let numbers = |text: &str, between: char, lengths: [usize; 3], most: [u32; 3]| {
        let parts: Vec<&str> = text.split(between).collect();
        let fits = |((part, length), most): ((&&str, usize), u32)| {
            part.len() == length
                && part.bytes().all(|c| c.is_ascii_digit())
                && part.parse().is_ok_and(|n: u32| n <= most)
        };
        parts.len() == 3 && parts.iter().zip(lengths).zip(most).all(fits)
    };
    let is_time = numbers(date, '-', [4, 2, 2], [9999, 12, 31]) && numbers(&time, ':', [2, 2, 2], [23, 59, 59]);
    is_time.then(|| format!("{}T{time}.000000", date.replace('-', "")))
}

/// The state `absent`.
///
/// # Errors
/// As for [`present`].
pub fn absent(given: &Given, kind: &Kind) -> Result<StateResult> {
    let (name, Kind { word, title, .. }) = (given.name("name"), kind);
    if !Call::to_server(given).and(given, &["name"]).is("user_exists")? {
        return Ok(StateResult::good(format!("{title} {name} is not present, so it cannot be removed")));
    }
    if is_dry_run() {
        return Ok(would(format!("{title} {name} is set to be removed")));
    }
    Ok(match Call::to_server(given).with(kind.name, name.as_str()).is(&format!("{word}_remove"))? {
        true => changed(format!("{title} {name} has been removed"), &name, "Absent"),
        false => StateResult::bad(format!("{title} {name} failed to be removed")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_times_are_read_here() {
        for (text, time) in [
            ("2025-01-02", Some("20250102T00:00:00.000000")),
            ("2025-01-02 03:04", Some("20250102T03:04:00.000000")),
            ("2025-01-02T03:04:05", Some("20250102T03:04:05.000000")),
            ("2025-13-02", None),
            ("2025-01-02 03:04:05+02", None),
            ("tomorrow", None),
            ("+025-01-02", None),
            ("", None),
        ] {
            assert_eq!(plain(text).as_deref(), time, "{text}");
        }
    }

    #[test]
    fn what_differs_is_told_without_the_password() {
        let said = [
            ("name", "r".into()),
            ("createdb", Value::Bool(true)),
            ("login", Value::Bool(true)),
            ("valid_until", "2025-01-02".into()),
            ("groups", "a,b".into()),
        ];
        let given = Given::new(said.map(|(name, value): (_, Value)| (name, Some(value.into())))).unwrap();
        let known = Value::dict([
            ("can create databases", false.into()),
            ("can login", true.into()),
            ("expiry time", Value::Ext(78, b"20250102T00:00:00.000000".to_vec())),
            ("groups", vec!["b"].into()),
        ]);
        let update = differences(&given, &known, true).unwrap();
        let expected = [("createdb", true.into()), ("password", true.into()), ("groups", vec!["a"].into())];
        assert_eq!(update, expected);
    }
}
