//! The one check of a call from a guest: against its function's grant, and against the bounds of what it passes.
//!
//! Pure, and in this order: the interface, the form of each argument, the names in it. A refusal says which line of the
//! configuration would grant it. What comes out is what is done: names are in the one form that was checked.

use brine_sandbox_wire::{
    ConfigOp, DirectoriesOp, Directory, DisksOp, EventsOp, FilesOp, FunctionsOp, GrainsOp, HostError, HostOp, JobsOp,
    MineOp, ModulesOp, NetworkOp, PillarOp, PolicyOp,
};

use super::names::{self, Form};
use super::{Caller, http, process};
use crate::grants::{Grants, Names, is_glob};
use crate::policy::{Capability, Grant, Line};
use brine_sandbox_wire::hosts::Host as NetworkHost;

/// Bytes of a key of grains or configuration. Nested keys of real hosts are below 200.
const MAX_KEY: usize = 1_024;
/// Bytes of a delimiter between parts of a key.
const MAX_DELIMITER: usize = 16;
/// Bytes of a name: of a module, a job.
const MAX_NAME: usize = 64;
/// Environments in one call.
const MAX_ENVIRONMENTS: usize = 32;
/// Bytes of `module.function`: 64, a dot, and what a component's function may be called.
const MAX_FUNCTION: usize = 300;
/// Bytes of an event or of a value for the mine. The master takes events of a megabyte.
const MAX_DATA: usize = 1 << 20;
/// Bytes of the name of a value in the mine.
const MAX_MINE: usize = 256;
/// Bytes of arguments of a nested call, of a request's body, of what a program reads: half of what one message may have.
pub(super) const MAX_BULK: usize = 16 << 20;
/// Bytes of a path.
pub(super) const MAX_PATH: usize = 4_095;
/// Parts of the path of a file that is pushed.
const MAX_PARTS: usize = 128;
/// Bytes of a file that are read in one call: the executor's guest holds them too.
const MAX_READ: u32 = 4 << 20;

/// The module of what the owner and the operator decide, and its function that is the owner's alone.
const DECIDES: &str = "sandbox";
const APPROVE: &str = "sandbox.approve";

/// Checks one call. Comes back as it is to be done: a program by its granted path, a URL in its plain form.
pub fn check(caller: &Caller, op: HostOp) -> Result<HostOp, HostError> {
    let grants = &*caller.grants;
    let needed = Capability::needed(&op);
    if !grants.allows(op.interface()) {
        let lift = grants.line(needed, needed.least());
        return Err(refused(caller, needed.words(), lift));
    }
    Ok(match op {
        HostOp::Process(op) => HostOp::Process(process::check(caller, op)?),
        HostOp::Http(op) => HostOp::Http(http::check(caller, op)?),
        HostOp::Files(op) => HostOp::Files(files(caller, op)?),
        HostOp::Network(NetworkOp::Resolve { name }) => {
            let Some(host) = NetworkHost::read(&name) else {
                return Err(failed("the name of a host", "is neither a name nor an address"));
            };
            let name = host.to_string();
            if !grants.allows_name(&name) {
                return Err(refused(caller, &format!("look up {name}"), grants.lift_host(&host, 443)));
            }
            HostOp::Network(NetworkOp::Resolve { name })
        }
        other => {
            plain(caller, &other)?;
            other
        }
    })
}

/// Whether a caller may reach a host, a name or an address, at this port: of a redirect, of an address behind a name.
pub fn check_host(caller: &Caller, host: &str, port: u16) -> Result<(), HostError> {
    let Some(host) = NetworkHost::read(host) else {
        return Err(failed("the name of a host", "is neither a name nor an address"));
    };
    if caller.grants.allows_host(&host.to_string(), port) {
        return Ok(());
    }
    let at = crate::grants::rule_text(&http::rule(&host, port));
    Err(refused(caller, &format!("reach {at}"), caller.grants.lift_host(&host, port)))
}

/// Calls that are done as they are.
fn plain(caller: &Caller, op: &HostOp) -> Result<(), HostError> {
    let grants = &*caller.grants;
    match op {
        HostOp::Grains(GrainsOp::Items)
        | HostOp::Modules(ModulesOp::Names | ModulesOp::RefreshFacts { .. })
        | HostOp::Jobs(JobsOp::Running)
        | HostOp::Pillar(PillarOp::Items | PillarOp::Fetch)
        | HostOp::Disks(DisksOp::Mounts | DisksOp::FileSystems)
        | HostOp::Policy(PolicyOp::List | PolicyOp::Check)
        | HostOp::Users(_) => Ok(()),
        HostOp::Grains(GrainsOp::Get { key, delimiter }) => keyed(key, delimiter.as_deref()),
        HostOp::Config(ConfigOp::Get { key }) => keyed(key, None),
        HostOp::Modules(ModulesOp::Describe { name })
        | HostOp::Policy(PolicyOp::Show { name } | PolicyOp::Diff { name }) => {
            names::text("the name of a module", name, MAX_NAME, Form::Line)
        }
        HostOp::Policy(PolicyOp::Approve { name, sha256 }) => {
            names::text("the name of a module", name, MAX_NAME, Form::Line)?;
            names::text("the sha256", sha256, MAX_NAME, Form::Line)?;
            if caller.is_typed_here(APPROVE) {
                return Ok(());
            }
            Err(HostError::Denied(format!(
                "what modules may do on this host is approved on the host itself, not by a master nor from within another \
                 function; its owner can run `salt-call --local {APPROVE} {name} {sha256}` there"
            )))
        }
        HostOp::Policy(PolicyOp::Rollback { name }) => {
            names::text("the name of a module", name, MAX_NAME, Form::Line)?;
            // To see what is granted is another thing than to change what runs.
            if caller.module.as_str() == DECIDES {
                return Ok(());
            }
            Err(HostError::Denied(format!(
                "module {} may not change other modules; `{DECIDES}.rollback` does",
                caller.module
            )))
        }
        HostOp::Modules(ModulesOp::Sync { saltenv }) => {
            let environments = saltenv.as_deref().unwrap_or_default();
            if environments.len() > MAX_ENVIRONMENTS {
                return Err(failed("the list of environments", &format!("has more than {MAX_ENVIRONMENTS} items")));
            }
            environments.iter().try_for_each(|environment| names::environment(environment))
        }
        HostOp::Jobs(JobsOp::Find { jid } | JobsOp::Kill { jid }) => {
            names::text("the id of a job", jid, MAX_NAME, Form::Line)
        }
        HostOp::Disks(DisksOp::Usage { mount_point } | DisksOp::FileSystemAt { mount_point }) => {
            names::text("the mount point", mount_point, MAX_PATH, Form::Bytes)
        }
        HostOp::Directories(DirectoriesOp::Line { path }) => names::text("the path", path, MAX_PATH, Form::Bytes),
        HostOp::Functions(FunctionsOp::Call { function, args, kwargs, .. }) => {
            names::function(function, MAX_FUNCTION)?;
            names::size("the arguments", args.len().saturating_add(kwargs.len()), MAX_BULK)?;
            let may = grants.functions.matches(function);
            named(caller, Capability::Functions, &grants.functions, may, function, &format!("call {function}"))
        }
        HostOp::Pillar(PillarOp::Get { key, delimiter }) => {
            keyed(key, delimiter.as_deref())?;
            let parts: Vec<&str> = key.split(delimiter.as_deref().unwrap_or(":")).collect();
            let may = grants.pillar.holds(&parts, ':');
            // As the owner would write it, whatever stands between its parts here.
            let key = parts.join(":");
            let what = format!("read the pillar's {key}");
            // No line can name these.
            if !may && (is_glob(&key) || parts.iter().any(|part| part.is_empty())) {
                return Err(refused(caller, &what, None));
            }
            named(caller, Capability::Pillar, &grants.pillar, may, &key, &what)
        }
        HostOp::Events(EventsOp::Fire { tag, data }) => {
            names::tag(tag, &caller.job.minion_id)?;
            names::size("the event's data", data.len(), MAX_DATA)?;
            let may = grants.events.matches(tag);
            named(caller, Capability::Events, &grants.events, may, tag, &format!("fire the event {tag}"))
        }
        HostOp::Mine(op) => {
            let (MineOp::Publish { name, .. } | MineOp::Delete { name }) = op;
            names::text("the name in the mine", name, MAX_MINE, Form::Line)?;
            if let MineOp::Publish { data, .. } = op {
                names::size("the value for the mine", data.len(), MAX_DATA)?;
            }
            let may = grants.mine.matches(name);
            named(caller, Capability::Mine, &grants.mine, may, name, &format!("publish {name} to the mine"))
        }
        HostOp::Process(_) | HostOp::Http(_) | HostOp::Files(_) | HostOp::Network(_) => {
            Err(HostError::Denied("it is not checked here".to_owned()))
        }
    }
}

fn keyed(key: &str, delimiter: Option<&str>) -> Result<(), HostError> {
    names::text("the key", key, MAX_KEY, Form::Line)?;
    delimiter.map_or(Ok(()), |delimiter| names::text("the delimiter", delimiter, MAX_DELIMITER, Form::Line))
}

fn files(caller: &Caller, op: FilesOp) -> Result<FilesOp, HostError> {
    let granted = &caller.grants.files;
    let read = |path: &str| {
        named(caller, Capability::Files, granted, granted.matches(path), path, &format!("read salt://{path}"))
    };
    match op {
        FilesOp::Envs => Ok(FilesOp::Envs),
        FilesOp::List { saltenv, prefix, kind } => {
            names::environment(&saltenv)?;
            // What is below it is listed as far as it was granted.
            let prefix = prefix.trim_end_matches('/').to_owned();
            if !prefix.is_empty() {
                names::relative(&prefix)?;
            }
            Ok(FilesOp::List { saltenv, prefix, kind })
        }
        FilesOp::Hash { path, saltenv } => {
            names::environment(&saltenv)?;
            names::relative(&path)?;
            read(&path)?;
            Ok(FilesOp::Hash { path, saltenv })
        }
        FilesOp::Read { path, saltenv, offset, length } => {
            names::environment(&saltenv)?;
            names::relative(&path)?;
            read(&path)?;
            Ok(FilesOp::Read { path, saltenv, offset, length: length.min(MAX_READ) })
        }
        FilesOp::Cache { path, saltenv } => {
            names::environment(&saltenv)?;
            names::relative(&path)?;
            read(&path)?;
            Ok(FilesOp::Cache { path, saltenv })
        }
        FilesOp::Push { path, offset, data, size } => {
            if path.is_empty() || path.len() > MAX_PARTS {
                return Err(failed("the path", &format!("has none or more than {MAX_PARTS} parts")));
            }
            if path.iter().any(|part| part.contains('/')) {
                return Err(failed("a part of the path", "has a slash"));
            }
            let whole = path.join("/");
            names::relative(&whole)?;
            names::size("the data", data.len(), MAX_BULK)?;
            if offset.checked_add(data.len() as u64).is_none_or(|end| end > size) {
                return Err(failed("the data", "goes beyond the size of the file"));
            }
            let may = granted.matches(&whole);
            named(caller, Capability::Files, granted, may, &whole, &format!("send the master a file as {whole}"))?;
            Ok(FilesOp::Push { path, offset, data, size })
        }
    }
}

/// Refuses a name that is not granted.
fn named(
    caller: &Caller,
    capability: Capability,
    granted: &Names,
    may: bool,
    name: &str,
    what: &str,
) -> Result<(), HostError> {
    if may {
        return Ok(());
    }
    // A name is a pattern where the owner writes it: nothing in it may stand for more than one character.
    let with = if capability == Capability::Pillar { name.to_owned() } else { name.replace('*', "?") };
    Err(refused(caller, what, caller.grants.line(capability, Grant::Names(granted.with(&with)))))
}

/// What has no form that could be granted, or that anything could be done with.
pub(super) fn failed(what: &str, why: &str) -> HostError {
    HostError::Failed(format!("{what} {why}"))
}

/// What the owner could grant.
pub(super) fn refused(caller: &Caller, what: &str, line: Option<Line>) -> HostError {
    let how = line.map(|line| Line::sentence(&[line])).unwrap_or_default();
    HostError::Denied(format!("module {} may not {what}{how}", caller.module))
}

impl Grants {
    /// The line of the configuration with which this would be granted.
    pub(super) fn line(&self, capability: Capability, grant: Grant) -> Option<Line> {
        Some(self.explain.as_ref()?.lifting(capability, grant))
    }

    pub(super) fn lift_host(&self, host: &NetworkHost, port: u16) -> Option<Line> {
        let mut rules = self.direct.network.clone();
        rules.push(http::rule(host, port));
        rules.sort();
        self.line(Capability::Network, Grant::Network(rules))
    }

    /// The end of a refusal of this setting, `; the owner of this host grants it by this line …`; for who holds the settings. Empty where
    /// no line can name it.
    pub fn setting_line(&self, key: &str) -> String {
        if key.contains(['*', '?', '[']) || key.split(':').any(str::is_empty) {
            return String::new();
        }
        let line = self.line(Capability::Config, Grant::Names(self.config.with(key)));
        line.map(|line| Line::sentence(&[line])).unwrap_or_default()
    }

    /// The end of a refusal of this directory, `; the owner of this host grants it by this line …`; for who reads files for the
    /// module. Empty where no line can name it.
    pub fn directory_line(&self, path: &str, writable: bool) -> String {
        let mut parts = path.strip_prefix('/').unwrap_or("..").split('/');
        if path != "/" && parts.any(|part| matches!(part, "" | "." | "..")) {
            return String::new();
        }
        let mut directories = self.direct.directories.clone();
        directories.retain(|directory| directory.path != path);
        directories.push(Directory { path: path.to_owned(), writable });
        directories.sort();
        let line = self.line(Capability::Filesystem, Grant::Directories(directories));
        line.map(|line| Line::sentence(&[line])).unwrap_or_default()
    }
}
