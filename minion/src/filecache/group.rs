//! Many files of the cache at once: few requests, several side by side, and one turn of disk work for each group.

use std::fs::File;
use std::path::PathBuf;

use brine_protocol::ids::{SafePath, Saltenv};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::{Cached, FileCache, Part, Sink as _, open, open_private_dir, remove_left, room_of};
use crate::fileclient::{FileError, FileHash, MAX_TOGETHER, MAX_TOGETHER_BYTES, SMALL_FILE, StatedHash};

/// A file of the cache, and what the master stated of it.
pub(crate) type CachedAs = (PathBuf, StatedHash);

/// A file that is not in the cache.
struct Wanted<'a> {
    /// Its place among all paths.
    at: usize,
    path: &'a SafePath,
    hash: FileHash,
    stated: StatedHash,
}

impl Wanted<'_> {
    /// Its size; none if it is not known or not small.
    fn small_size(&self) -> Option<u64> {
        self.stated.size.filter(|size| *size <= SMALL_FILE)
    }
}

impl FileCache {
    /// The present versions of files, in the order of their paths, as [`FileCache::get`] for one.
    ///
    /// # Errors
    /// When a file cannot be fetched or kept.
    pub(crate) async fn get_all(
        &self,
        paths: &[SafePath],
        saltenv: &Saltenv,
    ) -> Result<Vec<Option<CachedAs>>, FileError> {
        let stated = self.client.request_hashes_and_sizes(paths, saltenv).await?;
        let mut all: Vec<Option<CachedAs>> = vec![None; paths.len()];
        let (mut wanted, mut on_disk) = (Vec::new(), Vec::new());
        for (at, (path, stated)) in paths.iter().zip(stated).enumerate() {
            let Some(stated) = stated else { continue };
            let hash = FileHash::try_from(stated.clone())?;
            match self.find_kept(path, saltenv, &hash) {
                Some(Cached { path, .. }) => all[at] = Some((path, stated)),
                None => {
                    if let Ok(file) = open(&self.root, saltenv, path) {
                        on_disk.push((at, file, hash.clone()));
                    }
                    wanted.push(Wanted { at, path, hash, stated });
                }
            }
        }
        for (at, file) in matching(on_disk).await {
            if let Some(place) = wanted.iter().position(|wanted| wanted.at == at) {
                let Wanted { path, hash, stated, .. } = wanted.swap_remove(place);
                all[at] = Some((self.keep(path, saltenv, hash, file)?.path, stated));
            }
        }
        wanted.sort_by_key(|wanted| wanted.at);
        let mut fetches: FuturesUnordered<_> =
            groups(wanted).into_iter().map(|group| self.fetch_group(group, saltenv)).collect();
        while let Some(fetched) = fetches.next().await {
            for (at, cached) in fetched? {
                all[at] = Some(cached);
            }
        }
        Ok(all)
    }

    /// Fetches a group by one request. What does not come so is fetched alone.
    async fn fetch_group(
        &self,
        group: Vec<Wanted<'_>>,
        saltenv: &Saltenv,
    ) -> Result<Vec<(usize, CachedAs)>, FileError> {
        let mut cached = Vec::with_capacity(group.len());
        let mut alone = Vec::new();
        if group.iter().all(|wanted| wanted.small_size().is_some()) {
            let files: Vec<_> = group.iter().map(|wanted| (wanted.path, &wanted.hash)).collect();
            let contents = self.client.fetch_together(&files, saltenv).await?;
            drop(files);
            let (mut came, mut written) = (Vec::new(), Vec::new());
            for (wanted, content) in group.into_iter().zip(contents) {
                match content {
                    Some(content) => {
                        written.push((wanted.path.clone(), content));
                        came.push(wanted);
                    }
                    None => alone.push(wanted),
                }
            }
            let files = self.write_group(written, saltenv).await?;
            for (Wanted { at, path, hash, stated }, file) in came.into_iter().zip(files) {
                cached.push((at, (self.keep(path, saltenv, hash, file)?.path, stated)));
            }
        } else {
            alone = group;
        }
        let mut each: FuturesUnordered<_> = alone
            .into_iter()
            .map(async |Wanted { at, path, stated, .. }| {
                let got = self.get_stated(path, saltenv, stated.clone()).await?;
                Ok::<_, FileError>(got.map(|got| (at, (got.path, stated))))
            })
            .collect();
        while let Some(one) = each.next().await {
            cached.extend(one?);
        }
        Ok(cached)
    }

    /// Puts verified contents into the cache, in order. No file is synced: after a loss of power each is verified again before its use.
    async fn write_group(&self, contents: Vec<(SafePath, Vec<u8>)>, saltenv: &Saltenv) -> Result<Vec<File>, FileError> {
        if contents.is_empty() {
            return Ok(Vec::new());
        }
        self.make_room(contents.iter().map(|(path, content)| room_of(path, content.len() as u64)).sum()).await;
        let (root, parts, saltenv) = (self.root.clone(), self.parts.clone(), saltenv.clone());
        let work = tokio::task::spawn_blocking(move || {
            remove_left(&parts);
            let (parts, root) = (open_private_dir(&parts)?, open_private_dir(&root)?);
            let put = |(path, content): (SafePath, Vec<u8>)| {
                let mut part = Part::new_in(&parts)?;
                part.write(&content)?;
                part.put_in(&root, &saltenv, &path)
            };
            contents.into_iter().map(put).collect::<std::io::Result<Vec<File>>>()
        });
        work.await.map_err(std::io::Error::other).and_then(|written| written).map_err(FileError::Keep)
    }
}

/// Those of the open files that have their hash.
async fn matching(files: Vec<(usize, File, FileHash)>) -> Vec<(usize, File)> {
    if files.is_empty() {
        return Vec::new();
    }
    let work = tokio::task::spawn_blocking(move || {
        let same = |(at, file, hash): (usize, File, FileHash)| hash.matches_file(&file).ok()?.then_some((at, file));
        files.into_iter().filter_map(same).collect()
    });
    work.await.unwrap_or_default()
}

/// Puts small files into groups for one request each. A large file is a group of its own.
fn groups(wanted: Vec<Wanted<'_>>) -> Vec<Vec<Wanted<'_>>> {
    let (mut groups, mut group, mut bytes) = (Vec::new(), Vec::new(), 0);
    for wanted in wanted {
        let Some(size) = wanted.small_size() else {
            groups.push(vec![wanted]);
            continue;
        };
        if group.len() == MAX_TOGETHER || bytes + size > MAX_TOGETHER_BYTES {
            groups.push(std::mem::take(&mut group));
            bytes = 0;
        }
        bytes += size;
        group.push(wanted);
    }
    if !group.is_empty() {
        groups.push(group);
    }
    groups
}
