//! What a module asks for and has, in plain words: `wants to run programs: may run /usr/bin/uptime; may not run anything
//! else`.

use std::collections::BTreeSet;

use brine_capabilities::{Access, Grants, Kind, Names, rule_text};

use crate::policy::Capability;
use crate::sentence::join_names;
use crate::store::Entry;

/// A sentence for each capability that the module imports, as its functions have it in general.
pub(super) fn of(entry: &Entry) -> Vec<String> {
    let imports = entry.module.info.imports.iter();
    let asked: BTreeSet<Capability> =
        imports.filter_map(|import| Some(Capability::of(import.split('@').next()?)?.0)).collect();
    let general = entry.grants.each().find(|(master, function, _)| master.is_none() && function.is_none());
    let grants = general.map(|(_, _, grants)| &**grants);
    let sentence = |capability: &Capability| {
        let granted = grants.filter(|grants| super::capabilities(grants).contains(capability));
        let may = granted.map_or_else(|| "may not".to_owned(), |grants| may(*capability, grants));
        format!("wants to {}: {may}", capability.words())
    };
    asked.iter().map(sentence).collect()
}

/// What it may.
fn may(capability: Capability, grants: &Grants) -> String {
    match capability.kind() {
        Kind::Flag => "may".to_owned(),
        Kind::Settings if grants.names(capability).is_none() => {
            "may read the public ones; may not read others".to_owned()
        }
        Kind::Settings => named("may read the public ones and ", "; may not read others", grants.names(capability)),
        Kind::Names => named("may, for ", "; may not for others", grants.names(capability)),
        Kind::Process => programs(grants),
        Kind::Directories => {
            let of = |writable: bool| {
                let directories = grants.direct.directories.iter().filter(|dir| dir.writable == writable);
                directories.map(|dir| dir.path.as_str()).collect::<Vec<_>>()
            };
            trees(&of(false), &of(true))
        }
        Kind::Changes => {
            let of = |changes: bool| {
                let trees = grants.changes.iter().filter(|tree| (tree.access != Access::Look) == changes);
                trees.map(|tree| tree.path.as_str()).collect::<Vec<_>>()
            };
            trees(&of(false), &of(true))
        }
        Kind::Network => match grants.direct.network.as_slice() {
            [] => "may not reach any host".to_owned(),
            rules => {
                let rules: Vec<String> = rules.iter().map(rule_text).collect();
                format!("may reach {}; may not reach others", join_names(&rules))
            }
        },
    }
}

fn named(before: &str, after: &str, names: &Names) -> String {
    match names {
        Names::Any => format!("{before}all"),
        Names::Only(names) if names.is_empty() => "may not, because nothing is named".to_owned(),
        Names::Only(names) => format!("{before}{}{after}", join_names(names)),
    }
}

fn programs(grants: &Grants) -> String {
    let process = &grants.process;
    let users = match &process.users {
        Names::Any => ", as any user".to_owned(),
        Names::Only(users) if users.is_empty() => String::new(),
        Names::Only(users) => format!(", as {} too", join_names(users)),
    };
    let programs = match &process.programs {
        Names::Any => return format!("may run any program{users}"),
        Names::Only(programs) if programs.is_empty() => None,
        Names::Only(programs) => Some(join_names(programs)),
    };
    let lines: Option<Vec<String>> =
        process.lines.as_ref().map(|lines| lines.iter().map(|line| format!("`{line}`")).collect());
    let looks = lines.is_some() && (!process.own_looks.is_empty() || !process.looks.is_empty());
    let lines = lines.filter(|lines| !lines.is_empty()).map(|lines| join_names(&lines));
    let looks = looks.then(|| "command lines that only look".to_owned());
    let all: Vec<String> = [programs, lines, looks].into_iter().flatten().collect();
    match all.as_slice() {
        [] => "may not run any".to_owned(),
        all => format!("may run {}{users}; may not run anything else", all.join(", and ")),
    }
}

fn trees(looks: &[&str], changes: &[&str]) -> String {
    match (looks, changes) {
        ([], []) => "may not open any".to_owned(),
        (looks, []) => format!("may read {}; may change nothing", join_names(looks)),
        ([], changes) => format!("may read and change {}; may open nothing else", join_names(changes)),
        (looks, changes) => {
            format!(
                "may read and change {}, and read {}; may open nothing else",
                join_names(changes),
                join_names(looks)
            )
        }
    }
}
