//! The folder of installed modules, which this process shares with others: a `salt-call` that approves, a minion that runs.
//!
//! Who changes something holds the lock alone from reading what was decided to writing what is decided now, and writes
//! `decisions.json` last: for who watches, that is the sign that all is there.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_sandbox_wire::Sha256Hex;
use bytes::Bytes;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::decisions::{Decided, Decisions};
use super::files::{LOCAL, component_files, remove_file};
use crate::signature::MAX_SIGNATURE;
use crate::{ModuleName, cache};

const LOCK: &str = ".lock";
/// Writers are done within milliseconds. One that was stopped in the middle must not hold up this minion for good.
const PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(5);
/// Bytes of `NAME.json`.
const MAX_PROVENANCE: u64 = 64 << 10;
const SUFFIXES: [&str; 3] = ["wasm", "wasm.minisig", "json"];

/// Which version of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shelf {
    /// The one that jobs call.
    Current,
    /// The last good one before it.
    Previous,
    /// The newest update that was not let in by itself.
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

/// What stands beside a component: where it is from, and what it is, for who only wants to know that.
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

/// A module as it lies on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) wasm: Bytes,
    pub(crate) signature: Option<Bytes>,
    /// None for what somebody put there by hand.
    pub(crate) provenance: Option<Provenance>,
}

impl Files {
    /// Where it is from.
    pub(crate) fn origin(&self) -> String {
        self.provenance.as_ref().map_or_else(|| LOCAL.to_owned(), |provenance| provenance.origin.clone())
    }
}

/// The folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    dir: PathBuf,
    /// Bytes of a component that are read at most; one more, so that one that is too large is seen to be.
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

    /// The modules of a shelf, sorted.
    pub(crate) fn names(&self, shelf: Shelf) -> io::Result<BTreeMap<ModuleName, PathBuf>> {
        component_files(&shelf.of(&self.dir))
    }

    /// A module of a shelf; none where it has none.
    pub(crate) fn read(&self, shelf: Shelf, name: &ModuleName) -> io::Result<Option<Files>> {
        let _lock = self.lock(FlockOperation::NonBlockingLockShared)?;
        read(&shelf.of(&self.dir), name, self.max)
    }

    /// A module of a folder that nobody changes.
    pub(crate) fn peek(&self, name: &ModuleName) -> io::Result<Option<Files>> {
        read(&self.dir, name, self.max)
    }

    pub(crate) fn path_of(&self, shelf: Shelf, name: &ModuleName) -> PathBuf {
        shelf.of(&self.dir).join(format!("{name}.wasm"))
    }

    /// What a module of a shelf says beside it.
    pub(crate) fn provenance(&self, shelf: Shelf, name: &ModuleName) -> Option<Provenance> {
        provenance(&shelf.of(&self.dir), name)
    }

    /// Where the installed module of this name is from.
    pub(crate) fn origin(&self, name: &ModuleName) -> String {
        self.provenance(Shelf::Current, name).map_or_else(|| LOCAL.to_owned(), |provenance| provenance.origin)
    }

    pub(crate) fn decisions(&self) -> io::Result<Decisions> {
        let _lock = self.lock(FlockOperation::NonBlockingLockShared)?;
        Decisions::read(&self.dir)
    }

    /// Puts right what a crash in the middle of an install or a rollback left: the last good version, whole, which lies on the shelf
    /// of previous ones until the end of both. Says whether there was something to put right.
    pub(crate) fn recover(&self, name: &ModuleName) -> io::Result<bool> {
        let torn = |current: &Files| {
            let said = current.provenance.as_ref().and_then(Provenance::sha256)?;
            let is = cache::sha256(&current.wasm);
            (said != is).then_some([said, is])
        };
        // Nearly always: nothing to do, and no need to be alone.
        if self.read(Shelf::Current, name)?.as_ref().and_then(torn).is_none() {
            return Ok(false);
        }
        let _lock = self.lock(FlockOperation::NonBlockingLockExclusive)?;
        let change = Change { folder: self, name };
        let (Some(current), Some(previous)) = (change.read(Shelf::Current)?, change.read(Shelf::Previous)?) else {
            return Ok(false);
        };
        // An install that was cut off left the component of the previous version, a rollback the sign of it. Anything else
        // somebody put there by hand.
        if !torn(&current).is_some_and(|hashes| hashes.contains(&cache::sha256(&previous.wasm))) {
            return Ok(false);
        }
        change.put(Shelf::Current, &previous)?;
        change.remove(Shelf::Previous)?;
        Ok(true)
    }

    /// Changes something about one module, alone. `expected` is what was decided about it when the change was thought out: an error
    /// where that is something else by now. Gives all decisions back.
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

/// What was thought out counts no more: another program on this host decided something else meanwhile.
#[derive(Debug, thiserror::Error)]
#[error("another program decided about it at this moment; try again")]
struct Meanwhile;

/// Whether a change was not made because another program decided something meanwhile: thought out again it may be.
pub(crate) fn was_overtaken(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Meanwhile>())
}

/// What can be changed while the lock is held.
pub(crate) struct Change<'a> {
    folder: &'a Folder,
    name: &'a ModuleName,
}

impl Change<'_> {
    /// What is on a shelf now.
    pub(crate) fn read(&self, shelf: Shelf) -> io::Result<Option<Files>> {
        read(&shelf.of(&self.folder.dir), self.name, self.folder.max)
    }

    /// Puts a module on a shelf, in the place of what was there. What it is comes first and the component last: who is cut off in
    /// between leaves a component that is not what stands beside it, see [`Folder::recover`].
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

    /// Empties a module's place on a shelf. The component first: what lies beside it means nothing without it.
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

fn read(dir: &Path, name: &ModuleName, max: u64) -> io::Result<Option<Files>> {
    let bounded = |suffix: &str, max: u64| -> io::Result<Option<Bytes>> {
        let mut bytes = Vec::new();
        match brine_files::open_own(&dir.join(format!("{name}.{suffix}"))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?.take(max).read_to_end(&mut bytes)?,
        };
        Ok(Some(bytes.into()))
    };
    let Some(wasm) = bounded("wasm", max)? else { return Ok(None) };
    // A signature that is too long is cut off, and then is none that can be read.
    let signature = bounded("wasm.minisig", MAX_SIGNATURE as u64 + 1)?;
    Ok(Some(Files { wasm, signature, provenance: provenance(dir, name) }))
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
        // Thought out before that was decided: nothing is changed.
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

    /// After each of the writes of an install or a rollback the next start finds one version, whole.
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
                    // Both put the good version on the shelf of previous ones before they write the current one.
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

    /// What the owner put there is the owner's, whatever stands beside it.
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
