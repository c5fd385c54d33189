//! `brine:host/metadata`: file metadata that `wasi:filesystem` lacks, read here below the granted directories. Names of
//! users, and the line of configuration that would grant a directory, come from the broker.

use brine_sandbox_wire::{DirectoriesOp, HostOp, UsersOp};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::bindings::brine::host::metadata as wit;
use crate::directories::{Directories, directory_of, not_granted};
use crate::guest::Guest;
use crate::open::look_below;

/// Upper bound on the bytes of a path, as in Linux.
const MAX_PATH: usize = 4_096;

impl wit::Host for Guest {
    async fn stat(&mut self, path: String, follow: bool) -> wasmtime::Result<Result<wit::FileStat, wit::Error>> {
        if path.len() > MAX_PATH {
            return Ok(Err(wit::Error::Other("the path is too long".into())));
        }
        let directories = self.files.directories.clone();
        let wanted = path.clone();
        let stat = tokio::task::spawn_blocking(move || stat(&directories, &wanted, follow)).await?;
        Ok(match stat {
            Ok(stat) => Ok(stat),
            Err(Missing::Said(error)) => Err(error),
            Err(Missing::NotGranted) => {
                if let Some(why) = self.files.directories.why_not(&path) {
                    return Ok(Err(wit::Error::NotGranted(why)));
                }
                let line = DirectoriesOp::Line { path: directory_of(&path).to_owned(), wanted: path.clone() };
                let how = self.ask_for::<String>("metadata.stat", HostOp::Directories(line)).await?;
                let refusal = not_granted(&self.module, &path);
                Err(wit::Error::NotGranted(refusal + &how.unwrap_or_default()))
            }
        })
    }

    async fn user_name(&mut self, uid: u32) -> wasmtime::Result<Option<String>> {
        let what = "metadata.user-name";
        let value = self.ask_or_end(what, HostOp::Users(UsersOp::UserName { uid })).await?;
        Ok(super::parsed(what, &value)?)
    }

    async fn group_name(&mut self, gid: u32) -> wasmtime::Result<Option<String>> {
        let what = "metadata.group-name";
        let value = self.ask_or_end(what, HostOp::Users(UsersOp::GroupName { gid })).await?;
        Ok(super::parsed(what, &value)?)
    }

    async fn find_user(&mut self, user: String) -> wasmtime::Result<Option<wit::Account>> {
        let what = "metadata.find-user";
        let value = self.ask_or_end(what, HostOp::Users(UsersOp::Account { user })).await?;
        let found: Option<(u32, u32)> = super::parsed(what, &value)?;
        Ok(found.map(|(uid, gid)| wit::Account { uid, gid }))
    }

    async fn find_group(&mut self, group: String) -> wasmtime::Result<Option<u32>> {
        let what = "metadata.find-group";
        let value = self.ask_or_end(what, HostOp::Users(UsersOp::GroupId { group })).await?;
        Ok(super::parsed(what, &value)?)
    }
}

/// Why the metadata of a file is not returned.
enum Missing {
    Said(wit::Error),
    NotGranted,
}

impl From<wit::Error> for Missing {
    fn from(error: wit::Error) -> Self {
        Self::Said(error)
    }
}

fn stat(directories: &Directories, path: &str, follow: bool) -> Result<wit::FileStat, Missing> {
    let mut missing = false;
    for (opened, rest) in directories.around(path) {
        let looked = match (&opened.dir, &opened.file) {
            (Some(dir), _) => look_below(&dir.dir, opened.path == "/", &rest, follow),
            (None, Some(file)) if rest == "." => look_below(&file.parent, false, &file.name, false),
            (None, Some(_)) => return Err(wit::Error::NotFound.into()),
            (None, None) => {
                missing |= !opened.is_refused();
                continue;
            }
        };
        return match looked.and_then(|fd| read(&fd)) {
            Ok(stat) => Ok(stat),
            // A link that leads out of one granted directory may lead into another.
            Err(Errno::XDEV) => continue,
            Err(Errno::NOENT | Errno::NOTDIR) => Err(wit::Error::NotFound.into()),
            Err(Errno::ACCESS | Errno::PERM) => Err(wit::Error::Denied.into()),
            Err(Errno::LOOP) => Err(wit::Error::Other("there are too many symbolic links".into()).into()),
            Err(error) => Err(wit::Error::Other(error.to_string()).into()),
        };
    }
    Err(if missing { wit::Error::NotFound.into() } else { Missing::NotGranted })
}

fn read(fd: impl rustix::fd::AsFd) -> Result<wit::FileStat, Errno> {
    let stat = rustix::fs::fstat(&fd)?;
    let (kind, target) = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => (wit::Kind::Regular, None),
        FileType::Directory => (wit::Kind::Directory, None),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(&fd, "", Vec::new())?;
            (wit::Kind::Symlink, Some(String::from_utf8_lossy(target.as_bytes()).into_owned()))
        }
        FileType::BlockDevice => (wit::Kind::Block, None),
        FileType::CharacterDevice => (wit::Kind::Character, None),
        FileType::Fifo => (wit::Kind::Fifo, None),
        FileType::Socket => (wit::Kind::Socket, None),
        FileType::Unknown => (wit::Kind::Unknown, None),
    };
    Ok(wit::FileStat {
        kind,
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        inode: stat.st_ino,
        device: stat.st_dev,
        nlink: unsigned(stat.st_nlink),
        size: unsigned(stat.st_size),
        atime: seconds(stat.st_atime, unsigned(stat.st_atime_nsec)),
        mtime: seconds(stat.st_mtime, unsigned(stat.st_mtime_nsec)),
        ctime: seconds(stat.st_ctime, unsigned(stat.st_ctime_nsec)),
        target,
    })
}

/// Converts a field of `stat`, whose integer type depends on the architecture.
fn unsigned<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "what Python's os.stat does")]
fn seconds(seconds: i64, nanoseconds: u64) -> f64 {
    seconds as f64 + nanoseconds as f64 / 1e9
}
