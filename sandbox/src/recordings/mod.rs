//! Recordings of calls on this host: what of a recording is kept, and where.
//!
//! - `secrets.rs` replaces secrets by markers; `folder.rs` the folder, within its bounds
//! - `replay.rs`  runs a call again from its recording, for authors

mod folder;
pub(crate) mod replay;
mod secrets;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use brine_recording::{End, Entry, MAX_FILE, Recording, entries};
use brine_sandbox_wire::JobContext;
use futures_util::future::BoxFuture;
use rmpv::Value;

use crate::kernel::broker::Broker;
use crate::kernel::record::{Keeper, Record, Recorded};
use crate::settings::RecordingSettings;
use folder::Folder;

/// Keeps the recordings of this host's calls.
pub(crate) struct Recordings {
    settings: RecordingSettings,
    broker: Arc<dyn Broker>,
    /// Locked while a recording is written, so that the bounds hold.
    folder: Arc<Mutex<Folder>>,
}

impl std::fmt::Debug for Recordings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recordings").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Recordings {
    /// Keeps recordings in this folder. It is made with the first of them.
    pub(crate) fn new(dir: PathBuf, settings: RecordingSettings, broker: Arc<dyn Broker>) -> Arc<Self> {
        let folder = Arc::new(Mutex::new(Folder::new(dir, settings.total)));
        Arc::new(Self { settings, broker, folder })
    }

    /// Returns how calls are recorded.
    pub(crate) fn record(self: &Arc<Self>) -> Record {
        let keeper: Arc<dyn Keeper> = Arc::<Self>::clone(self);
        Record { keeper, bytes: self.settings.size }
    }
}

impl Keeper for Recordings {
    fn keep(&self, recorded: Recorded) -> BoxFuture<'_, ()> {
        let JobContext { jid, function, .. } = recorded.head.context.clone();
        let shown = function.clone();
        let known = self.broker.secrets(&recorded.head.context);
        let (names, folder) = (self.settings.secrets.clone(), Arc::clone(&self.folder));
        let written = tokio::task::spawn_blocking(move || {
            let bytes = file(recorded, &known, &names)?;
            let mut folder = folder.lock().unwrap_or_else(PoisonError::into_inner);
            folder.write(&format!("{jid}-{function}"), &bytes).map(|path| (jid, path))
        });
        Box::pin(async move {
            match written.await.unwrap_or_else(|error| Err(error.to_string())) {
                Ok((jid, path)) => tracing::debug!(jid, "the call of {shown} is recorded in {}", path.display()),
                Err(why) => tracing::warn!("the recording of a call is not kept: {why}"),
            }
        })
    }
}

/// Makes the file of a recorded call, without its secrets. The frames come from an executor, so they are checked.
fn file(recorded: Recorded, known: &[Value], names: &[String]) -> Result<Vec<u8>, String> {
    let Recorded { head, frames, outcome } = recorded;
    let (mut calls, mut full, mut odd) = (Vec::new(), false, false);
    let read = entries(&frames, |_, entry| {
        match entry {
            Entry::Call(call) if !full => calls.push(call),
            Entry::Full if !full => full = true,
            _ => odd = true,
        }
        Ok(())
    });
    read.map_err(|error| error.to_string())?;
    if odd {
        return Err("the executor sent what is no call of the host".to_owned());
    }
    let end = End { outcome, hidden: Vec::new() };
    let mut recording = Recording { head, calls, full, end };
    secrets::replace(&mut recording, known, names)?;
    let bytes = recording.to_bytes();
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("it has more than {} MiB with the arguments and the return", MAX_FILE >> 20));
    }
    Ok(bytes)
}
