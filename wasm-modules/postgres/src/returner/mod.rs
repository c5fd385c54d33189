//! The returner: each return becomes a row of the table of Salt's returner `postgres`.
//!
//! - [`wire`] the protocol of the server

#[cfg(test)]
mod tests;
mod wire;

use brine_guest::host::config;
use brine_guest::{Result, Value, json};
use brine_tcp::Connection;

use crate::wasi::random::random::get_random_u64;
use wire::{Link, Login, Session};

/// Characters of the column `fun`.
const MAX_FUN: usize = 50;
/// One row for each job and minion, also when the answer to the first try was lost.
const INSERT: &str = "insert into salt_returns (fun, jid, return, id, success, full_ret) select $1::text, $2::text, \
                      $3::text, $4::text, $5::text, $6::text where not exists (select 1 from salt_returns where jid = \
                      $2::text and id = $4::text)";

/// Writes a return.
pub fn write(ret: &Value) -> Result<bool> {
    let alternative = ret.get("ret_config").and_then(Value::text).filter(|name| !name.is_empty());
    let settings = Settings::read(alternative)?;
    let failed = |why: String| format!("{}:{}: {why}", settings.host, settings.port);
    let row = row(ret)?;
    let random: Vec<u8> = (0..3).flat_map(|_| get_random_u64().to_be_bytes()).collect();
    let login =
        Login { user: &settings.user, password: &settings.password, database: &settings.database, random: &random };
    let link = Connection::open(&settings.host, settings.port).map_err(failed)?;
    let mut session = Session::begin(link, &login).map_err(failed)?;
    let row: Vec<&str> = row.iter().map(String::as_str).collect();
    session.run(INSERT, &row).map_err(failed)?;
    session.end();
    Ok(true)
}

/// The columns of a return, in the statement's order.
fn row(ret: &Value) -> Result<[String; 6]> {
    let text = |key: &str| match ret.get(key) {
        Some(Value::None) | None => Err(format!("the return has no {key}")),
        Some(value) => Ok(value.to_text()),
    };
    let fun = text("fun")?.chars().take(MAX_FUN).collect();
    let value = json::to_text(ret.get("return").unwrap_or(&Value::None));
    let success = ret.get("success").is_some_and(Value::truthy).to_string();
    Ok([fun, text("jid")?, value, text("id")?, success, json::to_text(ret)])
}

impl Link for Connection {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Connection::send(self, bytes)
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        Connection::receive(self)
    }
}

/// The server, by the keys of Salt's returner.
struct Settings {
    host: String,
    port: u16,
    user: String,
    password: String,
    database: String,
}

impl Settings {
    /// `alternative` is what `--return_config` names; what it does not say is as usual.
    fn read(alternative: Option<&str>) -> Result<Self> {
        let read = |key: &str| -> Result<Option<Value>> {
            let usual = format!("returner.postgres.{key}");
            let keys = alternative.map(|name| format!("{name}.{usual}")).into_iter().chain([usual]);
            for key in keys {
                if let Some(value) = config::get(&key).map(|value| value.value()).transpose()? {
                    return Ok(Some(value));
                }
            }
            Ok(None)
        };
        let text = |key: &str, default: &str| -> Result<String> {
            Ok(read(key)?.map_or_else(|| default.to_owned(), |value| value.to_text()))
        };
        let port = match read("port")? {
            None => 5432,
            Some(port) => port.to_text().parse().map_err(|_| "returner.postgres.port is to be a number up to 65535")?,
        };
        Ok(Self {
            host: text("host", "localhost")?,
            port,
            user: text("user", "salt")?,
            password: text("passwd", "salt")?,
            database: text("db", "salt")?,
        })
    }
}
