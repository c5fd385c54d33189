//! What all states of PostgreSQL need.

use brine_guest::host::{config, functions};
use brine_guest::states::{StateResult, no_changes};
use brine_guest::{Result, Value, changes};

use crate::given::Given;

/// Where psql is, unless a setting says where.
const PSQL: &str = "/usr/bin/psql";
/// Debian's program for clusters.
const CREATE_CLUSTER: &str = "/usr/bin/pg_createcluster";
const BINARIES: &str = "postgres.bins_dir";
const WHY: &str = "Unable to load postgres module.  Make sure `postgres.bins_dir` is set.";

/// Whether this host has psql.
///
/// # Errors
/// Salt's sentence, if it has not.
pub fn has_psql() -> Result<()> {
    has(PSQL)
}

/// Whether this host has Debian's programs for clusters.
///
/// # Errors
/// Salt's sentence, if it has not.
pub fn has_clusters() -> Result<()> {
    has(CREATE_CLUSTER)
}

fn has(program: &str) -> Result<()> {
    let named = config::get(BINARIES).map(|folder| folder.value()).transpose()?.is_some_and(|folder| folder.truthy());
    // Debian's are links, which lead out of what is granted.
    if named || changes::look(program, false)?.is_some() { Ok(()) } else { Err(WHY.into()) }
}

/// A function of the module `postgres`, with keywords.
#[derive(Debug, Clone)]
pub struct Call {
    keywords: Vec<(&'static str, Value)>,
}

impl Call {
    /// With what says which server is meant: the arguments that most states have.
    pub fn to_server(given: &Given) -> Self {
        Self::new(given, SERVER)
    }

    /// With the server's arguments of functions of schemas, which have the names that states have.
    pub fn to_schema(given: &Given) -> Self {
        Self::new(given, ["user", "db_user", "db_password", "db_host", "db_port"].map(|name| (name, name)))
    }

    /// Without a server.
    pub fn local() -> Self {
        Self { keywords: Vec::new() }
    }

    fn new<const N: usize>(given: &Given, names: [(&'static str, &'static str); N]) -> Self {
        let said = names.map(|(to, from)| (to, given.value(from).clone()));
        Self { keywords: said.into_iter().filter(|(_, value)| *value != Value::None).collect() }
    }

    /// Adds a keyword.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.keywords.push((name, value.into()));
        self
    }

    /// Adds the state's arguments of these names.
    #[must_use]
    pub fn and(mut self, given: &Given, names: &[&'static str]) -> Self {
        self.keywords.extend(names.iter().map(|name| (*name, given.value(name).clone())));
        self
    }

    /// Calls a function of `postgres`.
    ///
    /// # Errors
    /// Why it failed.
    pub fn value(&self, function: &str) -> Result<Value> {
        let keywords = Value::dict(self.keywords.iter().map(|(name, value)| (*name, value.clone())));
        functions::call(&format!("postgres.{function}"), &[], &keywords.into())?.value()
    }

    /// Calls a function that answers yes or no.
    ///
    /// # Errors
    /// As for [`Call::value`].
    pub fn is(&self, function: &str) -> Result<bool> {
        Ok(self.value(function)?.truthy())
    }
}

/// What functions call the server's arguments, and what states do.
const SERVER: [(&str, &str); 6] = [
    ("maintenance_db", "maintenance_db"),
    ("runas", "user"),
    ("host", "db_host"),
    ("user", "db_user"),
    ("port", "db_port"),
    ("password", "db_password"),
];

/// A dry run's result without changes.
pub fn would(comment: impl Into<String>) -> StateResult {
    StateResult::would(comment, no_changes())
}

/// The result of a state that changed what has this name.
pub fn changed(comment: impl Into<String>, name: &str, what: impl Into<Value>) -> StateResult {
    StateResult::changed(comment, Value::Dict(vec![(name.into(), what.into())]))
}
