//! Data directories by initdb, and Debian's clusters.

use brine_guest::changes::{self, Kind, Put};
use brine_guest::program::{Output, Program};
use brine_guest::{Result, Value, path};
use brine_postgresql::given::Given;

use crate::server::{OWNER, ended, program, timeout};
use crate::wasi::random::random::get_random_u64;

pub(crate) fn exists(given: &Given) -> Result<bool> {
    let name = given.name("name");
    let is_file = |file: &str| changes::is(&path::join(&name, file), Kind::Regular);
    Ok(is_file("PG_VERSION")? && is_file("postgresql.conf")?)
}

pub(crate) fn init(given: &Given) -> Result<bool> {
    if exists(given)? {
        return Ok(false);
    }
    let runas = given.text("runas").unwrap_or_else(|| OWNER.into());
    let Some(initdb) = program("initdb")? else { return Err("initdb executable not found.".into()) };
    let said = |name: &str, default: &str| given.text(name).unwrap_or_else(|| default.into());
    let mut initdb = Program::new([
        initdb,
        format!("--pgdata={}", given.name("name")),
        format!("--username={}", said("user", &runas)),
        format!("--auth={}", said("auth", "password")),
        format!("--encoding={}", said("encoding", "UTF8")),
    ])
    .run_as(runas.as_str());
    if let Some(locale) = given.text("locale") {
        initdb = initdb.arg(format!("--locale={locale}"));
    }
    if let Some(folder) = given.text("waldir") {
        initdb = initdb.args(["-X", folder.as_str()]);
    }
    if given.is_set("checksums") {
        initdb = initdb.arg("--data-checksums");
    }
    if let Some(timeout) = timeout()? {
        initdb = initdb.timeout(timeout);
    }
    let Some(password) = given.text("password") else { return Ok(initdb.run()?.succeeded()) };
    // initdb takes a password from a file or a terminal alone.
    let file = format!("/tmp/.brine-initdb-{:016x}{:016x}", get_random_u64(), get_random_u64());
    Put::new(&file)
        .follow(false)
        .owner(Some(runas), None)
        .mode(Some(0o600))
        .expect(Some(String::new()))
        .text(&password)?;
    let done = initdb.arg(format!("--pwfile={file}")).run();
    changes::remove(&file, false)?;
    Ok(done?.succeeded())
}

fn debians(name: &str) -> Result<Program> {
    let found = program(name)?;
    Ok(Program::new([found.ok_or("postgres execution module not loaded: pg_createcluste command not found.")?]))
}

/// A name of a cluster: none that is an option.
fn cluster(given: &Given) -> Result<[String; 2]> {
    let names = [given.name("version"), given.text("name").unwrap_or_else(|| "main".into())];
    match names.iter().find(|name| name.starts_with('-')) {
        Some(name) => Err(format!("{name} is no cluster's")),
        None => Ok(names),
    }
}

pub(crate) fn create_cluster(given: &Given) -> Result<Value> {
    let mut create = debians("pg_createcluster")?;
    let names = cluster(given)?;
    for argument in ["port", "locale", "encoding", "datadir"] {
        if let Some(said) = given.full(argument) {
            create = create.args([format!("--{argument}"), said]);
        }
    }
    create = create.args(names);
    let size = given.full("wal_segsize");
    let mut options = Vec::new();
    if *given.value("allow_group_access") == Value::Bool(true) {
        options.push("--allow-group-access".to_owned());
    }
    if *given.value("data_checksums") == Value::Bool(true) {
        options.push("--data-checksums".to_owned());
    }
    if let Some(size) = size {
        options.extend(["--wal-segsize".to_owned(), size]);
    }
    if !options.is_empty() {
        create = create.arg("--").args(options);
    }
    let done = create.run()?;
    Ok(if done.succeeded() { ended(&done) } else { Value::Bool(false) })
}

pub(crate) fn remove_cluster(given: &Given) -> Result<Value> {
    let mut remove = debians("pg_dropcluster")?;
    if given.is_set("stop") {
        remove = remove.arg("--stop");
    }
    let [version, name] = cluster(given)?;
    let done = remove.args([&version, &name]).run()?;
    let Value::Dict(mut told) = ended(&done) else { return Ok(Value::None) };
    if done.succeeded() {
        told.push(("changes".into(), format!("Successfully removed cluster {version}/{name}").into()));
    }
    Ok(Value::Dict(told))
}

/// The clusters by their names, `VERSION/NAME`.
pub(crate) fn clusters() -> Result<Vec<(String, Value)>> {
    let listed: Output = debians("pg_lsclusters")?.arg("--no-header").run()?;
    Ok(listed.stdout.lines().filter_map(listed_cluster).collect())
}

fn listed_cluster(line: &str) -> Option<(String, Value)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [version, name, port, status, user, datadir, log] = fields[..] else { return None };
    let told = [
        ("port", Value::Int(port.parse().ok()?)),
        ("status", status.into()),
        ("user", user.into()),
        ("datadir", datadir.into()),
        ("log", log.into()),
    ];
    Some((format!("{version}/{name}"), Value::dict(told)))
}

pub(crate) fn cluster_exists(given: &Given) -> Result<bool> {
    let [version, name] = cluster(given)?;
    Ok(clusters()?.iter().any(|(known, _)| *known == format!("{version}/{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_listed() {
        let line =
            "15  main    5432 down   postgres /var/lib/postgresql/15/main /var/log/postgresql/postgresql-15-main.log";
        let (name, told) = listed_cluster(line).unwrap();
        assert_eq!(
            (name.as_str(), told.get("port"), told.get("status")),
            ("15/main", Some(&Value::Int(5432)), Some(&"down".into()))
        );
        assert!(listed_cluster("").is_none() && listed_cluster("15 main").is_none());
    }

    #[test]
    fn an_option_is_no_clusters_name() {
        let given = Given::new([("version", Some("15".into())), ("name", Some("--stop".into()))]).unwrap();
        assert!(cluster(&given).is_err());
    }
}
