//! `changes`: change files of this host. The minion does what an executor must not: it is nobody, or root without the
//! right to give files away.
//!
//! - `check.rs` the check of paths, owners, modes and content; `words.rs` what plan mode records
//! - `watches.rs` what happens to files

mod check;
mod watches;
mod words;

use crate::prelude::*;

pub use watches::{Watch, WatchesOp};

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[
        ("alias", Standard::Least),
        ("aliases", Standard::Least),
        ("alternatives", Standard::Least),
        ("archive", Standard::Least),
        ("cert_info", Standard::Least),
        ("cmd", Standard::Least),
        ("debconf", Standard::Least),
        ("dnsutil", Standard::Least),
        ("file", Standard::Least),
        ("git", Standard::Least),
        ("group", Standard::Least),
        ("hashutil", Standard::Least),
        ("host", Standard::Least),
        ("hosts", Standard::Least),
        ("ini", Standard::Least),
        ("inotify", Standard::Least),
        ("iptables", Standard::Least),
        ("kmod", Standard::Least),
        ("locale", Standard::Least),
        ("log", Standard::Least),
        ("logrotate", Standard::Least),
        ("mount", Standard::Least),
        ("network", Standard::Least),
        ("pip", Standard::Least),
        ("pkg", Standard::Least),
        ("pkgrepo", Standard::Least),
        ("postgres", Standard::Least),
        ("postgres_cluster", Standard::Least),
        ("postgres_database", Standard::Least),
        ("postgres_extension", Standard::Least),
        ("postgres_group", Standard::Least),
        ("postgres_initdb", Standard::Least),
        ("postgres_language", Standard::Least),
        ("postgres_privileges", Standard::Least),
        ("postgres_schema", Standard::Least),
        ("postgres_tablespace", Standard::Least),
        ("postgres_user", Standard::Least),
        // Who is logged in, in `/run/utmp`.
        ("ps", Standard::Least),
        ("service", Standard::Least),
        ("shadow", Standard::Least),
        ("slsutil", Standard::Least),
        ("ssh", Standard::Least),
        ("ssh_auth", Standard::Least),
        ("ssh_known_hosts", Standard::Least),
        ("sysctl", Standard::Least),
        ("temp", Standard::Least),
        ("timezone", Standard::Least),
        ("user", Standard::Least),
        ("virtualenv", Standard::Least),
    ],
    reported_for_all: true,
    ..Declaration::new(
        "changes",
        "change files of this host",
        &["brine:host/changes", "brine:host/watches"],
        Kind::Changes,
    )
};

/// `brine:host/changes`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangesOp {
    /// Returns a map about what is at a path, nil if there is nothing.
    Look {
        /// The path.
        path: String,
        /// Whether a symbolic link's target is meant.
        follow: bool,
        /// Whether to add a file's `sha256`.
        hash: bool,
    },
    /// Returns a sorted array of maps of `name` and `kind`: a part of a directory.
    List {
        /// The directory.
        path: String,
        /// The last name of the part before.
        after: Option<String>,
    },
    /// Returns binary: a part of a file, nil if there is no file.
    Read {
        /// The file.
        path: String,
        /// In bytes.
        offset: u64,
        /// In bytes; the minion may return fewer.
        length: u32,
    },
    /// Takes a part of a file's content. Returns the number of the stage, for further parts and for [`Content`].
    Stage {
        /// None for the first part.
        stage: Option<u64>,
        /// The part.
        data: ByteBuf,
    },
    /// Returns an array of maps about the backups of a file: `name`, `location`, `size`, `mtime`.
    Backups {
        /// The file.
        path: String,
    },
    /// Makes one change. Returns a map of what was there before and is there after, and what it cost.
    Do(Box<Change>),
    /// Returns what `Do` would return, and changes nothing. No module can ask for it: it is what plan mode makes of `Do`.
    Plan(Box<Change>),
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Makes or replaces a regular file, in one step that is seen whole or not at all.
    Put {
        /// The file.
        path: String,
        /// What is to be in it.
        content: Content,
        /// None: as before; of a new file, the minion's.
        owner: Owner,
        /// None: as before; of a new file 0644.
        mode: Option<u32>,
        /// Whether to keep what was there (Salt's `backup: minion`).
        backup: bool,
        /// Whether a symbolic link's target is meant; else a link is replaced.
        follow: bool,
        /// The SHA-256 that the file must have now, in hex; empty: there must be no file. None: whatever is there.
        expect: Option<String>,
    },
    /// Makes a directory. One that is there stays as it is.
    MakeDirectory {
        /// The directory.
        path: String,
        /// Whether to make the missing directories around it too.
        parents: bool,
        /// Of all that are made.
        owner: Owner,
        /// Of all that are made; None: 0755.
        mode: Option<u32>,
    },
    /// Makes a symbolic link with any target.
    Symlink {
        /// The link.
        path: String,
        /// What it says.
        target: String,
        /// Of the link itself.
        owner: Owner,
        /// Whether it may take the place of a file or a link.
        replace: bool,
    },
    /// Gives a file another name.
    HardLink {
        /// The new name.
        path: String,
        /// The file.
        target: String,
    },
    /// Moves a file or directory within its file system. A file that is there is replaced.
    Rename {
        /// The file.
        path: String,
        /// Its new path.
        to: String,
    },
    /// Removes a file or an empty directory.
    Remove {
        /// The file.
        path: String,
        /// Whether a directory is removed with its content.
        recursive: bool,
    },
    /// Sets owner and mode of a file or directory.
    SetPermissions {
        /// The file.
        path: String,
        /// Who is to own it.
        owner: Owner,
        /// Its mode.
        mode: Option<u32>,
        /// Whether a symbolic link's target is meant.
        follow: bool,
    },
    /// Sets the times of a file, and makes an empty one where there is none.
    Touch {
        /// The file.
        path: String,
        /// Seconds since 1970; None: now.
        atime: Option<i64>,
        /// Seconds since 1970; None: now.
        mtime: Option<i64>,
    },
    /// Removes a backup of a file.
    RemoveBackup {
        /// The file.
        path: String,
        /// The backup's name.
        name: String,
    },
}

/// The owner of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// A name or a number.
    pub user: Option<String>,
    /// A name or a number.
    pub group: Option<String>,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// These bytes.
    Bytes(ByteBuf),
    /// What was staged.
    Staged(u64),
    /// A file of the master's file server.
    Master {
        /// Without `salt://`.
        path: String,
        /// The environment.
        saltenv: String,
        /// The SHA-256 that it must have, in hex.
        sha256: Option<String>,
    },
    /// Another file of this host.
    File(String),
    /// A backup of this file, by its name.
    Backup(String),
}

impl Change {
    /// Returns the path that changes.
    pub fn path(&self) -> &str {
        match self {
            Self::Put { path, .. }
            | Self::MakeDirectory { path, .. }
            | Self::Symlink { path, .. }
            | Self::HardLink { path, .. }
            | Self::Rename { path, .. }
            | Self::Remove { path, .. }
            | Self::SetPermissions { path, .. }
            | Self::Touch { path, .. }
            | Self::RemoveBackup { path, .. } => path,
        }
    }

    fn size(&self) -> Size {
        let owned = |owner: &Owner| Size::optional(owner.user.as_ref()) + Size::optional(owner.group.as_ref());
        let (more, content) = match self {
            Self::Put { content, owner, expect, .. } => {
                let (names, bytes) = match content {
                    Content::Bytes(bytes) => (0, bytes.len()),
                    Content::Staged(_) => (0, 0),
                    Content::Master { path, saltenv, sha256 } => {
                        (path.len() + saltenv.len() + Size::optional(sha256.as_ref()), 0)
                    }
                    Content::File(path) | Content::Backup(path) => (path.len(), 0),
                };
                (names + owned(owner) + Size::optional(expect.as_ref()), bytes)
            }
            Self::MakeDirectory { owner, .. } | Self::SetPermissions { owner, .. } => (owned(owner), 0),
            Self::Symlink { target, owner, .. } => (target.len() + owned(owner), 0),
            Self::HardLink { target, .. } => (target.len(), 0),
            Self::Rename { to, .. } => (to.len(), 0),
            Self::RemoveBackup { name, .. } => (name.len(), 0),
            Self::Remove { .. } | Self::Touch { .. } => (0, 0),
        };
        Size { names: self.path().len() + more, content, ..Size::default() }
    }
}

impl Operation for ChangesOp {
    const INTERFACE: &'static str = "brine:host/changes";

    fn size(&self) -> Size {
        match self {
            Self::Look { path, .. } | Self::Read { path, .. } | Self::Backups { path } => Size::names(path.len()),
            Self::List { path, after } => Size::names(path.len() + Size::optional(after.as_ref())),
            Self::Stage { data, .. } => Size { content: data.len(), ..Size::default() },
            Self::Do(change) | Self::Plan(change) => change.size(),
        }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        check::check(granted, &self).map(|()| self)
    }

    /// What is staged is in no file that has a name.
    fn planned(self, _: &Grants) -> Planned<Self> {
        match self {
            Self::Do(change) => Planned::Instead(words::of(&change), Self::Plan(change)),
            look => Planned::Look(look),
        }
    }
}
