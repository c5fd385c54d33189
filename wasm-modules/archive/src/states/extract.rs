//! Unpacks an archive.

use brine_guest::Result;
use brine_guest::changes::{self, Kind as Found, Owner};

use super::wanted::Wanted;
use crate::format::{self, Format};
use crate::host_file::HostFile;
use crate::members::{Kind, Member};
use crate::tarball;
use crate::unpack::Unpacker;
use crate::zipfile::Zip;

/// Modes of what a zip archive says none for.
const FILE: u32 = 0o644;
const DIRECTORY: u32 = 0o755;

/// Whether a member of a zip archive needs a password; what is no zip archive needs none.
pub(super) fn is_encrypted(archive: &str) -> Result<bool> {
    Zip::open(HostFile::open(archive)?).map_or(Ok(false), |mut zip| zip.is_encrypted())
}

/// Makes the folder; returns whether it was missing.
pub(super) fn folder(wanted: &Wanted) -> Result<bool> {
    let path = wanted.name.trim_end_matches('/');
    if path.is_empty() || changes::is(path, Found::Directory)? {
        return Ok(false);
    }
    let owner = Owner { user: wanted.user.clone(), group: None };
    changes::make_directory(path, true, &owner, None)?;
    Ok(true)
}

/// Unpacks an archive. Returns the names that Salt shows of it.
pub(super) fn extract(wanted: &Wanted, archive: &str, members: Vec<Member>) -> Result<Vec<String>> {
    let mut names = match wanted.format {
        Format::Zip => unzip(archive, &wanted.name, &[], wanted.password.as_deref(), wanted.extract_perms)?,
        _ => untar(wanted, archive, &members)?,
    };
    if let Some(trim) = wanted.trim {
        let is_cut = names.len() > trim;
        names.truncate(trim);
        if is_cut && wanted.format == Format::Zip {
            names.push(format!("List trimmed after {trim} files."));
        }
    }
    Ok(names)
}

fn untar(wanted: &Wanted, archive: &str, checked: &[Member]) -> Result<Vec<String>> {
    let mut unpacker = Unpacker::new(&wanted.name)?;
    let mut names = Vec::new();
    let mut place = 0;
    tarball::each(HostFile::open(archive)?, |mut member, content| {
        // The archive could have been exchanged since it was looked at.
        if checked.get(place) != Some(&member) {
            return Err("it changed while it was unpacked".into());
        }
        place += 1;
        let Some(name) = stripped(&member.name, wanted.options.strip) else { return Ok(()) };
        if let Kind::HardLink(target) = &mut member.kind {
            match stripped(target, wanted.options.strip) {
                Some(stripped) => *target = stripped,
                None => return Ok(()),
            }
        }
        if wanted.options.no_owner {
            member.owner = None;
        }
        unpacker.member(&name, &member, content)?;
        names.push(if wanted.by_tar { member.stored_name.clone() } else { member.name.clone() });
        Ok(())
    })?;
    unpacker.end()?;
    Ok(names)
}

/// A path without so many names at its front; none if it is not as deep. As for GNU tar, the dot of `./a` is a name too.
fn stripped(path: &str, strip: usize) -> Option<String> {
    if strip == 0 {
        return Some(path.to_owned());
    }
    let mut rest = path.trim_start_matches('/');
    for _ in 0..strip {
        rest = rest.split_once('/')?.1.trim_start_matches('/');
    }
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// Unpacks a zip archive into a folder, as Python's zipfile does. Returns the names.
pub(crate) fn unzip(
    archive: &str,
    folder: &str,
    excludes: &[String],
    password: Option<&str>,
    perms: bool,
) -> Result<Vec<String>> {
    let open = || {
        let zip = Zip::open(HostFile::open(archive)?);
        zip.map_err(|why| why.unwrap_or_else(|| "File is not a zip file".into()))
    };
    let mut zip = open()?;
    let members = zip.members()?;
    format::check(&members, Format::Zip)?;
    let mut unpacker = Unpacker::new(folder)?;
    let mut names = Vec::new();
    for (place, mut member) in members.into_iter().enumerate() {
        if excludes.contains(&member.stored_name) {
            continue;
        }
        names.push(member.stored_name.clone());
        let default = if member.kind == Kind::Directory { DIRECTORY } else { FILE };
        member.mode = Some(member.mode.filter(|_| perms).unwrap_or(default));
        if let Kind::Link(_) = member.kind {
            member.kind = Kind::Link(zip.target(place, password)?);
            unpacker.member(&member.name.clone(), &member, &mut std::io::empty())?;
            continue;
        }
        zip.read(place, password, |content| unpacker.member(&member.name.clone(), &member, content))?;
    }
    unpacker.end()?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_from_the_front() {
        for (path, strip, rest) in [
            ("a/b/c", 0, Some("a/b/c")),
            ("a/b/c", 1, Some("b/c")),
            ("./a/b", 1, Some("a/b")),
            ("./a/b", 2, Some("b")),
            (".", 1, None),
            ("a//b", 1, Some("b")),
            ("a/b", 2, None),
            ("a", 1, None),
            ("a/", 1, None),
        ] {
            assert_eq!(stripped(path, strip).as_deref(), rest, "{path} {strip}");
        }
    }
}
