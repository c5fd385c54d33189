//! What of an archive is where it is unpacked, and what has to go before.

use brine_guest::changes::{self, Entry, Kind};
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value, path};

use super::wanted::Wanted;
use crate::members::Contents;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Whether it has to be unpacked.
    pub needed: bool,
    /// Whether something of it is missing.
    pub missing: bool,
    /// The path of `if_missing`, if it is there.
    pub if_missing: Option<String>,
}

/// Looks for each member. The inner error ends the state.
pub(super) fn found(
    wanted: &Wanted,
    contents: &Contents,
    changes: &mut Vec<(Value, Value)>,
) -> Result<core::result::Result<Found, StateResult>> {
    let mut found = Found { needed: wanted.overwrite, ..Found::default() };
    if let Some(path) = &wanted.if_missing
        && changes::look(path, true)?.is_some()
    {
        found.if_missing = Some(path.clone());
        return Ok(Ok(found));
    }
    let mut incorrect = Vec::new();
    for (paths, wanted_kind) in
        [(&contents.dirs, Kind::Directory), (&contents.files, Kind::Regular), (&contents.links, Kind::Symlink)]
    {
        let fits = |kind: Kind| match wanted_kind {
            Kind::Regular => kind != Kind::Directory && kind != Kind::Symlink,
            other => kind == other,
        };
        for member in paths {
            let full = path::join(&wanted.name, member);
            match look(full.trim_end_matches('/'))? {
                Looked::Beneath => {}
                Looked::At(Some(entry)) if !fits(entry.kind) => incorrect.push(member.clone()),
                Looked::At(Some(_)) => {}
                Looked::At(None) => {
                    found.needed = true;
                    found.missing = true;
                }
            }
        }
    }
    if incorrect.is_empty() {
        return Ok(Ok(found));
    }
    let list: String = incorrect.iter().map(|path| format!("\n- {path}")).collect();
    let comment = format!(
        "The below paths (relative to {}) exist, but are the incorrect type (file instead of directory, symlink instead of \
         file, etc.).",
        wanted.name
    );
    let would = |more: String| Ok(Err(StateResult::would(format!("{comment}{more}"), Value::Dict(Vec::new()))));
    if is_dry_run() && wanted.clean {
        return would(format!(
            " Since the 'clean' option is enabled, the destination paths would be cleared and the archive would be \
             extracted.\n{list}"
        ));
    }
    if is_dry_run() && wanted.clean_parent {
        return would(
            " Since the 'clean_parent' option is enabled, the destination parent directory would be removed first and then \
             re-created and the archive would be extracted"
                .into(),
        );
    }
    if wanted.clean {
        return Ok(Ok(found));
    }
    if !wanted.force {
        return Ok(Err(StateResult::bad(format!(
            "{comment} To proceed with extraction, set 'force' to True. Note that this will remove these paths before \
             extracting.\n{list}"
        ))));
    }
    let mut removed = Vec::new();
    for member in incorrect {
        let full = path::join(&wanted.name, &member);
        changes::remove(full.trim_end_matches('/'), true)?;
        removed.push(full);
        found.needed = true;
    }
    changes.push(("removed".into(), removed.into()));
    Ok(Ok(found))
}

/// What a look found.
enum Looked {
    At(Option<Entry>),
    /// One of the directories around it is none, which shows where that one is looked at.
    Beneath,
}

fn look(path: &str) -> Result<Looked> {
    match changes::look(path, false) {
        Err(why) if why.starts_with("[Errno 20]") => Ok(Looked::Beneath),
        looked => Ok(Looked::At(looked?)),
    }
}

/// Removes what is to go before unpacking: the folder, or what the archive has at its top.
pub(super) fn clean(wanted: &Wanted, contents: &Contents, changes: &mut Vec<(Value, Value)>) -> Result<()> {
    let folder = wanted.name.trim_end_matches('/');
    if wanted.clean_parent && !folder.is_empty() && changes::remove(folder, true)?.before.is_some() {
        let said = format!("Directory {} was removed prior to the extraction", wanted.name);
        changes.push(("removed".into(), said.into()));
    }
    if wanted.clean {
        let mut removed = Vec::new();
        for path in contents.top_level_dirs().into_iter().chain(contents.top_level_files()) {
            let full = path::join(&wanted.name, &path);
            if changes::remove(full.trim_end_matches('/'), true)?.before.is_some() {
                removed.push(full);
            }
        }
        if !removed.is_empty() {
            changes.retain(|(key, _)| key.text() != Some("removed"));
            changes.push(("removed".into(), removed.into()));
        }
    }
    Ok(())
}
