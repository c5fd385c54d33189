//! The state `archive.extracted`.
//!
//! - [`wanted`]: its arguments
//! - [`check`]: what is there already
//! - [`unzip`] and others: unpacking

mod check;
mod extract;
mod wanted;

use brine_guest::changes;
use brine_guest::host::functions;
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::url::is_web;
use brine_guest::{Result, Value};

pub(crate) use extract::unzip;

use crate::cache::{self, Place, Sum};
use crate::exports::states::Guest;
use crate::format::{self, Format};
use crate::members::Contents;
use crate::unpack::give;
use crate::{Data, Module};
use wanted::{Stop, Wanted};

impl Guest for Module {
    fn extracted(name: String, source: Data, kwargs: Data) -> Result<StateResult> {
        let mut wanted = match Wanted::read(name, source.value()?, &kwargs.value()?)? {
            Ok(wanted) => wanted,
            Err(Stop { result, comment }) => {
                return Ok(StateResult::new(Some(result), comment, Value::Dict(Vec::new())));
            }
        };
        let warnings = std::mem::take(&mut wanted.warnings);
        let mut result = extracted(&wanted)?;
        result.warnings = warnings;
        Ok(result)
    }
}

/// Calls a function of the module file.
fn call(function: &str, arguments: &[(&str, Value)]) -> Result<Value> {
    let kwargs = Value::dict(arguments.iter().map(|(name, value)| (*name, value.clone())));
    functions::call(function, &[], &kwargs.into())?.value()
}

fn source_sum(wanted: &Wanted) -> Result<Option<Sum>> {
    if !wanted.source_hash.truthy() {
        return Ok(None);
    }
    let sum = call(
        "file.get_source_sum",
        &[
            ("source", wanted.source.as_str().into()),
            ("source_hash", wanted.source_hash.clone()),
            ("source_hash_name", wanted.source_hash_name.clone()),
            ("saltenv", wanted.saltenv.as_str().into()),
        ],
    )?;
    let text = |key: &str| sum.get(key).map(Value::to_text).unwrap_or_default();
    Ok(Some(Sum { kind: text("hash_type"), hex: text("hsum") }))
}

fn extracted(wanted: &Wanted) -> Result<StateResult> {
    let bad = |comment: String| Ok(StateResult::bad(comment));
    let place = Place::of(&wanted.source, &wanted.saltenv);
    // A dry run fetches no hash.
    let unknown = is_dry_run() && is_web(&wanted.source_hash.to_text());
    if unknown && matches!(place, Place::Local(_)) {
        let comment = format!("The hash of archive {} would be fetched, and then compared", wanted.shown);
        return Ok(StateResult::would(comment, Value::Dict(Vec::new())));
    }
    let sum = match if unknown { Ok(None) } else { source_sum(wanted) } {
        Ok(sum) => sum,
        Err(why) => return bad(why),
    };
    if wanted.skip_files_list_verify
        && let (Some(sum), Some(known)) = (&sum, cache::remembered(&place)?)
        && sum.hex == known
    {
        let comment = format!(
            "Archive {} existing source sum is the same as the expected one and skip_files_list_verify argument was set to \
             True. Extraction is not needed",
            wanted.shown
        );
        let result = (!is_dry_run()).then_some(true);
        return Ok(StateResult::new(result, comment, Value::Dict(Vec::new())));
    }
    let is_local = matches!(place, Place::Local(_));
    if !is_local && is_dry_run() {
        let comment = format!(
            "Archive {} would be cached (if necessary) and checked to discover if extraction is needed",
            wanted.shown
        );
        return Ok(StateResult::would(comment, Value::Dict(Vec::new())));
    }
    if matches!(place, Place::Web(_)) && sum.is_none() && !wanted.skip_verify && !wanted.use_etag {
        return bad(format!(
            "Unable to verify upstream hash of source file {}, please set source_hash or set skip_verify or use_etag to True",
            wanted.shown
        ));
    }
    let archive = match cache::fetch(&place, &wanted.shown, sum.as_ref().filter(|_| !is_local), wanted.skip_verify)? {
        Ok(archive) => archive,
        Err(comment) => return bad(comment),
    };
    let known = cache::remembered(&place)?;
    let tracks = wanted.source_hash_update && sum.is_some() && !wanted.skip_verify;
    let result = check_and_extract(wanted, &archive, &place, sum.as_ref(), known.as_deref());
    if tracks && !is_dry_run() && result.as_ref().is_ok_and(|result| result.result == Some(true)) {
        cache::remember(&place, &archive)?;
    }
    if !is_local && !wanted.keep_source {
        cache::forget(&place)?;
    }
    result
}

fn check_and_extract(
    wanted: &Wanted,
    archive: &str,
    place: &Place,
    sum: Option<&Sum>,
    known: Option<&str>,
) -> Result<StateResult> {
    let bad = |comment: String| Ok(StateResult::bad(comment));
    if wanted.format == Format::Zip && wanted.password.is_none() && extract::is_encrypted(archive)? {
        return bad(format!(
            "Archive {} is password-protected, but no password was specified. Please set the 'password' argument.",
            wanted.shown
        ));
    }
    let members = match format::members(archive, archive, wanted.format) {
        Ok(members) => members,
        Err(why) => return bad(unreadable(wanted, archive, &why)),
    };
    let contents = format::contents(&members, wanted.format, wanted.options.strip);
    if let Err(why) = format::check(&members, wanted.format) {
        return bad(why);
    }
    let (dirs, files) = (contents.top_level_dirs(), contents.top_level_files());
    if wanted.enforce_toplevel && (dirs.len() > 1 || !files.is_empty()) {
        return bad(format!(
            "Archive does not have a single top-level directory. To allow this archive to be extracted, set \
             'enforce_toplevel' to False. To avoid a '{}-bomb' it may also be advisable to set a top-level directory by \
             adding it to the 'name' value (for example, setting 'name' to {}some_dir instead of {}).",
            wanted.format.name(),
            wanted.name,
            wanted.name
        ));
    }
    if wanted.clean && wanted.clean_parent {
        return bad("Only one of 'clean' and 'clean_parent' can be set to True".into());
    }
    let mut changes = Vec::new();
    let found = match check::found(wanted, &contents, &mut changes)? {
        Ok(found) => found,
        Err(result) => return Ok(result),
    };
    let hash_changed = !found.needed
        && wanted.source_hash_update
        && match known {
            Some(known) => cache::hash(archive, "sha256")? != known,
            None => false,
        };
    let mut comment;
    let mut result = Some(true);
    if found.needed || hash_changed {
        let because = match (hash_changed, found.missing) {
            (true, _) => ", due to source_hash update",
            (false, true) => ", due to absence of one or more files/dirs",
            (false, false) => "",
        };
        if let (Place::Local(path), Some(sum)) = (place, sum.filter(|_| !wanted.skip_verify))
            && cache::hash(path, &sum.kind)? != sum.hex
        {
            return bad(format!("{} does not match the desired source_hash {}", wanted.shown, sum.hex));
        }
        if is_dry_run() {
            let clean = if wanted.clean { ", after cleaning destination path(s)" } else { "" };
            let comment = format!("Archive {} would be extracted to {}{clean}{because}", wanted.shown, wanted.name);
            return Ok(StateResult::would(comment, Value::Dict(changes)));
        }
        check::clean(wanted, &contents, &mut changes)?;
        let made = extract::folder(wanted)?;
        let names = match extract::extract(wanted, archive, members) {
            Ok(names) => names,
            Err(why) => {
                let comment = format!("Failed to extract {} to {}: {why}", wanted.shown, wanted.name);
                return Ok(StateResult::new(Some(false), comment, Value::Dict(changes)));
            }
        };
        comment = match names.is_empty() {
            true => format!("No files were extracted from {}", wanted.shown),
            false => {
                if made {
                    changes.push(("directories_created".into(), vec![wanted.name.as_str()].into()));
                }
                changes.push(("extracted_files".into(), names.clone().into()));
                let trim = wanted.trim.map(|trim| format!(". Output was trimmed to {trim} number of lines"));
                format!("{} extracted to {}{because}{}", wanted.shown, wanted.name, trim.unwrap_or_default())
            }
        };
        result = Some(!names.is_empty());
    } else {
        comment = match &found.if_missing {
            Some(path) => format!("{path} exists"),
            None => "All files in archive are already present".into(),
        };
    }
    let unpacked = found.needed || hash_changed;
    own(wanted, &contents, unpacked, &mut result, &mut comment, &mut changes)?;
    Ok(StateResult::new(result, comment, Value::Dict(changes)))
}

/// What is said of an archive that cannot be read.
fn unreadable(wanted: &Wanted, archive: &str, why: &str) -> String {
    let mut comment = format!("{why}. Additional info follows:\n\narchive location:\n    {archive}");
    let mut errors = Vec::new();
    if wanted.if_missing.is_none() {
        errors.push("'if_missing' must be set");
    }
    if wanted.enforce_ownership_on.is_none() && wanted.ids.is_some() {
        errors.push("Ownership cannot be managed without setting 'enforce_ownership_on'.");
    }
    if errors.is_empty() {
        return comment;
    }
    let name = wanted.format.name();
    comment.push_str("\n\n");
    comment.push_str(match wanted.format {
        Format::Tar => {
            "If the source archive is a tar archive compressed using a compression type not natively supported by the tar \
             command, then setting the 'list_options' argument may allow the contents to be listed. Otherwise, if Salt is \
             unable to determine the files/directories in the archive, the following workaround(s) would need to be used \
             for this state to proceed"
        }
        _ => "The following workarounds must be used for this state to proceed",
    });
    comment.push_str(&format!(" (assuming the source file is a valid {name} archive):\n"));
    errors.iter().for_each(|error| comment.push_str(&format!("\n- {error}")));
    comment
}

/// Gives what was unpacked to a user and a group.
fn own(
    wanted: &Wanted,
    contents: &Contents,
    unpacked: bool,
    result: &mut Option<bool>,
    comment: &mut String,
    changes: &mut Vec<(Value, Value)>,
) -> Result<()> {
    let Some((uid, gid)) = wanted.ids else { return Ok(()) };
    let paths = match &wanted.enforce_ownership_on {
        Some(path) => vec![path.clone()],
        None => [contents.top_level_dirs(), contents.top_level_files(), contents.top_level_links()].concat(),
    };
    let mut missing = Vec::new();
    let mut given = false;
    for path in paths {
        let is_dir = path.ends_with('/') || wanted.enforce_ownership_on.is_some();
        let path = brine_guest::path::join(&wanted.name, &path);
        match changes::look(path.trim_end_matches('/'), false)? {
            Some(_) => given |= give(&path, uid, gid, is_dry_run(), is_dir)?,
            None if !is_dry_run() => missing.push(path),
            None => {}
        }
    }
    if given {
        changes.push(("updated ownership".into(), true.into()));
        if is_dry_run() && !unpacked {
            *result = None;
            comment.push_str(". Ownership would be updated on one or more files/directories.");
        }
    }
    if !missing.is_empty() {
        if wanted.if_missing.is_none() {
            *result = Some(false);
        }
        comment.push_str("\n\nWhile trying to enforce user/group ownership, the following paths were missing:\n");
        missing.iter().for_each(|path| comment.push_str(&format!("\n- {path}")));
    }
    Ok(())
}
