//! What `git.latest` and `git.detached` are asked for.

use brine_guest::changes::{self, Kind};
use brine_guest::path;
use brine_guest::{Data, Result, Value};

use crate::run::{Git, is_directory, is_file};

/// What a forced reset may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    /// Nothing is lost.
    No,
    /// Commits and changes of files may be lost.
    Yes,
    /// They may, if the remote repository has something new.
    RemoteChanges,
}

/// The commit, or Salt's sentence that there is none.
pub(super) fn rev(argument: Option<&Data>) -> Result<Result<String>> {
    let Some(value) = argument.map(Data::value).transpose()? else { return Ok(Ok("HEAD".into())) };
    Ok(match value.truthy() {
        true => Ok(value.to_text()),
        false => Err(format!("'{}' is not a valid value for the 'rev' argument", value.to_text())),
    })
}

pub(super) fn reset(argument: Option<&Data>) -> Result<Result<Reset>> {
    Ok(match argument.map(Data::value).transpose()?.unwrap_or(Value::Bool(false)) {
        Value::Bool(false) | Value::Int(0) => Ok(Reset::No),
        Value::Bool(true) | Value::Int(1) => Ok(Reset::Yes),
        Value::Text(text) if text == "remote-changes" => Ok(Reset::RemoteChanges),
        _ => Err("'force_reset' must be one of True, False, or 'remote-changes'".into()),
    })
}

/// Which names of the remote repository become which here.
pub(super) fn refspecs(remote: &str, branches: &str, tags: &str) -> Vec<String> {
    vec![
        format!("refs/heads/{branches}:refs/remotes/{remote}/{branches}"),
        format!("+refs/tags/{tags}:refs/tags/{tags}"),
    ]
}

/// Whether a text may be (the beginning of) the hash of a commit.
pub(super) fn is_hash(rev: &str) -> bool {
    rev.len() <= 40 && rev.chars().all(|c| c.is_ascii_hexdigit())
}

/// Why a place or keys cannot be used; in `git.latest` the sentences begin with a small letter.
pub(super) fn unusable(target: &str, git: &Git, word: [&str; 2]) -> Option<String> {
    if !target.starts_with('/') {
        return Some(format!("{} '{target}' is not an absolute path", word[0]));
    }
    let relative = |key: &&String| !key.starts_with('/') && !key.starts_with("salt://");
    if let Some(key) = git.identity.iter().find(relative) {
        return Some(format!("{} '{key}' is not an absolute path", word[1]));
    }
    is_file(target).then(|| format!("Target '{target}' exists and is a regular file, cannot proceed"))
}

/// What stands where a clone is to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing, or an empty directory.
    Free,
    /// A directory with these names, and it may be emptied.
    Full(Vec<String>),
    /// A directory with content that stays.
    Kept,
}

/// Looks at the place of a clone.
pub(super) fn place(target: &str, may_be_emptied: bool) -> Result<Place> {
    if !is_directory(target) {
        return Ok(Place::Free);
    }
    let names: Vec<String> = changes::list(target)?.into_iter().map(|(name, _): (String, Kind)| name).collect();
    Ok(match (may_be_emptied, names.is_empty()) {
        (true, _) => Place::Full(names),
        (false, true) => Place::Free,
        (false, false) => Place::Kept,
    })
}

/// Removes what is in a directory. The error names each path that stays.
pub(super) fn empty(target: &str, names: &[String]) -> Result<()> {
    let mut errors = Vec::new();
    for name in names {
        let path = path::join(target, name);
        if let Err(why) = changes::remove(&path, true) {
            errors.push(format!("  {path}\n    {why}"));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(format!("Unable to remove\n{}", errors.join("\n"))) }
}

/// The sentence about [`Place::Kept`].
pub(super) fn kept(target: &str) -> String {
    format!(
        "Target '{target}' exists, is non-empty and is not a git repository. Set the 'force_clone' option to True to remove \
         this directory's contents and proceed with cloning the remote repository"
    )
}

/// The sentence of a dry run about [`Place::Full`].
pub(super) fn would_empty(target: &str, name: &str) -> String {
    format!(
        "Target directory {target} exists. Since force_clone=True, the contents of {target} would be deleted, and {name} \
         would be cloned into this directory."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_checked() {
        assert_eq!(rev(None), Ok(Ok("HEAD".into())));
        assert_eq!(rev(Some(&Value::Float(1.5).into())), Ok(Ok("1.5".into())));
        assert_eq!(rev(Some(&"".into())), Ok(Err("'' is not a valid value for the 'rev' argument".into())));
        assert_eq!(reset(Some(&"remote-changes".into())), Ok(Ok(Reset::RemoteChanges)));
        assert!(reset(Some(&"yes".into())).unwrap().is_err());
        assert!(is_hash("1aF") && !is_hash("main") && !is_hash(&"a".repeat(41)));
        let expect = ["refs/heads/*:refs/remotes/up/*", "+refs/tags/v*:refs/tags/v*"];
        assert_eq!(refspecs("up", "*", "v*"), expect);
    }
}
