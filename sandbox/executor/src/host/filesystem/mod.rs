//! `wasi:filesystem`: the granted directories, each under its own path, and `/`, below which granted files are found and all else is
//! refused. This crate resolves paths and opens files (see [`crate::directories`]); wasmtime implements the rest.
//!
//! - `names.rs` makes, replaces and removes names; `listing.rs` lists directories; `convert.rs` converts between the
//!   kernel's and WASI's types; `opening.rs` opens files, and tells of paths that were not granted

mod convert;
mod listing;
mod names;
mod opening;

use std::fs::File;
use std::sync::{Arc, Mutex};

use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, Timestamps};
use rustix::io::Errno;
use wasmtime::component::{HasSelf, Resource, ResourceTable};
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, Dir, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntryStream, ErrorCode, Filesize,
    HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, TcpSocket};

use super::Links;
use super::bindings::brine::host::metadata;
use crate::budget::Counted;
use crate::directories::nowhere;
use crate::failure::HostFailure;
use crate::guest::Guest;
use crate::open::{look_below, open_below, open_file};
use brine_sandbox_wire::PathAccess;
use convert::{code, described, timespec};
use listing::Listing;
use opening::same;

pub(super) const LINKS: Links = &[
    ("brine:host/metadata", |linker| metadata::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)),
    ("wasi:filesystem/types", |linker| types::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)),
    ("wasi:filesystem/preopens", |linker| preopens::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)),
];

/// Runs blocking work on a thread for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Errno> + Send + 'static) -> FsResult<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| code(error).into()),
        Err(error) => Err(FsError::trap(error)),
    }
}

fn directory(table: &ResourceTable, fd: &Resource<Descriptor>) -> FsResult<Dir> {
    match table.get(fd)? {
        Descriptor::Dir(dir) => Ok(dir.clone()),
        Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
    }
}

/// Returns the file of a descriptor, or an error if the file may not be written. A refused write is not counted.
fn writable_file(table: &ResourceTable, fd: &Resource<Descriptor>) -> FsResult<Arc<File>> {
    match table.get(fd)? {
        Descriptor::File(file) if file.perms == FsPerms::ReadOnly => Err(ErrorCode::NotPermitted.into()),
        _ => opened_file(table, fd),
    }
}

fn opened_file(table: &ResourceTable, fd: &Resource<Descriptor>) -> FsResult<Arc<File>> {
    match table.get(fd)? {
        Descriptor::File(file) => Ok(Arc::clone(&file.file)),
        // wasmtime's error for this case.
        Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
    }
}

fn is_directory(fd: &OwnedFd) -> Result<bool, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) == FileType::Directory)
}

impl Guest {
    /// Checks that the guest may open one more file or socket.
    ///
    /// # Errors
    /// The limit is reached.
    pub fn room(&mut self) -> Result<(), HostFailure> {
        // A socket cannot be dropped before its streams, so the sockets in the table are all open sockets.
        let table = &self.table;
        self.tcp.retain(|rep| table.get(&Resource::<TcpSocket>::new_borrow(*rep)).is_ok());
        self.files.room(self.tcp.len())
    }

    /// Ends the call in plan mode, before it changes an entry of a directory that is writable otherwise.
    async fn would_write(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<()> {
        let Some(would) = self.files.would_write.clone() else { return Ok(()) };
        let (dir, path) = (directory(&self.table, fd)?.dir, path.to_owned());
        match blocking(move || Ok(would.path(&dir, &path))).await? {
            Some(path) => Err(FsError::trap(HostFailure::Planned(format!("would write: {path}")))),
            None => Ok(()),
        }
    }

    fn filesystem(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.files.ctx, table: &mut self.table }
    }

    /// Opens a path for its metadata and calls `then` with it.
    async fn looked_at<T: Send + 'static>(
        &mut self,
        fd: &Resource<Descriptor>,
        path: String,
        follow: bool,
        then: impl FnOnce(&OwnedFd) -> Result<T, Errno> + Send + 'static,
    ) -> FsResult<T> {
        let dir = directory(&self.table, fd)?.dir;
        let root = self.files.directories.is_root(&dir);
        blocking(move || then(&look_below(&dir, root, &path, follow)?)).await
    }
}

impl Guest {
    /// Wraps a stream so that its writes are counted.
    fn counted(
        &mut self,
        stream: Resource<DynOutputStream>,
        file: Arc<File>,
        at: Option<Filesize>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.table.delete(stream)?;
        let counted: DynOutputStream = Box::new(Counted::new(inner, file, at, Arc::clone(&self.files.budget)));
        Ok(self.table.push(counted)?)
    }
}

impl preopens::Host for Guest {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut directories: Vec<(Dir, String)> =
            self.files.directories.iter().map(|(path, dir)| (dir.clone(), path.to_owned())).collect();
        // Granted files are found there; what is refused there is told to the owner.
        let needed = !self.files.asks || self.files.directories.files().next().is_some();
        if needed && directories.iter().all(|(_, path)| path != "/") {
            directories.push((nowhere().clone(), "/".to_owned()));
        }
        directories.into_iter().map(|(dir, path)| Ok((self.table.push(Descriptor::Dir(dir))?, path))).collect()
    }
}

impl types::Host for Guest {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        types::Host::filesystem_error_code(&mut self.filesystem(), error)
    }
}

/// Implements methods by calling wasmtime's, for all that is somewhere.
macro_rules! theirs {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        $(async fn $name(&mut self, fd: Resource<Descriptor>, $($arg: $ty),*) -> $result {
            self.somewhere(&fd)?;
            HostDescriptor::$name(&mut self.filesystem(), fd, $($arg),*).await
        })*
    };
}

impl HostDescriptor for Guest {
    theirs! {
        advise(offset: Filesize, length: Filesize, advice: Advice) -> FsResult<()>;
        sync_data() -> FsResult<()>;
        set_times(access: NewTimestamp, modification: NewTimestamp) -> FsResult<()>;
        read(length: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)>;
        sync() -> FsResult<()>;
        stat() -> FsResult<DescriptorStat>;
        metadata_hash() -> FsResult<MetadataHashValue>;
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        // From there a guest reads granted files at most.
        if self.somewhere(&fd).is_err() {
            let some = self.files.directories.files().next().is_some();
            return Ok(if some { DescriptorFlags::READ } else { DescriptorFlags::empty() });
        }
        HostDescriptor::get_flags(&mut self.filesystem(), fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        if self.somewhere(&fd).is_err() {
            return Ok(DescriptorType::Directory);
        }
        HostDescriptor::get_type(&mut self.filesystem(), fd).await
    }

    async fn is_same_object(
        &mut self,
        fd: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        HostDescriptor::is_same_object(&mut self.filesystem(), fd, other).await
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        let (dir, named) = (same(&fd), path.clone());
        let done = match self.somewhere(&fd) {
            Ok(()) => HostDescriptor::readlink_at(&mut self.filesystem(), fd, path).await,
            Err(error) => Err(error),
        };
        self.owner_told(&dir, &named, PathAccess::Read, done).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        if let Some((_, file)) = self.one_file(&fd, &path)? {
            return self.hash_of(file).await;
        }
        let (dir, named) = (same(&fd), path.clone());
        let done = match self.somewhere(&fd) {
            Ok(()) => HostDescriptor::metadata_hash_at(&mut self.filesystem(), fd, flags, path).await,
            Err(error) => Err(error),
        };
        self.owner_told(&dir, &named, PathAccess::Read, done).await
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let places = [(same(&fd), path.clone())];
        let done: FsResult<()> = async {
            let entry = self.changed_entry(fd, path, true).await?;
            let (fd, path) = (entry.fd(), entry.path.clone());
            let made = self.new_name(&fd)?;
            let done = HostDescriptor::create_directory_at(&mut self.filesystem(), fd, path).await;
            self.leave(entry)?;
            made.keep(done)
        }
        .await;
        self.owner_told_all(&places, PathAccess::Name, done).await
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, target: String, path: String) -> FsResult<()> {
        let places = [(same(&fd), path.clone())];
        let done: FsResult<()> = async {
            let entry = self.changed_entry(fd, path, true).await?;
            let (fd, path) = (entry.fd(), entry.path.clone());
            let made = self.new_name(&fd)?;
            let done = HostDescriptor::symlink_at(&mut self.filesystem(), fd, target, path).await;
            self.leave(entry)?;
            made.keep(done)
        }
        .await;
        self.owner_told_all(&places, PathAccess::Name, done).await
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let places = [(same(&fd), path.clone())];
        let done: FsResult<()> = async {
            let entry = self.changed_entry(fd, path, false).await?;
            let (fd, path) = (entry.fd(), entry.path.clone());
            let done = HostDescriptor::unlink_file_at(&mut self.filesystem(), fd, path).await;
            self.leave(entry)?;
            done
        }
        .await;
        self.owner_told_all(&places, PathAccess::Name, done).await
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let places = [(same(&fd), path.clone())];
        let done: FsResult<()> = async {
            let entry = self.changed_entry(fd, path, false).await?;
            let (fd, path) = (entry.fd(), entry.path.clone());
            let done = HostDescriptor::remove_directory_at(&mut self.filesystem(), fd, path).await;
            self.leave(entry)?;
            done
        }
        .await;
        self.owner_told_all(&places, PathAccess::Name, done).await
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
        to: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        let places = [(same(&fd), path.clone()), (same(&to), new.clone())];
        let done: FsResult<()> = async {
            self.somewhere(&fd)?;
            self.somewhere(&to)?;
            self.would_write(&to, &new).await?;
            self.would_write(&fd, &path).await?;
            let (from, to) = self.two_entries((fd, path), (to, new), false).await?;
            let (fd, path, other, new) = (from.fd(), from.path.clone(), to.fd(), to.path.clone());
            let done = HostDescriptor::rename_at(&mut self.filesystem(), fd, path, other, new).await;
            self.leave(from)?;
            self.leave(to)?;
            done
        }
        .await;
        self.owner_told_all(&places, PathAccess::Name, done).await
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        to: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        let places = [(same(&fd), path.clone()), (same(&to), new.clone())];
        let done: FsResult<()> = async {
            self.somewhere(&fd)?;
            self.somewhere(&to)?;
            self.would_write(&to, &new).await?;
            let (from, to) = self.two_entries((fd, path), (to, new), true).await?;
            let (fd, path, other, new) = (from.fd(), from.path.clone(), to.fd(), to.path.clone());
            let made = self.new_name(&other)?;
            let done = HostDescriptor::link_at(&mut self.filesystem(), fd, flags, path, other, new).await;
            self.leave(from)?;
            self.leave(to)?;
            made.keep(done)
        }
        .await;
        self.owner_told_all(&places, PathAccess::Name, done).await
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let made = OpenFlags::CREATE | OpenFlags::TRUNCATE;
        let changes = flags.contains(DescriptorFlags::WRITE) || (open_flags & made) != OpenFlags::empty();
        let (dir, named) = (same(&fd), path.clone());
        let done = match self.one_file(&fd, &path)? {
            Some((path, file)) => self.open_one(&path, file, open_flags, flags, changes).await,
            None => self.open_there(fd, path_flags, path, open_flags, flags, changes).await,
        };
        let access = if changes { PathAccess::Change } else { PathAccess::Read };
        self.owner_told(&dir, &named, access, done).await
    }

    async fn stat_at(&mut self, fd: Resource<Descriptor>, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        if let Some((_, file)) = self.one_file(&fd, &path)? {
            let stat = move || rustix::fs::fstat(look_below(&file.parent, false, &file.name, false)?);
            return blocking(move || Ok(described(&stat()?))).await;
        }
        let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let done = match self.somewhere(&fd) {
            Ok(()) => self.looked_at(&fd, path.clone(), follow, |fd| Ok(described(&rustix::fs::fstat(fd)?))).await,
            Err(error) => Err(error),
        };
        self.owner_told(&fd, &path, PathAccess::Read, done).await
    }
    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        self.would_write(&fd, &path).await?;
        if directory(&self.table, &fd)?.perms == FsPerms::ReadOnly {
            return self.owner_told(&fd, &path, PathAccess::Change, Err(ErrorCode::NotPermitted.into())).await;
        }
        let times = Timestamps { last_access: timespec(access)?, last_modification: timespec(modification)? };
        let dir = directory(&self.table, &fd)?.dir;
        let root = self.files.directories.is_root(&dir);
        // The file is opened, because landlock does not restrict changing the times of a path. The times of a symbolic
        // link itself cannot be set this way, which programs do not need.
        let mut how = OFlags::RDONLY;
        how.set(OFlags::NOFOLLOW, !flags.contains(PathFlags::SYMLINK_FOLLOW));
        let narrower = self.files.directories.narrower();
        let opened = move || match narrower {
            None => open_file(&dir, root, &path, how, Mode::empty()),
            Some(narrower) => narrower.open(&dir, root, &path, how, true).map(|(fd, _)| fd),
        };
        blocking(move || rustix::fs::futimens(opened()?, &times)).await
    }

    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        let dir = directory(&self.table, &fd)?.dir;
        self.room().map_err(FsError::trap)?;
        let opened = blocking(move || {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            rustix::fs::Dir::new(open_below(&dir, false, ".", flags, Mode::empty())?)
        });
        let dir = Arc::new(Mutex::new(opened.await?));
        self.files.add(&dir);
        let stream = self.table.push(Listing::new(dir))?;
        // The guest holds only a number. This cast makes the number refer to a stream of this crate.
        Ok(Resource::new_own(stream.rep()))
    }

    fn read_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        HostDescriptor::read_via_stream(&mut self.filesystem(), fd, offset)
    }

    fn write_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        let file = opened_file(&self.table, &fd)?;
        let stream = HostDescriptor::write_via_stream(&mut self.filesystem(), fd, offset)?;
        self.counted(stream, file, Some(offset))
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        let file = opened_file(&self.table, &fd)?;
        let stream = HostDescriptor::append_via_stream(&mut self.filesystem(), fd)?;
        self.counted(stream, file, None)
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let file = writable_file(&self.table, &fd)?;
        let budget = Arc::clone(&self.files.budget);
        let taken = budget.set_size(&file, size).map_err(FsError::trap)?;
        let done = HostDescriptor::set_size(&mut self.filesystem(), fd, size).await;
        done.inspect_err(|_| budget.give_back(taken))
    }

    async fn write(&mut self, fd: Resource<Descriptor>, buffer: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        let file = writable_file(&self.table, &fd)?;
        let budget = Arc::clone(&self.files.budget);
        let taken = budget.write(&file, Some(offset), buffer.len()).map_err(FsError::trap)?;
        let done = HostDescriptor::write(&mut self.filesystem(), fd, buffer, offset).await;
        done.inspect_err(|_| budget.give_back(taken))
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.filesystem(), fd)
    }
}
