//! `filesystem`: see directories of this host. The executor reaches them itself; the minion is asked for names of users, and for the
//! line that would grant a directory.

use crate::grants::Directory;
use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("cp", Standard::Least), ("file", Standard::Least)],
    reported_for_all: true,
    ..Declaration::new(
        "filesystem",
        "see directories of this host",
        &["brine:host/metadata", "wasi:filesystem/preopens", "wasi:filesystem/types"],
        Kind::Directories,
    )
};

/// `brine:host/metadata`: names of users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsersOp {
    /// Answered by the user's name, nil where it has none.
    UserName {
        /// The number.
        uid: u32,
    },
    /// Answered by the group's name, nil where it has none.
    GroupName {
        /// The number.
        gid: u32,
    },
}

impl Operation for UsersOp {
    const INTERFACE: &'static str = "brine:host/metadata";

    fn size(&self) -> Size {
        Size::default()
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        Ok(self)
    }
}

/// `brine:host/metadata`, where the executor reads a file that is not granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DirectoriesOp {
    /// Answered by text, the end of a refusal: with which line the owner would grant this directory. Empty where it cannot be told.
    Line {
        /// Absolute.
        path: String,
    },
}

impl Operation for DirectoriesOp {
    const INTERFACE: &'static str = "brine:host/metadata";

    fn size(&self) -> Size {
        let Self::Line { path } = self;
        Size::names(path.len())
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        let Self::Line { path } = &self;
        forms::text("the path", path, forms::MAX_PATH, Form::Bytes)?;
        Ok(self)
    }
}

/// The grant that has this directory too, for who reads files for the module. None where no line of the configuration can name it.
pub fn grant_with_directory(granted: &Grants, path: &str, writable: bool) -> Option<Grant> {
    let mut parts = path.strip_prefix('/').unwrap_or("..").split('/');
    if path != "/" && parts.any(|part| matches!(part, "" | "." | "..")) {
        return None;
    }
    let mut directories = granted.direct.directories.clone();
    directories.retain(|directory| directory.path != path);
    directories.push(Directory { path: path.to_owned(), writable });
    directories.sort();
    Some(Grant::Directories(directories))
}
