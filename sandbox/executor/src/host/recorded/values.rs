//! How arguments, results and errors are written down.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use brine_sandbox_wire::ByteBuf;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode as FileCode, MetadataHashValue,
    NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::bindings::sockets::network::{
    ErrorCode as SocketCode, IpAddress, IpAddressFamily, IpSocketAddress,
};
use wasmtime_wasi::p2::bindings::sockets::tcp::ShutdownType;
use wasmtime_wasi::p2::{FsError, SocketError, StreamError};

use crate::host::bindings::brine::host::metadata;

/// An argument as it is written down.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Arg {
    /// A number, or a handle's.
    Number(u64),
    /// A truth value.
    Truth(bool),
    /// Text, or another value in words.
    Text(String),
    /// Bytes.
    Bytes(ByteBuf),
    /// A list.
    Many(Vec<Arg>),
}

/// A type of arguments.
pub(super) trait Asks {
    /// Returns the value as it is written down.
    fn written(&self) -> Arg;
}

macro_rules! asks {
    ($($ty:ty: |$value:ident| $arg:expr;)*) => {
        $(impl Asks for $ty {
            fn written(&self) -> Arg {
                let $value = self;
                $arg
            }
        })*
    };
}

asks! {
    u64: |value| Arg::Number(*value);
    u32: |value| Arg::Number(u64::from(*value));
    u8: |value| Arg::Number(u64::from(*value));
    bool: |value| Arg::Truth(*value);
    String: |value| Arg::Text(value.clone());
    Vec<u8>: |value| Arg::Bytes(ByteBuf::from(value.clone()));
    Advice: |value| in_words(value);
    NewTimestamp: |value| in_words(value);
    PathFlags: |value| in_words(value);
    OpenFlags: |value| in_words(value);
    DescriptorFlags: |value| in_words(value);
    IpAddressFamily: |value| in_words(value);
    IpSocketAddress: |value| in_words(value);
    ShutdownType: |value| in_words(value);
}

impl<T: 'static> Asks for Resource<T> {
    fn written(&self) -> Arg {
        Arg::Number(u64::from(self.rep()))
    }
}

impl<T: 'static> Asks for Vec<Resource<T>> {
    fn written(&self) -> Arg {
        Arg::Many(self.iter().map(Asks::written).collect())
    }
}

fn in_words(value: &impl Debug) -> Arg {
    Arg::Text(format!("{value:?}"))
}

/// What a function of the host returned.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer<T> {
    /// Its result.
    Ok(T),
    /// The interface's own error.
    Code(String),
    /// The host ended the guest.
    Ended,
}

/// A type of results.
pub(super) trait Told: Sized {
    /// The form in which it is written down.
    type Written: Serialize + DeserializeOwned;

    /// Returns the value as it is written down.
    fn written(&self) -> Self::Written;

    /// Reads the value. None if there is no such value.
    fn read(written: Self::Written) -> Option<Self>;
}

macro_rules! told_as_they_are {
    ($($ty:ty),*) => {
        $(impl Told for $ty {
            type Written = Self;

            fn written(&self) -> Self {
                self.clone()
            }

            fn read(written: Self) -> Option<Self> {
                Some(written)
            }
        })*
    };
}

told_as_they_are!((), bool, u8, u32, u64, String, (u64, u64), Vec<u32>, Vec<String>, Vec<(String, String)>);

impl Told for Vec<u8> {
    type Written = ByteBuf;

    fn written(&self) -> ByteBuf {
        ByteBuf::from(self.clone())
    }

    fn read(written: ByteBuf) -> Option<Self> {
        Some(written.into_vec())
    }
}

impl<T: 'static> Told for Resource<T> {
    type Written = u32;

    fn written(&self) -> u32 {
        self.rep()
    }

    fn read(written: u32) -> Option<Self> {
        Some(Self::new_own(written))
    }
}

impl<T: Told> Told for Option<T> {
    type Written = Option<T::Written>;

    fn written(&self) -> Self::Written {
        self.as_ref().map(Told::written)
    }

    fn read(written: Self::Written) -> Option<Self> {
        match written {
            None => Some(None),
            Some(written) => T::read(written).map(Some),
        }
    }
}

impl<T: Told, E: Told> Told for Result<T, E> {
    type Written = Result<T::Written, E::Written>;

    fn written(&self) -> Self::Written {
        self.as_ref().map(Told::written).map_err(Told::written)
    }

    fn read(written: Self::Written) -> Option<Self> {
        Some(match written {
            Ok(written) => Ok(T::read(written)?),
            Err(written) => Err(E::read(written)?),
        })
    }
}

impl<T: 'static> Told for Vec<(Resource<T>, String)> {
    type Written = Vec<(u32, String)>;

    fn written(&self) -> Self::Written {
        self.iter().map(|(handle, path)| (handle.rep(), path.clone())).collect()
    }

    fn read(written: Self::Written) -> Option<Self> {
        Some(written.into_iter().map(|(handle, path)| (Resource::new_own(handle), path)).collect())
    }
}

impl Told for (Vec<u8>, bool) {
    type Written = (ByteBuf, bool);

    fn written(&self) -> Self::Written {
        (Told::written(&self.0), self.1)
    }

    fn read((bytes, flag): Self::Written) -> Option<Self> {
        Some((bytes.into_vec(), flag))
    }
}

impl<A: 'static, B: 'static> Told for (Resource<A>, Resource<B>) {
    type Written = (u32, u32);

    fn written(&self) -> Self::Written {
        (self.0.rep(), self.1.rep())
    }

    fn read((a, b): Self::Written) -> Option<Self> {
        Some((Resource::new_own(a), Resource::new_own(b)))
    }
}

impl<A: 'static, B: 'static, C: 'static> Told for (Resource<A>, Resource<B>, Resource<C>) {
    type Written = (u32, u32, u32);

    fn written(&self) -> Self::Written {
        (self.0.rep(), self.1.rep(), self.2.rep())
    }

    fn read((a, b, c): Self::Written) -> Option<Self> {
        Some((Resource::new_own(a), Resource::new_own(b), Resource::new_own(c)))
    }
}

impl Told for Datetime {
    type Written = (u64, u32);

    fn written(&self) -> Self::Written {
        (self.seconds, self.nanoseconds)
    }

    fn read((seconds, nanoseconds): Self::Written) -> Option<Self> {
        Some(Self { seconds, nanoseconds })
    }
}

/// Enumerations, written down as their place in this list, and error codes, by their names in WIT.
macro_rules! cases {
    ($($ty:ty: $($case:ident)*;)*) => {
        $(impl Cases for $ty {
            const ALL: &[Self] = &[$(Self::$case),*];
        }

        impl Told for $ty {
            type Written = usize;

            fn written(&self) -> usize {
                Self::ALL.iter().position(|case| case == self).unwrap_or(usize::MAX)
            }

            fn read(written: usize) -> Option<Self> {
                Self::ALL.get(written).copied()
            }
        })*
    };
}

trait Cases: Sized + 'static {
    const ALL: &[Self];
}

cases! {
    DescriptorType: Unknown BlockDevice CharacterDevice Directory Fifo SymbolicLink RegularFile Socket;
    IpAddressFamily: Ipv4 Ipv6;
    FileCode: Access WouldBlock Already BadDescriptor Busy Deadlock Quota Exist FileTooLarge IllegalByteSequence
        InProgress Interrupted Invalid Io IsDirectory Loop TooManyLinks MessageSize NameTooLong NoDevice NoEntry NoLock
        InsufficientMemory InsufficientSpace NotDirectory NotEmpty NotRecoverable Unsupported NoTty NoSuchDevice Overflow
        NotPermitted Pipe ReadOnly InvalidSeek TextFileBusy CrossDevice;
    SocketCode: Unknown AccessDenied NotSupported InvalidArgument OutOfMemory Timeout ConcurrencyConflict NotInProgress
        WouldBlock InvalidState NewSocketLimit AddressNotBindable AddressInUse RemoteUnreachable ConnectionRefused
        ConnectionReset ConnectionAborted DatagramTooLarge NameUnresolvable TemporaryResolverFailure
        PermanentResolverFailure;
}

/// The flags of a descriptor, in the order of their bits.
const FLAGS: [DescriptorFlags; 6] = [
    DescriptorFlags::READ,
    DescriptorFlags::WRITE,
    DescriptorFlags::FILE_INTEGRITY_SYNC,
    DescriptorFlags::DATA_INTEGRITY_SYNC,
    DescriptorFlags::REQUESTED_WRITE_SYNC,
    DescriptorFlags::MUTATE_DIRECTORY,
];

impl Told for DescriptorFlags {
    type Written = [bool; 6];

    fn written(&self) -> Self::Written {
        FLAGS.map(|flag| self.contains(flag))
    }

    fn read(written: Self::Written) -> Option<Self> {
        let set = FLAGS.into_iter().zip(written).filter(|(_, set)| *set);
        Some(set.fold(Self::empty(), |all, (flag, _)| all | flag))
    }
}

impl Told for DescriptorStat {
    type Written = (usize, u64, u64, [Option<(u64, u32)>; 3]);

    fn written(&self) -> Self::Written {
        let times = [self.data_access_timestamp, self.data_modification_timestamp, self.status_change_timestamp];
        (self.type_.written(), self.link_count, self.size, times.map(|time| time.written()))
    }

    fn read((type_, link_count, size, times): Self::Written) -> Option<Self> {
        let [access, modification, change] = times.map(|time| Option::<Datetime>::read(time).flatten());
        Some(Self {
            type_: DescriptorType::read(type_)?,
            link_count,
            size,
            data_access_timestamp: access,
            data_modification_timestamp: modification,
            status_change_timestamp: change,
        })
    }
}

impl Told for MetadataHashValue {
    type Written = (u64, u64);

    fn written(&self) -> Self::Written {
        (self.lower, self.upper)
    }

    fn read((lower, upper): Self::Written) -> Option<Self> {
        Some(Self { lower, upper })
    }
}

impl Told for DirectoryEntry {
    type Written = (usize, String);

    fn written(&self) -> Self::Written {
        (self.type_.written(), self.name.clone())
    }

    fn read((type_, name): Self::Written) -> Option<Self> {
        Some(Self { type_: DescriptorType::read(type_)?, name })
    }
}

impl Told for IpAddress {
    type Written = IpAddr;

    fn written(&self) -> IpAddr {
        match *self {
            Self::Ipv4((a, b, c, d)) => Ipv4Addr::new(a, b, c, d).into(),
            Self::Ipv6((a, b, c, d, e, f, g, h)) => Ipv6Addr::new(a, b, c, d, e, f, g, h).into(),
        }
    }

    fn read(written: IpAddr) -> Option<Self> {
        Some(written.into())
    }
}

impl Told for IpSocketAddress {
    type Written = (IpAddr, u16, u32, u32);

    fn written(&self) -> Self::Written {
        match std::net::SocketAddr::from(*self) {
            std::net::SocketAddr::V4(address) => ((*address.ip()).into(), address.port(), 0, 0),
            std::net::SocketAddr::V6(address) => {
                ((*address.ip()).into(), address.port(), address.flowinfo(), address.scope_id())
            }
        }
    }

    fn read((ip, port, flow, scope): Self::Written) -> Option<Self> {
        Some(match ip {
            IpAddr::V4(ip) => std::net::SocketAddr::from(SocketAddrV4::new(ip, port)).into(),
            IpAddr::V6(ip) => std::net::SocketAddr::from(SocketAddrV6::new(ip, port, flow, scope)).into(),
        })
    }
}

/// The kinds of `metadata`, in the order of its WIT.
const KINDS: [metadata::Kind; 8] = [
    metadata::Kind::Regular,
    metadata::Kind::Directory,
    metadata::Kind::Symlink,
    metadata::Kind::Block,
    metadata::Kind::Character,
    metadata::Kind::Fifo,
    metadata::Kind::Socket,
    metadata::Kind::Unknown,
];

impl Told for metadata::FileStat {
    type Written = (usize, [u32; 3], [u64; 4], [f64; 3], Option<String>);

    fn written(&self) -> Self::Written {
        let kind = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or(usize::MAX);
        let numbers = [self.inode, self.device, self.nlink, self.size];
        (kind, [self.mode, self.uid, self.gid], numbers, [self.atime, self.mtime, self.ctime], self.target.clone())
    }

    fn read((kind, who, numbers, times, target): Self::Written) -> Option<Self> {
        let ([mode, uid, gid], [inode, device, nlink, size], [atime, mtime, ctime]) = (who, numbers, times);
        let kind = *KINDS.get(kind)?;
        Some(Self { kind, mode, uid, gid, inode, device, nlink, size, atime, mtime, ctime, target })
    }
}

impl Told for metadata::Error {
    type Written = (u8, String);

    fn written(&self) -> Self::Written {
        match self {
            Self::NotFound => (0, String::new()),
            Self::Denied => (1, String::new()),
            Self::NotGranted(text) => (2, text.clone()),
            Self::Other(text) => (3, text.clone()),
        }
    }

    fn read((case, text): Self::Written) -> Option<Self> {
        Some(match case {
            0 => Self::NotFound,
            1 => Self::Denied,
            2 => Self::NotGranted(text),
            3 => Self::Other(text),
            _ => return None,
        })
    }
}

/// A type of errors.
pub(super) trait Fails: Sized {
    /// Returns the interface's own error. None if the host ends the guest.
    fn code(&self) -> Option<String>;

    /// Reads the interface's own error. None if it has no such error.
    fn from_code(code: &str) -> Option<Self>;

    /// Returns the error that ends the guest.
    fn trap(error: wasmtime::Error) -> Self;
}

impl Fails for wasmtime::Error {
    fn code(&self) -> Option<String> {
        None
    }

    fn from_code(_: &str) -> Option<Self> {
        None
    }

    fn trap(error: Self) -> Self {
        error
    }
}

impl Fails for FsError {
    fn code(&self) -> Option<String> {
        self.downcast_ref().map(|code: &FileCode| code.name().to_owned())
    }

    fn from_code(code: &str) -> Option<Self> {
        FileCode::ALL.iter().find(|known| known.name() == code).map(|code| (*code).into())
    }

    fn trap(error: wasmtime::Error) -> Self {
        Self::trap(error)
    }
}

impl Fails for SocketError {
    fn code(&self) -> Option<String> {
        self.downcast_ref().map(|code: &SocketCode| code.name().to_owned())
    }

    fn from_code(code: &str) -> Option<Self> {
        SocketCode::ALL.iter().find(|known| known.name() == code).map(|code| (*code).into())
    }

    fn trap(error: wasmtime::Error) -> Self {
        Self::trap(error)
    }
}

/// The codes of a stream's errors. The reason of a failed operation is asked for by its handle.
const CLOSED: &str = "closed";
const FAILED: &str = "last-operation-failed";

impl Fails for StreamError {
    fn code(&self) -> Option<String> {
        match self {
            Self::Closed => Some(CLOSED.to_owned()),
            Self::LastOperationFailed(_) => Some(FAILED.to_owned()),
            Self::Trap(_) => None,
        }
    }

    fn from_code(code: &str) -> Option<Self> {
        match code {
            CLOSED => Some(Self::Closed),
            FAILED => Some(Self::LastOperationFailed(wasmtime::Error::msg("it failed in the recorded call"))),
            _ => None,
        }
    }

    fn trap(error: wasmtime::Error) -> Self {
        Self::Trap(error)
    }
}
