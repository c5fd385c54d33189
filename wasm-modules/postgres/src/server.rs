//! The server that a call means, and what psql is asked there.
//!
//! What only looks is one of the queries of a list that the host knows word by word, so that it runs with `test=True` too. What changes
//! something is psql's input, so that passwords are on no command line.

use brine_guest::host::{config, pillar, process};
use brine_guest::program::{Output, Program};
use brine_guest::{Result, Value};
use brine_postgresql::given::Given;

use crate::csv::{self, Row};

/// `NAME: SELECT …` in each line; the host's own list of what only looks.
const QUERIES: &str = include_str!("../../../sandbox/capabilities/src/looks/postgres.sql");
/// The user of this host that owns servers, and their first role.
pub(crate) const OWNER: &str = "postgres";
/// Bytes kept of an output: the most that the host keeps.
const OUTPUT: u64 = 4 << 20;

/// Where and as whom to connect.
#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    user: Option<String>,
    host: Option<String>,
    port: Option<String>,
    database: Option<String>,
    password: Option<String>,
    runas: Option<String>,
}

/// A setting, or what the pillar says in its place; none if it is empty.
pub(crate) fn setting(name: &str) -> Result<Option<Value>> {
    let name = format!("postgres.{name}");
    let said = match config::get(&name) {
        Some(said) => Some(said),
        None => pillar::get(&name, None)?,
    };
    Ok(said.map(|said| said.value()).transpose()?.filter(Value::truthy))
}

fn or_setting(said: Option<String>, name: &str) -> Result<Option<String>> {
    match said {
        Some(said) => Ok(Some(said)),
        None => Ok(setting(name)?.map(|value| value.to_text())),
    }
}

/// A program of PostgreSQL on this host; none if it is not there.
pub(crate) fn program(name: &str) -> Result<Option<String>> {
    if let Some(folder) = setting("bins_dir")? {
        let path = format!("{}/{name}", folder.to_text().trim_end_matches('/'));
        if let Some(found) = process::which(&path)? {
            return Ok(Some(found));
        }
    }
    process::which(name)
}

/// The time after which programs are ended, in milliseconds; none for none.
pub(crate) fn timeout() -> Result<Option<u64>> {
    let seconds = match setting("timeout")? {
        Some(Value::Int(seconds)) => seconds as f64,
        Some(Value::Float(seconds)) => seconds,
        Some(other) => other.to_text().parse().map_err(|_| "postgres.timeout is no number of seconds")?,
        None => return Ok(None),
    };
    Ok((seconds > 0.0).then_some((seconds * 1000.0) as u64))
}

impl Server {
    /// The server of most functions.
    pub(crate) fn new(given: &Given) -> Result<Self> {
        let [user, host, port, database] = ["user", "host", "port", "maintenance_db"].map(|name| given.full(name));
        Self { user, host, port, database, password: given.text("password"), runas: given.text("runas") }.settle()
    }

    /// The server of functions of schemas.
    pub(crate) fn of_schemas(given: &Given) -> Result<Self> {
        let [user, host, port, database] = ["db_user", "db_host", "db_port", "dbname"].map(|name| given.full(name));
        Self { user, host, port, database, password: given.text("db_password"), runas: given.text("user") }.settle()
    }

    /// Another database of the same server.
    pub(crate) fn database(&self, name: &str) -> Self {
        Self { database: Some(name.into()), ..self.clone() }
    }

    /// Takes from settings what was not said.
    fn settle(mut self) -> Result<Self> {
        self.user = or_setting(self.user, "user")?;
        self.host = or_setting(self.host, "host")?;
        self.port = or_setting(self.port, "port")?;
        self.database = or_setting(self.database, "maintenance_db")?;
        self.password = or_setting(self.password, "pass")?.filter(|password| !password.is_empty());
        let is_here = self.host.as_ref().is_none_or(|host| host.starts_with('/'));
        self.runas = self.runas.or_else(|| is_here.then(|| OWNER.into()));
        Ok(self)
    }

    fn psql(&self) -> Result<Program> {
        let Some(psql) = program("psql")? else {
            return Err("'postgres' __virtual__ returned False: psql was not found".into());
        };
        let mut psql = Program::new([psql.as_str(), "--no-align", "--no-readline", "--no-psqlrc", "--no-password"]);
        for (option, said) in [("--username", &self.user), ("--host", &self.host), ("--port", &self.port)] {
            psql = psql.args(said.iter().flat_map(|said| [option, said]));
        }
        // The encoding of what goes in and comes out is ours, whatever a role's settings say.
        psql = psql
            .args(["--dbname", &database(self.database.as_deref().unwrap_or(OWNER))])
            .env("PGCLIENTENCODING", "UTF8");
        psql = psql.max_output(OUTPUT);
        if let Some(password) = &self.password {
            // Only the user and root can see a process's variables; there is no other way in a dry run, which writes no file.
            psql = psql.env("PGPASSWORD", password.as_str());
        }
        if let Some(runas) = &self.runas {
            psql = psql.run_as(runas.as_str());
        }
        if let Some(timeout) = timeout()? {
            psql = psql.timeout(timeout);
        }
        Ok(psql)
    }

    /// Rows of a query of the list; none if it failed.
    pub(crate) fn look(&self, name: &str) -> Result<Option<Vec<Row>>> {
        let query = QUERIES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        self.copy(query.ok_or("there is no such query")?, false)
    }

    /// Rows of a query of the caller's; none if it failed.
    pub(crate) fn query(&self, query: &str, write: bool) -> Result<Option<Vec<Row>>> {
        self.copy(query.trim().trim_end_matches(';'), write)
    }

    fn copy(&self, query: &str, write: bool) -> Result<Option<Vec<Row>>> {
        let mut copy = format!("COPY ({query}) TO STDOUT WITH CSV HEADER");
        if write {
            copy = format!("START TRANSACTION READ WRITE; {copy}; COMMIT TRANSACTION;");
        }
        let done = self.psql()?.args(["-c", &copy]).raw()?;
        if !done.succeeded() {
            return Ok(None);
        }
        let mut rows = csv::rows(&done.stdout);
        if write {
            // The line that says that the transaction ended.
            rows.pop();
        }
        Ok(Some(rows))
    }

    /// Runs statements, each for itself.
    pub(crate) fn run(&self, statements: &str) -> Result<Output> {
        self.input(&[], statements)
    }

    /// Runs statements, all or none.
    pub(crate) fn run_all(&self, statements: &str) -> Result<Output> {
        self.input(&["--single-transaction"], statements)
    }

    fn input(&self, options: &[&str], statements: &str) -> Result<Output> {
        let psql = self.psql()?.args(["--quiet", "--set", "ON_ERROR_STOP=1"]).args(options.iter().copied());
        psql.args(["--file", "-"]).stdin(statements).run()
    }

    /// Whether statements succeeded.
    pub(crate) fn does(&self, statements: &str) -> Result<bool> {
        Ok(self.run(statements)?.succeeded())
    }
}

/// A database's name as psql's option takes it: what psql would read as a list of settings or as an address is quoted.
fn database(name: &str) -> String {
    let is_more = name.contains('=') || name.starts_with("postgresql://") || name.starts_with("postgres://");
    match is_more {
        true => format!("dbname='{}'", name.replace('\\', "\\\\").replace('\'', "\\'")),
        false => name.to_owned(),
    }
}

/// The version of the server; None if it does not answer.
pub(crate) fn version(given: &Given) -> Result<Value> {
    let rows = Server::new(given)?.look("version")?.unwrap_or_default();
    Ok(rows.first().map_or(Value::None, |row| csv::column(row, "setting").into()))
}

/// The rows of a caller's query.
pub(crate) fn psql_query(given: &Given) -> Result<Value> {
    let rows = Server::new(given)?.query(&given.name("query"), given.is_set("write"))?.unwrap_or_default();
    Ok(Value::List(rows.iter().map(csv::dict).collect()))
}

/// How a program ended, as Salt's `cmd.run_all` says it.
pub(crate) fn ended(done: &Output) -> Value {
    Value::dict([
        ("pid", Value::Int(done.pid.into())),
        ("retcode", Value::Int(done.code)),
        ("stdout", done.stdout.as_str().into()),
        ("stderr", done.stderr.as_str().into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_databases_name_is_no_address() {
        assert_eq!(database("app"), "app");
        assert_eq!(database("host=evil.example dbname=app"), "dbname='host=evil.example dbname=app'");
        assert_eq!(database("postgres://evil.example/app"), "dbname='postgres://evil.example/app'");
        assert_eq!(database("a='\\"), "dbname='a=\\'\\\\'");
    }
}
