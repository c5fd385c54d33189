//! The folder of installed modules, which several processes share: a running minion, and a `salt-call` that approves.
//!
//! A writer holds the lock exclusively from reading the decisions to writing the new ones. It writes `decisions.json`
//! last: for watchers this means that all files are in place.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_files::Stamp;
use brine_sandbox_wire::Sha256Hex;
use bytes::Bytes;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::decisions::{Decided, Decisions};
use super::files::{LOCAL, component_files, remove_file};
use crate::ModuleName;
use crate::kernel::cache;
use crate::signature::MAX_SIGNATURE;

const LOCK: &str = ".lock";
/// Time to wait for the lock. Writers finish within milliseconds, and one that was stopped must not block this minion
/// for good.
const PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(5);
/// Upper bound on the bytes of `NAME.json`.
const MAX_PROVENANCE: u64 = 64 << 10;
const SUFFIXES: [&str; 3] = ["wasm", "wasm.minisig", "json"];

/// The versions of a module that the folder keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shelf {
    /// The version that jobs call.
    Current,
    /// The last good version before it.
    Previous,
    /// The newest update that needs the owner's decision.
    Held,
}

impl Shelf {
    fn of(self, dir: &Path) -> PathBuf {
        match self {
            Self::Current => dir.to_owned(),
            Self::Previous => dir.join("previous"),
            Self::Held => dir.join("held"),
        }
    }
}

/// The file beside a component: its origin and description, for readers that do not need the component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Provenance {
    /// The environment of the master's file server.
    pub(crate) origin: String,
    #[serde(default)]
    pub(crate) version: Option<String>,
    #[serde(default)]
    pub(crate) sha256: Option<String>,
}

impl Provenance {
    pub(crate) fn sha256(&self) -> Option<Sha256Hex> {
        self.sha256.as_deref()?.parse().ok()
    }
}

/// A module's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) wasm: Bytes,
    pub(crate) signature: Option<Bytes>,
    /// None for a module that was put there by hand.
    pub(crate) provenance: Option<Provenance>,
}

impl Files {
    /// Returns the module's origin.
    pub(crate) fn origin(&self) -> String {
        self.provenance.as_ref().map_or_else(|| LOCAL.to_owned(), |provenance| provenance.origin.clone())
    }
}

/// The folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    dir: PathBuf,
    /// Upper bound on the bytes read of a component: the limit plus one, so that a larger component is detected.
    max: u64,
}

impl Folder {
    pub(crate) fn new(dir: PathBuf, max_module: u64) -> Self {
        Self { dir, max: max_module.saturating_add(1) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    fn lock(&self, how: FlockOperation) -> io::Result<File> {
        let path = self.dir.join(LOCK);
        let cannot = |why| io::Error::other(format!("{} cannot be used: {why}", path.display()));
        let lock = brine_files::create_own(&path, 0o600).map_err(cannot)?;
        let since = Instant::now();
        loop {
            match rustix::fs::flock(&lock, how) {
                Ok(()) => return Ok(lock),
                Err(rustix::io::Errno::WOULDBLOCK) if since.elapsed() < PATIENCE => std::thread::sleep(TICK),
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(io::Error::other(format!("another program keeps {} locked", path.display())));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the modules on a shelf, sorted.
    pub(crate) fn names(&self, shelf: Shelf) -> io::Result<BTreeMap<ModuleName, PathBuf>> {
        component_files(&shelf.of(&self.dir))
    }

    /// Reads a module from a shelf. None if the shelf does not have it.
    pub(crate) fn read(&self, shelf: Shelf, name: &ModuleName) -> io::Result<Option<Files>> {
        let _lock = self.lock(FlockOperation::NonBlockingLockShared)?;
        read(&shelf.of(&self.dir), name, self.max)
    }

    /// Reads an installed module without the lock, for folders that no program changes.
    pub(crate) fn peek(&self, name: &ModuleName) -> io::Result<Option<Files>> {
        read(&self.dir, name, self.max)
    }

    /// Returns what a module's file is now, without reading it, and its signature. None if there is no such file.
    pub(crate) fn stamp(&self, name: &ModuleName) -> io::Result<Option<(Stamp, Option<Bytes>)>> {
        let Some(file) = open(&self.dir, name, "wasm")? else { return Ok(None) };
        Ok(Some((Stamp::of(&file.metadata()?), signature(&self.dir, name)?)))
    }

    pub(crate) fn path_of(&self, shelf: Shelf, name: &ModuleName) -> PathBuf {
        shelf.of(&self.dir).join(format!("{name}.wasm"))
    }

    /// Returns the provenance of a module on a shelf.
    pub(crate) fn provenance(&self, shelf: Shelf, name: &ModuleName) -> Option<Provenance> {
        provenance(&shelf.of(&self.dir), name)
    }

    /// Returns the origin of the installed module of this name.
    pub(crate) fn origin(&self, name: &ModuleName) -> String {
        self.provenance(Shelf::Current, name).map_or_else(|| LOCAL.to_owned(), |provenance| provenance.origin)
    }

    pub(crate) fn decisions(&self) -> io::Result<Decisions> {
        let _lock = self.lock(FlockOperation::NonBlockingLockShared)?;
        Decisions::read(&self.dir)
    }

    /// Repairs the state after a crash during an install or a rollback: restores the last good version, which stays on
    /// the shelf of previous versions until the end of both. Returns whether there was something to repair.
    pub(crate) fn recover(&self, name: &ModuleName) -> io::Result<bool> {
        let torn = |current: &Files| {
            let said = current.provenance.as_ref().and_then(Provenance::sha256)?;
            let is = cache::sha256(&current.wasm);
            (said != is).then_some([said, is])
        };
        // The usual case: nothing to repair, and no exclusive lock needed.
        if self.read(Shelf::Current, name)?.as_ref().and_then(torn).is_none() {
            return Ok(false);
        }
        let _lock = self.lock(FlockOperation::NonBlockingLockExclusive)?;
        let change = Change { folder: self, name };
        let (Some(current), Some(previous)) = (change.read(Shelf::Current)?, change.read(Shelf::Previous)?) else {
            return Ok(false);
        };
        // An interrupted install leaves the component of the previous version, an interrupted rollback its `NAME.json`.
        // Any other mismatch was made by hand.
        if !torn(&current).is_some_and(|hashes| hashes.contains(&cache::sha256(&previous.wasm))) {
            return Ok(false);
        }
        change.put(Shelf::Current, &previous)?;
        change.remove(Shelf::Previous)?;
        Ok(true)
    }

    /// Changes one module under the exclusive lock. `expected` are the decisions on which the change is based; if they
    /// differ by now, the change fails. Returns all decisions.
    pub(crate) fn change(
        &self,
        name: &ModuleName,
        expected: &Decided,
        change: impl FnOnce(&Change<'_>) -> io::Result<Decided>,
    ) -> io::Result<Decisions> {
        let _lock = self.lock(FlockOperation::NonBlockingLockExclusive)?;
        let mut decisions = Decisions::read(&self.dir)?;
        if decisions.of(name) != *expected {
            return Err(io::Error::other(Meanwhile));
        }
        let decided = change(&Change { folder: self, name })?;
        if decided != *expected {
            decisions.set(name, decided)?;
            decisions.write(&self.dir)?;
        }
        Ok(decisions)
    }
}

/// An error: another program on this host has decided something else meanwhile.
#[derive(Debug, thiserror::Error)]
#[error("another program decided about it at this moment; try again")]
struct Meanwhile;

/// Checks whether a change failed only because of a concurrent decision, and may be tried again.
pub(crate) fn was_overtaken(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Meanwhile>())
}

/// Operations that need the lock.
pub(crate) struct Change<'a> {
    folder: &'a Folder,
    name: &'a ModuleName,
}

impl Change<'_> {
    /// Reads the module from a shelf.
    pub(crate) fn read(&self, shelf: Shelf) -> io::Result<Option<Files>> {
        read(&shelf.of(&self.folder.dir), self.name, self.folder.max)
    }

    /// Replaces the module on a shelf. `NAME.json` is written first and the component last, so that an interrupted
    /// write leaves a mismatch, see [`Folder::recover`].
    pub(crate) fn put(&self, shelf: Shelf, files: &Files) -> io::Result<()> {
        let dir = shelf.of(&self.folder.dir);
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let path = |suffix: &str| dir.join(format!("{}.{suffix}", self.name));
        match &files.provenance {
            Some(provenance) => cache::write_whole(&path("json"), &serde_json::to_vec(provenance)?)?,
            None => remove_file(&path("json"))?,
        }
        match &files.signature {
            Some(signature) => cache::write_whole(&path("wasm.minisig"), signature)?,
            None => remove_file(&path("wasm.minisig"))?,
        }
        cache::write_whole(&path("wasm"), &files.wasm)
    }

    /// Removes the module from a shelf. The component goes first: the other files mean nothing without it.
    pub(crate) fn remove(&self, shelf: Shelf) -> io::Result<()> {
        let dir = shelf.of(&self.folder.dir);
        for suffix in SUFFIXES {
            remove_file(&dir.join(format!("{}.{suffix}", self.name)))?;
        }
        match File::open(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            dir => dir?.sync_all(),
        }
    }
}

fn open(dir: &Path, name: &ModuleName, suffix: &str) -> io::Result<Option<File>> {
    match brine_files::open_own(&dir.join(format!("{name}.{suffix}"))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

fn bounded(file: File, max: u64) -> io::Result<Bytes> {
    // In one read, mostly.
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len().min(max) + 1).unwrap_or(0));
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// A signature over the bound is truncated, which makes it unreadable.
fn signature(dir: &Path, name: &ModuleName) -> io::Result<Option<Bytes>> {
    open(dir, name, "wasm.minisig")?.map(|file| bounded(file, MAX_SIGNATURE as u64 + 1)).transpose()
}

fn read(dir: &Path, name: &ModuleName, max: u64) -> io::Result<Option<Files>> {
    let Some(wasm) = open(dir, name, "wasm")? else { return Ok(None) };
    let wasm = bounded(wasm, max)?;
    Ok(Some(Files { wasm, signature: signature(dir, name)?, provenance: provenance(dir, name) }))
}

fn provenance(dir: &Path, name: &ModuleName) -> Option<Provenance> {
    let json = brine_files::read_own(&dir.join(format!("{name}.json")), MAX_PROVENANCE).ok()?;
    serde_json::from_slice(&json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{name, sha};

    fn files(content: &'static str) -> Files {
        let provenance = Some(Provenance { origin: "base".into(), ..Provenance::default() });
        Files { wasm: Bytes::from_static(content.as_bytes()), signature: None, provenance }
    }

    #[test]
    fn shelves_are_apart_and_a_decision_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, mine) = (Folder::new(dir.path().to_owned(), 100), name("mine"));
        let mut approved = Decided::default();
        approved.approve(sha(1), None);
        folder
            .change(&mine, &Decided::default(), |change| {
                change.put(Shelf::Current, &files("one"))?;
                change.put(Shelf::Held, &Files { signature: Some(Bytes::from_static(b"s")), ..files("two") })?;
                Ok(approved.clone())
            })
            .unwrap();
        assert_eq!(folder.read(Shelf::Current, &mine).unwrap(), Some(files("one")));
        assert_eq!(folder.read(Shelf::Held, &mine).unwrap().unwrap().signature.as_deref(), Some(b"s".as_slice()));
        assert_eq!(folder.read(Shelf::Previous, &mine).unwrap(), None);
        assert_eq!(folder.names(Shelf::Current).unwrap().len(), 1);
        // The change is based on outdated decisions, so nothing changes.
        let late = folder.change(&mine, &Decided::default(), |change| {
            change.put(Shelf::Current, &files("three"))?;
            Ok(Decided::default())
        });
        assert!(late.unwrap_err().to_string().contains("another program decided"));
        assert_eq!(folder.read(Shelf::Current, &mine).unwrap(), Some(files("one")));
        folder.change(&mine, &approved, |change| change.remove(Shelf::Held).map(|()| approved.clone())).unwrap();
        assert_eq!(folder.read(Shelf::Held, &mine).unwrap(), None);
        assert!(!dir.path().join("held/mine.wasm.minisig").exists());
    }

    /// After a crash at any write of an install or a rollback, the next start finds one complete version.
    #[test]
    fn a_crash_in_the_middle_leaves_the_last_good_version() {
        let (mine, content) = (name("mine"), |content: &'static str, signed: bool| {
            let wasm = Bytes::from_static(content.as_bytes());
            let sha256 = Some(cache::sha256(&wasm).to_string());
            let signature = signed.then(|| Bytes::from(format!("signature of {content}")));
            Files {
                wasm,
                signature,
                provenance: Some(Provenance { origin: "base".into(), sha256, ..Provenance::default() }),
            }
        });
        for (signed, then_signed) in [(true, true), (true, false), (false, true)] {
            for cut in 0..4 {
                for rolls_back in [false, true] {
                    let dir = tempfile::tempdir().unwrap();
                    let folder = Folder::new(dir.path().to_owned(), 100);
                    let change = Change { folder: &folder, name: &mine };
                    let (old, new) = (content("one", signed), content("two", then_signed));
                    // Both write the good version to the previous shelf before they change the current one.
                    change.put(Shelf::Previous, if rolls_back { &new } else { &old }).unwrap();
                    change.put(Shelf::Current, &old).unwrap();
                    let whole = tempfile::tempdir().unwrap();
                    let elsewhere = Folder::new(whole.path().to_owned(), 100);
                    Change { folder: &elsewhere, name: &mine }.put(Shelf::Current, &new).unwrap();
                    for suffix in &["json", "wasm.minisig", "wasm"][..cut] {
                        let file = format!("mine.{suffix}");
                        match std::fs::read(whole.path().join(&file)) {
                            Ok(bytes) => std::fs::write(dir.path().join(&file), bytes).unwrap(),
                            Err(_) => remove_file(&dir.path().join(&file)).unwrap(),
                        }
                    }
                    let torn = cut == 1 || cut == 2;
                    assert_eq!(folder.recover(&mine).unwrap(), torn, "{cut} {rolls_back}");
                    let expected = if cut == 3 || (torn && rolls_back) { &new } else { &old };
                    assert_eq!(
                        folder.read(Shelf::Current, &mine).unwrap().as_ref(),
                        Some(expected),
                        "{cut} {rolls_back}"
                    );
                    assert!(!folder.recover(&mine).unwrap());
                }
            }
        }
    }

    /// A module that the owner put there by hand stays, whatever lies beside it.
    #[test]
    fn what_was_put_there_by_hand_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, mine) = (Folder::new(dir.path().to_owned(), 100), name("mine"));
        let change = Change { folder: &folder, name: &mine };
        change.put(Shelf::Previous, &files("one")).unwrap();
        let provenance = Some(Provenance { sha256: Some(sha(7).to_string()), ..Provenance::default() });
        change.put(Shelf::Current, &Files { provenance, ..files("by hand") }).unwrap();
        assert!(!folder.recover(&mine).unwrap());
        assert_eq!(folder.read(Shelf::Current, &mine).unwrap().unwrap().wasm, files("by hand").wasm);
    }

    #[test]
    fn one_writer_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, mine) = (Folder::new(dir.path().to_owned(), 100), name("mine"));
        let count = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let change = folder.change(&mine, &Decided::default(), |_| {
                            assert_eq!(count.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                            std::thread::sleep(Duration::from_millis(2));
                            count.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                            Ok(Decided::default())
                        });
                        change.unwrap();
                    }
                });
            }
        });
    }
}
