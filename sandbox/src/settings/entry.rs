//! Parses one entry under `modules`: rules for a module, a function, or all modules.

use brine_capabilities::forms::is_variable;
use brine_capabilities::{Access, Capability, Directory, Grant, Kind, Look, Names, ProcessGrant, Tree, read_rule};
use brine_component::group;
use rmpv::Value;

use super::limits::limits;
use super::signers::{sha256, signed_by};
use super::values::{absolute, count, entries, flag, list, name, names, size, user};
use super::{Result, error};
use crate::policy::{Entry, RecordWhen, Rules};

pub(super) fn modules(path: &str, value: &Value, rules: &mut Rules) -> Result<()> {
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        let entry = entry(&path, value)?;
        if key == "*" {
            rules.every = entry;
        } else if let Some((module, function)) = key.split_once('.') {
            // `file.states` is about all states of the module, `file.states.managed` about one, `load.beacons` about its
            // beacon.
            let word = match (group(function), function.split_once('.')) {
                (Some(_), Some((_, word))) => word,
                _ => function,
            };
            let is_word = word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if !is_word {
                let why = "a function is named as in cmd.run, a state as in file.states.managed: lower-case letters, \
                           digits and _, a letter first";
                return error(&path, why);
            }
            if entry.max_running.is_some() || entry.max_queued.is_some() {
                return error(&path, "max_running and max_queued are for a module, not for one of its functions");
            }
            if entry.downgrade.is_some() {
                return error(&path, "downgrade is for a module, not for one of its functions");
            }
            rules.functions.insert((name(&path, module)?, function.to_owned()), entry);
        } else {
            rules.modules.insert(name(&path, key)?, entry);
        }
    }
    Ok(())
}

fn entry(path: &str, value: &Value) -> Result<Entry> {
    let mut entry = Entry::default();
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        if let Some(capability) = Capability::ALL.into_iter().find(|capability| capability.key() == key) {
            entry.says.insert(capability, grant(&path, capability, value)?);
            continue;
        }
        match key {
            "sha256" => entry.sha256 = Some(sha256(&path, value)?),
            "signed_by" => entry.signed_by = Some(signed_by(&path, value)?),
            "downgrade" => match value.as_bool() {
                Some(may) => entry.downgrade = Some(may),
                None => return error(&path, format!("true or false is expected, not {value}")),
            },
            "user" => entry.user = Some(user(&path, value)?),
            "limits" => entry.limits = limits(&path, value)?,
            "max_running" => entry.max_running = Some(count(&path, value, 1..=1_000)?),
            "record" => entry.record = Some(record(&path, value)?),
            "max_queued" => entry.max_queued = Some(count(&path, value, 0..=1_000_000)?),
            _ => {
                let known: Vec<&str> = Capability::ALL.iter().map(|capability| capability.key()).collect();
                let others = "sha256, signed_by, downgrade, user, limits, max_running, max_queued and record";
                return error(&path, format!("there is no such grant; there are {}, {others}", known.join(", ")));
            }
        }
    }
    Ok(entry)
}

fn record(path: &str, value: &Value) -> Result<RecordWhen> {
    match (value.as_bool(), value.as_str()) {
        // YAML reads `on` and `off` as true and false.
        (Some(true), _) | (_, Some("on")) => Ok(RecordWhen::On),
        (Some(false), _) | (_, Some("off")) => Ok(RecordWhen::Off),
        (_, Some("asked")) => Ok(RecordWhen::Asked),
        _ => error(path, format!("on, asked or off is expected, not {value}")),
    }
}

fn grant(path: &str, capability: Capability, value: &Value) -> Result<Grant> {
    if value.as_bool() == Some(false) {
        return Ok(Grant::No);
    }
    match capability.kind() {
        Kind::Flag if value.as_bool() == Some(true) => Ok(Grant::Yes),
        Kind::Flag => error(path, format!("true or false is expected, not {value}")),
        Kind::Names if value.as_bool() == Some(true) => Ok(Grant::Names(Names::Any)),
        Kind::Names if value.is_array() || value.is_str() => granted_names(path, capability, value),
        Kind::Names => error(path, format!("any, a list or false is expected, not {value}")),
        // `true` is the older form; it grants less than `any`.
        Kind::Settings if value.as_bool() == Some(true) => Ok(Grant::Yes),
        Kind::Settings if value.is_array() || value.is_str() => granted_names(path, capability, value),
        Kind::Settings => error(path, format!("true, any, a list of settings or false is expected, not {value}")),
        Kind::Process => process(path, value).map(Grant::Process),
        Kind::Directories => directories(path, value).map(Grant::Directories),
        Kind::Changes => changes(path, value).map(Grant::Changes),
        Kind::Network => {
            let Value::Array(_) = value else {
                return error(path, format!("a list of host:port or false is expected, not {value}"));
            };
            let rules = list(path, value, |path, text| {
                read_rule(text).map(drop).or_else(|why| error(path, format!("{text:?}: {why}")))
            })?;
            let mut rules: Vec<_> = rules.iter().filter_map(|rule| read_rule(rule).ok()).collect();
            rules.sort();
            rules.dedup();
            Ok(Grant::Network(rules))
        }
    }
}

/// Parses the names of a grant and checks each with the capability's rule.
fn granted_names(path: &str, capability: Capability, value: &Value) -> Result<Grant> {
    let check = |path: &str, text: &str| capability.wrong_name(text).map_or(Ok(()), |why| error(path, why));
    names(path, value, check).map(Grant::Names)
}

fn process(path: &str, value: &Value) -> Result<ProcessGrant> {
    let any = |names: Names| ProcessGrant {
        users: names.clone(),
        groups: names.clone(),
        env: names.clone(),
        cwd: names.clone(),
        programs: names,
        ..ProcessGrant::default()
    };
    let programs = |path: &str, value: &Value| names(path, value, program);
    match value {
        Value::Array(_) => Ok(ProcessGrant { programs: programs(path, value)?, ..ProcessGrant::default() }),
        Value::Map(_) => {
            let mut grant = ProcessGrant::default();
            for (key, value) in entries(path, value)? {
                let path = format!("{path}:{key}");
                match key {
                    "programs" => grant.programs = programs(&path, value)?,
                    "users" => grant.users = users(&path, value)?,
                    "groups" => grant.groups = users(&path, value)?,
                    "env" => grant.env = names(&path, value, variable)?,
                    "cwd" => grant.cwd = names(&path, value, absolute)?,
                    "lines" => grant.lines = Some(looks(&path, value)?),
                    "looks" => grant.looks = looks(&path, value)?,
                    "detach" => grant.detach = flag(&path, value)?,
                    "file_size" => grant.file_size = Some(size(&path, value, 0..=1 << 50)?),
                    _ => {
                        let known = "programs, lines, looks, users, groups, env, cwd, detach and file_size";
                        return error(&path, format!("there is no such key; there are {known}"));
                    }
                }
            }
            Ok(grant)
        }
        _ if value.as_str() == Some("any") => Ok(any(Names::Any)),
        _ => error(
            path,
            format!(
                "any, a list of programs, a dict of programs, lines, looks, users, groups, env, cwd, detach and file_size, or false is expected, not {value}"
            ),
        ),
    }
}

fn program(path: &str, text: &str) -> Result<()> {
    if text == "/" {
        return error(path, "\"/\" is not a program");
    }
    absolute(path, text)
}

fn users(path: &str, value: &Value) -> Result<Names> {
    match value {
        Value::Array(items) => items.iter().map(|item| user(path, item)).collect::<Result<_>>().map(Names::Only),
        _ => names(path, value, |_, _| Ok(())),
    }
}

/// Checks a variable's name. A trailing `*` matches any rest.
fn variable(path: &str, text: &str) -> Result<()> {
    if is_variable(text.strip_suffix('*').unwrap_or(text)) || text == "*" {
        return Ok(());
    }
    error(path, format!("{text:?} cannot be a variable's name: letters, digits and _, no digit first"))
}

fn directories(path: &str, value: &Value) -> Result<Vec<Directory>> {
    let Value::Map(_) = value else {
        return error(path, format!("a dict as in {{/srv/app: rw, /etc: ro}} or false is expected, not {value}"));
    };
    let mut directories = Vec::new();
    for (directory, mode) in entries(path, value)? {
        let path = format!("{path}:{directory}");
        absolute(&path, directory)?;
        let writable = match mode.as_str() {
            Some("ro") => false,
            Some("rw") => true,
            _ => return error(&path, format!("ro or rw is expected, not {mode}")),
        };
        directories.push(Directory { path: directory.to_owned(), writable });
    }
    directories.sort();
    if let Some(twice) = directories.windows(2).find(|pair| pair[0].path == pair[1].path) {
        return error(path, format!("{} is there twice", twice[0].path));
    }
    Ok(directories)
}

/// Parses command lines that only look.
fn looks(path: &str, value: &Value) -> Result<Vec<Look>> {
    let read = |path: &str, text: &str| Look::read(text).or_else(|why| error(path, format!("{text:?} {why}")));
    let texts = list(path, value, |path, text| absolute(path, read(path, text)?.program()))?;
    texts.iter().map(|text| read(path, text)).collect()
}

fn changes(path: &str, value: &Value) -> Result<Vec<Tree>> {
    let Value::Map(_) = value else {
        return error(path, format!("a dict as in {{/srv/app: rw, /etc: ro}} or false is expected, not {value}"));
    };
    let mut trees = Vec::new();
    for (directory, access) in entries(path, value)? {
        let path = format!("{path}:{directory}");
        absolute(&path, directory)?;
        let Some(access) = access.as_str().and_then(Access::read) else {
            return error(&path, format!("ro, rw or rw+setid is expected, not {access}"));
        };
        trees.push(Tree { path: directory.to_owned(), access });
    }
    trees.sort();
    if let Some(twice) = trees.windows(2).find(|pair| pair[0].path == pair[1].path) {
        return error(path, format!("{} is there twice", twice[0].path));
    }
    Ok(trees)
}
