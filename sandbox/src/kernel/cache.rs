//! Compiled code by content: what this host's compiler made of a component, stored under the component's hash and the
//! engine's key.
//!
//! Compiled code is native code, and the engine does not check it (of 150 files with flipped bits 31 killed the
//! process). So the folder belongs to this user alone, nothing in it is written in place, and each file's hash is in a
//! description beside it. The hash is checked on the very file descriptor that is passed on.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use aws_lc_rs::digest::{Context, Digest, SHA256, digest};
use brine_component::{MAX_DESCRIPTION, ModuleInfo, ReadError};
use brine_sandbox_wire::Sha256Hex;
use serde::{Deserialize, Serialize};

use crate::kernel::name::ModuleName;

/// Bytes of an entry's description beside the component's own description, which has its own bound.
const AROUND: u64 = 4 << 10;
/// Age after which a compiler's stage counts as abandoned: far more than the minutes that a compiler may take.
const LEFT_BEHIND: std::time::Duration = std::time::Duration::from_secs(3_600);
/// Bytes of a note.
const MAX_NOTE: u64 = 4 << 10;
/// Entries kept for modules that are not installed (any more), in case such a module comes back.
const KEPT_UNUSED: usize = 16;
/// Upper bound on remembered refusals.
const KEPT_REFUSALS: usize = 256;

/// The folder of compiled code for one engine.
#[derive(Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
    engine: String,
    /// The user that must own every file in it.
    owner: u32,
}

/// Checked compiled code, as an open file.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) info: ModuleInfo,
    pub(crate) code: File,
}

/// Why the cache has no usable entry.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    #[error("is not in the cache")]
    Missing,
    /// Something changed the entry. It must not be used.
    #[error("its compiled code in the cache cannot be trusted: {0}")]
    Tampered(String),
    #[error("the cache cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Why the results of a compiler run cannot be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PutError {
    /// The component's fault: a second attempt would fail too.
    #[error("{0}")]
    Refused(#[from] ReadError),
    #[error("the cache cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// A temporary folder for one compiler run, removed on drop.
#[derive(Debug)]
pub(crate) struct Stage {
    dir: tempfile::TempDir,
}

#[derive(Serialize, Deserialize)]
struct Description {
    code_sha256: String,
    code_size: u64,
    info: ModuleInfo,
}

/// Makes a folder with mode 0700, or checks that it belongs to this user and grants others none of the rights in
/// `no_rights`.
pub(crate) fn own_folder(dir: &Path, no_rights: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = fs::symlink_metadata(dir)?;
    let wrong = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if !meta.is_dir() {
        return wrong("it is not a folder".into());
    }
    let me = rustix::process::geteuid().as_raw();
    belongs_to(meta.uid(), me).or_else(wrong)?;
    if meta.mode() & no_rights != 0 {
        let mode = meta.mode() & 0o7777;
        return wrong(format!("its mode is {mode:o}; what is run from it must be safe from others: chmod 700"));
    }
    Ok(())
}

fn belongs_to(owner: u32, me: u32) -> Result<(), String> {
    if owner == me { Ok(()) } else { Err(format!("it belongs to user {owner}, not to {me}")) }
}

/// Returns the SHA-256 of bytes. By AWS-LC: a start hashes all modules, and where the processor has no instructions for it, `sha2` takes
/// twice as long.
pub(crate) fn sha256(bytes: &[u8]) -> Sha256Hex {
    hex_of(&digest(&SHA256, bytes))
}

fn hex_of(digest: &Digest) -> Sha256Hex {
    let bytes: [u8; 32] = digest.as_ref().try_into().expect("a SHA-256 has 32 bytes");
    Sha256Hex::from(bytes)
}

impl Cache {
    /// Opens the folder, and makes it if necessary.
    pub(crate) fn open(dir: &Path, engine: String) -> io::Result<Self> {
        own_folder(dir, 0o077)?;
        Ok(Self { dir: dir.to_owned(), engine, owner: rustix::process::geteuid().as_raw() })
    }

    fn path(&self, sha256: Sha256Hex, kind: &str) -> PathBuf {
        self.dir.join(format!("{sha256}-{}.{kind}", self.engine))
    }

    /// Opens an entry. The bytes of the code are not checked.
    fn open_entry(&self, sha256: Sha256Hex) -> Result<(Description, File), CacheError> {
        let mut description = Vec::new();
        let file = open_own(&self.path(sha256, "json"), self.owner)?;
        file.take(MAX_DESCRIPTION as u64 + AROUND).read_to_end(&mut description)?;
        let description: Description = serde_json::from_slice(&description)
            .map_err(|error| CacheError::Tampered(format!("its description is broken ({error})")))?;
        let code = open_own(&self.path(sha256, "cwasm"), self.owner)?;
        let size = code.metadata()?.len();
        if size != description.code_size {
            return Err(CacheError::Tampered(format!("it has {size} bytes, not {}", description.code_size)));
        }
        description.info.check().map_err(|error| CacheError::Tampered(error.to_string()))?;
        Ok((description, code))
    }

    /// Returns the description of a component whose compiled code is here. Before the code is used, [`Cache::get`] checks it.
    pub(crate) fn describe(&self, sha256: Sha256Hex) -> Result<ModuleInfo, CacheError> {
        Ok(self.open_entry(sha256)?.0.info)
    }

    /// Returns the compiled code of a component, with every byte checked against its hash.
    pub(crate) fn get(&self, sha256: Sha256Hex) -> Result<Compiled, CacheError> {
        let (description, mut code) = self.open_entry(sha256)?;
        if hash_file(&mut code)?.to_string() != description.code_sha256 {
            return Err(CacheError::Tampered("its hash is another than when it was compiled".into()));
        }
        Ok(Compiled { info: description.info, code })
    }

    /// Checks whether there is an entry for this component, either code or a refusal.
    pub(crate) fn knows(&self, sha256: Sha256Hex, limits: &str) -> bool {
        self.path(sha256, "json").exists() || self.refusal(sha256, limits).is_some()
    }

    /// Removes an untrusted entry of whatever file type: a folder in its place would block the module for good.
    pub(crate) fn discard(&self, sha256: Sha256Hex) {
        for kind in ["json", "cwasm"] {
            let path = self.path(sha256, kind);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }

    /// Makes a folder for one compiler run.
    pub(crate) fn stage(&self) -> io::Result<Stage> {
        Ok(Stage { dir: tempfile::Builder::new().prefix("compile-").tempdir_in(&self.dir)? })
    }

    /// Stores the results of a compiler run. The description is written last: an entry exists when its description
    /// exists.
    pub(crate) fn put(&self, sha256: Sha256Hex, stage: &Stage) -> Result<(), PutError> {
        let info = described(&stage.info())??;
        let mut code = open_own(&stage.code(), self.owner).map_err(io::Error::other)?;
        let description =
            Description { code_sha256: hash_file(&mut code)?.to_string(), code_size: code.metadata()?.len(), info };
        let text = serde_json::to_vec(&description).map_err(io::Error::from)?;
        // Enforces the same bound, however the compiler wrote the description.
        description.info.write()?;
        code.sync_all()?;
        fs::rename(stage.code(), self.path(sha256, "cwasm"))?;
        Ok(write_whole(&self.path(sha256, "json"), &text)?)
    }

    /// Returns why this component was refused before, under the same limits.
    pub(crate) fn refusal(&self, sha256: Sha256Hex, limits: &str) -> Option<String> {
        let mut text = String::new();
        open_own(&self.path(sha256, "refused"), self.owner).ok()?.take(4096).read_to_string(&mut text).ok()?;
        let (under, reason) = text.split_once('\n')?;
        (under == limits).then(|| reason.to_owned())
    }

    /// Remembers a refusal, so that this host does not compile the same bomb every minute.
    pub(crate) fn refuse(&self, sha256: Sha256Hex, limits: &str, reason: &str) -> io::Result<()> {
        write_whole(&self.path(sha256, "refused"), format!("{limits}\n{reason}").as_bytes())
    }

    /// Returns what was noted about the file of a module.
    pub(crate) fn note(&self, name: &ModuleName) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        open_own(&self.note_path(name), self.owner).ok()?.take(MAX_NOTE).read_to_end(&mut text).ok()?;
        Some(text)
    }

    /// Notes something about the file of a module. It is not synced: a note that a crash takes or tears is made again.
    pub(crate) fn put_note(&self, name: &ModuleName, text: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".tmp").tempfile_in(&self.dir)?;
        file.write_all(text)?;
        file.persist(self.note_path(name)).map(drop).map_err(|error| error.error)
    }

    fn note_path(&self, name: &ModuleName) -> PathBuf {
        self.dir.join(format!("{name}.verified"))
    }

    /// Removes entries that are not in use, except for the newest ones, and all but the newest refusals.
    pub(crate) fn prune(&self, in_use: &HashSet<Sha256Hex>) -> io::Result<()> {
        let mut unused: Vec<(SystemTime, PathBuf)> = Vec::new();
        let mut refusals: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let hash = name.split('-').next().and_then(|hash| hash.parse().ok());
            match (hash, path.extension().and_then(|kind| kind.to_str())) {
                (Some(_), Some("refused")) => refusals.push((modified, path)),
                (Some(hash), Some("json")) => {
                    let current = name.strip_suffix(".json").is_some_and(|stem| stem.ends_with(&self.engine));
                    if !current || !in_use.contains(&hash) {
                        unused.push((modified, path));
                    }
                }
                // Code without a description: left by a crash between two renames. A later entry overwrites or removes
                // it.
                _ => {}
            }
        }
        for (list, kept) in [(&mut unused, KEPT_UNUSED), (&mut refusals, KEPT_REFUSALS)] {
            list.sort();
            for (_, path) in &list[..list.len().saturating_sub(kept)] {
                gone(fs::remove_file(path))?;
                let _ = fs::remove_file(path.with_extension("cwasm"));
            }
        }
        Ok(())
    }

    /// Removes, at the start, the stages of interrupted compilers. Only old ones: a `salt-call` starts beside a minion
    /// whose compiler may be at work.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            // Another process removed it at the same moment.
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if meta.modified()?.elapsed().is_ok_and(|age| age < LEFT_BEHIND) {
                continue;
            }
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with("compile-") {
                gone(fs::remove_dir_all(&path))?;
            } else if name.starts_with(".tmp") {
                gone(fs::remove_file(&path))?;
            }
        }
        Ok(())
    }
}

impl Stage {
    /// Returns the path of the file for compiled code.
    pub(crate) fn code(&self) -> PathBuf {
        self.dir.path().join("code")
    }

    /// Returns the path of the file for the component's description.
    pub(crate) fn info(&self) -> PathBuf {
        self.dir.path().join("info")
    }

    /// Returns the component as an open file, which is all that the compiler gets.
    pub(crate) async fn component(&self, wasm: bytes::Bytes) -> io::Result<File> {
        let mut file = tempfile::tempfile_in(self.dir.path())?;
        let written = tokio::task::spawn_blocking(move || {
            file.write_all(&wasm)?;
            file.rewind()?;
            Ok(file)
        });
        written.await.map_err(io::Error::other)?
    }
}

/// Reads the description written by the compiler, which has read hostile bytes. The bound is that of the cache.
pub(crate) fn described(file: &Path) -> io::Result<Result<ModuleInfo, ReadError>> {
    let mut text = Vec::new();
    brine_files::open_own(file)?.take(MAX_DESCRIPTION as u64 + 1).read_to_end(&mut text)?;
    Ok(ModuleInfo::parse(&text))
}

/// Treats a file that another process has just removed as removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Opens a file that must be regular, owned by `owner`, and writable by no other user.
fn open_own(path: &Path, owner: u32) -> Result<File, CacheError> {
    let tampered = |why: String| Err(CacheError::Tampered(why));
    let file = match brine_files::open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(CacheError::Missing),
        Err(error) if error.kind() == io::ErrorKind::Other => return tampered(error.to_string()),
        other => other?,
    };
    let meta = file.metadata()?;
    belongs_to(meta.uid(), owner).map_err(CacheError::Tampered)?;
    if meta.mode() & 0o022 != 0 {
        return tampered(format!("others can write it (mode {:o})", meta.mode() & 0o7777));
    }
    if meta.nlink() != 1 {
        return tampered("it has another name elsewhere".into());
    }
    Ok(file)
}

fn hash_file(file: &mut File) -> io::Result<Sha256Hex> {
    let mut hasher = Context::new(&SHA256);
    let mut buffer = vec![0; 256 << 10];
    file.rewind()?;
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    file.rewind()?;
    Ok(hex_of(&hasher.finish()))
}

/// Writes a file atomically: to a temporary file that is synced and renamed. A power failure leaves the old content or
/// the new.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".tmp").tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn info() -> ModuleInfo {
        let function = brine_component::Function {
            name: "f".into(),
            export: vec!["f".into()],
            params: vec![],
            result: None,
            doc: None,
        };
        ModuleInfo { functions: vec![function], ..ModuleInfo::default() }
    }

    fn filled(dir: &Path) -> (Cache, Sha256Hex) {
        let cache = Cache::open(&dir.join("cache"), "engine".into()).unwrap();
        let hash = sha256(b"component");
        put(&cache, hash, b"machine code");
        (cache, hash)
    }

    fn put(cache: &Cache, hash: Sha256Hex, code: &[u8]) {
        let stage = cache.stage().unwrap();
        fs::write(stage.code(), code).unwrap();
        fs::set_permissions(stage.code(), fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(stage.info(), info().write().unwrap()).unwrap();
        cache.put(hash, &stage).unwrap();
    }

    #[test]
    fn what_was_put_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, hash) = filled(dir.path());
        let mut compiled = cache.get(hash).unwrap();
        let mut code = String::new();
        compiled.code.read_to_string(&mut code).unwrap();
        assert_eq!((code.as_str(), compiled.info), ("machine code", info()));
        assert!(matches!(cache.get(sha256(b"other")), Err(CacheError::Missing)));
        let other = Cache::open(&dir.path().join("cache"), "another".into()).unwrap();
        assert!(matches!(other.get(hash), Err(CacheError::Missing)));
    }

    /// A description of the largest allowed size passes through the cache. One byte more is refused as the component's
    /// fault, with the usual message.
    #[test]
    fn one_bound_for_descriptions() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(&dir.path().join("cache"), "engine".into()).unwrap();
        let mut info = info();
        let largest = |more: usize| {
            let mut info = info.clone();
            info.notes.push("x".repeat(MAX_DESCRIPTION - info.write().unwrap().len() - 2 + more));
            info
        };
        let put = |info: &ModuleInfo| {
            let stage = cache.stage().unwrap();
            fs::write(stage.code(), "code").unwrap();
            fs::set_permissions(stage.code(), fs::Permissions::from_mode(0o600)).unwrap();
            fs::write(stage.info(), serde_json::to_vec(info).unwrap()).unwrap();
            cache.put(sha256(b"large"), &stage)
        };
        put(&largest(0)).unwrap();
        assert_eq!(cache.get(sha256(b"large")).unwrap().info, largest(0));
        let words = "has a description (functions, types, docs) of 4194305 bytes; the limit is 4194304";
        match put(&largest(1)) {
            Err(PutError::Refused(error)) => assert_eq!(error.to_string(), words),
            other => panic!("{other:?}"),
        }
        assert_eq!(largest(1).write().unwrap_err().to_string(), words);
        // An invalid description is not tried again either.
        info.functions.clear();
        assert!(matches!(put(&info), Err(PutError::Refused(ReadError::NoFunctions))));
    }

    /// Every way to change an entry is detected.
    #[test]
    fn tampering() {
        type Change = fn(&Path, &Path);
        let changes: [(&str, Change); 12] = [
            ("its hash is another", |code, _| fs::write(code, b"machine c0de").unwrap()),
            ("it has 5 bytes", |code, _| fs::write(code, b"short").unwrap()),
            ("others can write it", |code, _| fs::set_permissions(code, fs::Permissions::from_mode(0o646)).unwrap()),
            ("others can write it", |code, _| fs::set_permissions(code, fs::Permissions::from_mode(0o664)).unwrap()),
            ("others can write it", |_, description| {
                fs::set_permissions(description, fs::Permissions::from_mode(0o622)).unwrap();
            }),
            ("it is a symbolic link", |_, description| {
                fs::rename(description, description.with_extension("moved")).unwrap();
                symlink(description.with_extension("moved"), description).unwrap();
            }),
            ("it has another name", |_, description| {
                fs::hard_link(description, description.with_extension("link")).unwrap();
            }),
            // Opening a FIFO without a writer must not block.
            ("it is not a regular file", |code, _| {
                fs::remove_file(code).unwrap();
                rustix::fs::mkfifoat(rustix::fs::CWD, code, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
            }),
            ("it is a symbolic link", |code, _| {
                fs::rename(code, code.with_extension("moved")).unwrap();
                symlink(code.with_extension("moved"), code).unwrap();
            }),
            ("it has another name", |code, _| fs::hard_link(code, code.with_extension("link")).unwrap()),
            ("it is not a regular file", |code, _| {
                fs::remove_file(code).unwrap();
                fs::create_dir(code).unwrap();
            }),
            ("its description is broken", |_, description| fs::write(description, b"{}").unwrap()),
        ];
        for (expect, change) in changes {
            let dir = tempfile::tempdir().unwrap();
            let (cache, hash) = filled(dir.path());
            change(&cache.path(hash, "cwasm"), &cache.path(hash, "json"));
            match cache.get(hash) {
                Err(CacheError::Tampered(why)) => assert!(why.contains(expect), "{why}"),
                other => panic!("{expect}: {other:?}"),
            }
            cache.discard(hash);
            assert!(matches!(cache.get(hash), Err(CacheError::Missing)), "{expect}: it stays");
        }
    }

    /// Changes the expected owner, because only root can change a file's owner.
    #[test]
    fn what_belongs_to_others_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let (mut cache, hash) = filled(dir.path());
        cache.refuse(hash, "1 GiB", "a bomb").unwrap();
        let me = cache.owner;
        cache.owner = me + 1;
        match cache.get(hash) {
            Err(CacheError::Tampered(why)) => assert_eq!(why, format!("it belongs to user {me}, not to {}", me + 1)),
            other => panic!("{other:?}"),
        }
        assert_eq!(cache.refusal(hash, "1 GiB"), None);
        cache.owner = me;
        assert!(cache.get(hash).is_ok());
        assert_eq!(belongs_to(5, 0).unwrap_err(), "it belongs to user 5, not to 0");
    }

    /// As root, gives the folder to another user; does nothing for other users.
    #[test]
    fn a_folder_of_others_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache");
        Cache::open(&path, "engine".into()).unwrap();
        if std::os::unix::fs::chown(&path, Some(61_000), None).is_ok() {
            let error = Cache::open(&path, "engine".into()).unwrap_err();
            assert_eq!(error.to_string(), "it belongs to user 61000, not to 0");
        }
    }

    #[test]
    fn the_folder_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache");
        Cache::open(&path, "engine".into()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let error = Cache::open(&path, "engine".into()).unwrap_err();
        assert!(error.to_string().contains("mode is 755"), "{error}");
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(Cache::open(&link, "engine".into()).is_err());
    }

    #[test]
    fn refusals_are_remembered_for_an_engine() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, hash) = filled(dir.path());
        assert_eq!(cache.refusal(hash, "1 GiB"), None);
        cache.refuse(hash, "1 GiB", "a bomb").unwrap();
        assert_eq!(cache.refusal(hash, "1 GiB").as_deref(), Some("a bomb"));
        assert_eq!(cache.refusal(hash, "2 GiB"), None);
        assert_eq!(Cache::open(&dir.path().join("cache"), "another".into()).unwrap().refusal(hash, "1 GiB"), None);
    }

    #[test]
    fn refusals_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, _) = filled(dir.path());
        let refused: Vec<Sha256Hex> = (0..KEPT_REFUSALS + 9).map(|n| sha256(&n.to_be_bytes())).collect();
        refused.iter().for_each(|hash| cache.refuse(*hash, "1 GiB", "a bomb").unwrap());
        cache.prune(&HashSet::new()).unwrap();
        let kept = refused.iter().filter(|hash| cache.refusal(**hash, "1 GiB").is_some()).count();
        assert_eq!(kept, KEPT_REFUSALS);
    }

    #[test]
    fn pruning_keeps_what_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, hash) = filled(dir.path());
        let others: Vec<Sha256Hex> = (0..30u8).map(|n| sha256(&[n])).collect();
        others.iter().for_each(|other| put(&cache, *other, b"x"));
        let stage = cache.stage().unwrap();
        cache.prune(&[hash].into()).unwrap();
        assert!(cache.get(hash).is_ok());
        assert_eq!(others.iter().filter(|other| cache.get(**other).is_ok()).count(), KEPT_UNUSED);
        assert!(stage.dir.path().exists());
        // A fresh stage may belong to another program at work.
        cache.sweep().unwrap();
        assert!(stage.dir.path().exists());
        let long_ago = SystemTime::now() - LEFT_BEHIND;
        File::open(stage.dir.path()).unwrap().set_modified(long_ago).unwrap();
        cache.sweep().unwrap();
        assert!(!stage.dir.path().exists());
    }
}
