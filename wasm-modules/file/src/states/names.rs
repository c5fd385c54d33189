//! `file.touch`, `file.rename`, `file.copy`

use brine_guest::changes::{self, Content, Kind, Put};
use brine_guest::states::is_dry_run;
use brine_guest::{Value, path};

use super::{Arguments, Ret};
use crate::change::owner::{self, Wanted};
use crate::change::permissions::Permissions;
use crate::change::{directories, mode};

pub(crate) fn touch(name: &str, atime: &Value, mtime: &Value, makedirs: bool) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.touch"));
    }
    if !name.starts_with('/') {
        return Ok(Ret::bad(format!("Specified file {name} is not an absolute path")));
    }
    let there = changes::look(name, true)?;
    if is_dry_run() {
        let mut ret = Ret { result: None, ..Ret::new() };
        match &there {
            None => {
                ret.comment = format!("File {name} is set to be created");
                ret.change("new", name);
            }
            Some(entry) => {
                let differs =
                    |said: &Value, is: f64| *said != Value::None && said.to_text() != Value::Float(is).to_text();
                if differs(atime, entry.atime) || differs(mtime, entry.mtime) {
                    ret.comment = format!("Times set to be updated on file {name}");
                    ret.change("touched", name);
                } else {
                    ret = Ret::good(format!("File {name} exists and has the correct times"));
                    ret.change("new", name);
                }
            }
        }
        return Ok(ret);
    }
    let around = path::dirname(name);
    if makedirs {
        directories::make(around, &Wanted::default(), None)?;
    }
    if !changes::is(around, Kind::Directory)? {
        return Ok(Ret::bad(format!("Directory not present to touch file {name}")));
    }
    crate::change::names::touch(name, atime, mtime)?;
    let mut ret = Ret::new();
    match &there {
        None => {
            ret.comment = format!("Created empty file {name}");
            ret.change("new", name);
        }
        Some(entry) => {
            let word = if entry.kind == Kind::Directory { "directory" } else { "file" };
            ret.comment = format!("Updated times on {word} {name}");
            ret.change("touched", name);
        }
    }
    Ok(ret)
}

pub(crate) fn rename(name: &str, source: &str, args: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.rename"));
    }
    if !name.starts_with('/') {
        return Ok(Ret::bad(format!("Specified file {name} is not an absolute path")));
    }
    if !source.starts_with('/') || changes::look(source, false)?.is_none() {
        return Ok(Ret::good(format!("Source file \"{source}\" has already been moved out of place")));
    }
    let dry = is_dry_run();
    if let Some(there) = changes::look(name, false)? {
        if !args.flag("force", false) {
            return Ok(Ret::good(format!("The target file \"{name}\" exists and will not be overwritten")));
        }
        // A file is replaced in one step.
        if !dry
            && there.kind == Kind::Directory
            && let Err(why) = changes::remove(name, true)
        {
            let failed = format!("Failed to delete \"{name}\" in preparation for forced move: {why}");
            return Ok(Ret::bad(failed));
        }
    }
    if dry {
        return Ok(Ret { result: None, ..Ret::good(format!("File \"{source}\" is set to be moved to \"{name}\"")) });
    }
    let around = path::dirname(name);
    if !changes::is(around, Kind::Directory)? {
        if !args.flag("makedirs", false) {
            return Ok(Ret::bad(format!("The target directory {around} is not present")));
        }
        directories::make(around, &Wanted::default(), None)?;
    }
    if let Err(why) = crate::change::names::move_to(source, name) {
        return Ok(Ret::bad(format!("Failed to move \"{source}\" to \"{name}\": {why}")));
    }
    let mut ret = Ret::good(format!("Moved \"{source}\" to \"{name}\""));
    ret.change(name, source);
    Ok(ret)
}

pub(crate) fn copy(name: &str, source: &str, args: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.copy"));
    }
    if !name.starts_with('/') {
        return Ok(Ret::bad(format!("Specified file {name} is not an absolute path")));
    }
    let missing = || Ret::bad(format!("Source file \"{source}\" is not present"));
    if !source.starts_with('/') {
        return Ok(missing());
    }
    let Some(from) = changes::look_with_hash(source, true)? else { return Ok(missing()) };
    let dry = is_dry_run();
    let preserve = args.flag("preserve", false);
    let wanted = match preserve {
        true => Permissions {
            owner: Wanted { user: owner::user(&from), group: owner::group(&from) },
            mode: Some(mode::of(&from)),
        },
        false => {
            let owner = super::links::owners(args);
            if let Some(missing) = owner.missing(None).filter(|_| !dry) {
                return Ok(Ret::bad(missing));
            }
            Permissions { owner, mode: args.mode("mode").or_else(|| Some(mode::of(&from))) }
        }
    };
    let mut name = name.to_owned();
    let mut there = changes::look(&name, false)?;
    if args.flag("subdir", false) && changes::is(&name, Kind::Directory)? {
        name = path::join(&name, path::basename(source));
        there = changes::look(&name, false)?;
    }
    let mut comment = format!("Copied \"{source}\" to \"{name}\"");
    if there.is_some() {
        if !args.flag("force", false) {
            return Ok(Ret::good(format!("The target file \"{name}\" exists and will not be overwritten")));
        }
        let is = changes::look_with_hash(&name, true)?.and_then(|entry| entry.sha256);
        if is.is_some() && is == from.sha256 {
            comment += " - files are identical but force flag is set";
        }
    }
    if dry {
        return Ok(Ret { result: None, ..Ret::good(format!("File \"{source}\" is set to be copied to \"{name}\"")) });
    }
    // A file is replaced in one step.
    if there.as_ref().is_some_and(|there| there.kind == Kind::Directory || from.kind == Kind::Directory)
        && let Err(why) = changes::remove(&name, true)
    {
        return Ok(Ret::bad(format!("Failed to delete \"{name}\" in preparation for forced move: {why}")));
    }
    let around = path::dirname(&name);
    if !changes::is(around, Kind::Directory)? {
        if !args.flag("makedirs", false) {
            return Ok(Ret::bad(format!("The target directory {around} is not present")));
        }
        let dir_mode = args.mode("dir_mode").or_else(|| wanted.mode.as_deref().map(mode::of_directories));
        directories::make(around, &wanted.owner, dir_mode.as_deref())?;
    }
    let mut ret = Ret::good(comment);
    let copied = match from.kind {
        Kind::Directory => crate::change::names::copy_tree(source, &name, &wanted.owner),
        _ => Put::new(&name)
            .owner_of(wanted.owner.owner())
            .mode(Some(from.mode & 0o777))
            .follow(false)
            .content(&Content::File(source.to_owned()))
            .map(drop),
    };
    if let Err(why) = copied {
        return Ok(Ret::bad(format!("Failed to copy \"{source}\" to \"{name}\": {why}")));
    }
    ret.change(&name, source);
    if !preserve && let Some(entry) = changes::look(&name, false)? {
        // Salt finds a copy with the mode of its source, and the minion's owner.
        let copied = changes::Entry {
            uid: 0,
            gid: 0,
            user: Some("root".into()),
            group: Some("root".into()),
            mode: from.mode,
            ..entry.clone()
        };
        if let Some(bits) = wanted.mode.as_deref().and_then(mode::bits).filter(|bits| *bits != entry.mode) {
            changes::set_permissions(&name, &changes::Owner { user: None, group: None }, Some(bits), false)?;
        }
        wanted.report(wanted.lacks(&copied), changes::look(&name, false)?.as_ref(), &mut ret);
    }
    Ok(ret)
}
