//! Tablespaces.

use brine_guest::{Result, Value};
use brine_postgresql::given::Given;

use crate::databases::named;
use crate::quote;
use crate::server::Server;

pub(crate) fn list(server: &Server) -> Result<Value> {
    Ok(named(server.look("tablespaces")?))
}

pub(crate) fn exists(given: &Given) -> Result<bool> {
    Ok(list(&Server::new(given)?)?.get(&given.name("name")).is_some())
}

/// `a = 'b', c = 'd'`
fn options(given: &Given, argument: &str) -> Result<Option<String>> {
    let entries = match given.value(argument) {
        value if !value.truthy() => return Ok(None),
        Value::Dict(entries) => entries,
        other => return Err(format!("{argument} is to be a dict, not {}", other.kind())),
    };
    let each = |(key, value): &(Value, Value)| {
        Ok(format!("{} = {}", quote::name(&key.to_text())?, quote::value(&value.to_text())?))
    };
    Ok(Some(entries.iter().map(each).collect::<Result<Vec<_>>>()?.join(", ")))
}

pub(crate) fn create(given: &Given) -> Result<bool> {
    let mut sql = format!("CREATE TABLESPACE {}", quote::name(&given.name("name"))?);
    if let Some(owner) = given.full("owner") {
        sql += &format!(" OWNER {}", quote::name(&owner)?);
    }
    sql += &format!(" LOCATION {}", quote::value(&given.name("location"))?);
    if let Some(options) = options(given, "options")? {
        sql += &format!(" WITH ({options})");
    }
    Server::new(given)?.does(&format!("{sql};\n"))
}

pub(crate) fn alter(given: &Given) -> Result<bool> {
    let mut name = quote::name(&given.name("name"))?;
    let mut sql = String::new();
    if let Some(new) = given.full("new_name") {
        let new = quote::name(&new)?;
        sql += &format!("ALTER TABLESPACE {name} RENAME TO {new};\n");
        name = new;
    }
    if let Some(owner) = given.full("new_owner") {
        sql += &format!("ALTER TABLESPACE {name} OWNER TO {};\n", quote::name(&owner)?);
    }
    if let Some(options) = options(given, "set_option")? {
        sql += &format!("ALTER TABLESPACE {name} SET ({options});\n");
    }
    if let Some(options) = given.full("reset_option") {
        let names = options.split(',').map(|name| quote::name(name.trim())).collect::<Result<Vec<_>>>()?;
        sql += &format!("ALTER TABLESPACE {name} RESET ({});\n", names.join(", "));
    }
    if sql.is_empty() { Ok(true) } else { Server::new(given)?.does(&sql) }
}

pub(crate) fn remove(given: &Given) -> Result<bool> {
    Server::new(given)?.does(&format!("DROP TABLESPACE {};\n", quote::name(&given.name("name"))?))
}
