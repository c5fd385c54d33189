//! Extensions.

use brine_guest::{Result, Value};
use brine_postgresql::given::Given;

use crate::csv::{self, column};
use crate::quote;
use crate::server::Server;
use crate::version;

const NOT_INSTALLED: &str = "EXTENSION NOT INSTALLED";
const INSTALLED: &str = "EXTENSION INSTALLED";
const TO_UPGRADE: &str = "EXTENSION TO UPGRADE";
const TO_MOVE: &str = "EXTENSION TO MOVE";

fn by(name: &str, rows: Option<Vec<csv::Row>>) -> Value {
    Value::Dict(rows.into_iter().flatten().map(|row| (column(&row, name).into(), csv::dict(&row))).collect())
}

pub(crate) fn available(server: &Server) -> Result<Value> {
    Ok(by("name", server.look("available_extensions")?))
}

pub(crate) fn installed(server: &Server) -> Result<Value> {
    Ok(by("extname", server.look("installed_extensions")?))
}

fn one(all: &Value, name: &str) -> Value {
    all.get(name).cloned().unwrap_or_default()
}

pub(crate) fn get_available(given: &Given) -> Result<Value> {
    Ok(one(&available(&Server::new(given)?)?, &given.name("name")))
}

pub(crate) fn get_installed(given: &Given) -> Result<Value> {
    Ok(one(&installed(&Server::new(given)?)?, &given.name("name")))
}

pub(crate) fn is_available(given: &Given) -> Result<bool> {
    has(&Server::new(given)?, &given.name("name"))
}

fn has(server: &Server, name: &str) -> Result<bool> {
    let Value::Dict(all) = available(server)? else { return Ok(false) };
    Ok(all.iter().any(|(known, _)| known.to_text().to_lowercase() == name.to_lowercase()))
}

pub(crate) fn is_installed(given: &Given) -> Result<bool> {
    Ok(get_installed(given)?.truthy())
}

/// What has to be done about an extension: the flags above.
pub(crate) fn metadata(given: &Given) -> Result<Vec<&'static str>> {
    Ok(flags(&get_installed(given)?, version(given).as_deref(), given.text("schema").as_deref()))
}

fn flags(installed: &Value, wanted: Option<&str>, schema: Option<&str>) -> Vec<&'static str> {
    if !installed.truthy() {
        return vec![NOT_INSTALLED];
    }
    let is = |column: &str| installed.get(column).and_then(Value::text).unwrap_or_default();
    let mut flags = vec![INSTALLED];
    if wanted.is_some_and(|wanted| version::is_older(is("extversion"), wanted)) {
        flags.push(TO_UPGRADE);
    }
    if schema.is_some_and(|schema| is("extrelocatable") == "t" && is("schema_name") != schema) {
        flags.push(TO_MOVE);
    }
    flags
}

/// The version that is asked for. Who knows Salt writes it in SQL's quotes.
fn version(given: &Given) -> Option<String> {
    let said = given.text("ext_version")?;
    let bare = |quote: char| said.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)).map(str::to_owned);
    Some(bare('\'').or_else(|| bare('"')).unwrap_or(said))
}

pub(crate) fn drop(given: &Given) -> Result<bool> {
    if is_installed(given)? {
        let mut sql = String::from("DROP EXTENSION ");
        if given.is_set("if_exists") {
            sql += "IF EXISTS ";
        }
        sql += &quote::name(&given.name("name"))?;
        if given.flag("cascade", true) {
            sql += " CASCADE";
        }
        if given.is_set("restrict") {
            sql += " RESTRICT";
        }
        Server::new(given)?.run(&format!("{sql};\n"))?;
    }
    Ok(!is_installed(given)?)
}

pub(crate) fn create(given: &Given) -> Result<bool> {
    let flags = metadata(given)?;
    let server = Server::new(given)?;
    if has(&server, &given.name("name"))? {
        let sql = statements(given, &flags)?;
        if !sql.is_empty() {
            server.run_all(&sql)?;
        }
    }
    Ok(metadata(given)? == [INSTALLED])
}

fn statements(given: &Given, flags: &[&str]) -> Result<String> {
    let name = quote::name(&given.name("name"))?;
    let (schema, version) = (given.full("schema"), version(given).filter(|version| !version.is_empty()));
    let mut sql = String::new();
    if flags == [NOT_INSTALLED] {
        sql += "CREATE EXTENSION ";
        if given.flag("if_not_exists", true) {
            sql += "IF NOT EXISTS ";
        }
        sql += &name;
        if let Some(schema) = schema {
            sql += &format!(" SCHEMA {}", quote::name(&schema)?);
        }
        if let Some(version) = version {
            sql += &format!(" VERSION {}", quote::value(&version)?);
        }
        if let Some(from) = given.full("from_version") {
            sql += &format!(" FROM {}", quote::value(&from)?);
        }
        return Ok(sql + ";\n");
    }
    if let Some(schema) = schema.filter(|_| flags.contains(&TO_MOVE)) {
        sql += &format!("ALTER EXTENSION {name} SET SCHEMA {};\n", quote::name(&schema)?);
    }
    if let Some(version) = version.filter(|_| flags.contains(&TO_UPGRADE)) {
        sql += &format!("ALTER EXTENSION {name} UPDATE TO {};\n", quote::value(&version)?);
    }
    Ok(sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(entries: &[(&'static str, &str)]) -> Given {
        Given::new(entries.iter().map(|(name, value)| (*name, Some((*value).into())))).unwrap()
    }

    #[test]
    fn what_has_to_be_done() {
        let installed = Value::dict([
            ("extversion", "1.7".into()),
            ("extrelocatable", "t".into()),
            ("schema_name", "public".into()),
        ]);
        assert_eq!(flags(&Value::None, Some("1.8"), None), [NOT_INSTALLED]);
        assert_eq!(flags(&installed, Some("1.10"), Some("public")), [INSTALLED, TO_UPGRADE]);
        assert_eq!(flags(&installed, Some("1.7"), Some("other")), [INSTALLED, TO_MOVE]);
        let wanted = given(&[("name", "a\"b"), ("schema", "s; x"), ("ext_version", "'1.8'")]);
        let expected = "CREATE EXTENSION IF NOT EXISTS \"a\"\"b\" SCHEMA \"s; x\" VERSION '1.8';\n";
        assert_eq!(statements(&wanted, &[NOT_INSTALLED]).as_deref(), Ok(expected));
        let expected = "ALTER EXTENSION \"a\"\"b\" SET SCHEMA \"s; x\";\nALTER EXTENSION \"a\"\"b\" UPDATE TO '1.8';\n";
        assert_eq!(statements(&wanted, &[INSTALLED, TO_UPGRADE, TO_MOVE]).as_deref(), Ok(expected));
        assert_eq!(statements(&wanted, &[INSTALLED]).as_deref(), Ok(""));
    }
}
