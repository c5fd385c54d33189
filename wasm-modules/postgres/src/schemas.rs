//! Schemas and languages of a database.

use brine_guest::{Result, Value};
use brine_postgresql::given::Given;

use crate::csv::column;
use crate::quote;
use crate::server::Server;

pub(crate) fn list(server: &Server) -> Result<Value> {
    let rows = server.look("schemas")?.unwrap_or_default();
    let schema = |row: &_| Value::dict(["owner", "acl"].map(|name| (name, column(row, name).into())));
    Ok(Value::Dict(rows.iter().map(|row| (column(row, "name").into(), schema(row))).collect()))
}

pub(crate) fn get(given: &Given) -> Result<Value> {
    Ok(list(&Server::of_schemas(given)?)?.get(&given.name("name")).cloned().unwrap_or_default())
}

pub(crate) fn exists(given: &Given) -> Result<bool> {
    Ok(get(given)?.truthy())
}

pub(crate) fn create(given: &Given) -> Result<bool> {
    if exists(given)? {
        return Ok(false);
    }
    let mut sql = format!("CREATE SCHEMA {}", quote::name(&given.name("name"))?);
    if let Some(owner) = given.text("owner") {
        sql += &format!(" AUTHORIZATION {}", quote::name(&owner)?);
    }
    Server::of_schemas(given)?.does(&format!("{sql};\n"))
}

pub(crate) fn remove(given: &Given) -> Result<bool> {
    if !exists(given)? {
        return Ok(false);
    }
    Server::of_schemas(given)?.run(&format!("DROP SCHEMA {};\n", quote::name(&given.name("name"))?))?;
    Ok(!exists(given)?)
}

pub(crate) fn languages(server: &Server) -> Result<Value> {
    let rows = server.look("languages")?.unwrap_or_default();
    let names = rows.iter().map(|row| column(row, "Name"));
    Ok(Value::Dict(names.map(|name| (name.into(), name.into())).collect()))
}

pub(crate) fn language_exists(given: &Given) -> Result<bool> {
    Ok(languages(&Server::new(given)?)?.get(&given.name("name")).is_some())
}

/// `CREATE LANGUAGE` where there is none, or `DROP LANGUAGE` where there is one.
pub(crate) fn change_language(given: &Given, what: &str, is_there: bool) -> Result<bool> {
    if language_exists(given)? != is_there {
        return Ok(false);
    }
    Server::new(given)?.does(&format!("{what} LANGUAGE {};\n", quote::name(&given.name("name"))?))
}
