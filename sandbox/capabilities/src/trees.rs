//! Directories that the minion changes for a module.

use std::fmt;

/// What a grant opens of a directory with everything below it, or of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tree {
    /// Absolute, without `.` and `..`.
    pub path: String,
    /// What may be done there.
    pub access: Access,
}

/// What may be done below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// `ro`: look.
    Look,
    /// `rw`: change, but make no file that runs as its owner or group.
    Change,
    /// `rw+setid`: change, set-user-id and set-group-id included.
    ChangeSetId,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Look => "ro",
            Self::Change => "rw",
            Self::ChangeSetId => "rw+setid",
        })
    }
}

impl Access {
    /// Parses the form of the configuration.
    pub fn read(text: &str) -> Option<Self> {
        [Self::Look, Self::Change, Self::ChangeSetId].into_iter().find(|access| access.to_string() == text)
    }
}

/// Returns the granted tree that decides on a path: the innermost one around it.
pub fn innermost<'a>(trees: &'a [Tree], path: &str) -> Option<&'a Tree> {
    let around = |tree: &&Tree| {
        let rest = path.strip_prefix(tree.path.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    trees.iter().filter(around).max_by_key(|tree| tree.path.len())
}
