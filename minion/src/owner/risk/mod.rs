//! What an entry can be used for, in one sentence for the owner.
//!
//! - `mod.rs`     each key of an entry; `words.rs` the sentence and the names in it
//! - `process.rs` programs; `programs.rs` those that run or change whatever they are told; `variables.rs` those of their environment
//! - `paths.rs`   files; `network.rs` hosts; `accounts.rs` users and groups
//!
//! `low` is for a fixed list of harmless looks. Whatever else an entry says is at least medium, also what nobody has thought of: the matches
//! name every capability and every part of an entry, so that a new one does not compile until somebody has decided on it.

mod accounts;
mod network;
mod paths;
mod process;
mod programs;
#[cfg(test)]
mod tests;
mod variables;
mod words;

use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{Capability, Entry, Grant, LimitChanges, Names, RecordWhen, Settings};

use paths::Files;
use words::{Risk, is_all, named, sentence};

/// The kernel's tables that say nothing of who uses this host and for what.
const HARMLESS_TABLES: [&str; 17] = [
    "cpuinfo",
    "diskstats",
    "filesystems",
    "interfaces",
    "load-averages",
    "loadavg",
    "localtime",
    "meminfo",
    "memory-used",
    "minion.pub",
    "minion_master.pub",
    "net/dev",
    "stat",
    "swaps",
    "uptime",
    "version",
    "vmstat",
];
/// What a whole entry for a module, a function or `*` can be used for: `medium: cmd could …`. The worst comes first.
pub(super) fn of(key: &str, entry: &Value) -> String {
    sentence(key, risks(key, entry))
}

fn risks(key: &str, entry: &Value) -> Vec<Risk> {
    let (signed_by, rest) = without_signers(entry);
    let mut all: Vec<Risk> = signed_by.map(signers).into_iter().collect();
    match read(key, rest) {
        Some(entry) => all.extend(of_entry(&entry)),
        None => all.push(Risk::medium("do what cannot be judged: the minion reads no such entry")),
    }
    all
}

/// Keys are read from files, and what they are called says enough.
fn without_signers(entry: &Value) -> (Option<&Value>, Value) {
    const KEY: &str = "signed_by";
    let rest = entry.entries().unwrap_or_default().iter().filter(|(key, _)| key.text() != Some(KEY));
    (entry.get(KEY), Value::Map(rest.cloned().collect()))
}

fn signers(value: &Value) -> Risk {
    match *value == Value::from(false) {
        true => Risk::medium("run without a signature"),
        false => Risk::medium("have any content that was signed with the keys that are named"),
    }
}

/// Reads the entry as the minion does.
fn read(key: &str, entry: Value) -> Option<Entry> {
    let section = map([("modules", Value::Map(vec![(Value::from(key), entry)]))]);
    let rules = Settings::read(&section).ok()?.policy.general;
    let named = rules.functions.into_values().chain(rules.modules.into_values());
    named.chain([rules.every]).next()
}

fn of_entry(entry: &Entry) -> Vec<Risk> {
    let Entry { sha256: _, signed_by: _, downgrade, says, user, limits, max_running, max_queued, record } = entry;
    let files = Files::of(entry);
    let mut all: Vec<Risk> = says.iter().flat_map(|(capability, grant)| of_grant(*capability, grant, &files)).collect();
    match user.as_deref() {
        Some(user) if accounts::is_root(user) => all.push(Risk::high("act as root, whose rights are all there are")),
        Some(user) => all.push(Risk::medium(format!("act as the user {}", words::text(user)))),
        None => {}
    }
    if *downgrade == Some(true) {
        all.push(Risk::medium("go back to an older version, whose flaws are known"));
    }
    if *limits != LimitChanges::default() || max_running.is_some() || max_queued.is_some() {
        all.push(Risk::medium("use as much of this host as the limits of its own say"));
    }
    match record {
        Some(RecordWhen::On | RecordWhen::Asked) => {
            all.push(Risk::medium(
                "have what it is told written into recordings, secrets that nobody knows of included",
            ));
        }
        Some(RecordWhen::Off) | None => {}
    }
    all
}

/// What one grant can be used for.
fn of_grant(capability: Capability, grant: &Grant, files: &Files<'_>) -> Vec<Risk> {
    let names = match grant {
        Grant::No => return Vec::new(),
        Grant::Process(process) => return process::risks(process, files),
        Grant::Directories(directories) => return files.directories(directories),
        Grant::Changes(trees) => return files.changes(trees),
        Grant::Network(rules) => return network::risks(rules, grant),
        Grant::Yes => &Names::Any,
        Grant::Names(names) => names,
    };
    let these = named(names);
    let all = is_all(names);
    let risk = match capability {
        Capability::Config if *grant == Grant::Yes || names.is_none() => Risk::low("read the minion's public settings"),
        // The interface is there, and each request is refused.
        _ if names.is_none() => Risk::low(format!("ask to {}, and get nothing yet", capability.words())),
        Capability::Grains => Risk::low("read this host's grains"),
        Capability::Progress => Risk::low("say how far its job is"),
        Capability::Disks => Risk::low("see what is mounted and how full it is"),
        Capability::Kernel => kernel(names),
        Capability::Config => Risk::medium(format!("read settings of the minion ({these}), which may hold passwords")),
        Capability::Modules => Risk::medium("have modules, grains and the pillar fetched anew"),
        Capability::Jobs => Risk::medium("see all jobs of this host and end them"),
        Capability::Policy => Risk::medium("see what each module may do, what runs and what was refused"),
        Capability::Receipts => Risk::medium("see who ran what on this host"),
        Capability::Beacons => Risk::medium("change what this host watches, and so what its master reacts to"),
        Capability::Schedule => Risk::high("have any job started at any time, with the rights of the master's jobs"),
        Capability::StaticGrains => {
            Risk::medium(format!("change grains of this host ({these}), by which it gets its pillar and its jobs"))
        }
        Capability::Pillar if all => Risk::high("learn every secret in this host's pillar"),
        Capability::Pillar => Risk::medium(format!("learn what is in the pillar below {these}, secrets included")),
        Capability::Files => Risk::medium(format!("read the master's files {these}, secrets included")),
        Capability::Events => Risk::medium(format!("fire the events {these}, to which others may react")),
        Capability::Mine => Risk::medium(format!("tell other hosts by the mine ({these}), and read what they tell")),
        Capability::Functions if all => Risk::high("call every function, and so do what any module may do"),
        Capability::Functions => Risk::medium(format!("call {these}, and so do what their modules may do")),
        Capability::States if all => Risk::high("run every state, and so do what any module may do"),
        Capability::States => Risk::medium(format!("run the states {these}, and so do what their modules may do")),
        Capability::Publish if all => Risk::high("start any job on any host for which the master permits it"),
        Capability::Publish => Risk::medium(format!("start {these} on other hosts, where the master permits it")),
        // Their grants have kinds of their own.
        Capability::Process | Capability::Filesystem | Capability::Changes | Capability::Network => {
            Risk::medium(capability.words())
        }
    };
    vec![risk]
}

fn kernel(tables: &Names) -> Risk {
    match tables {
        Names::Only(tables) if tables.iter().all(|table| HARMLESS_TABLES.contains(&table.as_str())) => {
            Risk::low("read counters of the kernel")
        }
        Names::Any => {
            Risk::medium("read all tables of the kernel, the arguments of programs included, which may be secrets")
        }
        Names::Only(_) => Risk::medium(format!(
            "read {} of the kernel, and so who uses this host and for what, secrets in arguments of programs included",
            named(tables)
        )),
    }
}
