//! The metadata of a file.

use brine_guest::host::metadata;
use brine_guest::{Value, path};

use crate::look::fs::{FileStat, Kind};
use crate::look::{fs, hash};

/// The metadata of a path, or of a dangling link itself.
pub(crate) fn of(path: &str, follow: bool) -> Result<FileStat, String> {
    let stat = match fs::stat(path, follow) {
        Err(fs::Error::NotFound) if follow => fs::stat(path, false),
        other => other,
    };
    stat.map_err(|error| match error {
        fs::Error::NotFound => format!("Path not found: {path}"),
        error => error.at(path),
    })
}

/// `file.stats`
pub(crate) fn all(path: &str, hash_type: Option<&str>, follow: bool) -> Result<Value, String> {
    let stat = of(path, follow)?;
    let target = if follow { fs::realpath(path).map_err(|error| error.at(path))? } else { path::normpath(path) };
    let mut entries = vec![
        ("inode", stat.inode.into()),
        ("uid", Value::Int(stat.uid.into())),
        ("gid", Value::Int(stat.gid.into())),
        ("group", group(stat.gid)),
        ("user", user(stat.uid)),
        ("atime", stat.atime.into()),
        ("mtime", stat.mtime.into()),
        ("ctime", stat.ctime.into()),
        ("size", stat.size.into()),
        ("mode", mode(&stat).into()),
    ];
    if let Some(form) = hash_type.filter(|form| !form.is_empty()) {
        entries.push(("sum", hash::of(path, form)?.into()));
    }
    entries.push(("type", kind(stat.kind).into()));
    entries.push(("target", target.into()));
    Ok(Value::dict(entries))
}

/// `file.lstat`
pub(crate) fn lstat(stat: &FileStat) -> Value {
    let number = |number: u32| Value::Int(number.into());
    Value::dict([
        ("st_atime", stat.atime.into()),
        ("st_ctime", stat.ctime.into()),
        ("st_gid", number(stat.gid)),
        ("st_mode", number(stat.mode | bits(stat.kind))),
        ("st_mtime", stat.mtime.into()),
        ("st_nlink", stat.nlink.into()),
        ("st_size", stat.size.into()),
        ("st_uid", number(stat.uid)),
    ])
}

/// The mode as `0644`.
pub(crate) fn mode(stat: &FileStat) -> String {
    format!("{:04o}", stat.mode & 0o7777)
}

/// The user's name, or the uid.
pub(crate) fn user(uid: u32) -> Value {
    metadata::user_name(uid).map_or(Value::Int(uid.into()), Value::from)
}

/// The group's name, or the gid.
pub(crate) fn group(gid: u32) -> Value {
    metadata::group_name(gid).map_or(Value::Int(gid.into()), Value::from)
}

/// Salt's name of the kind.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Directory => "dir",
        Kind::Character => "char",
        Kind::Block => "block",
        Kind::Symlink => "link",
        Kind::Fifo => "pipe",
        Kind::Socket => "socket",
        Kind::Regular | Kind::Unknown => "file",
    }
}

/// `S_IFMT` of `st_mode`.
fn bits(kind: Kind) -> u32 {
    match kind {
        Kind::Fifo => 0o010_000,
        Kind::Character => 0o020_000,
        Kind::Directory => 0o040_000,
        Kind::Block => 0o060_000,
        Kind::Regular => 0o100_000,
        Kind::Symlink => 0o120_000,
        Kind::Socket => 0o140_000,
        Kind::Unknown => 0,
    }
}
