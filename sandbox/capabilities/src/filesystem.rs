//! `filesystem`: access directories of this host. The executor accesses them directly. It asks the minion for names of
//! users, and for the configuration line that would grant a directory.

use crate::grants::Directory;
use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("cp", Standard::Least), ("file", Standard::Least), ("rawfile_json", Standard::Least)],
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
    /// Returns the user's name, nil if it has none.
    UserName {
        /// The number.
        uid: u32,
    },
    /// Returns the group's name, nil if it has none.
    GroupName {
        /// The number.
        gid: u32,
    },
    /// Returns an array of a user's number and that of its own group, nil if there is no such user.
    Account {
        /// The name.
        user: String,
    },
    /// Returns the group's number, nil if there is no such group.
    GroupId {
        /// The name.
        group: String,
    },
}

/// Upper bound on the bytes of a user's or a group's name.
const MAX_USER: usize = 256;

impl Operation for UsersOp {
    const INTERFACE: &'static str = "brine:host/metadata";

    fn size(&self) -> Size {
        match self {
            Self::UserName { .. } | Self::GroupName { .. } => Size::default(),
            Self::Account { user: name } | Self::GroupId { group: name } => Size::names(name.len()),
        }
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        match &self {
            Self::UserName { .. } | Self::GroupName { .. } => {}
            Self::Account { user: name } | Self::GroupId { group: name } => {
                forms::text("the name", name, MAX_USER, Form::Bytes)?;
            }
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }
}

/// `brine:host/metadata`, for a file in a directory that is not granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DirectoriesOp {
    /// Returns the end of a refusal: the configuration line that would grant this directory. Empty if no line can name
    /// it.
    Line {
        /// Absolute.
        path: String,
        /// What was wanted: the directory or a file in it.
        wanted: String,
    },
}

impl Operation for DirectoriesOp {
    const INTERFACE: &'static str = "brine:host/metadata";

    fn size(&self) -> Size {
        let Self::Line { path, wanted } = self;
        Size::names(path.len() + wanted.len())
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        let Self::Line { path, wanted } = &self;
        for path in [path, wanted] {
            forms::text("the path", path, forms::MAX_PATH, Form::Bytes)?;
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }
}

/// Returns the grant with this directory added, for code that reads files for modules. None if no configuration line
/// can name it.
pub fn grant_with_directory(granted: &Grants, path: &str, writable: bool) -> Option<Grant> {
    let mut parts = path.strip_prefix('/').unwrap_or("..").split('/');
    if path != "/" && parts.any(|part| matches!(part, "" | "." | "..")) {
        return None;
    }
    let mut directories = granted.direct.directories.clone();
    // In plan mode they are read-only; the line is for the configuration.
    directories.iter_mut().for_each(|known| known.writable |= granted.would_write.contains(&known.path));
    directories.retain(|directory| directory.path != path);
    directories.push(Directory { path: path.to_owned(), writable });
    directories.sort();
    Some(Grant::Directories(directories))
}
