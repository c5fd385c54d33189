//! Opens files and directories: those in granted directories, and files that were granted by themselves. Paths that were not granted are
//! told to the owner of the host.

use std::fs::File;
use std::sync::Arc;

use brine_sandbox_wire::PathAccess;
use rustix::fs::{Mode, OFlags};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{self, Descriptor, Dir};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, HostDescriptor, MetadataHashValue, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::{FsPerms, OpenMode};

use super::convert::{Wanted, wanted};
use super::{blocking, directory, is_directory};
use crate::budget::opened;
use crate::directories::{OneFile, nowhere};
use crate::failure::HostFailure;
use crate::guest::Guest;
use crate::open::{look_below, open_file};

/// The same descriptor for another call.
pub(super) fn same(fd: &Resource<Descriptor>) -> Resource<Descriptor> {
    Resource::new_borrow(fd.rep())
}

impl Guest {
    /// Refuses the directory that stands for all that is not granted.
    pub(super) fn somewhere(&self, fd: &Resource<Descriptor>) -> FsResult<()> {
        match self.table.get(fd)? {
            Descriptor::Dir(dir) if Arc::ptr_eq(&dir.dir, &nowhere().dir) => Err(ErrorCode::NotPermitted.into()),
            _ => Ok(()),
        }
    }

    /// Returns the granted file that a path means, with its path on the host.
    pub(super) fn one_file(&self, fd: &Resource<Descriptor>, path: &str) -> FsResult<Option<(String, OneFile)>> {
        let directories = &self.files.directories;
        if directories.files().next().is_none() {
            return Ok(None);
        }
        let Some(path) = self.meant(&directory(&self.table, fd)?.dir, path) else { return Ok(None) };
        Ok(directories.file(&path).map(|file| (path, file)))
    }

    /// Tells the owner of a path that was refused because it was not granted. Passes the result on.
    pub(super) async fn owner_told<T>(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        access: PathAccess,
        done: FsResult<T>,
    ) -> FsResult<T> {
        if matches!(&done, Err(error) if matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted)))
            && let Ok(dir) = directory(&self.table, fd)
        {
            self.refused_path(&dir, path, access).await;
        }
        done
    }

    /// The same for several paths, of which one was refused. The minion knows which were granted.
    pub(super) async fn owner_told_all(
        &mut self,
        places: &[(Resource<Descriptor>, String)],
        access: PathAccess,
        mut done: FsResult<()>,
    ) -> FsResult<()> {
        for (fd, path) in places {
            done = self.owner_told(fd, path, access, done).await;
        }
        done
    }

    /// Opens a granted file. None of its flags makes it.
    pub(super) async fn open_one(
        &mut self,
        path: &str,
        file: OneFile,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
        changes: bool,
    ) -> FsResult<Resource<Descriptor>> {
        if changes && self.files.would_write.as_ref().is_some_and(|would| would.file(path)) {
            return Err(FsError::trap(HostFailure::Planned(format!("would write: {path}"))));
        }
        if open_flags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) {
            return Err(ErrorCode::Exist.into());
        }
        let perms = if file.writable { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
        let made = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let changed = if changes { flags | DescriptorFlags::WRITE } else { flags };
        let Wanted { flags, mode } = wanted(perms, PathFlags::empty(), open_flags & !made, changed)?;
        self.room().map_err(FsError::trap)?;
        let fd = blocking(move || open_file(&file.parent, false, &file.name, flags, Mode::empty())).await?;
        let file = filesystem::File::new(File::from(fd), perms, mode, false);
        self.files.add(&file.file);
        Ok(self.table.push(Descriptor::File(file))?)
    }

    pub(super) async fn hash_of(&mut self, file: OneFile) -> FsResult<MetadataHashValue> {
        let fd = blocking(move || look_below(&file.parent, false, &file.name, false)).await?;
        let file = filesystem::File::new(File::from(fd), FsPerms::ReadOnly, OpenMode::READ, false);
        let fd = self.table.push(Descriptor::File(file))?;
        let hash = HostDescriptor::metadata_hash(&mut self.filesystem(), same(&fd)).await;
        self.table.delete(fd)?;
        hash
    }

    /// Opens a path in a granted directory.
    pub(super) async fn open_there(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
        changes: bool,
    ) -> FsResult<Resource<Descriptor>> {
        self.somewhere(&fd)?;
        if changes {
            self.would_write(&fd, &path).await?;
        }
        let dir = directory(&self.table, &fd)?;
        let meant = self.meant(&dir.dir, &path);
        let Wanted { flags, mode } = wanted(dir.perms, path_flags, open_flags, flags)?;
        self.room().map_err(FsError::trap)?;
        let root = self.files.directories.is_root(&dir.dir);
        let budget = Arc::clone(&self.files.budget);
        let narrower = self.files.directories.narrower();
        let opened = blocking(move || {
            let made = OFlags::CREATE | OFlags::EXCL;
            let (create, exclusive) = (flags.contains(OFlags::CREATE), flags.contains(OFlags::EXCL));
            let opened = opened(&budget, create, exclusive, |create| {
                let flags = if create { flags } else { flags - made };
                match &narrower {
                    None => Ok((open_file(&dir.dir, root, &path, flags, Mode::from_raw_mode(0o666))?, true)),
                    Some(narrower) => narrower.open(&dir.dir, root, &path, flags, mode.contains(OpenMode::WRITE)),
                }
            });
            let (fd, may_change) = match opened? {
                Ok(opened) => opened,
                Err(failure) => return Ok(Err(failure)),
            };
            let perms = if may_change { dir.perms } else { FsPerms::ReadOnly };
            let is_directory = is_directory(&fd)?;
            let file = File::from(fd);
            Ok(Ok(match is_directory {
                true => Descriptor::Dir(Dir::new(file, perms, mode, false)),
                false => Descriptor::File(filesystem::File::new(file, perms, mode, false)),
            }))
        });
        let opened = opened.await?.map_err(FsError::trap)?;
        match &opened {
            Descriptor::Dir(dir) => {
                self.files.add(&dir.dir);
                if let Some(path) = meant {
                    self.files.remember(&dir.dir, path);
                }
            }
            Descriptor::File(file) => self.files.add(&file.file),
        }
        Ok(self.table.push(opened)?)
    }
}
