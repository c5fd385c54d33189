//! Many files with few requests (PROTOCOL §6.5.1): a Brine master answers about several small files at once. Where a master does not, the
//! files are asked for alone, several requests side by side.

use brine_fileserver::{ALSO, MAX_ALSO, MAX_ALSO_BYTES};
use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, ValueExt};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::hash::{FileHash, StatedHash};
use super::{FileClient, FileError, file_load, stated_hash};

/// Upper bound on the files of one request.
pub(crate) const MAX_TOGETHER: usize = MAX_ALSO + 1;
/// Upper bound on the bytes of the files that are fetched by one request.
pub(crate) const MAX_TOGETHER_BYTES: u64 = MAX_ALSO_BYTES as u64;
/// Upper bound on the bytes of a file that is fetched with others. A larger one has the pace and the bounds of a file of its own.
pub(crate) const SMALL_FILE: u64 = 64 << 10;
/// Requests side by side, for all callers. Each takes one of the channel's connections. The master answers one while another is on its way.
pub(super) const SIDE_BY_SIDE: usize = 4;

impl FileClient {
    /// Asks for the hashes and sizes of files, as [`FileClient::request_hash_and_size`] for one; in the order of the paths.
    ///
    /// # Errors
    /// When the master cannot be asked or an answer is malformed.
    pub async fn request_hashes_and_sizes(
        &self,
        paths: &[SafePath],
        saltenv: &Saltenv,
    ) -> Result<Vec<Option<StatedHash>>, FileError> {
        let mut stated: Vec<Option<StatedHash>> = vec![None; paths.len()];
        let mut together: FuturesUnordered<_> = paths
            .chunks(MAX_TOGETHER)
            .enumerate()
            .map(|(at, group)| self.hashes_together(at, group, saltenv))
            .collect();
        let mut alone = Vec::new();
        while let Some(group) = together.next().await {
            for (at, answer) in group? {
                match answer {
                    Some(answer) => stated[at] = answer,
                    None => alone.push(at),
                }
            }
        }
        drop(together);
        let mut each: FuturesUnordered<_> =
            alone.into_iter().map(|at| self.hash_alone(at, &paths[at], saltenv)).collect();
        while let Some(answer) = each.next().await {
            let (at, answer) = answer?;
            stated[at] = answer;
        }
        Ok(stated)
    }

    async fn hash_alone(
        &self,
        at: usize,
        path: &SafePath,
        saltenv: &Saltenv,
    ) -> Result<(usize, Option<StatedHash>), FileError> {
        let _turn = self.side_by_side.acquire().await.expect("the semaphore is never closed");
        Ok((at, self.request_hash_and_size(path, saltenv).await?))
    }

    /// The answers about the group number `number`, each with its place among all paths: none where the file has to be asked for alone.
    async fn hashes_together(
        &self,
        number: usize,
        paths: &[SafePath],
        saltenv: &Saltenv,
    ) -> Result<Vec<(usize, Option<Option<StatedHash>>)>, FileError> {
        let start = number * MAX_TOGETHER;
        let Some((first, also)) = paths.split_first() else { return Ok(Vec::new()) };
        let _turn = self.side_by_side.acquire().await.expect("the semaphore is never closed");
        let answer = self.request(load("_file_hash_and_stat", first, also, saltenv)).await?;
        let mut stated = vec![(start, Some(stated_hash(&answer)?))];
        let further = answer.list().and_then(|parts| parts.get(2)?.list()).unwrap_or_default();
        for place in 0..also.len() {
            let one = match further.get(place) {
                None | Some(Value::Nil) => None,
                Some(answer) => Some(stated_hash(answer)?),
            };
            stated.push((start + 1 + place, one));
        }
        Ok(stated)
    }

    /// Fetches small files by one request, in the order of `files`, which are at most [`MAX_TOGETHER`] with [`MAX_TOGETHER_BYTES`]. Each
    /// content has the hash beside its path. None: the file did not come so, and has to be fetched alone, which also tells why.
    ///
    /// # Errors
    /// When the master cannot be asked.
    pub async fn fetch_together(
        &self,
        files: &[(&SafePath, &FileHash)],
        saltenv: &Saltenv,
    ) -> Result<Vec<Option<Vec<u8>>>, FileError> {
        let Some(((first, _), also)) = files.split_first() else { return Ok(Vec::new()) };
        let _turn = self.side_by_side.acquire().await.expect("the semaphore is never closed");
        let answer =
            self.request_piece(load("_serve_file", first, also.iter().map(|(path, _)| *path), saltenv)).await?;
        let further = answer.get_list(ALSO).unwrap_or_default().iter();
        let mut answers = std::iter::once(&answer).chain(further);
        let mut contents = Vec::with_capacity(files.len());
        for (_, hash) in files {
            let data = answers.next().and_then(|answer| answer.get_bytes("data"));
            let data = data.filter(|data| data.len() as u64 <= SMALL_FILE && hash.matches(data));
            contents.push(data.map(<[u8]>::to_vec));
        }
        Ok(contents)
    }
}

fn load<'a>(cmd: &str, first: &SafePath, also: impl IntoIterator<Item = &'a SafePath>, saltenv: &Saltenv) -> Value {
    let mut load = file_load(cmd, first, saltenv);
    if cmd == "_serve_file" {
        load.insert("loc", 0);
    }
    load.insert(ALSO, Value::Array(also.into_iter().map(Value::from).collect()));
    load
}
