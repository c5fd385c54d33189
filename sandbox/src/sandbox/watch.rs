//! What other programs on this host decide while this one runs: `salt-call --local sandbox.approve` and `sandbox.rollback` write to the
//! folder of installed modules, whose last file is the one that says what was decided.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Weak};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio::task::JoinSet;

use super::Inner;
use crate::ModuleName;
use crate::store::DECISIONS;

/// Bytes of notes that are read at once: some hundred, each with a file's name.
const NOTES: usize = 16 << 10;

/// Watches for as long as the sandbox is there. Where that cannot be, what others decide counts from the next start.
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
    // Whole files are renamed into their place; an owner's editor may write one otherwise.
    inotify::add_watch(&notes, dir, WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE | WatchFlags::ONLYDIR)?;
    // An owned descriptor stays the same one and open for as long as it is registered, which is what the other constructor has its
    // callers promise, and this crate has no unsafe code.
    #[expect(deprecated, reason = "sound for an OwnedFd; the other constructor is unsafe for all")]
    AsyncFd::new(notes)
}

/// Waits for something to happen in the folder; says whether it may have been a decision.
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
    /// Takes up what others decided: only modules about which something else is decided than before are looked at.
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
            let _alone = self.installing.enter(&name).await;
            self.take_up_module(&name).await;
        }
    }

    /// The same of one module, before something else is decided about it: the note of what another program did may still be on its
    /// way. For who keeps others of this name out.
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
                    before.as_ref().is_some_and(|before| before.key == entry.key && before.grants == entry.grants);
                if !same {
                    if let Err(error) = self.load(&entry).await {
                        tracing::error!(module = %name, "what was decided about it cannot be taken up: {error}");
                        return;
                    }
                    let sha256 = entry.module.sha256;
                    let version = entry.module.info.version.as_deref().unwrap_or_default();
                    tracing::info!(module = %name, version, %sha256, "taken up as decided on this host");
                    self.switch(&entry, before.as_ref().filter(|before| before.key != entry.key)).await;
                }
            }
            // What serves goes on serving: a bad file on the disk counts at a start.
            Err((error, _)) => tracing::error!(module = %name, "what was decided about it cannot be taken up: {error}"),
        }
        self.store.look_at_previous(name);
        self.store.look_at_held(name).await;
    }
}
