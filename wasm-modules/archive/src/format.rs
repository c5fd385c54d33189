//! Formats of archives, and what is in one.

use brine_guest::Result;

use crate::host_file::HostFile;
use crate::members::{self, Contents, Member};
use crate::tarball;
use crate::zipfile::Zip;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Tar,
    Zip,
    Rar,
}

impl Format {
    pub(crate) const NAMES: &'static str = "tar, rar, zip";

    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "tar" => Some(Self::Tar),
            "zip" => Some(Self::Zip),
            "rar" => Some(Self::Rar),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tar => "tar",
            Self::Zip => "zip",
            Self::Rar => "rar",
        }
    }

    /// By the end of a file's name.
    pub(crate) fn guess(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let tar = [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz", ".tar.lzma", ".tlz"];
        let ends = |ending: &&str| name.ends_with(*ending);
        match tar.iter().any(ends) {
            true => Some(Self::Tar),
            false if ends(&".zip") => Some(Self::Zip),
            false if ends(&".rar") => Some(Self::Rar),
            false => None,
        }
    }
}

/// The members of an archive.
///
/// # Errors
/// In Salt's words, when it is no such archive; `shown` is what it is called.
pub(crate) fn members(shown: &str, path: &str, format: Format) -> Result<Vec<Member>> {
    let file = HostFile::open(path).map_err(|why| format!("Failed to list contents of {shown}: {why}"))?;
    let mut members = Vec::new();
    match format {
        Format::Tar => {
            let listed = tarball::each(file, |member, _| {
                members.push(member);
                Ok(())
            });
            listed.map_err(|why| {
                format!(
                    "Unable to list contents of {shown}: {why}. It is no tar archive as it is or compressed by gzip, bzip2, \
                     xz or lzma"
                )
            })?;
        }
        Format::Zip => {
            let zip = Zip::open(file);
            let said = |why: Option<String>| match why {
                None => format!("{shown} is not a ZIP file"),
                Some(why) => format!("Failed to list contents of {shown}: {why}"),
            };
            members = zip.map_err(said)?.members()?;
        }
        Format::Rar => return Err("rar archives are not read here".into()),
    }
    Ok(members)
}

/// What is in an archive, in Salt's terms.
pub(crate) fn contents(members: &[Member], format: Format, strip: usize) -> Contents {
    let mut contents = match format {
        Format::Zip => Contents::of_zip(members),
        _ => Contents::of_tar(members),
    };
    if strip > 0 {
        contents.strip(strip);
    }
    contents.sort();
    contents
}

/// Members that may be unpacked: [`members::check`], by the names that they are unpacked under.
pub(crate) fn check(members: &[Member], format: Format) -> Result<()> {
    if format == Format::Zip
        && let Some(member) = members.iter().find(|member| {
            member.stored_name.starts_with('/') || member.stored_name.split('/').any(|part| part == "..")
        })
    {
        return Err(format!(
            "The archive's member {:?} leads out of the folder that it is unpacked in",
            member.stored_name
        ));
    }
    members::check(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_guessed_by_names() {
        for (name, format) in [
            ("a.tar.gz", Some(Format::Tar)),
            ("A.TGZ", Some(Format::Tar)),
            ("a.tar.xz", Some(Format::Tar)),
            ("a.zip", Some(Format::Zip)),
            ("a.rar", Some(Format::Rar)),
            ("a.gz", None),
            ("tgz", None),
        ] {
            assert_eq!(Format::guess(name), format, "{name}");
        }
    }
}
