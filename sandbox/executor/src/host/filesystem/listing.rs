//! Lists a directory, with at most one page of entries in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{self, DirectoryEntry, DirectoryEntryStream, ErrorCode};

use super::blocking;
use super::convert::{code, kind};
use crate::guest::Guest;

/// Upper bound on the entries read at once.
const PAGE: usize = 128;

/// A directory that is being listed.
pub(super) struct Listing {
    dir: Arc<Mutex<rustix::fs::Dir>>,
    page: VecDeque<Result<DirectoryEntry, ErrorCode>>,
    ended: bool,
}

impl Listing {
    pub(super) fn new(dir: Arc<Mutex<rustix::fs::Dir>>) -> Self {
        Self { dir, page: VecDeque::new(), ended: false }
    }
}

impl types::HostDirectoryEntryStream for Guest {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let listing = self.table.get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
        if listing.page.is_empty() && !listing.ended {
            let dir = Arc::clone(&listing.dir);
            let page = blocking(move || Ok(page(&mut dir.lock().unwrap_or_else(PoisonError::into_inner)))).await?;
            listing.ended = page.len() < PAGE;
            listing.page = page;
        }
        Ok(listing.page.pop_front().transpose()?)
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

/// Reads the next entries. Fewer than [`PAGE`] entries are the last ones.
fn page(dir: &mut rustix::fs::Dir) -> VecDeque<Result<DirectoryEntry, ErrorCode>> {
    let mut page = VecDeque::new();
    while page.len() < PAGE {
        let entry = match dir.read() {
            None => break,
            Some(Err(error)) => {
                // Further reads would fail with the same error.
                page.push_back(Err(code(error)));
                break;
            }
            Some(Ok(entry)) => entry,
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let type_ = match entry.file_type() {
            FileType::Unknown => dir
                .fd()
                .and_then(|fd| rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW))
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            known => known,
        };
        let name = name.to_str().map(str::to_owned).map_err(|_| ErrorCode::IllegalByteSequence);
        page.push_back(name.map(|name| DirectoryEntry { type_: kind(type_), name }));
    }
    page
}
