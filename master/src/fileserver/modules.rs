//! The modules in the folders `_modules`, for lists.

use brine_protocol::ids::SafePath;
use rustix::fd::AsFd as _;
use rustix::fs::{Dir, OFlags};

use super::{Env, FileServer, Inner};
use crate::hash_type::HashType;

/// The folder with modules, and the ends of the names of a module and of its signature.
const FOLDER: &str = "_modules";
const MODULE: &str = ".wasm";
const SIGNATURE: &str = ".minisig";
/// Bound on the modules of an environment.
const MODULES_MAX: usize = 4_096;

/// A module that the master serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedModule {
    pub(crate) env: String,
    pub(crate) name: String,
    pub(crate) size: u64,
    /// None if `hash_type` is another one, so that a list hashes no file that minions have not asked for.
    pub(crate) sha256: Option<String>,
    /// Whether a signature is beside it.
    pub(crate) signed: bool,
}

impl FileServer {
    /// Lists the modules of all environments. Blocks while it reads the disk.
    pub(crate) fn modules(&self) -> Vec<ServedModule> {
        let inner = self.inner.load();
        let of = |(name, env): (&brine_protocol::ids::Saltenv, &Env)| inner.modules(name.as_str(), env);
        inner.envs.iter().flat_map(of).collect()
    }
}

impl Inner {
    fn modules(&self, env_name: &str, env: &Env) -> Vec<ServedModule> {
        let mut names: Vec<String> = Vec::new();
        for root in &env.roots {
            let Some(top) = root.open() else { continue };
            let Ok(folder) = root.open_beneath(top.as_fd(), FOLDER, OFlags::RDONLY | OFlags::DIRECTORY) else {
                continue;
            };
            let Ok(entries) = Dir::read_from(&folder) else { continue };
            let found = entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
            names.extend(found.filter(|name| name.ends_with(MODULE)).take(MODULES_MAX));
        }
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|file| self.module(env_name, env, &file)).collect()
    }

    fn module(&self, env_name: &str, env: &Env, file: &str) -> Option<ServedModule> {
        let open = |path: String| {
            let path = SafePath::try_from(path).ok().filter(|path| !self.ignore.matches(path.as_str()))?;
            env.roots.iter().find_map(|root| root.open_file(&path))
        };
        let found = open(format!("{FOLDER}/{file}"))?;
        let name = file.strip_suffix(MODULE)?.to_owned();
        let sha256 = (self.hashes.kind() == HashType::Sha256).then(|| self.hashes.of(&found)).flatten();
        Some(ServedModule {
            env: env_name.to_owned(),
            name,
            size: found.metadata.len(),
            sha256: sha256.map(|hash| hash.to_string()),
            signed: open(format!("{FOLDER}/{file}{SIGNATURE}")).is_some(),
        })
    }
}
