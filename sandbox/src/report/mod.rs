//! The results of `sandbox.list`, `sandbox.show` and `sandbox.check`: what each module asks for, has and lacks; which
//! of the owner's grants name something that does not exist on this host; and the walls in force.

mod diff;
mod findings;
mod profiles;
mod provenance;
mod summary;
mod updates;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brine_capabilities::{Grants, Kind, Names, rule_text};
use brine_sandbox_walls::{Cgroup, Walls};
use brine_sandbox_wire::{DirectGrants, Limits, PolicyOp};
use rmpv::Value;

use crate::policy::{Capability, Policy, always};
use crate::signature::KeyId;
use crate::store::{Entry, LeftOut, Store, Synced};
pub use provenance::Provenance;
pub(crate) use provenance::Remembered;
pub use summary::Basis;
pub(crate) use summary::of as summary;
pub(crate) use updates::{approved, approved_in_advance, rolled_back};

/// Answers one query.
pub(crate) async fn answer(
    store: &Arc<Store>,
    base: &Limits,
    executors: &[(u32, DirectGrants, Walls)],
    op: PolicyOp,
) -> Result<Value, String> {
    Ok(match op {
        PolicyOp::List => list(store),
        PolicyOp::Show { name } => show(store, base, &name),
        PolicyOp::Diff { name } => return diff::of(store, &name),
        PolicyOp::Check => {
            let executors = executors.iter().map(|(pid, direct, walls)| executor(*pid, direct, walls)).collect();
            let last_syncs = updates::last_syncs(store.folder().path());
            let profiles = texts(profiles::in_force(&store.policy()));
            let store = Arc::clone(store);
            // Reads from the disk.
            let findings = tokio::task::spawn_blocking(move || findings::of(&store)).await.unwrap_or_default();
            map([
                ("executors", Value::Array(executors)),
                ("findings", texts(findings)),
                ("last_syncs", last_syncs),
                ("profiles", profiles),
            ])
        }
        PolicyOp::Approve { .. } | PolicyOp::Rollback { .. } | PolicyOp::Grant { .. } | PolicyOp::Revoke { .. } => {
            return Err("this is no question".to_owned());
        }
        // The daemon that has the sandbox keeps what was refused.
        PolicyOp::Running | PolicyOp::Refusals | PolicyOp::Suggest { .. } => Value::Array(Vec::new()),
    })
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
}

fn texts<T: Into<String>>(items: impl IntoIterator<Item = T>) -> Value {
    Value::Array(items.into_iter().map(|item| Value::from(item.into())).collect())
}

fn optional(text: Option<String>) -> Value {
    text.map_or(Value::Nil, Value::from)
}

fn list(store: &Store) -> Value {
    let table = store.table();
    let synced = Synced::read(store.folder().path());
    let mut modules: BTreeMap<String, Value> = BTreeMap::new();
    for entry in table.values() {
        let module = &entry.module;
        let mut what = map([
            ("version", optional(module.info.version.clone())),
            ("sha256", Value::from(module.sha256.to_string())),
            ("origin", Value::from(module.origin.as_str())),
            ("signed_by", signers(&store.policy(), &entry.signers)),
            ("missing", Value::from(!missing(&store.policy(), entry).is_empty())),
            ("usable", Value::from(true)),
        ]);
        if !entry.is_standard() {
            add(&mut what, updates::of(store, entry.name(), &module.origin, &synced));
        }
        modules.insert(entry.name().to_string(), what);
    }
    let left_out = store.all_left_out();
    let refused = store.refused();
    let others = left_out.iter().chain(refused.iter()).map(|(name, left_out)| (name, left_out.origin.clone()));
    let held = store.all_held().values().cloned().collect::<Vec<_>>();
    let others = others.chain(held.iter().map(|held| (&held.name, Some(held.module.origin.clone()))));
    for (name, origin) in others.filter(|(name, _)| !table.contains_key(*name)) {
        let origin = origin.unwrap_or_else(|| "standard".to_owned());
        let mut what = map([
            ("origin", Value::from(origin.as_str())),
            ("missing", Value::from(true)),
            ("usable", Value::from(false)),
        ]);
        add(&mut what, updates::of(store, name, &origin, &synced));
        modules.entry(name.to_string()).or_insert(what);
    }
    Value::Map(modules.into_iter().map(|(name, what)| (Value::from(name), what)).collect())
}

fn add(to: &mut Value, more: Vec<(&str, Value)>) {
    if let Value::Map(to) = to {
        to.extend(more.into_iter().map(|(key, value)| (Value::from(key), value)));
    }
}

fn show(store: &Store, base: &Limits, name: &str) -> Value {
    if let Some(profile) = name.strip_prefix("profile:") {
        return profiles::show(&store.policy(), profile);
    }
    let why = store.refused().get(name).map(refused);
    let held = store.held(name).map(|held| updates::held(&held));
    let Some(entry) = store.get(name) else {
        let left_out = store.all_left_out().get(name).map(refused);
        return match held.or(left_out).or(why) {
            Some(why) => map([("name", Value::from(name)), ("usable", Value::from(false)), ("left_out", why)]),
            None => profiles::show(&store.policy(), name),
        };
    };
    let (module, policy) = (&entry.module, &*store.policy());
    let limits = policy.limits(base, entry.name(), entry.is_standard(), "", None);
    let concurrency = policy.concurrency(entry.name());
    let count = |count: Option<usize>| count.map_or(Value::Nil, |count| Value::from(count as u64));
    let mut shown = map([
        ("name", Value::from(name)),
        ("usable", Value::from(true)),
        ("version", optional(module.info.version.clone())),
        ("sha256", Value::from(module.sha256.to_string())),
        ("size", Value::from(module.size)),
        ("origin", Value::from(module.origin.as_str())),
        ("signed_by", signers(policy, &entry.signers)),
        ("signed_at", entry.signed_time.map_or(Value::Nil, Value::from)),
        ("words", texts(words::of(&entry))),
        ("asks", asks(&module.info.imports)),
        ("has", has(&entry)),
        ("from_profiles", from_profiles(policy, &entry)),
        ("profiles", profiles::of_module(policy, &entry)),
        ("missing", texts(missing(policy, &entry))),
        ("limits", limits_value(&limits)),
        ("max_running", count(concurrency.max_running)),
        ("max_queued", count(concurrency.max_queued)),
        ("notes", texts(module.info.notes.iter().cloned())),
    ]);
    if !entry.is_standard() {
        let synced = Synced::read(store.folder().path());
        let mut more = updates::of(store, entry.name(), &module.origin, &synced);
        more.retain(|(key, _)| *key != "held");
        more.push(("approved", updates::approval(store, &entry)));
        more.extend(held.map(|held| ("held", held)));
        more.extend(why.map(|why| ("refused", why)));
        add(&mut shown, more);
    }
    shown
}

/// Returns why a module or an update is not there, and the configuration lines that would admit it.
fn refused(left_out: &LeftOut) -> Value {
    let lines = left_out.refused.as_ref().and_then(|refused| refused.lines());
    map([("why", Value::from(left_out.why.as_str())), ("lines", optional(lines))])
}

fn signers(policy: &Policy, signers: &[KeyId]) -> Value {
    let named = policy.keys.iter().filter(|key| signers.contains(&key.id));
    texts(named.map(|key| key.written.clone()))
}

/// Returns each import with its purpose.
fn asks(imports: &[String]) -> Value {
    let words = |import: &str| {
        let interface = import.split('@').next().unwrap_or_default();
        match Capability::of(interface) {
            Some((capability, _)) => capability.words(),
            None if always(interface) => "what every module has",
            None => "nothing that is known",
        }
    };
    Value::Map(imports.iter().map(|import| (Value::from(import.as_str()), Value::from(words(import)))).collect())
}

/// Returns a module's grants: the general ones, and those of functions and masters that differ.
fn has(entry: &Entry) -> Value {
    let mut general = Value::Nil;
    let mut others: Vec<(Value, Value)> = Vec::new();
    for (master, function, grants) in entry.grants.each() {
        let granted = granted(grants);
        if (master, function) == (None, None) {
            general = granted;
        } else if granted != general {
            others.push((Value::from(place(entry, master, function)), granted));
        }
    }
    others.sort_by(|a, b| a.0.as_str().cmp(&b.0.as_str()));
    let mut all = vec![(Value::from("all"), general)];
    all.extend(others);
    Value::Map(all)
}

/// Returns which of a module's grants come from profiles: the profile by capability, in the order of [`has`].
fn from_profiles(policy: &Policy, entry: &Entry) -> Value {
    let subject = entry.subject();
    let mut all = Vec::new();
    for (master, function, grants) in entry.grants.each() {
        let from = capabilities(grants).into_iter().filter_map(|capability| {
            let profile = policy.profile_of(&subject, function, master, capability)?;
            Some((Value::from(capability.key()), Value::from(profile)))
        });
        let from: Vec<_> = from.collect();
        if !from.is_empty() {
            all.push((Value::from(place(entry, master, function)), Value::Map(from)));
        }
    }
    all.sort_by(|a, b| a.0.as_str().cmp(&b.0.as_str()));
    Value::Map(all)
}

/// Where grants hold: a function, for a master, or all.
fn place(entry: &Entry, master: Option<&str>, function: Option<&str>) -> String {
    match (master, function) {
        (None, None) => "all".to_owned(),
        (None, Some(function)) => format!("{}.{function}", entry.name()),
        (Some(master), None) => format!("for the master {master}"),
        (Some(master), Some(function)) => format!("{}.{function} for the master {master}", entry.name()),
    }
}

/// Returns grants in the form of the configuration.
fn granted(grants: &Grants) -> Value {
    let mut granted: Vec<(Value, Value)> = capabilities(grants)
        .into_iter()
        .map(|capability| (Value::from(capability.key()), value(capability, grants)))
        .collect();
    if let Some(user) = &grants.user {
        granted.push((Value::from("user"), Value::from(user.as_str())));
    }
    Value::Map(granted)
}

fn capabilities(grants: &Grants) -> BTreeSet<Capability> {
    grants.interfaces().filter_map(|interface| Some(Capability::of(interface)?.0)).collect()
}

fn value(capability: Capability, grants: &Grants) -> Value {
    match capability.kind() {
        Kind::Process => {
            let process = &grants.process;
            let all = [
                ("programs", &process.programs),
                ("users", &process.users),
                ("groups", &process.groups),
                ("env", &process.env),
                ("cwd", &process.cwd),
            ];
            let others = all.iter().filter(|(key, names)| *key == "programs" || !names.is_none());
            let mut said: Vec<_> = others.map(|(key, names)| (Value::from(*key), names_value(names))).collect();
            if let Some(lines) = &process.lines {
                said.push((Value::from("lines"), texts(lines.iter().map(ToString::to_string))));
            }
            if !process.looks.is_empty() {
                said.push((Value::from("looks"), texts(process.looks.iter().map(ToString::to_string))));
            }
            if process.detach {
                said.push((Value::from("detach"), Value::from(true)));
            }
            said.extend(process.file_size.map(|bytes| (Value::from("file_size"), Value::from(bytes))));
            Value::Map(said)
        }
        Kind::Directories => {
            let mode = |writable| if writable { "rw" } else { "ro" };
            let directories = grants.direct.directories.iter();
            Value::Map(
                directories.map(|dir| (Value::from(dir.path.as_str()), Value::from(mode(dir.writable)))).collect(),
            )
        }
        Kind::Changes => {
            let trees = grants.changes.iter();
            Value::Map(
                trees.map(|tree| (Value::from(tree.path.as_str()), Value::from(tree.access.to_string()))).collect(),
            )
        }
        Kind::Network => texts(grants.direct.network.iter().map(rule_text)),
        Kind::Names => names_value(grants.names(capability)),
        Kind::Flag | Kind::Settings => Value::from(true),
    }
}

fn names_value(names: &Names) -> Value {
    match names {
        Names::Any => Value::from("any"),
        Names::Only(names) => texts(names.iter().cloned()),
    }
}

/// Returns the configuration lines for capabilities that a module imports but that are not granted, or are granted
/// without any value.
fn missing(policy: &Policy, entry: &Entry) -> Vec<String> {
    let asked: BTreeSet<Capability> = entry
        .module
        .info
        .imports
        .iter()
        .filter_map(|import| Some(Capability::of(import.split('@').next()?)?.0))
        .collect();
    let subject = entry.subject();
    let general = entry.grants.each().find(|(master, function, _)| master.is_none() && function.is_none());
    let Some((_, _, grants)) = general else {
        // Only functions with entries of their own can be called.
        return entry.grants.of("", None).err().into_iter().collect();
    };
    let has = capabilities(grants);
    let lacks = asked.into_iter().filter(|capability| !has.contains(capability));
    lacks
        .map(|capability| policy.explain(&subject, None, None).lifting(capability, capability.least()).to_string())
        .collect()
}

fn limits_value(limits: &Limits) -> Value {
    map([
        ("memory", Value::from(limits.memory)),
        ("wall_ms", Value::from(limits.wall_ms)),
        ("cpu_ms", Value::from(limits.cpu_ms)),
        ("calls_cpu_ms", Value::from(limits.calls_cpu_ms)),
        ("output", Value::from(limits.output)),
        ("log", Value::from(limits.log)),
        ("log_lines", Value::from(limits.log_lines)),
        ("host_bytes", Value::from(limits.host_bytes)),
        ("host_calls", Value::from(limits.host_calls)),
        ("written", Value::from(limits.written)),
        ("new_files", Value::from(limits.new_files)),
    ])
}

/// Returns a running executor's process id, its reach and its walls.
fn executor(pid: u32, direct: &DirectGrants, walls: &Walls) -> Value {
    map([
        ("pid", Value::from(pid)),
        ("reaches", reaches(direct)),
        ("walls", walls_value(walls)),
        ("lacking", texts(walls.lacking())),
        ("notes", texts(walls.notes.iter().cloned())),
    ])
}

/// The walls as a grain: facts about the host, without what changes from start to start.
pub(crate) fn walls_summary(walls: Option<&Walls>) -> Value {
    let Some(walls) = walls else { return map([("walls", Value::Map(Vec::new())), ("lacking", texts::<&str>([]))]) };
    map([("walls", map(holding(walls))), ("lacking", texts(walls.lacking()))])
}

/// The names of the walls that hold, that of landlock with its version.
pub(crate) fn wall_names(walls: &Walls) -> Vec<String> {
    let held = holding(walls)
        .into_iter()
        .filter(|(_, value)| !matches!((value.as_bool(), value.as_u64()), (Some(false), _) | (_, Some(0))));
    held.map(|(name, value)| value.as_u64().map_or_else(|| name.to_owned(), |version| format!("{name} {version}")))
        .collect()
}

fn holding(walls: &Walls) -> [(&'static str, Value); 6] {
    [
        ("user", Value::from(walls.uid != 0)),
        ("no_new_privs", Value::from(walls.no_new_privs)),
        ("hidden", Value::from(walls.hidden)),
        ("seccomp", Value::from(walls.seccomp)),
        ("landlock", Value::from(walls.landlock)),
        ("cgroup", Value::from(matches!(walls.cgroup, Cgroup::In(..)))),
    ]
}

fn reaches(direct: &DirectGrants) -> Value {
    let mut grants = Grants::default();
    grants.direct = direct.clone();
    map([
        ("filesystem", value(Capability::Filesystem, &grants)),
        ("network", value(Capability::Network, &grants)),
        ("user", optional(direct.user.clone())),
    ])
}

fn walls_value(walls: &Walls) -> Value {
    let limits = walls.limits.iter().map(|(name, limit)| (Value::from(name.as_str()), Value::from(*limit))).collect();
    let cgroup = match &walls.cgroup {
        Cgroup::Unknown => Value::Nil,
        Cgroup::In(path, _) => Value::from(path.as_str()),
        Cgroup::NotAvailable(why) => Value::from(format!("none: {why}")),
    };
    map([
        ("uid", Value::from(walls.uid)),
        ("no_new_privs", Value::from(walls.no_new_privs)),
        ("hidden", Value::from(walls.hidden)),
        ("seccomp", Value::from(walls.seccomp)),
        ("landlock", Value::from(walls.landlock)),
        ("limits", Value::Map(limits)),
        ("cgroup", cgroup),
    ])
}
