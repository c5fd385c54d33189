//! `files`: read files of the master's file server, and push files to it.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[
        ("archive", Standard::Least),
        ("cmd", Standard::Least),
        ("cp", Standard::All),
        ("cron", Standard::Least),
        ("debconf", Standard::Least),
        // The files `defaults.yaml` of formulas go back to the master whose files they are.
        ("defaults", Standard::All),
        ("file", Standard::Least),
        ("git", Standard::Least),
        ("pip", Standard::Least),
        ("pkg", Standard::Least),
        ("saltutil", Standard::Least),
        // What it lists and renders goes back to the master whose files they are.
        ("slsutil", Standard::All),
        ("ssh", Standard::Least),
        ("ssh_auth", Standard::Least),
        ("state", Standard::All),
        ("virtualenv", Standard::Least),
    ],
    wrong_name: |name| {
        if name.starts_with('/') || name.starts_with("salt:") {
            return Some(format!("{name:?}: a path on the file server is relative, as in deploy/**"));
        }
        let odd = name.split('/').any(|part| matches!(part, "" | "." | ".."));
        odd.then(|| format!("{name:?} has parts that are empty, . or .."))
    },
    ..Declaration::new("files", "read files of the master's file server", &["brine:host/files"], Kind::Names)
};

/// Upper bound on the parts of a pushed file's path.
const MAX_PARTS: usize = 128;
/// Upper bound on the files that one call names: what one request to the master may name.
const MAX_TOGETHER: usize = 256;
/// Files of a call that names several which count as one call. A file that is asked for with others costs a sixth of one that is asked for
/// alone (docs/benchmarks.md), and not nothing: it is hashed, opened or written as ever.
const FILES_A_CALL: usize = 8;
/// Upper bound on the bytes read in one call, because the guest holds them in memory too.
const MAX_READ: u32 = 4 << 20;

/// `brine:host/files`: the master's file server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilesOp {
    /// Returns a sorted array of paths.
    List {
        /// The environment: `base`.
        saltenv: String,
        /// Lists only paths below this prefix.
        prefix: String,
        /// The kind of entries to list.
        kind: ListKind,
    },
    /// Returns a sorted array of environments.
    Envs,
    /// Returns a map of `hash_type`, `hsum` and `size`, nil if there is no such file.
    Hash {
        /// Without `salt://`.
        path: String,
        /// The environment.
        saltenv: String,
    },
    /// Returns an array of what [`FilesOp::Hash`] returns of each file.
    HashAll {
        /// Without `salt://`.
        paths: Vec<String>,
        /// The environment.
        saltenv: String,
    },
    /// Returns the permission bits of a file on the master, nil if there is no such file or the master does not say.
    Mode {
        /// Without `salt://`.
        path: String,
        /// The environment.
        saltenv: String,
    },
    /// Returns binary: at most `length` bytes, none at the end of the file, nil if there is no such file.
    Read {
        /// Without `salt://`.
        path: String,
        /// The environment.
        saltenv: String,
        /// In bytes.
        offset: u64,
        /// In bytes; the minion may return fewer.
        length: u32,
    },
    /// Fetches a file into the minion's cache. Returns its path there, nil if there is no such file.
    Cache {
        /// Without `salt://`.
        path: String,
        /// The environment.
        saltenv: String,
    },
    /// Fetches several files into the minion's cache. Returns an array: for each its path there, nil if there is no such file.
    CacheAll {
        /// Without `salt://`.
        paths: Vec<String>,
        /// The environment.
        saltenv: String,
    },
    /// Sends a part of a file of this host to the master (`cp.push`). Returns whether the master accepted it.
    Push {
        /// The parts of its name on the master.
        path: Vec<String>,
        /// Position of `data` in the file.
        offset: u64,
        /// A part of the file.
        data: ByteBuf,
        /// The file's size.
        size: u64,
    },
}

/// The kinds of entries in [`FilesOp::List`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListKind {
    /// Files.
    Files,
    /// Directories.
    Dirs,
    /// Directories without anything in them.
    EmptyDirs,
    /// Symbolic links.
    Symlinks,
}

impl Operation for FilesOp {
    const INTERFACE: &'static str = "brine:host/files";

    fn size(&self) -> Size {
        match self {
            Self::Envs => Size::default(),
            Self::List { saltenv, prefix: path, .. }
            | Self::Hash { path, saltenv }
            | Self::Mode { path, saltenv }
            | Self::Read { path, saltenv, .. }
            | Self::Cache { path, saltenv } => Size::names(path.len() + saltenv.len()),
            Self::HashAll { paths, saltenv } | Self::CacheAll { paths, saltenv } => {
                Size::names(Size::list(paths) + saltenv.len())
            }
            Self::Push { path, data, .. } => Size { names: Size::list(path), content: data.len(), ..Size::default() },
        }
    }

    fn calls(&self) -> u32 {
        match self {
            Self::HashAll { paths, .. } | Self::CacheAll { paths, .. } => {
                u32::try_from(paths.len().div_ceil(FILES_A_CALL)).unwrap_or(u32::MAX).max(1)
            }
            _ => 1,
        }
    }

    fn check(mut self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        match &mut self {
            Self::Envs => {}
            Self::List { saltenv, prefix, .. } => {
                forms::environment(saltenv)?;
                // The answer is filtered by the grants.
                prefix.truncate(prefix.trim_end_matches('/').len());
                if !prefix.is_empty() {
                    forms::relative(prefix)?;
                }
            }
            Self::Hash { path, saltenv } | Self::Mode { path, saltenv } | Self::Cache { path, saltenv } => {
                read(granted, path, saltenv)?;
            }
            Self::HashAll { paths, saltenv } | Self::CacheAll { paths, saltenv } => {
                if paths.len() > MAX_TOGETHER {
                    return Err(malformed("the list of paths", &format!("has more than {MAX_TOGETHER}")));
                }
                forms::environment(saltenv)?;
                for path in paths {
                    read(granted, path, saltenv)?;
                }
            }
            Self::Read { path, saltenv, length, .. } => {
                read(granted, path, saltenv)?;
                *length = (*length).min(MAX_READ);
            }
            Self::Push { path, offset, data, size } => {
                let end = offset.checked_add(data.len() as u64).filter(|end| *end <= *size);
                push(granted, path, data.len(), end.is_some())?;
            }
        }
        Ok(self)
    }

    /// What `cache` fetches lies in the minion's own folder, from which this host reads nothing by itself.
    fn planned(self, _: &Grants) -> Planned<Self> {
        match self {
            Self::Push { path, .. } => {
                Planned::Done(format!("send the master a file as {}", path.join("/")), Answer::True)
            }
            look => Planned::Look(look),
        }
    }

    fn shown(&self) -> Shown {
        match self {
            Self::List { kind: ListKind::Files | ListKind::Symlinks, .. } => Shown::Files,
            Self::List { kind: ListKind::Dirs | ListKind::EmptyDirs, .. } => Shown::Folders,
            _ => Shown::All,
        }
    }
}

pub(crate) fn read(granted: &Grants, path: &str, saltenv: &str) -> Result<(), Refusal> {
    forms::environment(saltenv)?;
    forms::relative(path)?;
    granted.permit_name(Capability::Files, path, format_args!("read salt://{path}"))
}

fn push(granted: &Grants, path: &[String], bytes: usize, within: bool) -> Result<(), Refusal> {
    if path.is_empty() || path.len() > MAX_PARTS {
        return Err(malformed("the path", &format!("has none or more than {MAX_PARTS} parts")));
    }
    if path.iter().any(|part| part.contains('/')) {
        return Err(malformed("a part of the path", "has a slash"));
    }
    let whole = path.join("/");
    forms::relative(&whole)?;
    forms::size("the data", bytes, forms::MAX_BULK)?;
    if !within {
        return Err(malformed("the data", "goes beyond the size of the file"));
    }
    granted.permit_name(Capability::Files, &whole, format_args!("send the master a file as {whole}"))
}
