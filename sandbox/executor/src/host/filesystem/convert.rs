//! Converts flags, types and errors between the kernel and WASI.

use std::io;

use rustix::fs::{FileType, OFlags, Stat, Timespec};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::{FsPerms, OpenMode};

pub(super) fn code(error: Errno) -> ErrorCode {
    match error {
        // The path leads out of the directory.
        Errno::XDEV => ErrorCode::NotPermitted,
        Errno::ROFS => ErrorCode::ReadOnly,
        error => ErrorCode::from(io::Error::from(error)),
    }
}

pub(super) fn kind(kind: FileType) -> DescriptorType {
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

pub(super) fn described(stat: &Stat) -> DescriptorStat {
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

/// Converts a field of `stat`, whose integer type depends on the architecture.
fn unsigned<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().unwrap_or(0)
}

pub(super) fn timespec(time: NewTimestamp) -> Result<Timespec, ErrorCode> {
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

/// The requested way to open a file, as flags of the kernel.
pub(super) struct Wanted {
    pub(super) flags: OFlags,
    pub(super) mode: OpenMode,
}

pub(super) fn wanted(
    perms: FsPerms,
    path: PathFlags,
    open: OpenFlags,
    flags: DescriptorFlags,
) -> Result<Wanted, ErrorCode> {
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
    if write && perms == FsPerms::ReadOnly {
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
