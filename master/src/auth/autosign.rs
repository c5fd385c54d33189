//! Rules that accept or reject a key without an operator (§3.7).

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use brine_protocol::ids::MinionId;
use brine_protocol::target::fnmatch;
use brine_protocol::value::{Value, ValueExt};
use regex::{Regex, RegexBuilder};

use super::GateOpts;

/// Largest size in bytes of a list of ids: 16,384 ids of 64 bytes.
const LIST_BYTES_MAX: u64 = 1 << 20;
/// Bound on the size of a compiled pattern in bytes.
const REGEX_BYTES_MAX: usize = 1 << 16;
/// Bound on the files of `autosign_grains_dir` that are read.
const GRAINS_MAX: usize = 256;

/// The rule that accepted a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signed {
    No,
    AutoAccept,
    File,
    Stub,
    Grains,
}

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "nothing",
            Self::AutoAccept => "auto_accept",
            Self::File => "autosign_file",
            Self::Stub => "a file in minions_autosign",
            Self::Grains => "autosign_grains_dir",
        })
    }
}

#[derive(Debug)]
pub(super) struct Autosign {
    auto_accept: bool,
    sign: Option<IdList>,
    reject: Option<IdList>,
    stubs: PathBuf,
    stub_age_max: Duration,
    grains: Option<PathBuf>,
    permissive: bool,
}

impl Autosign {
    pub(super) fn new(opts: &GateOpts, pki: &Path) -> Self {
        let list = |path: &Option<PathBuf>| path.clone().map(|path| IdList::new(path, opts.permissive_pki_access));
        Self {
            auto_accept: opts.auto_accept,
            sign: list(&opts.autosign_file),
            reject: list(&opts.autoreject_file),
            stubs: pki.join("minions_autosign"),
            stub_age_max: opts.autosign_timeout,
            grains: opts.autosign_grains_dir.clone(),
            permissive: opts.permissive_pki_access,
        }
    }

    pub(super) fn rejects(&self, id: &MinionId) -> bool {
        self.reject.as_ref().is_some_and(|list| list.names(id))
    }

    /// Returns the rule that accepts the key of `id`. Called last, because accepting by a stub removes the stub.
    pub(super) fn signs(&self, id: &MinionId, grains: Option<&Value>) -> Signed {
        if self.auto_accept {
            Signed::AutoAccept
        } else if self.sign.as_ref().is_some_and(|list| list.names(id)) {
            Signed::File
        } else if self.takes_stub(id) {
            Signed::Stub
        } else if grains.is_some_and(|grains| self.knows_grains(grains)) {
            Signed::Grains
        } else {
            Signed::No
        }
    }

    fn takes_stub(&self, id: &MinionId) -> bool {
        let stub = self.stubs.join(id.as_str());
        let Ok(metadata) = std::fs::symlink_metadata(&stub) else { return false };
        let age = metadata.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default();
        // Removed before it counts, so that one stub accepts one key.
        metadata.is_file() && std::fs::remove_file(&stub).is_ok() && age < self.stub_age_max
    }

    /// Compares grains with the files in `autosign_grains_dir`. The names of the files select the grains, so that no
    /// name from outside becomes a path.
    fn knows_grains(&self, grains: &Value) -> bool {
        let Some(entries) = self.grains.as_ref().and_then(|dir| std::fs::read_dir(dir).ok()) else { return false };
        entries.flatten().take(GRAINS_MAX).any(|entry| {
            let name = entry.file_name();
            let Some(value) = name.to_str().and_then(|name| grains.get(name)) else { return false };
            let Some((text, _)) = read_trusted(&entry.path(), self.permissive) else { return false };
            let value = value.python_str();
            text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#') && line == value)
        })
    }
}

/// A list of ids: each line is a glob or a regular expression of the whole id.
#[derive(Debug)]
struct IdList {
    path: PathBuf,
    permissive: bool,
    read: Mutex<Option<(Stamp, Arc<Vec<Pattern>>)>>,
}

type Stamp = (SystemTime, u64);

#[derive(Debug)]
struct Pattern {
    glob: String,
    regex: Option<Regex>,
}

impl IdList {
    const fn new(path: PathBuf, permissive: bool) -> Self {
        Self { path, permissive, read: Mutex::new(None) }
    }

    fn names(&self, id: &MinionId) -> bool {
        let id = id.as_str();
        self.patterns().is_some_and(|patterns| {
            patterns.iter().any(|p| fnmatch(&p.glob, id) || p.regex.as_ref().is_some_and(|regex| regex.is_match(id)))
        })
    }

    fn patterns(&self) -> Option<Arc<Vec<Pattern>>> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        let stamp = (metadata.modified().ok()?, metadata.len());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, patterns)) = &*read
            && *known == stamp
            && is_trusted(&self.path, &metadata, self.permissive)
        {
            return Some(Arc::clone(patterns));
        }
        let (text, stamp) = read_trusted(&self.path, self.permissive)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let patterns = Arc::new(lines.map(Pattern::new).collect::<Vec<_>>());
        *read = Some((stamp, Arc::clone(&patterns)));
        Some(patterns)
    }
}

impl Pattern {
    fn new(line: &str) -> Self {
        let whole = format!(r"\A(?:{line})\z");
        Self { glob: line.to_owned(), regex: RegexBuilder::new(&whole).size_limit(REGEX_BYTES_MAX).build().ok() }
    }
}

fn read_trusted(path: &Path, permissive: bool) -> Option<(String, Stamp)> {
    let read = || {
        let file = brine_files::open_named(path)?;
        let metadata = file.metadata()?;
        if !is_trusted(path, &metadata, permissive) {
            return Ok(None);
        }
        let text = String::from_utf8(brine_files::read(&file, LIST_BYTES_MAX)?).map_err(std::io::Error::other)?;
        Ok(Some((text, (metadata.modified()?, metadata.len()))))
    };
    let read: std::io::Result<_> = read();
    read.inspect_err(|e| tracing::warn!("cannot read {}: {e}", path.display())).ok()?
}

/// Checks that others cannot write the file, because its writer can let any minion in.
fn is_trusted(path: &Path, metadata: &std::fs::Metadata, permissive: bool) -> bool {
    let mode = metadata.permissions().mode();
    let trusted = mode & 0o002 == 0 && (permissive || mode & 0o020 == 0);
    if !trusted {
        tracing::warn!("{} is ignored: others may write it (mode {:o})", path.display(), mode & 0o777);
    }
    trusted
}
