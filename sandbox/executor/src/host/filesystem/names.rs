//! Makes, replaces and removes names in directories. New names are counted, and a read-only grant below a writable one
//! is respected.

use std::fs::File;
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::{FsPerms, OpenMode};

use super::{blocking, directory};
use crate::budget::Budget;
use crate::guest::Guest;

/// A name in a directory.
pub(super) struct Entry {
    fd: Resource<Descriptor>,
    pub(super) path: String,
    /// Whether the directory was opened for this entry.
    own: bool,
}

impl Entry {
    pub(super) fn fd(&self) -> Resource<Descriptor> {
        Resource::new_borrow(self.fd.rep())
    }
}

/// A name that was counted before it is made.
pub(super) struct NewName(Arc<Budget>);

impl NewName {
    /// Keeps the count if the name was made, and gives it back otherwise.
    pub(super) fn keep(self, done: FsResult<()>) -> FsResult<()> {
        done.inspect_err(|_| self.0.not_made())
    }
}

impl Guest {
    /// Resolves an entry that is to be made (`new`), replaced or removed. If a read-only grant may lie below, this
    /// returns the directory and the name that the path leads to, after checking that they may change.
    pub(super) async fn entry(&mut self, fd: Resource<Descriptor>, path: String, new: bool) -> FsResult<Entry> {
        let dir = directory(&self.table, &fd)?;
        let Some(narrower) = self.files.directories.narrower() else { return Ok(Entry { fd, path, own: false }) };
        if dir.perms == FsPerms::ReadOnly {
            return Err(ErrorCode::NotPermitted.into());
        }
        let root = self.files.directories.is_root(&dir.dir);
        let (of, path) = blocking(move || narrower.entry(&dir.dir, root, &path, new)).await?;
        let of = Dir::new(File::from(of), FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE, false);
        Ok(Entry { fd: self.table.push(Descriptor::Dir(of))?, path, own: true })
    }

    /// As [`Guest::entry`], for the only entry of an operation: after the checks that it is somewhere and that this is no dry run.
    pub(super) async fn changed_entry(&mut self, fd: Resource<Descriptor>, path: String, new: bool) -> FsResult<Entry> {
        self.somewhere(&fd)?;
        self.would_write(&fd, &path).await?;
        self.entry(fd, path, new).await
    }

    pub(super) async fn two_entries(
        &mut self,
        from: (Resource<Descriptor>, String),
        to: (Resource<Descriptor>, String),
        new: bool,
    ) -> FsResult<(Entry, Entry)> {
        let from = self.entry(from.0, from.1, false).await?;
        match self.entry(to.0, to.1, new).await {
            Ok(to) => Ok((from, to)),
            Err(error) => {
                self.leave(from)?;
                Err(error)
            }
        }
    }

    pub(super) fn leave(&mut self, Entry { fd, own, .. }: Entry) -> FsResult<()> {
        if own {
            self.table.delete(fd)?;
        }
        Ok(())
    }

    pub(super) fn new_name(&mut self, dir: &Resource<Descriptor>) -> FsResult<NewName> {
        if directory(&self.table, dir)?.perms == FsPerms::ReadOnly {
            return Err(ErrorCode::NotPermitted.into());
        }
        let budget = Arc::clone(&self.files.budget);
        budget.new_file().map_err(FsError::trap)?;
        Ok(NewName(budget))
    }
}
