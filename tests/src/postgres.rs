//! A PostgreSQL server for one test: in a temporary folder, on a unix socket there and a free port of loopback. It ends
//! with the test. `tools/setup.sh peers` installs it.
#![allow(clippy::disallowed_methods, reason = "tests start the programs that they test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use brine_kit::files;
use brine_kit::ports::free_ports;
use brine_kit::process::Daemon;
use brine_kit::wait::wait_for;

/// Salt's tables, from the documentation of its returner `postgres`.
const POSTGRES: &str = "
CREATE TABLE jids (jid varchar(20) PRIMARY KEY, load text NOT NULL);
CREATE TABLE salt_returns (fun varchar(50) NOT NULL, jid varchar(255) NOT NULL, return text NOT NULL, full_ret text,
  id varchar(255) NOT NULL, success varchar(10) NOT NULL, alter_time TIMESTAMP WITH TIME ZONE DEFAULT now());
CREATE INDEX idx_salt_returns_jid ON salt_returns (jid);
CREATE SEQUENCE seq_salt_events_id;
CREATE TABLE salt_events (id BIGINT NOT NULL UNIQUE DEFAULT nextval('seq_salt_events_id'), tag varchar(255) NOT NULL,
  data text NOT NULL, alter_time TIMESTAMP WITH TIME ZONE DEFAULT NOW(), master_id varchar(255) NOT NULL);
";

/// A server with a role `salt` (password `salt secret`), and databases `plain` and `jsonb` with Salt's tables of either kind.
pub struct Server {
    /// The running server. None while it is stopped.
    daemon: Option<Daemon>,
    folder: tempfile::TempDir,
    programs: PathBuf,
    /// Its port on 127.0.0.1.
    pub port: u16,
}

impl Server {
    /// Starts a server. If none is installed, prints the reason on standard error and returns None.
    pub fn start() -> Option<Self> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let Some(programs) =
            versions.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").exists()).max()
        else {
            brine_kit::missing("a PostgreSQL server", "`tools/setup.sh peers` installs it (postgresql)");
            return None;
        };
        let folder = files::folder("brine-p");
        let mut server = Self { daemon: None, folder, programs, port: free_ports::<1>()[0] };
        if rustix::process::geteuid().is_root() {
            let owned = Command::new("chown").arg("postgres:").arg(server.folder.path()).status();
            assert!(owned.is_ok_and(|status| status.success()), "the package made a user postgres");
        }
        let data = server.path("data");
        let made =
            server.tool("initdb", &["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let access = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(Path::new(&data).join("pg_hba.conf"), access).expect("the server's folder");
        server.up();
        server.sql("postgres", "create role salt login password 'salt secret'");
        let jsonb = POSTGRES
            .replace("load text", "load jsonb")
            .replace("return text", "return jsonb")
            .replace("full_ret text", "full_ret jsonb NOT NULL")
            .replace("data text", "data jsonb")
            .replace("varchar(20)", "varchar(255)");
        for (name, tables) in [("plain", POSTGRES), ("jsonb", &jsonb)] {
            server.sql("postgres", &format!("create database {name} owner salt"));
            server.sql(name, &format!("set role salt; {tables}"));
        }
        Some(server)
    }

    /// Starts it again.
    pub fn up(&mut self) {
        let (data, port) = (self.path("data"), self.port.to_string());
        let mut words = vec![self.programs.join("postgres").display().to_string()];
        for word in
            ["-D", &data, "-k", &self.path(""), "-p", &port, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        {
            words.push(word.to_owned());
        }
        if rustix::process::geteuid().is_root() {
            let other = ["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"].map(str::to_owned);
            words.splice(0..0, other);
            words.insert(0, "setpriv".to_owned());
        }
        words.insert(0, "/usr/bin/env".to_owned());
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        // The log must not be in the folder, which now belongs to the server's user.
        let log = std::env::temp_dir().join(format!("brine-postgres-{port}.log"));
        self.daemon = Some(Daemon::start(Path::new("/usr/bin/env"), &args, &log));
        wait_for("PostgreSQL to answer", || self.psql("postgres", "select 1").status.success().then_some(()));
        let _ = std::fs::remove_file(log);
    }

    /// Kills it as in a crash.
    pub fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            // Its other processes notice the end of the first one, and the next start waits for them.
            daemon.signal(rustix::process::Signal::QUIT);
            daemon.wait_exit();
        }
    }

    /// Returns rows as `psql -At` prints them: one on each line, fields separated by `|`.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database, sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn psql(&self, database: &str, sql: &str) -> Output {
        let (folder, port) = (self.path(""), self.port.to_string());
        let args =
            ["-h", &folder, "-p", &port, "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-Atqc", sql];
        Command::new(self.programs.join("psql")).args(args).output().expect("psql is in the same package")
    }

    /// Runs one of its programs as the server's user.
    fn tool(&self, name: &str, args: &[&str]) -> Output {
        let program = self.programs.join(name);
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.args(args).current_dir("/tmp").output().expect("it starts")
    }

    fn path(&self, relative: &str) -> String {
        self.folder.path().join(relative).display().to_string().trim_end_matches('/').to_owned()
    }
}
