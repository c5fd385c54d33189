//! The file server for the master itself: states of orchestrations.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use brine_protocol::ids::{SafePath, Saltenv};

use super::FileServer;

/// A file of the file server.
pub(crate) struct WholeFile {
    /// Where it is on this host.
    pub(crate) path: PathBuf,
    pub(crate) data: Vec<u8>,
}

impl FileServer {
    /// Returns the environments.
    pub(crate) fn envs(&self) -> Vec<String> {
        self.inner.load().envs.keys().map(|env| env.as_str().to_owned()).collect()
    }

    /// Returns the files of an environment. It reads folders.
    pub(crate) fn files(&self, saltenv: &str) -> Vec<String> {
        let inner = self.inner.load_full();
        let env = Saltenv::try_from(saltenv).ok().and_then(|name| inner.envs.get(&name));
        env.map(|env| env.lister.list(&env.roots, &inner.ignore).files().cloned().collect()).unwrap_or_default()
    }

    /// Reads a file of an environment, as minions get it: none if it is not served.
    ///
    /// # Errors
    /// It has more than `most` bytes, or cannot be read.
    pub(crate) fn whole(&self, saltenv: &str, path: &str, most: u64) -> Result<Option<WholeFile>, String> {
        let inner = Arc::clone(&self.inner.load());
        let (Ok(saltenv), Ok(safe)) = (Saltenv::try_from(saltenv), SafePath::try_from(path)) else { return Ok(None) };
        let Some(env) = inner.envs.get(&saltenv).filter(|_| !inner.ignore.matches(path)) else { return Ok(None) };
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
