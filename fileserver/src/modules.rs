//! The modules in the folders `_modules`, for lists.

use brine_protocol::ids::SafePath;
use rustix::fd::AsFd as _;
use rustix::fs::{Dir, OFlags};

use crate::hash_type::HashType;
use crate::tree::{Env, FileTree};

/// The folder with modules, and the ends of the names of a module and of its signature.
const FOLDER: &str = "_modules";
const MODULE: &str = ".wasm";
const SIGNATURE: &str = ".minisig";
/// Bound on the modules of an environment.
const MODULES_MAX: usize = 4_096;

/// A module that the master serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModule {
    /// The environment.
    pub env: String,
    /// Its name, without the ending.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// None if `hash_type` is another one, so that a list hashes no file that minions have not asked for.
    pub sha256: Option<String>,
    /// Whether a signature is beside it.
    pub signed: bool,
}

impl FileTree {
    /// Lists the modules of all environments.
    pub fn modules(&self) -> Vec<ServedModule> {
        self.envs.iter().flat_map(|(name, env)| self.modules_of(name.as_str(), env)).collect()
    }

    fn modules_of(&self, env_name: &str, env: &Env) -> Vec<ServedModule> {
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
