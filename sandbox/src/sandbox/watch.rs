//! Picks up decisions that other programs on this host make while this one runs: `salt-call --local sandbox.approve`
//! and `sandbox.rollback` write to the folder of installed modules, `decisions.json` last.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Weak};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio::task::JoinSet;

use super::Inner;
use crate::ModuleName;
use crate::store::DECISIONS;

/// Bytes of inotify events read at once: some hundred events, each with a file name.
const NOTES: usize = 16 << 10;

/// Starts the watch, which lasts as long as the sandbox. If it fails, others' decisions take effect at the next start.
pub(super) fn start(inner: &Arc<Inner>, tasks: &mut JoinSet<()>) {
    let watch = match watch(inner.store.folder().path()) {
        Ok(watch) => watch,
        Err(error) => {
            tracing::warn!(
                "what is approved on this host counts from the next start: it cannot be watched for: {error}"
            );
            return;
        }
    };
    let inner = Arc::downgrade(inner);
    tasks.spawn(async move {
        loop {
            match decided(&watch).await {
                Ok(false) => {}
                Ok(true) => {
                    let Some(inner) = Weak::upgrade(&inner) else { return };
                    inner.take_up().await;
                }
                Err(error) => {
                    tracing::warn!(
                        "what is approved on this host counts from the next start: the watch ended: {error}"
                    );
                    return;
                }
            }
        }
    });
}

fn watch(dir: &Path) -> std::io::Result<AsyncFd<OwnedFd>> {
    let notes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    // Programs rename complete files into place; an owner's editor may write in place.
    inotify::add_watch(&notes, dir, WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE | WatchFlags::ONLYDIR)?;
    // The other constructor is unsafe: its callers promise that the descriptor stays open while it is registered. An
    // owned descriptor does, and this crate has no unsafe code.
    #[expect(deprecated, reason = "sound for an OwnedFd; the other constructor is unsafe for all")]
    AsyncFd::new(notes)
}

/// Waits for an event in the folder. Returns whether it may have been a decision.
async fn decided(watch: &AsyncFd<OwnedFd>) -> std::io::Result<bool> {
    let mut ready = watch.readable().await?;
    let mut space = [std::mem::MaybeUninit::uninit(); NOTES];
    let mut notes = inotify::Reader::new(watch.get_ref(), &mut space);
    let mut found = false;
    loop {
        match notes.next() {
            Ok(note) => {
                let lost = note.events().contains(ReadFlags::QUEUE_OVERFLOW);
                found |= lost || note.file_name().is_some_and(|name| name.to_bytes() == DECISIONS.as_bytes());
                if note.events().contains(ReadFlags::IGNORED) {
                    return Err(std::io::Error::other("the folder of modules is gone"));
                }
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                ready.clear_ready();
                return Ok(found);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Inner {
    /// Applies the decisions of other programs. Only the affected modules are examined.
    async fn take_up(self: &Arc<Self>) {
        let folder = self.store.folder().clone();
        let read = tokio::task::spawn_blocking(move || folder.decisions()).await;
        let decisions = match read {
            Ok(Ok(decisions)) => decisions,
            Ok(Err(error)) => {
                tracing::error!("{DECISIONS} cannot be read, what was decided before stays: {error}");
                return;
            }
            Err(_) => return,
        };
        for name in self.store.take_up(Ok(decisions)) {
            let _alone = self.store.installing.enter(&name).await;
            self.take_up_module(&name).await;
        }
    }

    /// Applies others' decisions about one module before this process decides: the inotify event may still be on its
    /// way. The caller must hold the lock of this name.
    pub(super) async fn catch_up(self: &Arc<Self>, name: &ModuleName) {
        let folder = self.store.folder().clone();
        if let Ok(Ok(decisions)) = tokio::task::spawn_blocking(move || folder.decisions()).await
            && self.store.take_up_of(name, &decisions)
        {
            self.take_up_module(name).await;
        }
    }

    async fn take_up_module(self: &Arc<Self>, name: &ModuleName) {
        let before = self.store.get(name.as_str());
        match self.store.read_installed(name).await {
            Ok(None) => {}
            Ok(Some(entry)) => {
                let entry = Arc::new(entry);
                let same =
                    before.as_ref().is_some_and(|before| before.key() == entry.key() && before.grants == entry.grants);
                if !same {
                    if let Err(error) = self.load(&entry).await {
                        tracing::error!(module = %name, "what was decided about it cannot be taken up: {error}");
                        return;
                    }
                    let sha256 = entry.module.sha256;
                    let version = entry.module.info.version.as_deref().unwrap_or_default();
                    tracing::info!(module = %name, version, %sha256, "taken up as decided on this host");
                    self.switch(&entry, before.as_ref().filter(|before| before.key() != entry.key())).await;
                }
            }
            // The version in use stays; a bad file on the disk takes effect only at the next start.
            Err((error, _)) => tracing::error!(module = %name, "what was decided about it cannot be taken up: {error}"),
        }
        self.store.look_at_previous(name);
        self.store.look_at_held(name).await;
    }
}
