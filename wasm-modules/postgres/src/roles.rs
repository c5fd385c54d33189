//! Roles: users and groups.

use brine_guest::{Result, Value};
use brine_postgresql::given::Given;
use brine_postgresql::password::Method;

use crate::csv::{Row, column, items};
use crate::quote;
use crate::server::Server;
use crate::wasi::random::random::get_random_u64;

/// MessagePack's extension in which Salt sends times.
const TIME: i8 = 78;

/// What is asked for: what has other defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    User,
    Group,
}

/// All roles: a dict of dicts; False if the server does not answer.
pub(crate) fn list(server: &Server, with_passwords: bool) -> Result<Value> {
    let rows = server.look(if with_passwords { "roles_with_passwords" } else { "roles" })?;
    let Some(rows) = rows else {
        let answers = server.look("version")?.is_some();
        return Ok(if answers { Value::Dict(Vec::new()) } else { Value::Bool(false) });
    };
    Ok(Value::Dict(rows.iter().map(|row| (column(row, "name").into(), role(row, with_passwords))).collect()))
}

fn role(row: &Row, with_password: bool) -> Value {
    let flag = |name: &'static str| {
        let value = match column(row, name) {
            "t" => Value::Bool(true),
            "f" => Value::Bool(false),
            _ => Value::None,
        };
        (name, value)
    };
    let mut role = vec![
        flag("superuser"),
        flag("inherits privileges"),
        flag("can create roles"),
        flag("can create databases"),
        // As in Salt: a column that no server has any more, and a number that is read as a truth value.
        ("can update system catalogs", Value::None),
        flag("can login"),
        flag("replication"),
        ("connections", Value::None),
        ("expiry time", time(column(row, "expiry time"))),
        ("defaults variables", column(row, "defaults variables").into()),
    ];
    if with_password {
        role.push(("password", column(row, "password").into()));
    }
    role.push(("groups", items(column(row, "groups")).into()));
    Value::dict(role)
}

/// `20250101T00:00:00` as Salt sends a time; None for `infinity` and for none.
fn time(text: &str) -> Value {
    if text.len() == "20250101T00:00:00".len() {
        Value::Ext(TIME, format!("{text}.000000").into_bytes())
    } else {
        Value::None
    }
}

/// One role; None if there is none.
pub(crate) fn get(server: &Server, name: &str, with_password: bool) -> Result<Value> {
    Ok(list(server, with_password)?.get(name).cloned().unwrap_or_default())
}

pub(crate) fn exists(server: &Server, name: &str) -> Result<bool> {
    Ok(get(server, name, false)?.truthy())
}

pub(crate) fn create(given: &Given, argument: &str, kind: Kind) -> Result<bool> {
    let (server, name) = (Server::new(given)?, given.name(argument));
    if exists(&server, &name)? {
        return Ok(false);
    }
    let role = quote::name(&name)?;
    let flags = [("inherit", true), ("login", kind == Kind::User)];
    let sql = format!("CREATE ROLE {role}{}", attributes(given, &name, &flags, None)?);
    Ok(server.run_all(&sql)?.succeeded())
}

pub(crate) fn update(given: &Given, argument: &str) -> Result<bool> {
    let (server, name) = (Server::new(given)?, given.name(argument));
    let known = get(&server, &name, false)?;
    if !known.truthy() {
        return Ok(false);
    }
    let role = quote::name(&name)?;
    let sql = format!("ALTER ROLE {role}{}", attributes(given, &name, &[], Some(&known))?);
    Ok(server.run_all(&sql)?.succeeded())
}

pub(crate) fn remove(given: &Given, argument: &str) -> Result<bool> {
    let (server, name) = (Server::new(given)?, given.name(argument));
    if !exists(&server, &name)? {
        return Ok(false);
    }
    server.run(&format!("DROP ROLE {};\n", quote::name(&name)?))?;
    Ok(!exists(&server, &name)?)
}

/// What comes after the role's name, and the memberships. `defaults`: flags that count where nothing is said. `known`: the role as it is.
fn attributes(given: &Given, name: &str, defaults: &[(&str, bool)], known: Option<&Value>) -> Result<String> {
    let mut words = String::new();
    let flags = [
        ("inherit", "INHERIT"),
        ("createdb", "CREATEDB"),
        ("createroles", "CREATEROLE"),
        ("superuser", "SUPERUSER"),
        ("replication", "REPLICATION"),
        ("login", "LOGIN"),
    ];
    for (argument, word) in flags {
        let default = defaults.iter().find(|(known, _)| *known == argument).map(|(_, default)| *default);
        let wanted = match given.value(argument) {
            Value::None => default,
            value => Some(value.truthy()),
        };
        // Only a superuser may name this one, even where nothing changes.
        let same = known.and_then(|known| known.get(argument)).is_some_and(|is| Some(is.truthy()) == wanted);
        if let Some(wanted) = wanted.filter(|_| !(argument == "superuser" && same)) {
            words += if wanted { " " } else { " NO" };
            words += word;
        }
    }
    match given.value("connlimit") {
        Value::None => {}
        said => {
            let limit: i64 =
                said.to_text().trim().parse().map_err(|_| format!("connlimit is no number: {}", said.to_text()))?;
            words += &format!(" CONNECTION LIMIT {limit}");
        }
    }
    let encrypted = given.value("encrypted");
    match given.value("rolepassword") {
        Value::None => {}
        Value::Bool(false) => words += " PASSWORD NULL",
        Value::Bool(true) => return Err("rolepassword is to be text".into()),
        said => {
            let password = said.to_text();
            if !password.is_empty() {
                let method = Method::read(encrypted)?;
                words += if method == Method::Plain { " UNENCRYPTED" } else { " ENCRYPTED" };
                let kept = method.hash(name, &password, get_random_u64)?;
                words += &format!(" PASSWORD {}", quote::value(&kept)?);
            }
        }
    }
    if let Some(until) = given.text("valid_until") {
        words += &format!(" VALID UNTIL {}", quote::value(&until)?);
    }
    let with = if words.is_empty() { "" } else { " WITH" };
    let mut sql = format!("{with}{words};\n");
    for group in given.names("groups").unwrap_or_default().iter().filter(|group| !group.is_empty()) {
        sql += &format!("GRANT {} TO {};\n", quote::name(group)?, quote::name(name)?);
    }
    Ok(sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(entries: &[(&'static str, Value)]) -> Given {
        Given::new(entries.iter().map(|(name, value)| (*name, Some(value.clone().into())))).unwrap()
    }

    #[test]
    fn a_role_has_what_is_said() {
        let said = given(&[
            ("createdb", true.into()),
            ("superuser", false.into()),
            ("connlimit", Value::Int(0)),
            ("rolepassword", "a'b".into()),
            ("encrypted", "md5".into()),
            ("groups", "a,b\"; DROP ROLE c; --".into()),
            ("valid_until", "x'; DROP ROLE c; --".into()),
        ]);
        let hash = Method::Md5.hash("r", "a'b", || 0).unwrap();
        let sql = attributes(&said, "r", &[("inherit", true), ("login", false)], None).unwrap();
        let expected = format!(
            " WITH INHERIT CREATEDB NOSUPERUSER NOLOGIN CONNECTION LIMIT 0 ENCRYPTED PASSWORD '{hash}' VALID UNTIL \
             'x''; DROP ROLE c; --';\nGRANT \"a\" TO \"r\";\nGRANT \"b\"\"; DROP ROLE c; --\" TO \"r\";\n"
        );
        assert_eq!(sql, expected);
        let known = Value::dict([("superuser", false.into())]);
        let sql = attributes(&given(&[("superuser", false.into())]), "r", &[], Some(&known)).unwrap();
        assert_eq!(sql, ";\n");
        for (argument, bad) in [("connlimit", "1; DROP ROLE c"), ("encrypted", "x")] {
            let said = given(&[(argument, bad.into()), ("rolepassword", "p".into())]);
            assert!(attributes(&said, "r", &[], None).is_err(), "{argument}");
        }
    }

    #[test]
    fn a_plain_password_is_in_quotes_too() {
        let said = given(&[("rolepassword", "a\\'b".into()), ("encrypted", false.into())]);
        let sql = attributes(&said, "r", &[], None).unwrap();
        assert_eq!(sql, " WITH UNENCRYPTED PASSWORD  E'a\\\\''b';\n");
    }

    #[test]
    fn times_are_as_salt_sends_them() {
        assert_eq!(time("20250101T00:00:00"), Value::Ext(TIME, b"20250101T00:00:00.000000".to_vec()));
        assert_eq!((time(""), time("infinity")), (Value::None, Value::None));
    }
}
