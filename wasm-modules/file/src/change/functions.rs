//! The functions that change names, owners, modes and whole files.

use brine_guest::changes::{self, Content, Entry, Kind, Owner, Put};
use brine_guest::{Data, Value, path};

use super::owner::{self, Wanted};
use super::permissions::{self, Permissions};
use super::{directories, mode, names};
use crate::look::fs;
use crate::ret::Ret;

type Done<T> = Result<T, String>;

fn there(name: &str, follow: bool) -> Done<Option<Entry>> {
    changes::look(name, follow)
}

fn value(data: Option<Data>) -> Done<Value> {
    data.map_or(Ok(Value::None), |data| data.value())
}

fn number(id: Option<u32>) -> Value {
    id.map_or_else(|| "".into(), |id| Value::Int(id.into()))
}

/// The number of a user, an empty text where there is none.
pub(crate) fn user_to_uid(user: &Value) -> Value {
    number(owner::uid(&if *user == Value::None { "root".into() } else { user.clone() }))
}

pub(crate) fn group_to_gid(group: &Value) -> Value {
    if *group == Value::None { "".into() } else { number(owner::gid(group)) }
}

pub(crate) fn set_mode(name: &str, wanted: &Value) -> Done<String> {
    let digits = wanted.to_text();
    let digits = digits.trim_start_matches(['0', 'O', 'o']);
    if there(name, true)?.is_none() {
        return Err(format!("{name}: File not found"));
    }
    let digits = if digits.is_empty() { "0" } else { digits };
    let Some(bits) = mode::bits(digits) else { return Ok(format!("Invalid Mode {digits}")) };
    let done = changes::set_permissions(name, &Owner { user: None, group: None }, Some(bits), true)?;
    Ok(done.after.as_ref().map(mode::of).unwrap_or_default())
}

/// Gives a file away. Returns Salt's text of what is missing.
pub(crate) fn chown(name: &str, user: &Value, group: &Value, follow: bool) -> Done<Value> {
    let mut missing = String::new();
    if user.truthy() && owner::uid(user).is_none() {
        missing += "User does not exist\n";
    }
    if group.truthy() && owner::gid(group).is_none() {
        missing += "Group does not exist\n";
    }
    if there(name, follow)?.is_none() {
        // A link that leads nowhere is given away itself.
        if missing.is_empty() && follow && there(name, false)?.is_some() {
            return chown(name, user, group, false);
        }
        missing += "File not found";
    }
    if !missing.is_empty() {
        return Ok(missing.into());
    }
    let name_of = |value: &Value| (value.truthy() || matches!(value, Value::Int(_))).then(|| value.to_text());
    let wanted = Owner { user: name_of(user), group: name_of(group) };
    changes::set_permissions(name, &wanted, None, follow)?;
    Ok(Value::None)
}

pub(crate) fn chgrp(name: &str, group: &Value) -> Done<Value> {
    let user = there(name, true)?.map(|entry| owner::user(&entry)).unwrap_or_default();
    chown(name, &user, group, true)
}

/// The lines of `file.write`.
pub(crate) fn write(name: &str, args: Vec<Data>, kwargs: &Data) -> Done<String> {
    let mut lines = args.iter().map(Data::value).collect::<Done<Vec<_>>>()?;
    if let Some(given) = kwargs.value()?.get("args") {
        lines = if let Value::List(items) = given { items.clone() } else { vec![given.clone()] };
    }
    let text: String = lines.iter().map(|line| format!("{}\n", line.to_text())).collect();
    Put::new(name).text(&text)?;
    Ok(format!("Wrote {} lines to \"{name}\"", lines.len()))
}

fn whole(name: &str) -> Done<Vec<u8>> {
    changes::read(name)?.ok_or_else(|| fs::Error::NotFound.at(name))
}

pub(crate) fn truncate(name: &str, length: u64) -> Done<()> {
    let old = whole(name)?;
    let mut new = old.clone();
    let length = usize::try_from(length).ok().filter(|length| *length <= changes::MAX_WHOLE);
    new.resize(length.ok_or_else(|| format!("a file is truncated to at most {} bytes", changes::MAX_WHOLE))?, 0);
    Put::new(name).instead_of(Some(&old)).bytes(new).map(drop)
}

pub(crate) fn seek_write(name: &str, data: &Value, offset: u64) -> Done<u64> {
    let old = whole(name)?;
    let data = if let Value::Bytes(bytes) = data { bytes.clone() } else { data.to_text().into_bytes() };
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = start.checked_add(data.len()).filter(|end| *end <= changes::MAX_WHOLE);
    let end = end.ok_or_else(|| format!("a file gets at most {} bytes so", changes::MAX_WHOLE))?;
    let mut new = old.clone();
    new.resize(old.len().max(end), 0);
    new[start..end].copy_from_slice(&data);
    Put::new(name).instead_of(Some(&old)).bytes(new)?;
    Ok(data.len() as u64)
}

fn absolute(name: &str) -> Done<()> {
    if name.starts_with('/') { Ok(()) } else { Err("File path must be absolute.".into()) }
}

pub(crate) fn link(src: &str, name: &str) -> Done<bool> {
    absolute(src)?;
    changes::hard_link(name, src).map(|_| true).map_err(|why| format!("Could not create '{name}': {why}"))
}

pub(crate) fn symlink(src: &str, name: &str, force: bool, atomic: bool, follow: bool) -> Done<bool> {
    if !name.starts_with('/') {
        return Err(format!("Link path must be absolute: {name}"));
    }
    let is = there(name, false)?;
    if let Some(target) = is.as_ref().and_then(|is| is.target.as_deref()) {
        if path::normpath(target) == path::normpath(src) {
            return Ok(true);
        }
        if !force && !atomic {
            return Err(format!("Found existing symlink: {name}"));
        }
    } else if is.is_some() && !force && !atomic && (!follow || there(name, true)?.is_some()) {
        return Err(format!("Existing path is not a symlink: {name}"));
    }
    let none = Owner { user: None, group: None };
    changes::symlink(name, src, &none, force || atomic)
        .map(|_| true)
        .map_err(|why| format!("Could not create '{name}': {why}"))
}

pub(crate) fn rename(src: &str, dst: &str) -> Done<bool> {
    absolute(src)?;
    changes::rename(src, dst).map(|_| true).map_err(|why| format!("Could not rename '{src}' to '{dst}': {why}"))
}

pub(crate) fn move_to(src: &str, dst: &str) -> Done<Value> {
    if !src.starts_with('/') {
        return Err("Source path must be absolute.".into());
    }
    if !dst.starts_with('/') {
        return Err("Destination path must be absolute.".into());
    }
    let mut to = dst.to_owned();
    if changes::is(dst, Kind::Directory)? {
        to = path::join(dst, path::basename(src));
    }
    names::move_to(src, &to).map_err(|why| format!("Unable to move '{src}' to '{dst}': {why}"))?;
    Ok(Value::dict([("comment", format!("'{src}' moved to '{dst}'").into()), ("result", true.into())]))
}

pub(crate) fn copy(src: &str, dst: &str, recurse: bool, remove_existing: bool) -> Done<bool> {
    absolute(src)?;
    let from = there(src, true)?.ok_or_else(|| format!("No such file or directory '{src}'"))?;
    let failed = |why: String| format!("Could not copy '{src}' to '{dst}': {why}");
    if from.kind == Kind::Directory || changes::is(dst, Kind::Directory)? {
        if !recurse {
            return Err("Cannot copy overwriting a directory without recurse flag set to true!".into());
        }
        if remove_existing {
            changes::remove(dst, true).map_err(failed)?;
        }
        names::copy_tree(src, dst, &Wanted::default()).map_err(failed)?;
        return Ok(true);
    }
    let owner = Owner { user: Some(from.uid.to_string()), group: Some(from.gid.to_string()) };
    let put = Put::new(dst).owner_of(owner).mode(Some(from.mode));
    put.content(&Content::File(src.to_owned())).map(|_| true).map_err(failed)
}

pub(crate) fn remove(name: &str) -> Done<bool> {
    if !name.starts_with('/') {
        return Err(format!("File path must be absolute: {name}"));
    }
    let done = changes::remove(name, true).map_err(|why| format!("Could not remove '{name}': {why}"))?;
    Ok(done.before.is_some())
}

pub(crate) fn mkdir(name: &str, user: Option<Data>, group: Option<Data>, mode: Option<Data>) -> Done<bool> {
    makedirs_perms(name, user, group, mode)?;
    Ok(true)
}

pub(crate) fn makedirs_perms(name: &str, user: Option<Data>, group: Option<Data>, mode: Option<Data>) -> Done<()> {
    let owner = Wanted { user: value(user)?, group: value(group)? };
    directories::make(name, &owner, mode::normal(&value(mode)?).as_deref())
}

/// Makes the directories around a path. Returns Salt's sentence if there are.
pub(crate) fn makedirs(name: &str, user: Option<Data>, group: Option<Data>, mode: Option<Data>) -> Done<Value> {
    let around = path::normpath(path::dirname(name));
    match there(&around, true)?.map(|entry| entry.kind) {
        Some(Kind::Directory) => return Ok(format!("Directory '{around}' already exists").into()),
        Some(_) => return Ok(format!("The path '{around}' already exists and is not a directory").into()),
        None => {}
    }
    makedirs_perms(&around, user, group, mode)?;
    Ok(Value::None)
}

/// Salt's `file.check_perms`: a pair of the result and what was there.
pub(crate) fn check_perms(name: &str, ret: &Value, wanted: &Permissions, follow: bool, dry: bool) -> Done<Value> {
    let entry = there(name, follow)?.ok_or_else(|| format!("Path not found: {name}"))?;
    let mut of_this = Ret::new();
    if let Some(comment) = ret.get("comment").and_then(Value::text) {
        of_this.comment = comment.to_owned();
    }
    if let Some(Value::Dict(changes)) = ret.get("changes") {
        of_this.changes.clone_from(changes);
    }
    if let Some(result) = ret.get("result") {
        of_this.result = if *result == Value::None { None } else { Some(result.truthy()) };
    }
    let perms = permissions::described(wanted, &entry, dry);
    wanted.apply(name, &entry, follow, dry, &mut of_this);
    let result = of_this.value(name);
    Ok(Value::List(vec![result, perms]))
}
