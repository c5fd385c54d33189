//! Fetches one module: compares its hash, resumes an interrupted fetch, verifies the whole.

use std::time::Duration;

use brine_protocol::ids::{SafePath, Saltenv};
use brine_sandbox::{Installed, MAX_SIGNATURE, ModuleName, SMALL_MODULE, Sandbox};
use tracing::{info, warn};

use super::partial::Part;
use super::{FOLDER, Modules, SUFFIX};
use crate::fileclient::{FileClient, FileError, FileHash, Sink};

/// The signature beside a module, made with minisign.
pub(super) const SIGNATURE_SUFFIX: &str = ".wasm.minisig";
/// Interruptions in a row without a new byte. Each lasts as long as a request waits for a master that is away.
const TRIES: u32 = 3;
/// Interruptions of one fetch. The next fetch continues from the part that is kept.
const MAX_INTERRUPTIONS: u32 = 20;
/// Pause after an interruption, because a master may refuse at once.
const PAUSE: Duration = Duration::from_secs(1);

impl Modules {
    /// Fetches one module and its signature if they differ from the installed ones. Returns none if the master does not have it.
    pub(super) async fn fetch(
        &self,
        sandbox: &Sandbox,
        name: &ModuleName,
        saltenv: &Saltenv,
    ) -> Result<Option<Installed>, String> {
        let _alone = self.fetching.enter(name).await;
        self.fetch_alone(sandbox, name, saltenv).await
    }

    /// As `fetch`, for a caller that already prevents other fetches of this module.
    pub(super) async fn fetch_alone(
        &self,
        sandbox: &Sandbox,
        name: &ModuleName,
        saltenv: &Saltenv,
    ) -> Result<Option<Installed>, String> {
        let Some(client) = &self.client else { return Ok(None) };
        let (path, beside) = (module_path(name, SUFFIX)?, module_path(name, SIGNATURE_SUFFIX)?);
        // Every fetch begins in the lane of small modules. Only the master's answer shows that a module is large.
        let (turn, _) = self.lanes.enter(0).await;
        let Some(stated) = client.request_hash_and_size(&path, saltenv).await.map_err(|e| e.to_string())? else {
            return Ok(None);
        };
        let size = stated.size;
        let hash = FileHash::try_from(stated).map_err(|e| e.to_string())?;
        let signed = client.request_hash(&beside, saltenv).await.map_err(|e| e.to_string())?;
        if is_installed(sandbox, name, &hash, signed.as_ref()) {
            return Ok(Some(Installed::Unchanged));
        }
        if is_held(sandbox, name, &hash, signed.as_ref()) {
            // The module is already here and held. A grant that the owner added meanwhile may admit it.
            return sandbox.install_held(name.as_str()).await.map(Some).map_err(|e| e.to_string());
        }
        let small = size.is_some_and(|size| size <= SMALL_MODULE);
        let turn = if small {
            turn
        } else {
            drop(turn);
            self.lanes.enter(u64::MAX).await.0
        };
        let here = sandbox.describe(name.as_str()).is_some_and(|have| hash.is_sha256(have.sha256.bytes()));
        let part = match here {
            true => self.partials.open_installed(name, &hash).await,
            false => self.partials.open(name, &hash, size).await,
        };
        let mut part = part.at_most(small.then_some(SMALL_MODULE));
        match fetch_whole(client, (&path, saltenv), name, (&hash, size), &mut part).await {
            Ok(()) => {}
            // The part that came is kept for the next fetch.
            Err(e @ (FileError::Channel(_) | FileError::TooSlow { .. })) => return Err(e.to_string()),
            Err(e) => {
                part.discard();
                return if let FileError::Missing(_) = e { Ok(None) } else { Err(e.to_string()) };
            }
        }
        let signature = match &signed {
            None => None,
            Some(signed) => {
                let mut signature = Signature(Vec::new());
                match client.fetch_into(&beside, saltenv, (signed, None), &mut signature).await {
                    Ok(_) => Some(signature.0),
                    Err(FileError::Missing(_)) => None,
                    Err(e) => return Err(format!("its signature: {e}")),
                }
            }
        };
        // A large module keeps its turn, because it keeps its memory. Small ones need not wait for each other's compilers.
        let turn = (!small).then_some(turn);
        let installed = sandbox.install(name.as_str(), part.content(), signature.as_deref(), saltenv.as_str()).await;
        drop(turn);
        let size = part.len();
        part.discard();
        let installed = installed.map_err(|e| e.to_string())?;
        info!("module {name} of {saltenv}: {installed:?}, {size} bytes");
        Ok(Some(installed))
    }
}

/// Fetches a module to its end, across interruptions.
async fn fetch_whole(
    client: &FileClient,
    (path, saltenv): (&SafePath, &Saltenv),
    name: &ModuleName,
    said: (&FileHash, Option<u64>),
    part: &mut Part,
) -> Result<(), FileError> {
    let (mut tries, mut left) = (TRIES, MAX_INTERRUPTIONS);
    loop {
        let before = part.len();
        match client.fetch_into(path, saltenv, said, part).await {
            Err(FileError::Channel(e)) => {
                tries = if part.len() > before { TRIES } else { tries - 1 };
                left -= 1;
                if tries == 0 || left == 0 {
                    return Err(FileError::Channel(e));
                }
                warn!("fetching module {name} is interrupted at {} bytes ({e}); it goes on from there", part.len());
                tokio::time::sleep(PAUSE).await;
            }
            fetched => return fetched.map(drop),
        }
    }
}

/// Whether the installed module has this hash and this signature.
pub(super) fn is_installed(sandbox: &Sandbox, name: &ModuleName, hash: &FileHash, signed: Option<&FileHash>) -> bool {
    let same = sandbox.describe(name.as_str()).is_some_and(|have| hash.is_sha256(have.sha256.bytes()));
    same && match (signed, sandbox.signature(name.as_str())) {
        (None, None) => true,
        (Some(signed), Some(have)) => signed.matches(&have),
        _ => false,
    }
}

/// Whether the held module has this hash and this signature.
fn is_held(sandbox: &Sandbox, name: &ModuleName, hash: &FileHash, signed: Option<&FileHash>) -> bool {
    let Some(held) = sandbox.held(name.as_str()) else { return false };
    hash.is_sha256(held.sha256().bytes())
        && match (signed, held.signature()) {
            (None, None) => true,
            (Some(signed), Some(have)) => signed.matches(have),
            _ => false,
        }
}

/// The path of a module or its signature on the file server.
pub(super) fn module_path(name: &ModuleName, suffix: &str) -> Result<SafePath, String> {
    format!("{FOLDER}/{name}{suffix}").parse().map_err(|e| format!("{e}"))
}

/// Receives a signature, which has a few hundred bytes.
struct Signature(Vec<u8>);

impl Sink for Signature {
    fn restart(&mut self) -> std::io::Result<()> {
        self.0.clear();
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> std::io::Result<()> {
        if self.0.len() + data.len() > MAX_SIGNATURE {
            return Err(std::io::Error::other(format!("it is larger than the {MAX_SIGNATURE} bytes of a signature")));
        }
        self.0.extend_from_slice(data);
        Ok(())
    }
}
