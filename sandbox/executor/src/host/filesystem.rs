//! `wasi:filesystem`: the granted directories, each under its own path. What resolves a path and opens is done here (see
//! [`crate::directories`]), as is listing, which holds no more of a directory than a page at a time; the rest is wasmtime's.

use std::any::Any;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use brine_sandbox_wire::Limits;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use wasmtime::component::{HasSelf, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{self, Descriptor, Dir, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode,
    Filesize, HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, TcpSocket};
use wasmtime_wasi::{FsPerms, OpenMode};

use super::Links;
use super::bindings::brine::host::metadata;
use crate::budget::{Budget, Counted, opened};
use crate::directories::{Directories, look_below, open_below, open_file};
use crate::guest::Guest;
use crate::outcome::HostFailure;

pub(super) const LINKS: Links = &[
    ("brine:host/metadata", |linker| metadata::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)),
    ("wasi:filesystem/types", |linker| types::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)),
    ("wasi:filesystem/preopens", |linker| preopens::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)),
];

/// Entries of a directory that are read at once and held.
const PAGE: usize = 128;

/// Files and sockets that one guest may have open. The directories that it was granted come on top, and are few.
const MAX_OPEN: usize = 100;

/// What part of the files that the process may have open is not for guests: it takes in modules as open files.
const RESERVED: u64 = 8;

/// What a call has of files.
#[derive(Default)]
pub struct Files {
    /// What it was granted, opened where it imports this.
    pub directories: Directories,
    /// What it may still write and make.
    pub budget: Arc<Budget>,
    /// What it has open itself. Streams keep a file open when its descriptor is gone, so it is the files that are counted.
    open: Vec<Weak<dyn Any + Send + Sync>>,
    ctx: WasiFilesystemCtx,
}

impl Files {
    /// Of a module's call.
    #[must_use]
    pub fn new(module: &Arc<str>, limits: &Limits) -> Self {
        Self { budget: Arc::new(Budget::new(module, limits)), ..Self::default() }
    }

    /// Whether there is room for one more beside so many sockets.
    ///
    /// # Errors
    /// There is none.
    pub fn room(&mut self, sockets: usize) -> Result<(), HostFailure> {
        if self.open.len() + sockets >= MAX_OPEN {
            self.open.retain(|open| open.strong_count() > 0);
        }
        if self.open.len() + sockets >= MAX_OPEN {
            return Err(HostFailure::TooManyOpen(MAX_OPEN));
        }
        // The next number is the lowest that is free, so it tells how many are taken.
        static CEILING: LazyLock<u64> = LazyLock::new(|| {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
            limit - limit / RESERVED
        });
        let next = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 0).map(|fd| u64::try_from(fd.as_raw_fd()));
        match next {
            Ok(Ok(next)) if next < *CEILING => Ok(()),
            _ => Err(HostFailure::NoFilesLeft),
        }
    }

    fn add<T: Send + Sync + 'static>(&mut self, file: &Arc<T>) {
        let weak = Arc::downgrade(file);
        self.open.push(weak);
    }
}

/// A directory that is being listed.
struct Listing {
    dir: Arc<Mutex<rustix::fs::Dir>>,
    page: VecDeque<Result<DirectoryEntry, ErrorCode>>,
    ended: bool,
}

fn code(error: Errno) -> ErrorCode {
    match error {
        // It leads out of the directory.
        Errno::XDEV => ErrorCode::NotPermitted,
        Errno::ROFS => ErrorCode::ReadOnly,
        error => ErrorCode::from(io::Error::from(error)),
    }
}

/// Runs what may block on a thread where it may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Errno> + Send + 'static) -> FsResult<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| code(error).into()),
        Err(error) => Err(FsError::trap(error)),
    }
}

fn kind(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::Unknown => DescriptorType::Unknown,
    }
}

fn described(stat: &Stat) -> DescriptorStat {
    let time = |seconds: i64, nanoseconds: u64| {
        let seconds = u64::try_from(seconds).ok()?;
        Some(Datetime { seconds, nanoseconds: u32::try_from(nanoseconds).unwrap_or(0) })
    };
    DescriptorStat {
        type_: kind(FileType::from_raw_mode(stat.st_mode)),
        link_count: unsigned(stat.st_nlink),
        size: unsigned(stat.st_size),
        data_access_timestamp: time(stat.st_atime, unsigned(stat.st_atime_nsec)),
        data_modification_timestamp: time(stat.st_mtime, unsigned(stat.st_mtime_nsec)),
        status_change_timestamp: time(stat.st_ctime, unsigned(stat.st_ctime_nsec)),
    }
}

/// The kernel's fields have another type on each machine.
fn unsigned<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().unwrap_or(0)
}

fn timespec(time: NewTimestamp) -> Result<Timespec, ErrorCode> {
    let invalid = |_| ErrorCode::Invalid;
    Ok(match time {
        NewTimestamp::NoChange => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        NewTimestamp::Now => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
        NewTimestamp::Timestamp(Datetime { seconds, nanoseconds }) if nanoseconds < 1_000_000_000 => {
            Timespec { tv_sec: seconds.try_into().map_err(invalid)?, tv_nsec: nanoseconds.into() }
        }
        NewTimestamp::Timestamp(_) => return Err(ErrorCode::Invalid),
    })
}

/// What is asked for, as the kernel takes it.
struct Wanted {
    flags: OFlags,
    mode: OpenMode,
}

fn wanted(dir: &Dir, path: PathFlags, open: OpenFlags, flags: DescriptorFlags) -> Result<Wanted, ErrorCode> {
    let synced = DescriptorFlags::FILE_INTEGRITY_SYNC
        | DescriptorFlags::DATA_INTEGRITY_SYNC
        | DescriptorFlags::REQUESTED_WRITE_SYNC;
    if (flags & synced) != DescriptorFlags::empty() {
        return Err(ErrorCode::Unsupported);
    }
    let made = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
    if open.contains(OpenFlags::DIRECTORY) && (open & made) != OpenFlags::empty() {
        return Err(ErrorCode::Invalid);
    }
    let changes = (open & (OpenFlags::CREATE | OpenFlags::TRUNCATE)) != OpenFlags::empty();
    let write = changes || flags.contains(DescriptorFlags::WRITE);
    let read = flags.contains(DescriptorFlags::READ) || !flags.contains(DescriptorFlags::WRITE);
    if write && dir.perms == FsPerms::ReadOnly {
        return Err(ErrorCode::NotPermitted);
    }
    let (mut wanted, mode) = match (read, write) {
        (true, true) => (OFlags::RDWR, OpenMode::READ | OpenMode::WRITE),
        (false, true) => (OFlags::WRONLY, OpenMode::WRITE),
        _ => (OFlags::RDONLY, OpenMode::READ),
    };
    wanted.set(OFlags::CREATE, open.contains(OpenFlags::CREATE));
    wanted.set(OFlags::EXCL, open.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE));
    wanted.set(OFlags::TRUNC, open.contains(OpenFlags::TRUNCATE));
    wanted.set(OFlags::DIRECTORY, open.contains(OpenFlags::DIRECTORY));
    wanted.set(OFlags::NOFOLLOW, !path.contains(PathFlags::SYMLINK_FOLLOW));
    Ok(Wanted { flags: wanted, mode })
}

/// A name in a directory.
struct Entry {
    fd: Resource<Descriptor>,
    path: String,
    /// Whether the directory was opened for this.
    own: bool,
}

impl Entry {
    fn fd(&self) -> Resource<Descriptor> {
        Resource::new_borrow(self.fd.rep())
    }
}

fn directory(table: &ResourceTable, fd: &Resource<Descriptor>) -> FsResult<Dir> {
    match table.get(fd)? {
        Descriptor::Dir(dir) => Ok(dir.clone()),
        Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
    }
}

/// What may not be changed at all is not counted.
fn writable_file(table: &ResourceTable, fd: &Resource<Descriptor>) -> FsResult<Arc<File>> {
    match table.get(fd)? {
        Descriptor::File(file) if file.perms == FsPerms::ReadOnly => Err(ErrorCode::NotPermitted.into()),
        _ => opened_file(table, fd),
    }
}

fn opened_file(table: &ResourceTable, fd: &Resource<Descriptor>) -> FsResult<Arc<File>> {
    match table.get(fd)? {
        Descriptor::File(file) => Ok(Arc::clone(&file.file)),
        // As wasmtime has it.
        Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
    }
}

fn is_directory(fd: &OwnedFd) -> Result<bool, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) == FileType::Directory)
}

impl Guest {
    /// Whether it may open one more file or socket.
    ///
    /// # Errors
    /// It may not.
    pub fn room(&mut self) -> Result<(), HostFailure> {
        // A socket cannot go before its streams, so those in the table are all there are.
        let table = &self.table;
        self.tcp.retain(|rep| table.get(&Resource::<TcpSocket>::new_borrow(*rep)).is_ok());
        self.files.room(self.tcp.len())
    }

    fn filesystem(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.files.ctx, table: &mut self.table }
    }

    /// An entry that is to be made (`new`), replaced or removed: where a narrower grant may be in the way, its directory and its name
    /// there, once it is known that it may be.
    async fn entry(&mut self, fd: Resource<Descriptor>, path: String, new: bool) -> FsResult<Entry> {
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

    async fn two_entries(
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

    fn leave(&mut self, Entry { fd, own, .. }: Entry) -> FsResult<()> {
        if own {
            self.table.delete(fd)?;
        }
        Ok(())
    }

    /// What a path leads to, for what needs no more than that.
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

/// A name that is counted before it is made.
struct NewName(Arc<Budget>);

impl NewName {
    /// Not counted where it was not made.
    fn keep(self, done: FsResult<()>) -> FsResult<()> {
        done.inspect_err(|_| self.0.not_made())
    }
}

impl Guest {
    fn new_name(&mut self, dir: &Resource<Descriptor>) -> FsResult<NewName> {
        if directory(&self.table, dir)?.perms == FsPerms::ReadOnly {
            return Err(ErrorCode::NotPermitted.into());
        }
        let budget = Arc::clone(&self.files.budget);
        budget.new_file().map_err(FsError::trap)?;
        Ok(NewName(budget))
    }

    /// The stream with what it writes counted.
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
        let directories: Vec<(Dir, String)> =
            self.files.directories.iter().map(|(path, dir)| (dir.clone(), path.to_owned())).collect();
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

/// Methods that wasmtime's own do.
macro_rules! theirs {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        $(async fn $name(&mut self, fd: Resource<Descriptor>, $($arg: $ty),*) -> $result {
            HostDescriptor::$name(&mut self.filesystem(), fd, $($arg),*).await
        })*
    };
}

impl HostDescriptor for Guest {
    theirs! {
        advise(offset: Filesize, length: Filesize, advice: Advice) -> FsResult<()>;
        sync_data() -> FsResult<()>;
        get_flags() -> FsResult<DescriptorFlags>;
        get_type() -> FsResult<DescriptorType>;
        set_times(access: NewTimestamp, modification: NewTimestamp) -> FsResult<()>;
        read(length: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)>;
        sync() -> FsResult<()>;
        stat() -> FsResult<DescriptorStat>;
        readlink_at(path: String) -> FsResult<String>;
        is_same_object(other: Resource<Descriptor>) -> wasmtime::Result<bool>;
        metadata_hash() -> FsResult<MetadataHashValue>;
        metadata_hash_at(flags: PathFlags, path: String) -> FsResult<MetadataHashValue>;
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let entry = self.entry(fd, path, true).await?;
        let (fd, path) = (entry.fd(), entry.path.clone());
        let made = self.new_name(&fd)?;
        let done = HostDescriptor::create_directory_at(&mut self.filesystem(), fd, path).await;
        self.leave(entry)?;
        made.keep(done)
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, target: String, path: String) -> FsResult<()> {
        let entry = self.entry(fd, path, true).await?;
        let (fd, path) = (entry.fd(), entry.path.clone());
        let made = self.new_name(&fd)?;
        let done = HostDescriptor::symlink_at(&mut self.filesystem(), fd, target, path).await;
        self.leave(entry)?;
        made.keep(done)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let entry = self.entry(fd, path, false).await?;
        let (fd, path) = (entry.fd(), entry.path.clone());
        let done = HostDescriptor::unlink_file_at(&mut self.filesystem(), fd, path).await;
        self.leave(entry)?;
        done
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let entry = self.entry(fd, path, false).await?;
        let (fd, path) = (entry.fd(), entry.path.clone());
        let done = HostDescriptor::remove_directory_at(&mut self.filesystem(), fd, path).await;
        self.leave(entry)?;
        done
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
        to: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        let (from, to) = self.two_entries((fd, path), (to, new), false).await?;
        let (fd, path, other, new) = (from.fd(), from.path.clone(), to.fd(), to.path.clone());
        let done = HostDescriptor::rename_at(&mut self.filesystem(), fd, path, other, new).await;
        self.leave(from)?;
        self.leave(to)?;
        done
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        to: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        let (from, to) = self.two_entries((fd, path), (to, new), true).await?;
        let (fd, path, other, new) = (from.fd(), from.path.clone(), to.fd(), to.path.clone());
        let made = self.new_name(&other)?;
        let done = HostDescriptor::link_at(&mut self.filesystem(), fd, flags, path, other, new).await;
        self.leave(from)?;
        self.leave(to)?;
        made.keep(done)
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let dir = directory(&self.table, &fd)?;
        let Wanted { flags, mode } = wanted(&dir, path_flags, open_flags, flags)?;
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
            Descriptor::Dir(dir) => self.files.add(&dir.dir),
            Descriptor::File(file) => self.files.add(&file.file),
        }
        Ok(self.table.push(opened)?)
    }

    async fn stat_at(&mut self, fd: Resource<Descriptor>, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
        self.looked_at(&fd, path, follow, |fd| Ok(described(&rustix::fs::fstat(fd)?))).await
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        if directory(&self.table, &fd)?.perms == FsPerms::ReadOnly {
            return Err(ErrorCode::NotPermitted.into());
        }
        let times = Timestamps { last_access: timespec(access)?, last_modification: timespec(modification)? };
        let dir = directory(&self.table, &fd)?.dir;
        let root = self.files.directories.is_root(&dir);
        // Of what is open: those of a path are not judged by landlock. A link's own cannot be set so, and nobody does.
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
        let stream = self.table.push(Listing { dir, page: VecDeque::new(), ended: false })?;
        // What the guest holds is a number; that it stands for a stream of ours is known here alone.
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

/// The next entries; fewer than [`PAGE`] are the last.
fn page(dir: &mut rustix::fs::Dir) -> VecDeque<Result<DirectoryEntry, ErrorCode>> {
    let mut page = VecDeque::new();
    while page.len() < PAGE {
        let entry = match dir.read() {
            None => break,
            Some(Err(error)) => {
                // Reading on would give the same.
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
