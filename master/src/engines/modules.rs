//! The sandbox of a master, with the modules of its engines: those of the package, and those that the owner put into
//! `engines_dirs`. None comes from a minion, a pillar or the file server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_sandbox::{MAX_SIGNATURE, ModuleName, Package, Sandbox, SandboxConfig, Settings, others_may_write};

use super::broker::MasterBroker;
use super::config::EngineOpts;
use crate::bus::Bus;

/// The origin of the owner's modules.
const ORIGIN: &str = "engines_dirs";

/// A module of the owner: the component, and its signature if there is one.
struct Own {
    wasm: Vec<u8>,
    signature: Option<Vec<u8>>,
}

/// Modules of the owner that are not used, and why.
pub(super) type Refused = BTreeMap<ModuleName, String>;

/// Starts the sandbox and installs the owner's modules. One that cannot be used is logged and returned.
///
/// # Errors
/// One line: the sandbox does not start.
pub(super) async fn start(opts: &EngineOpts, cachedir: &Path, bus: &Bus) -> Result<(Arc<Sandbox>, Refused), String> {
    let package = Package::find().map_err(|error| error.to_string())?;
    let used = opts.modules();
    let config = SandboxConfig {
        executor: package.executor,
        compiler: package.compiler,
        cache_dir: cachedir.join("engines/compiled"),
        standard_dir: package.modules,
        standard: Some(used.clone()),
        modules_dir: cachedir.join("engines/modules"),
        recordings_dir: cachedir.join("engines/recordings"),
        settings: Settings::clone(&opts.sandbox),
    };
    let (dirs, most) = (opts.dirs.clone(), opts.sandbox.compile.module);
    let names = used.clone();
    let read = tokio::task::spawn_blocking(move || read(&names, &dirs, most)).await;
    let (own, mut refused) = read.map_err(|e| e.to_string())?;
    let sandbox = Sandbox::start(config, Arc::new(MasterBroker::new(bus.clone()))).await.map_err(|e| e.to_string())?;
    for (name, _) in sandbox.installed() {
        // The owner took it away.
        if !own.keys().any(|own| own.as_str() == name)
            && let Err(error) = sandbox.remove(&name).await
        {
            tracing::error!("engines: {error}");
        }
    }
    for (name, own) in own {
        if let Err(error) = sandbox.install(name.as_str(), &own.wasm, own.signature.as_deref(), ORIGIN).await {
            refused.insert(name, said(&error.to_string()));
        }
    }
    for why in refused.values() {
        tracing::error!("engines: {why}");
    }
    Ok((sandbox, refused))
}

/// The sandbox's sentences about grants name the configuration of a minion; here it is the master's.
pub(super) fn said(text: &str) -> String {
    text.replace("in the minion's configuration", "in the master's configuration")
}

/// Reads the modules of these names from the owner's folders. In several, the first one counts.
fn read(names: &BTreeSet<ModuleName>, dirs: &[PathBuf], most: u64) -> (BTreeMap<ModuleName, Own>, Refused) {
    let (mut found, mut refused) = (BTreeMap::new(), Refused::new());
    for name in names {
        for dir in dirs {
            match one(&dir.join(format!("{name}.wasm")), most) {
                Ok(None) => {}
                Ok(Some(own)) => {
                    found.insert(name.clone(), own);
                    break;
                }
                Err(why) => {
                    refused.insert(name.clone(), why);
                    break;
                }
            }
        }
    }
    (found, refused)
}

fn one(path: &Path, most: u64) -> Result<Option<Own>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let signature = path.with_extension("wasm.minisig");
    for path in [path, &signature] {
        if let Some(why) = others_may_write(path) {
            return Err(format!("{} is not used: {why}", path.display()));
        }
    }
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let wasm = brine_files::read_named(path, most).map_err(failed)?;
    let signature = match signature.exists() {
        true => Some(brine_files::read_named(&signature, MAX_SIGNATURE as u64).map_err(failed)?),
        false => None,
    };
    Ok(Some(Own { wasm, signature }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn modules_that_others_may_write_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        for (dir, text) in [(&first, "one"), (&second, "two")] {
            std::fs::create_dir(dir).unwrap();
            std::fs::write(dir.join("mine.wasm"), text).unwrap();
            std::fs::set_permissions(dir.join("mine.wasm"), PermissionsExt::from_mode(0o644)).unwrap();
        }
        std::fs::write(second.join("other.wasm"), "not named").unwrap();
        let names = BTreeSet::from(["mine".parse::<ModuleName>().unwrap()]);
        let dirs = [first.clone(), second];
        let (found, refused) = read(&names, &dirs, 1 << 20);
        assert!(refused.is_empty());
        let found: Vec<_> = found.iter().map(|(name, own)| (name.as_str(), own.wasm.as_slice())).collect();
        assert_eq!(found, [("mine", b"one".as_slice())]);
        let refusal = |most: u64| match read(&names, &dirs, most) {
            (found, refused) if found.is_empty() => refused.into_values().collect::<String>(),
            _ => panic!("it is read"),
        };
        assert!(refusal(2).contains("mine.wasm"), "it is too large");
        for path in [first.join("mine.wasm"), first.clone()] {
            let mode = std::fs::metadata(&path).unwrap().permissions();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
            assert!(refusal(1 << 20).contains("mine.wasm is not used"), "{}", path.display());
            std::fs::set_permissions(&path, mode).unwrap();
        }
        assert_eq!(read(&names, &dirs, 1 << 20).0.len(), 1);
    }
}
