//! What an earlier start verified of a standard module, so that the next one neither reads nor hashes it: the package has tens of
//! megabytes of them. A record holds for the very file it was made of (device, inode, size, time of change), the very signature and the
//! very key. It lies among the compiled code, which is trusted as it is by the same process: whoever can write there has no need of it.

use std::io;
use std::time::{Duration, SystemTime};

use brine_files::Stamp;
use brine_sandbox_wire::Sha256Hex;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::prepare::{Examined, Rules};
use super::read::STANDARD;
use super::{Decided, Entry, Store, off_thread};
use crate::ModuleName;
use crate::kernel::cache;
use crate::signature::Signed;

/// Age of a file's last change from which its stamp tells a later one: clocks of file systems go in ticks.
const SETTLED: Duration = Duration::from_secs(2);

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Verified {
    file: Stamp,
    sha256: String,
    /// The hash of the signature that holds; none if the package has no key.
    signature: Option<String>,
    /// The package's key.
    key: Option<String>,
}

impl Store {
    /// Returns a standard module that an earlier start has verified and compiled. None if there is something to look at.
    pub(super) async fn as_verified(&self, name: &ModuleName) -> Option<Entry> {
        let policy = self.policy();
        // Whether a key of the owner's signed it is not in the record.
        if !policy.keys.is_empty() {
            return None;
        }
        let key = self.standard_key.mark()?;
        let (cache, folder, of) = (std::sync::Arc::clone(&self.cache), self.standard_folder(), name.clone());
        let limit = self.compiler.limits.module;
        let (size, sha256, signature, info) = off_thread(move || {
            let verified: Verified = serde_json::from_slice(&cache.note(&of)?).ok()?;
            let (file, signature) = folder.stamp(&of).ok()??;
            let same = file.size() <= limit
                && (verified.file, verified.key) == (file, key)
                && verified.signature == signature.as_ref().map(|signature| cache::sha256(signature).to_string());
            let sha256: Sha256Hex = verified.sha256.parse().ok().filter(|_| same)?;
            Some((file.size(), sha256, signature, cache.describe(sha256).ok()?))
        })
        .await?;
        let examined = Examined { size, sha256, signature, signed: Signed::default(), info };
        let admitted = self.admit(&policy, name, examined, STANDARD, &Rules::standard(), &Decided::default());
        admitted.ok().map(|prepared| prepared.entry)
    }

    /// Remembers that this content of a standard module was verified; `file` is what the file was before it was read.
    pub(super) async fn remember_verified(&self, name: &ModuleName, file: Stamp, entry: &Entry) {
        // Nobody would ask for it.
        if !self.policy().keys.is_empty() {
            return;
        }
        let Some(key) = self.standard_key.mark() else { return };
        let signature = entry.signature.as_ref().map(|signature: &Bytes| cache::sha256(signature).to_string());
        let verified = Verified { file, sha256: entry.module.sha256.to_string(), signature, key };
        let (cache, folder, of) = (std::sync::Arc::clone(&self.cache), self.standard_folder(), name.clone());
        let written = off_thread(move || -> io::Result<()> {
            let same = folder.stamp(&of)?.is_some_and(|(now, _)| now == file);
            if same && file.has_settled(SETTLED, SystemTime::now()) {
                cache.put_note(&of, &serde_json::to_vec(&verified)?)?;
            }
            Ok(())
        });
        if let Err(error) = written.await {
            tracing::debug!(module = %name, "that it was verified is not written down: {error}");
        }
    }
}
