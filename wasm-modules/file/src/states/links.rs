//! `file.symlink`, `file.hardlink`

use brine_guest::changes::{self, Entry, Kind};
use brine_guest::states::is_dry_run;
use brine_guest::{Value, path};

use super::{Arguments, Ret};
use crate::change::owner::{self, Wanted};
use crate::change::{directories, owner::gid, owner::uid};

/// The user whose a link is if none is named: the minion's.
fn own_user() -> Value {
    let user = brine_guest::host::config::get("user").and_then(|user| user.value().ok());
    user.filter(Value::truthy).unwrap_or_else(|| "root".into())
}

/// Who is to own a link; by default the minion's user, and that user's group.
pub(crate) fn owners(args: &Arguments) -> Wanted {
    let mut wanted = args.owner();
    if wanted.user == Value::None {
        wanted.user = own_user();
    }
    if wanted.group == Value::None {
        wanted.group = owner::group_of(&wanted.user);
    }
    wanted
}

/// Salt's lines about what is wrong before anything is done.
fn preflight(name: &str, target: Option<&str>, wanted: &Wanted, has: Option<&Entry>) -> Option<String> {
    let mut errors = Vec::new();
    let known = |is: bool| has.is_some() && is;
    if !known(has.is_some_and(|has| !wanted.changes_user(has))) && uid(&wanted.user).is_none() {
        errors.push(format!("User {} does not exist", wanted.user.to_text()));
    }
    if !known(has.is_some_and(|has| !wanted.changes_group(has))) && gid(&wanted.group).is_none() {
        errors.push(format!("Group {} does not exist", wanted.group.to_text()));
    }
    if !name.starts_with('/') {
        errors.push(format!("Specified file {name} is not an absolute path"));
    }
    if let Some(target) = target.filter(|target| !target.starts_with('/')) {
        errors.push(format!("Specified target {target} is not an absolute path"));
    }
    let end = if errors.len() > 1 { "." } else { "" };
    (!errors.is_empty()).then(|| errors.join(". ") + end)
}

fn owned_by(wanted: &Wanted, entry: &Entry) -> bool {
    owner::is(&wanted.user, entry.user.as_deref(), entry.uid)
        && owner::is(&wanted.group, entry.group.as_deref(), entry.gid)
}

pub(crate) fn symlink(name: &str, target: &str, args: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.symlink"));
    }
    let force = args.flag("force", false);
    let there = if name.starts_with('/') { changes::look(name, false)? } else { None };
    let link = there.as_ref().filter(|entry| entry.kind == Kind::Symlink);
    let mut wanted = args.owner();
    if let Some(link) = link.filter(|_| args.flag("inherit_user_and_group", false)) {
        if wanted.user == Value::None {
            wanted.user = owner::user(link);
        }
        if wanted.group == Value::None {
            wanted.group = owner::group(link);
        }
    }
    if wanted.user == Value::None || wanted.group == Value::None {
        let mut defaults = owners(args);
        if wanted.user != Value::None {
            defaults.user = wanted.user;
        }
        if wanted.group != Value::None {
            defaults.group = wanted.group;
        }
        wanted = defaults;
    }
    if let Some(errors) = preflight(name, None, &wanted, link) {
        return Ok(Ret::bad(errors));
    }
    // Something that is no link. Where a link leads does not matter.
    let exists = there.is_some() && link.is_none();
    let (user, group) = (wanted.user.to_text(), wanted.group.to_text());
    let mut checked = check_symlink(name, target, force, &wanted, link, exists);
    let around = path::dirname(name);
    if !changes::is(around, Kind::Directory)? {
        let makes = args.flag("makedirs", false);
        if is_dry_run() {
            checked.comment += &match makes {
                true => format!("\n{around} will be created"),
                false => format!("\nDirectory {around} for symlink is not present"),
            };
        } else if makes {
            directories::make(around, &wanted, args.mode("mode").as_deref())?;
        } else {
            return Ok(Ret::bad(format!("Directory {around} for symlink is not present")));
        }
    }
    if is_dry_run() {
        return Ok(checked);
    }
    let mut ret = Ret::new();
    let mut replaces = false;
    match link {
        Some(link) if same_target(link, target) => {
            if owned_by(&wanted, link) {
                ret.comment = format!("Symlink {name} is present and owned by {user}:{group}");
            } else if changes::set_permissions(name, &wanted.owner(), None, false).is_ok() {
                ret.comment = format!("Set ownership of symlink {name} to {user}:{group}");
                ret.change("ownership", format!("{user}:{group}"));
            } else {
                ret.result = Some(false);
                ret.comment = format!("Failed to set ownership of symlink {name} to {user}:{group}");
            }
            return Ok(ret);
        }
        Some(_) => replaces = true,
        None if exists => {
            let kind = there.as_ref().map(|entry| entry.kind);
            if let Some(backup) = args.named("backupname") {
                if let Some(failed) = back_up(name, target, &backup, force)? {
                    return Ok(failed);
                }
            } else if !force && !args.flag("atomic", false) {
                let word = match kind {
                    Some(Kind::Regular) => "File",
                    Some(Kind::Directory) => "Directory",
                    _ => "File system entry",
                };
                return Ok(Ret::bad(format!("{word} exists where the symlink {name} should be")));
            } else if kind == Some(Kind::Directory) {
                // Salt removes no directory either.
                let why = format!("[Errno 21] Is a directory: '{name}'");
                return Ok(Ret::bad(format!("Unable to create new symlink {name} -> {target}: {why}")));
            } else {
                replaces = true;
            }
        }
        None => {}
    }
    match changes::symlink(name, target, &wanted.owner(), replaces) {
        Ok(_) => {
            ret.comment = format!("Created new symlink {name} -> {target}");
            ret.change("new", name);
        }
        Err(why) => ret = Ret::bad(format!("Unable to create new symlink {name} -> {target}: {why}")),
    }
    Ok(ret)
}

fn same_target(link: &Entry, target: &str) -> bool {
    link.target.as_deref().is_some_and(|is| path::normpath(is) == path::normpath(target))
}

/// Salt's `_symlink_check`: the result of a dry run.
fn check_symlink(name: &str, target: &str, force: bool, wanted: &Wanted, link: Option<&Entry>, exists: bool) -> Ret {
    let mut ret = Ret { result: None, ..Ret::new() };
    match link {
        None if !exists => {
            ret.comment = format!("Symlink {name} to {target} is set for creation");
            ret.change("new", name);
        }
        Some(link) if link.target.as_deref() != Some(target) => {
            ret.comment = format!("Link {name} target is set to be changed to {target}");
            ret.change("change", name);
        }
        Some(link) => {
            ret.result = Some(true);
            ret.comment = format!("The symlink {name} is present");
            if !owned_by(wanted, link) {
                let (is_user, is_group) = (owner::user(link).to_text(), owner::group(link).to_text());
                ret.result = None;
                ret.comment += &format!(
                    ", but the ownership of the symlink would be changed from {is_user}:{is_group} to {}:{}",
                    wanted.user.to_text(),
                    wanted.group.to_text()
                );
                ret.change("ownership", format!("{is_user}:{is_group}"));
            }
        }
        None if force => {
            ret.comment = format!(
                "The file or directory {name} is set for removal to make way for a new symlink targeting {target}"
            );
        }
        None => {
            ret.result = Some(false);
            ret.comment =
                format!("File or directory exists where the symlink {name} should be. Did you mean to use force?");
        }
    }
    ret
}

/// Moves what is in a link's place. Returns a failure.
fn back_up(name: &str, target: &str, backup: &str, force: bool) -> Result<Option<Ret>, String> {
    let place = match backup {
        _ if backup.starts_with('/') => backup.to_owned(),
        _ if !backup.contains('/') => path::join(path::dirname(&path::normpath(name)), backup),
        _ => return Ok(Some(Ret::bad(format!("Backupname must be an absolute path or a file name: {backup}")))),
    };
    if changes::look(&place, false)?.is_some() {
        if !force {
            return Ok(Some(Ret::bad(format!(
                "Symlink & backup dest exists and Force not set. {name} -> {target} - backup: {place}"
            ))));
        }
        changes::remove(&place, true)?;
    }
    let failed = |why| Ret::bad(format!("Unable to rename {name} to backup {place} -> : {why}"));
    Ok(changes::rename(name, &place).err().map(failed))
}

pub(crate) fn hardlink(name: &str, target: &str, args: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.hardlink"));
    }
    let force = args.flag("force", false);
    let wanted = owners(args);
    if let Some(errors) = preflight(name, Some(target), &wanted, None) {
        return Ok(Ret::bad(errors));
    }
    let (is, of) = (changes::look(name, false)?, changes::look(target, true)?);
    let kind = is.as_ref().map(|entry| entry.kind);
    let is_hardlink = is.as_ref().is_some_and(|entry| entry.nlink > 1 && entry.kind != Kind::Directory);
    let is_same = matches!((&is, &of), (Some(is), Some(of)) if is.inode == of.inode);
    let Some(of) = of else {
        return Ok(Ret::bad(format!("Target {target} for hard link does not exist")));
    };
    if is_dry_run() {
        return Ok(check_hardlink(name, target, force, kind, of.kind, is_hardlink, is_same));
    }
    for (direction, item, kind) in [("to", name, kind), ("from", target, Some(of.kind))] {
        if kind == Some(Kind::Directory) {
            return Ok(Ret::bad(format!("Unable to hard link {direction} directory {item}")));
        }
    }
    let around = path::dirname(name);
    if !changes::is(around, Kind::Directory)? {
        if !args.flag("makedirs", false) {
            return Ok(Ret::bad(format!("Directory {around} for hard link is not present")));
        }
        directories::make(around, &wanted, args.mode("dir_mode").as_deref())?;
    }
    let mut ret = Ret::new();
    let mut comment = format!("Created new hard link {name} -> {target}");
    let mut failure = format!("Unable to create new hard link {name} -> {target}");
    if is_hardlink {
        if is_same {
            return Ok(Ret::good(format!("Target of hard link {name} is already pointing to {target}")));
        }
        changes::remove(name, false)?;
        comment = format!("Set target of hard link {name} -> {target}");
        failure = format!("Unable to set target of hard link {name} -> {target}");
    } else if kind == Some(Kind::Regular) {
        if !force {
            return Ok(Ret::bad(format!("File exists where the hard link {name} should be")));
        }
        changes::remove(name, false)?;
        ret.change("forced", "File for hard link was forcibly replaced");
    }
    match changes::hard_link(name, target) {
        Ok(_) => {
            ret.comment = comment;
            ret.change("new", name);
        }
        Err(why) => ret = ret.failed(format!("{failure}: {why}")),
    }
    Ok(ret)
}

fn check_hardlink(
    name: &str,
    target: &str,
    force: bool,
    kind: Option<Kind>,
    of: Kind,
    is_hardlink: bool,
    is_same: bool,
) -> Ret {
    let mut ret = Ret { result: None, ..Ret::new() };
    match kind {
        _ if of == Kind::Directory => return Ret::bad(format!("Unable to hard link from directory {target}")),
        Some(Kind::Directory) => return Ret::bad(format!("Unable to hard link to directory {name}")),
        None => {
            ret.comment = format!("Hard link {name} to {target} is set for creation");
            ret.change("new", name);
        }
        Some(_) if is_hardlink && is_same => {
            return Ret::good(format!("The hard link {name} is presently targetting {target}"));
        }
        Some(_) if is_hardlink => {
            ret.comment = format!("Link {name} target is set to be changed to {target}");
            ret.change("change", name);
        }
        Some(_) if force => {
            ret.comment = format!(
                "The file or directory {name} is set for removal to make way for a new hard link targeting {target}"
            );
        }
        Some(_) => {
            return Ret::bad(format!(
                "File or directory exists where the hard link {name} should be. Did you mean to use force?"
            ));
        }
    }
    ret
}
