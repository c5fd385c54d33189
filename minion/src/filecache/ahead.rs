//! A large file is fetched while the master is still making its hash: on a master without instructions for SHA-256, that takes as long as
//! all the rest.

use std::pin::pin;
use std::time::Duration;

use brine_protocol::ids::{SafePath, Saltenv};
use tokio::time::timeout;
use tracing::debug;

use super::{Cached, FileCache, Part, open, room_of};
use crate::fileclient::{FileError, FileHash, StatedHash};

/// What a master takes for a hash that it remembers, or for that of a file of some megabytes.
const HASHED: Duration = Duration::from_millis(10);

impl FileCache {
    /// The present version of a file; none if the master does not have it.
    ///
    /// # Errors
    /// When the file cannot be fetched or kept.
    pub(crate) async fn get(&self, path: &SafePath, saltenv: &Saltenv) -> Result<Option<Cached>, FileError> {
        let mut stated = pin!(self.client().request_hash_and_size(path, saltenv));
        let stated = match timeout(HASHED, &mut stated).await {
            Ok(stated) => stated?,
            // A version that is there is the present one, most often.
            Err(_) if open(&self.root, saltenv, path).is_ok() => stated.await?,
            Err(_) => match self.get_ahead(path, saltenv, stated).await? {
                Ahead::Got(cached) => return Ok(Some(cached)),
                Ahead::Stated(stated) => stated,
            },
        };
        let Some(stated) = stated else { return Ok(None) };
        self.get_stated(path, saltenv, stated).await
    }

    async fn get_ahead(
        &self,
        path: &SafePath,
        saltenv: &Saltenv,
        stated: impl Future<Output = Result<Option<StatedHash>, FileError>>,
    ) -> Result<Ahead, FileError> {
        let Ok(_turn) = self.fetches.try_acquire() else { return Ok(Ahead::Stated(stated.await?)) };
        let mut part = Part::new(&self.parts).map_err(FileError::Keep)?;
        let (stated, size) = match self.client().fetch_ahead(path, saltenv, stated, &mut part).await? {
            Some((stated, true)) => (stated, part.size().map_err(FileError::Keep)?),
            other => return Ok(Ahead::Stated(other.map(|(stated, _)| stated))),
        };
        self.make_room(room_of(path, size)).await;
        let file = part.put(&self.root, saltenv, path).map_err(FileError::Keep)?;
        debug!("{path} of {saltenv} was fetched while the master made its hash");
        self.keep(path, saltenv, FileHash::try_from(stated)?, file).map(Ahead::Got)
    }
}

/// What came of it.
enum Ahead {
    /// The file.
    Got(Cached),
    /// The hash alone: another fetch has the turn, the file changed meanwhile, or its hash is of another kind.
    Stated(Option<StatedHash>),
}
