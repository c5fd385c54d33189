//! Masters and minions, Brine's or Python's, each in a temporary folder with its own configuration. Both kinds read the
//! same configuration files and have the same commands; only the folder of the programs differs.

use std::path::PathBuf;
use std::sync::OnceLock;

use brine_kit::files;
use brine_kit::ports::free_ports;
use brine_kit::process::{Daemon, Output, proc, run};
use brine_kit::programs::program;
use brine_kit::wait::wait_for;

use crate::compiled;
use crate::events::Events;
use crate::keys;
use crate::preloaded;

/// The implementation whose programs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// This project's.
    Brine,
    /// Python Salt's, from the virtual environment that `BRINE_PYTHON` is in.
    Python,
}

impl Kind {
    /// Returns one of its programs.
    pub fn program(self, name: &str) -> PathBuf {
        match self {
            Kind::Brine => program(name),
            Kind::Python => {
                let path = python().with_file_name(name);
                assert!(path.exists(), "{} is missing: run `make venv` first", path.display());
                path
            }
        }
    }
}

/// Returns the interpreter with Python Salt: `BRINE_PYTHON`, or else the one that `make venv` installed.
pub fn python() -> PathBuf {
    let installed = || brine_kit::programs::program_folder().join("../venv/salt-3008/bin/python");
    std::env::var_os("BRINE_PYTHON").map_or_else(installed, PathBuf::from)
}

/// Returns the release line of that Python Salt: 3006, 3007 or 3008. Tests use it where the lines differ.
pub fn line() -> u32 {
    static LINE: OnceLock<u32> = OnceLock::new();
    *LINE.get_or_init(|| {
        let print = "import salt.version; print(salt.version.__saltstack_version__.major)";
        let output = run(&python(), &["-c", print]).exits(0);
        output.stdout.trim().parse().unwrap_or_else(|e| panic!("no release line ({e}): {output:?}"))
    })
}

/// Gives a new master or minion a key. One that runs as another user makes its own, because keys of others are refused.
fn lay_out_key(root_dir: &std::path::Path, name: &str, config: &str) {
    if !config.contains("user:") {
        keys::lay_out(&root_dir.join("pki"), name);
    }
}

/// A master and the commands on its host.
pub struct Master {
    /// The running daemon. None after [`Master::stop`] or [`Master::kill`]. It ends before its folder is removed, and
    /// prints its log.
    pub daemon: Option<Daemon>,
    /// Its root_dir.
    pub folder: tempfile::TempDir,
    /// Publish port.
    pub publish_port: u16,
    /// Request port.
    pub ret_port: u16,
    /// The daemon's log level (`-l`). A failing test shows the log; benchmarks use the level of production.
    pub log_level: &'static str,
    kind: Kind,
}

impl Master {
    /// Starts a Brine master with this additional configuration (YAML) and waits until it listens.
    pub fn start(config: &str) -> Self {
        Self::start_kind(Kind::Brine, config)
    }

    /// Starts a master of either kind.
    pub fn start_kind(kind: Kind, config: &str) -> Self {
        let mut master = Self::prepare(kind, config);
        master.up();
        master
    }

    /// Makes the folder and the configuration of a master without starting it.
    pub fn prepare(kind: Kind, config: &str) -> Self {
        let folder = files::folder("brine-m");
        let [publish_port, ret_port] = free_ports();
        let dir = folder.path().display();
        for sub in ["conf", "srv/salt/_modules"] {
            std::fs::create_dir_all(folder.path().join(sub)).expect("our own folder");
        }
        let text = format!(
            "interface: 127.0.0.1\npublish_port: {publish_port}\nret_port: {ret_port}\nroot_dir: {dir}\n\
             pki_dir: {dir}/pki\ncachedir: {dir}/cache\nsock_dir: {dir}/sock\nlog_file: {dir}/log\nuser: root\n\
             pidfile: {dir}/master.pid\nfile_roots:\n  base: [{dir}/srv/salt]\n{config}\n"
        );
        std::fs::write(folder.path().join("conf/master"), text).expect("our own folder");
        lay_out_key(folder.path(), "master", config);
        Self { folder, publish_port, ret_port, log_level: "debug", kind, daemon: None }
    }

    /// Starts the daemon and waits until it listens.
    pub fn up(&mut self) {
        let log = self.path("master.out");
        let words = ["-c", &self.conf(), "-l", self.log_level];
        let daemon = Daemon::start(&self.kind.program("salt-master"), &words, &log);
        self.daemon = Some(daemon);
        let daemon = self.daemon.as_mut().expect("just started");
        for port in [self.ret_port, self.publish_port] {
            wait_for(&format!("the master to listen on {port}"), || {
                std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(drop)
            });
        }
        let bus = self.folder.path().join("sock/master_event_pub.ipc");
        wait_for("the master's event bus", || std::os::unix::net::UnixStream::connect(&bus).ok().map(drop));
        assert!(daemon.pid() > 0);
    }

    /// Ends the daemon like an operator.
    pub fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.terminate();
        }
    }

    /// Kills the daemon as in a crash.
    pub fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill();
        }
    }

    /// Returns a path below its root_dir.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// Returns its configuration folder.
    pub fn conf(&self) -> String {
        self.path("conf").display().to_string()
    }

    /// Writes a file into the base environment of its file server.
    pub fn serve(&self, relative: &str, content: &[u8]) {
        let path = self.path("srv/salt").join(relative);
        std::fs::create_dir_all(path.parent().expect("a file in a folder")).expect("our own folder");
        // Written atomically, like an editor or a deployment.
        let draft = path.with_extension("draft");
        std::fs::write(&draft, content).expect("our own folder");
        std::fs::rename(&draft, &path).expect("our own folder");
    }

    /// Runs one of this master's commands, with its configuration.
    pub fn command(&self, name: &str, args: &[&str]) -> Output {
        self.command_of(self.kind, name, args)
    }

    /// Runs a command of either kind against this master.
    pub fn command_of(&self, kind: Kind, name: &str, args: &[&str]) -> Output {
        let conf = self.conf();
        let mut all = vec!["-c", &conf];
        all.extend(args);
        let preloaded = if kind == Kind::Python { preloaded::command(&python(), name, &all) } else { None };
        preloaded.unwrap_or_else(|| run(&kind.program(name), &all))
    }

    /// `salt …`
    pub fn salt(&self, args: &[&str]) -> Output {
        self.command("salt", args)
    }

    /// Starts a job without waiting for it. Returns its jid.
    pub fn start_job(&self, args: &[&str]) -> String {
        let mut all = vec!["--async"];
        all.extend(args);
        let output = self.salt(&all).exits(0);
        output.stdout.trim().rsplit(' ').next().expect("a jid at the end of the line").to_owned()
    }

    /// Runs a job and returns one minion's return as JSON.
    pub fn json(&self, minion: &str, args: &[&str]) -> serde_json::Value {
        let mut all = vec!["--out=json", "--static", minion];
        all.extend(args);
        let output = self.salt(&all);
        output.json().get(minion).unwrap_or_else(|| panic!("no return of {minion}: {output:?}")).clone()
    }

    /// Subscribes to its event bus.
    pub fn events(&self) -> Events {
        Events::connect(&self.path("sock/master_event_pub.ipc"))
    }

    /// Starts a Brine minion of this master, accepts its key and waits for its start event.
    pub fn minion(&self, id: &str) -> Minion {
        self.minion_kind(Kind::Brine, id, "")
    }

    /// Starts a minion of either kind, accepts its key and waits for its start event.
    pub fn minion_kind(&self, kind: Kind, id: &str, config: &str) -> Minion {
        let mut minion = Minion::prepare(kind, id, self.ret_port, config);
        self.accept(&mut minion);
        minion
    }

    /// Starts a prepared minion, accepts its key and waits for its start event.
    pub fn accept(&self, minion: &mut Minion) {
        self.accept_with(minion, Minion::up);
    }

    /// Like [`Master::accept`], for a minion that `up` starts.
    pub fn accept_with(&self, minion: &mut Minion, up: impl FnOnce(&mut Minion)) {
        let events = self.events();
        up(minion);
        let id = minion.id.as_str();
        let asked = events.wait(&format!("{id} to wait for acceptance"), |tag, data| {
            tag == "salt/auth" && data["id"] == id && (data["act"] == "pend" || data["act"] == "accept")
        });
        // Python's master says that a key waits before it has written it, and its command finds none then.
        wait_for(&format!("salt-key to accept {id}"), || {
            let said = self.command("salt-key", &["-y", "-a", id]).exits(0).stdout;
            (asked["act"] == "accept" || !said.contains("does not match")).then_some(())
        });
        events.wait_tag(&format!("salt/minion/{id}/start"));
    }
}

/// A minion.
pub struct Minion {
    /// Its id.
    pub id: String,
    /// The running daemon. None after a kill. It ends before its folder is removed, and prints its log.
    pub daemon: Option<Daemon>,
    /// Its root_dir.
    pub folder: tempfile::TempDir,
    /// The daemon's log level (`-l`).
    pub log_level: &'static str,
    kind: Kind,
}

impl Minion {
    /// Makes the folder and the configuration of a minion without starting it.
    pub fn prepare(kind: Kind, id: &str, master_port: u16, config: &str) -> Self {
        let folder = files::folder("brine-n");
        std::fs::create_dir_all(folder.path().join("conf")).expect("our own folder");
        let dir = folder.path().display();
        let text = format!(
            "id: {id}\nmaster: 127.0.0.1\nmaster_port: {master_port}\nroot_dir: {dir}\npki_dir: {dir}/pki\n\
             cachedir: {dir}/cache\nsock_dir: {dir}/sock\nlog_file: {dir}/log\npidfile: {dir}/minion.pid\nuser: root\n\
             acceptance_wait_time: 1\nrandom_reauth_delay: 1\nreturn_retry_timer: 1\nreturn_retry_timer_max: 2\n\
             recon_default: 100\nrecon_max: 500\nmine_enabled: False\n{config}\n"
        );
        std::fs::write(folder.path().join("conf/minion"), text).expect("our own folder");
        lay_out_key(folder.path(), "minion", config);
        if kind == Kind::Brine {
            compiled::lay_out(&folder.path().join(compiled::COMPILED));
        }
        Self { id: id.to_owned(), folder, log_level: "debug", kind, daemon: None }
    }

    /// Returns the implementation whose programs run.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Starts the daemon.
    pub fn up(&mut self) {
        let conf = self.conf();
        let log = self.path("minion.out");
        self.daemon =
            Some(Daemon::start(&self.kind.program("salt-minion"), &["-c", &conf, "-l", self.log_level], &log));
    }

    /// Returns the number of returns in the spool of a Brine minion: in files, and in slots, which begin with their lengths.
    pub fn spooled(&self) -> usize {
        let slots = std::fs::read(self.path("cache/spool.spare/slots")).unwrap_or_default();
        let in_slots = slots.chunks(4096).filter(|slot| slot[..4] != [0; 4]).count();
        std::fs::read_dir(self.path("cache/spool")).expect("the spool").count() + in_slots
    }

    /// Kills the daemon as in a crash.
    pub fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill();
        }
    }

    /// Ends the daemon like an operator.
    pub fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.terminate();
        }
    }

    /// Returns the running daemon.
    pub fn running(&self) -> &Daemon {
        self.daemon.as_ref().expect("the minion runs")
    }

    /// Returns its configuration folder.
    pub fn conf(&self) -> String {
        self.path("conf").display().to_string()
    }

    /// Returns a path below its root_dir.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// `salt-call …` with this minion's configuration.
    pub fn salt_call(&self, args: &[&str]) -> Output {
        let conf = self.conf();
        let mut all = vec!["-c", &conf];
        all.extend(args);
        run(&self.kind.program("salt-call"), &all)
    }

    /// Returns the process id of its executor.
    pub fn executor(&self) -> u32 {
        wait_for("the minion's executor", || self.executors().into_iter().next())
    }

    /// Returns the process ids of its executors.
    pub fn executors(&self) -> Vec<u32> {
        let is_executor = |pid: &u32| proc(pid, "comm").is_some_and(|name| name.trim() == "brine-executor");
        self.running().children().into_iter().filter(is_executor).collect()
    }
}
