//! Whole files, for who has the tree in his own process: states of a master.

use std::io::Read as _;
use std::path::PathBuf;

use brine_protocol::ids::{SafePath, Saltenv};

use crate::tree::FileTree;

/// A file of the file server.
pub struct WholeFile {
    /// Where it is on this host.
    pub path: PathBuf,
    /// Its content.
    pub data: Vec<u8>,
}

impl FileTree {
    /// Returns the environments.
    pub fn envs(&self) -> Vec<String> {
        self.envs.keys().map(|env| env.as_str().to_owned()).collect()
    }

    /// Returns the files of an environment.
    pub fn files(&self, saltenv: &str) -> Vec<String> {
        let env = Saltenv::try_from(saltenv).ok().and_then(|name| self.envs.get(&name));
        env.map(|env| env.lister.list(&env.roots, &self.ignore).files().cloned().collect()).unwrap_or_default()
    }

    /// Reads a file of an environment, as minions get it: none if it is not served.
    ///
    /// # Errors
    /// It has more than `most` bytes, or cannot be read.
    pub fn whole(&self, saltenv: &str, path: &str, most: u64) -> Result<Option<WholeFile>, String> {
        let (Ok(saltenv), Ok(safe)) = (Saltenv::try_from(saltenv), SafePath::try_from(path)) else { return Ok(None) };
        let Some(env) = self.envs.get(&saltenv).filter(|_| !self.ignore.matches(path)) else { return Ok(None) };
        let opened = env.roots.iter().find_map(|root| Some((root, root.open_file(&safe)?)));
        let Some((root, found)) = opened else { return Ok(None) };
        let mut data = Vec::new();
        found.file.take(most + 1).read_to_end(&mut data).map_err(|error| format!("{path}: {error}"))?;
        if data.len() as u64 > most {
            return Err(format!("{path} has more than {most} bytes"));
        }
        Ok(Some(WholeFile { path: root.path().join(path), data }))
    }
}
