//! One module from the master: asked for by its hash, fetched where it differs, resumed where it was interrupted, verified whole.

use std::time::Duration;

use brine_protocol::ids::{SafePath, Saltenv};
use brine_sandbox::{Installed, MAX_SIGNATURE, ModuleName, SMALL_MODULE};
use tracing::{info, warn};

use super::partial::Part;
use super::{FOLDER, Modules, SUFFIX};
use crate::fileclient::{FileClient, FileError, FileHash, Sink};
use crate::runtime::Runtime;

/// Beside a module, where somebody signed it with minisign.
const SIGNATURE_SUFFIX: &str = ".wasm.minisig";
/// Interruptions without a byte between them; each lasts as long as a request waits for a master that is away.
const TRIES: u32 = 3;
/// Interruptions in all: what came is kept, and the next fetch goes on there.
const MAX_INTERRUPTIONS: u32 = 20;
/// After an interruption: a master that refuses at once is not asked without end.
const PAUSE: Duration = Duration::from_secs(1);

impl Modules {
    /// Fetches one module and its signature if they differ from what there is; none where the master does not have it.
    pub(super) async fn fetch(
        &self,
        runtime: &dyn Runtime,
        name: &ModuleName,
        saltenv: &Saltenv,
    ) -> Result<Option<Installed>, String> {
        let _alone = self.fetching.enter(name).await;
        self.fetch_alone(runtime, name, saltenv).await
    }

    /// The same for who keeps other fetches of this module out.
    pub(super) async fn fetch_alone(
        &self,
        runtime: &dyn Runtime,
        name: &ModuleName,
        saltenv: &Saltenv,
    ) -> Result<Option<Installed>, String> {
        let Some(client) = &self.client else { return Ok(None) };
        let (path, beside) = (module_path(name, SUFFIX)?, module_path(name, SIGNATURE_SUFFIX)?);
        // All begin as small ones: what is large shows when the master was asked.
        let (turn, _) = self.lanes.enter(0).await;
        let Some(stated) = client.request_hash_and_size(&path, saltenv).await.map_err(|e| e.to_string())? else {
            return Ok(None);
        };
        let size = stated.size;
        let hash = FileHash::try_from(stated).map_err(|e| e.to_string())?;
        let signed = client.request_hash(&beside, saltenv).await.map_err(|e| e.to_string())?;
        if is_installed(runtime, name, &hash, signed.as_ref()) {
            return Ok(Some(Installed::Unchanged));
        }
        if is_held(runtime, name, &hash, signed.as_ref()) {
            // It is here already, and waits; what the owner granted meanwhile may let it in.
            return runtime.install_held(name.as_str()).await.map(Some);
        }
        let small = size.is_some_and(|size| size <= SMALL_MODULE);
        let turn = if small {
            turn
        } else {
            drop(turn);
            self.lanes.enter(u64::MAX).await.0
        };
        let here = runtime.describe(name.as_str()).is_some_and(|have| hash.is_sha256(have.sha256.bytes()));
        let part = match here {
            true => self.partials.open_installed(name, &hash).await,
            false => self.partials.open(name, &hash, size).await,
        };
        let mut part = part.at_most(small.then_some(SMALL_MODULE));
        match fetch_whole(client, (&path, saltenv), name, &hash, &mut part).await {
            Ok(()) => {}
            // What came is kept: the next fetch goes on there.
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
                match client.fetch_into(&beside, saltenv, signed, &mut signature).await {
                    Ok(_) => Some(signature.0),
                    Err(FileError::Missing(_)) => None,
                    Err(e) => return Err(format!("its signature: {e}")),
                }
            }
        };
        // A large one keeps its turn, for it keeps its memory; small ones need not wait for each other's compilers.
        let turn = (!small).then_some(turn);
        let installed = runtime.install(name.as_str(), part.content(), signature.as_deref(), saltenv.as_str()).await;
        drop(turn);
        let size = part.len();
        part.discard();
        let installed = installed?;
        info!("module {name} of {saltenv}: {installed:?}, {size} bytes");
        Ok(Some(installed))
    }
}

/// Fetches to the end, also across interruptions.
async fn fetch_whole(
    client: &FileClient,
    (path, saltenv): (&SafePath, &Saltenv),
    name: &ModuleName,
    hash: &FileHash,
    part: &mut Part,
) -> Result<(), FileError> {
    let (mut tries, mut left) = (TRIES, MAX_INTERRUPTIONS);
    loop {
        let before = part.len();
        match client.fetch_into(path, saltenv, hash, part).await {
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

/// Whether the module that is there is this one, with this signature.
fn is_installed(runtime: &dyn Runtime, name: &ModuleName, hash: &FileHash, signed: Option<&FileHash>) -> bool {
    let same = runtime.describe(name.as_str()).is_some_and(|have| hash.is_sha256(have.sha256.bytes()));
    same && match (signed, runtime.signature(name.as_str())) {
        (None, None) => true,
        (Some(signed), Some(have)) => signed.matches(&have),
        _ => false,
    }
}

/// Whether this one, with this signature, waits for the owner's word.
fn is_held(runtime: &dyn Runtime, name: &ModuleName, hash: &FileHash, signed: Option<&FileHash>) -> bool {
    let Some(held) = runtime.held(name.as_str()) else { return false };
    hash.is_sha256(held.sha256().bytes())
        && match (signed, held.signature()) {
            (None, None) => true,
            (Some(signed), Some(have)) => signed.matches(have),
            _ => false,
        }
}

/// A module's file, or one beside it.
fn module_path(name: &ModuleName, suffix: &str) -> Result<SafePath, String> {
    format!("{FOLDER}/{name}{suffix}").parse().map_err(|e| format!("{e}"))
}

/// A signature on its way: a few hundred bytes, and never many more.
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
