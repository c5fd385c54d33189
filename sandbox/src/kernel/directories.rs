//! Checks the granted directories on this host: which exist, and whether they are still the same. An executor's walls
//! are bound to its directories as they were at its start; after a directory was added, removed or replaced, the next
//! job gets another executor.

use std::time::Duration;

use brine_sandbox_wire::{DirectGrants, Directory};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use tokio::sync::Semaphore;

/// Time for a directory to answer: it may be on a file server that does not respond.
const ANSWER: Duration = Duration::from_secs(2);
/// Directories checked at the same time. This bounds the threads that block on unresponsive ones.
static LOOKS: Semaphore = Semaphore::const_new(16);

/// The most frequent reason to leave out a directory.
pub(crate) const NOT_THERE: &str = "is not there";

/// `STATX_MNT_ID_UNIQUE` (Linux 6.8): a mount number that is never reused. Older kernels return one that may be reused.
const UNIQUE_MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// Direct grants and the identities of their directories.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reach {
    pub(crate) direct: DirectGrants,
    directories: Vec<Option<Identity>>,
}

/// Distinguishes a directory from another one at the same path, and from itself after a change of owner or mode on its
/// path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity(Vec<u64>);

impl Reach {
    /// Checks the directories of these grants now.
    pub(crate) async fn of(direct: &DirectGrants) -> Self {
        let looks = direct.directories.iter().map(|Directory { path, .. }| answered(path.clone(), identity));
        let directories = futures_util::future::join_all(looks).await.into_iter().map(Result::ok).collect();
        Self { direct: direct.clone(), directories }
    }
}

/// Returns why a directory is left out, if it is. The text continues a sentence that begins with the path.
pub(crate) async fn why_left_out(path: &str) -> Option<String> {
    answered(path.to_owned(), |path| open(path).map(drop)).await.err()
}

/// The blocking version of [`why_left_out`], for a thread of the runtime that may block.
pub(crate) fn why_left_out_now(path: &str) -> Option<String> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.block_on(why_left_out(path)),
        Err(_) => open(path).err(),
    }
}

async fn answered<T: Send + 'static>(
    path: String,
    look: impl FnOnce(&str) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let looked = async {
        let turn = LOOKS.acquire().await.map_err(|error| error.to_string())?;
        let look = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            look(&path)
        });
        look.await.map_err(|error| error.to_string())?
    };
    match tokio::time::timeout(ANSWER, looked).await {
        Ok(looked) => looked,
        Err(_) => Err(format!("does not answer within {} s", ANSWER.as_secs())),
    }
}

/// Opens a directory or a file by its real name, as the executor will. Symbolic links are refused: a user who can replace a part
/// of the path must not choose what is granted.
pub(crate) fn open(path: &str) -> Result<OwnedFd, String> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve).and_then(|opened| {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
        if matches!(kind, FileType::Directory | FileType::RegularFile) { Ok(opened) } else { Err(Errno::NOTDIR) }
    });
    opened.map_err(|error| match error {
        Errno::NOENT => NOT_THERE.to_owned(),
        Errno::NOTDIR => "is neither a directory nor a regular file".to_owned(),
        Errno::LOOP => match std::fs::canonicalize(path) {
            Ok(real) => format!("is {} by its real name; that is what a grant has to say", real.display()),
            Err(_) => "leads through a symbolic link; a grant has to say a real name".to_owned(),
        },
        error => format!("cannot be opened: {}", std::io::Error::from(error)),
    })
}

fn identity(path: &str) -> Result<Identity, String> {
    let directory = open(path)?;
    let failed = |error: Errno| format!("cannot be looked at: {}", std::io::Error::from(error));
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID | UNIQUE_MOUNT;
    let stat = rustix::fs::statx(&directory, "", AtFlags::EMPTY_PATH, wanted).map_err(failed)?;
    let mut identity =
        vec![u64::from(stat.stx_dev_major), u64::from(stat.stx_dev_minor), stat.stx_ino, stat.stx_mnt_id];
    // A new file often gets the number of the one that was just removed. Where the file system has no time of birth, it is nothing.
    identity.extend([stat.stx_btime.tv_sec.cast_unsigned(), u64::from(stat.stx_btime.tv_nsec)]);
    // The owners and modes on the path decide whether the executor's user can reach the directory.
    for end in path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]) {
        let stat = rustix::fs::statat(CWD, &path[..end], AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        identity.push(u64::from(stat.st_mode) << 32 | u64::from(stat.st_uid));
        identity.push(u64::from(stat.st_gid));
    }
    Ok(Identity(identity))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, remove_dir, rename, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[tokio::test]
    async fn what_changes_about_a_directory_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        create_dir(root.join("parent")).unwrap();
        let at = root.join("parent/granted");
        let path = at.to_str().unwrap().to_owned();
        let granted = DirectGrants {
            directories: vec![Directory { path: path.clone(), writable: false }],
            ..DirectGrants::default()
        };
        let look = || async { (Reach::of(&granted).await, why_left_out(&path).await) };

        let (missing, why) = look().await;
        assert_eq!(why.as_deref(), Some("is not there"));
        create_dir(&at).unwrap();
        let (there, why) = look().await;
        assert_eq!(why, None);
        assert_ne!(missing, there);
        write(at.join("file"), "").unwrap();
        assert_eq!(look().await.0, there, "what is in it is not it");
        set_permissions(root.join("parent"), Permissions::from_mode(0o711)).unwrap();
        let opened = look().await.0;
        assert_ne!(opened, there, "its parent has another mode");
        rename(&at, root.join("old")).unwrap();
        create_dir(&at).unwrap();
        assert_ne!(look().await.0, opened, "another one took its place");
        remove_dir(&at).unwrap();
        assert_eq!(look().await.0, missing);
        write(&at, "").unwrap();
        let (file, why) = look().await;
        assert_eq!(why, None, "a file is granted by itself");
        // It may have the same number.
        std::fs::remove_file(&at).unwrap();
        write(&at, "").unwrap();
        assert_ne!(look().await.0, file, "another file took its place");
        std::fs::remove_file(&at).unwrap();
        rustix::fs::mknodat(CWD, &at, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(look().await.1.as_deref(), Some("is neither a directory nor a regular file"));
        std::fs::remove_file(&at).unwrap();
        symlink(root.join("old"), &at).unwrap();
        let real = root.join("old");
        let why = format!("is {} by its real name; that is what a grant has to say", real.display());
        assert_eq!(look().await.1, Some(why));
    }
}
