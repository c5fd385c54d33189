//! Zip archives.

use std::io::Read;

use brine_guest::Result;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::host_file::HostFile;
use crate::members::{Kind, MAX_BYTES, MAX_MEMBERS, Member};

/// Upper bound on the bytes of a link's target.
const MAX_TARGET: u64 = 4096;
const TYPE: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// A zip archive.
pub(crate) struct Zip {
    archive: ZipArchive<HostFile>,
}

impl Zip {
    /// # Errors
    /// None of them: it is no zip archive.
    pub(crate) fn open(file: HostFile) -> core::result::Result<Self, Option<String>> {
        match ZipArchive::new(file) {
            Ok(archive) if archive.len() > MAX_MEMBERS => Err(Some(format!("it has more than {MAX_MEMBERS} members"))),
            Ok(archive) => Ok(Self { archive }),
            Err(ZipError::InvalidArchive(_)) => Err(None),
            Err(error) => Err(Some(error.to_string())),
        }
    }

    /// Whether a member needs a password.
    pub(crate) fn is_encrypted(&mut self) -> Result<bool> {
        for place in 0..self.archive.len() {
            if self.archive.by_index_raw(place).map_err(|error| error.to_string())?.encrypted() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The members, without the targets of links.
    pub(crate) fn members(&mut self) -> Result<Vec<Member>> {
        let mut members = Vec::new();
        let mut bytes = 0_u64;
        for place in 0..self.archive.len() {
            let entry = self.archive.by_index_raw(place).map_err(|error| error.to_string())?;
            bytes = bytes.saturating_add(entry.size());
            if bytes > MAX_BYTES {
                return Err(format!("it has more than {MAX_BYTES} bytes"));
            }
            let stored_name = entry.name().to_owned();
            let mode = entry.unix_mode().filter(|mode| mode & 0o7777 != 0);
            let kind = match mode {
                Some(mode) if mode & TYPE == LINK => Kind::Link(String::new()),
                _ if entry.is_dir() => Kind::Directory,
                _ => Kind::File,
            };
            // As Python's zipfile, which lets no name lead out.
            let name: Vec<&str> = stored_name.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
            let name = name.join("/");
            let mode = mode.map(|mode| mode & 0o7777);
            members.push(Member { name, stored_name, kind, mode, owner: None, mtime: None });
        }
        Ok(members)
    }

    /// Passes the content of a member to `each`.
    ///
    /// # Errors
    /// When the password is wrong or missing, the content is damaged, or `each` fails.
    pub(crate) fn read(
        &mut self,
        place: usize,
        password: Option<&str>,
        each: impl FnOnce(&mut dyn Read) -> Result<()>,
    ) -> Result<()> {
        let entry = match password {
            Some(password) => self.archive.by_index_decrypt(place, password.as_bytes()),
            None => self.archive.by_index(place),
        };
        each(&mut entry.map_err(|error| error.to_string())?)
    }

    /// Where a link leads.
    pub(crate) fn target(&mut self, place: usize, password: Option<&str>) -> Result<String> {
        let mut target = String::new();
        self.read(place, password, |content| {
            content.take(MAX_TARGET).read_to_string(&mut target).map(drop).map_err(|error| error.to_string())
        })?;
        Ok(target)
    }
}
