//! Databases, and what is in them when the owner changes.

use brine_guest::program::Output;
use brine_guest::{Result, Value};
use brine_postgresql::given::Given;

use crate::csv::{self, column};
use crate::quote;
use crate::server::{Server, ended};

/// Rows by the column `Name`, which the dict of each lacks.
pub(crate) fn named(rows: Option<Vec<csv::Row>>) -> Value {
    let named = |mut row: csv::Row| {
        let at = row.iter().position(|(name, _)| name == "Name");
        let name = at.map(|at| row.remove(at).1).unwrap_or_default();
        (name.into(), csv::dict(&row))
    };
    Value::Dict(rows.into_iter().flatten().map(named).collect())
}

pub(crate) fn list(server: &Server) -> Result<Value> {
    Ok(named(server.look("databases")?))
}

pub(crate) fn exists(given: &Given) -> Result<bool> {
    Ok(list(&Server::new(given)?)?.get(&given.name("name")).is_some())
}

pub(crate) fn create(given: &Given) -> Result<bool> {
    let mut sql = format!("CREATE DATABASE {}", quote::name(&given.name("name"))?);
    let names = [("TABLESPACE", "tablespace"), ("OWNER", "owner"), ("TEMPLATE", "template")];
    for (word, argument) in names {
        if let Some(said) = given.text(argument) {
            sql += &format!(" {word} = {}", quote::name(&said)?);
        }
    }
    for (word, argument) in [("ENCODING", "encoding"), ("LC_COLLATE", "lc_collate"), ("LC_CTYPE", "lc_ctype")] {
        if let Some(said) = given.text(argument) {
            sql += &format!(" {word} = {}", quote::value(&said)?);
        }
    }
    Server::new(given)?.does(&format!("{sql};\n"))
}

pub(crate) fn alter(given: &Given) -> Result<bool> {
    let (owner, tablespace) = (given.full("owner"), given.full("tablespace"));
    let name = quote::name(&given.name("name"))?;
    let server = Server::new(given)?;
    if let Some(owner) = owner.as_deref().filter(|_| given.is_set("owner_recurse")) {
        return Ok(owner_to(&server.database(&given.name("name")), &given.name("name"), owner)?.succeeded());
    }
    let mut sql = String::new();
    if let Some(owner) = owner {
        sql += &format!("ALTER DATABASE {name} OWNER TO {};\n", quote::name(&owner)?);
    }
    if let Some(tablespace) = tablespace {
        sql += &format!("ALTER DATABASE {name} SET TABLESPACE {};\n", quote::name(&tablespace)?);
    }
    if sql.is_empty() { Ok(true) } else { server.does(&sql) }
}

pub(crate) fn remove(given: &Given) -> Result<bool> {
    let name = given.name("name");
    let (quoted, value) = (quote::name(&name)?, quote::value(&name)?);
    let done = Server::new(given)?.run(&format!(
        "REVOKE CONNECT ON DATABASE {quoted} FROM public;\n\
         SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE datname = {value} AND pid <> \
         pg_catalog.pg_backend_pid();\n\
         DROP DATABASE {quoted};\n"
    ))?;
    if done.succeeded() { Ok(true) } else { Err(format!("Failed: ret={}", ended(&done).to_text())) }
}

/// What belongs to somebody, and how it is called there: the kind, the query that names each, and the column's name.
const OWNED: [(&str, &str); 5] = [
    ("SCHEMA", "SELECT pg_catalog.quote_ident(schema_name) AS n FROM information_schema.schemata"),
    (
        "TABLE",
        "SELECT pg_catalog.quote_ident(table_schema) || '.' || pg_catalog.quote_ident(table_name) AS n FROM \
         information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
    ),
    (
        "FUNCTION",
        "SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text AS n FROM pg_catalog.pg_proc p JOIN \
         pg_catalog.pg_namespace s ON p.pronamespace = s.oid WHERE s.nspname NOT IN ('pg_catalog', 'information_schema') AND \
         p.prokind IN ('f', 'w')",
    ),
    (
        "AGGREGATE",
        "SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text AS n FROM pg_catalog.pg_proc p JOIN \
         pg_catalog.pg_namespace s ON p.pronamespace = s.oid WHERE s.nspname NOT IN ('pg_catalog', 'information_schema') AND \
         p.prokind = 'a'",
    ),
    (
        "SEQUENCE",
        "SELECT pg_catalog.quote_ident(sequence_schema) || '.' || pg_catalog.quote_ident(sequence_name) AS n FROM \
         information_schema.sequences",
    ),
];

/// Gives a database and what is in it to a role, all or nothing. The names in it come from PostgreSQL in its own quotes.
pub(crate) fn owner_to(inside: &Server, database: &str, owner: &str) -> Result<Output> {
    let owner = quote::name(owner)?;
    let mut sql = format!("ALTER DATABASE {} OWNER TO {owner};\n", quote::name(database)?);
    for (kind, query) in OWNED {
        for row in inside.query(query, false)?.unwrap_or_default() {
            sql += &format!("ALTER {kind} {} OWNER TO {owner};\n", column(&row, "n"));
        }
    }
    inside.run_all(&sql)
}
