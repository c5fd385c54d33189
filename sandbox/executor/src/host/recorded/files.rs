//! `wasi:filesystem` and the metadata of files.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode,
    HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::{Link, Recorded, Spy, args, rows, spied, waiting_rows};
use crate::host::bindings::brine::host::metadata;

pub(super) const LINKS: &[(&str, Link)] = &[
    ("brine:host/metadata", |linker| metadata::add_to_linker::<_, Spy>(linker, spied)),
    ("wasi:filesystem/types", |linker| types::add_to_linker::<_, Spy>(linker, spied)),
    ("wasi:filesystem/preopens", |linker| preopens::add_to_linker::<_, Spy>(linker, spied)),
];

impl preopens::Host for Recorded<'_> {
    rows! {
        "wasi:filesystem/preopens", preopens::Host, |guest| *guest;
        get_directories() -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>>;
    }
}

impl types::Host for Recorded<'_> {
    rows! {
        "wasi:filesystem/types", types::Host, |guest| *guest;
        filesystem_error_code(error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>>;
    }

    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }
}

impl HostDescriptor for Recorded<'_> {
    waiting_rows! {
        "wasi:filesystem/types.descriptor", HostDescriptor, |guest| *guest;
        advise(fd: Resource<Descriptor>, offset: u64, length: u64, advice: Advice) -> FsResult<()>;
        sync_data(fd: Resource<Descriptor>) -> FsResult<()>;
        get_flags(fd: Resource<Descriptor>) -> FsResult<DescriptorFlags>;
        get_type(fd: Resource<Descriptor>) -> FsResult<DescriptorType>;
        set_size(fd: Resource<Descriptor>, size: u64) -> FsResult<()>;
        set_times(fd: Resource<Descriptor>, access: NewTimestamp, modification: NewTimestamp) -> FsResult<()>;
        read(fd: Resource<Descriptor>, length: u64, offset: u64) -> FsResult<(Vec<u8>, bool)>;
        write(fd: Resource<Descriptor>, buffer: Vec<u8>, offset: u64) -> FsResult<u64>;
        read_directory(fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>>;
        sync(fd: Resource<Descriptor>) -> FsResult<()>;
        create_directory_at(fd: Resource<Descriptor>, path: String) -> FsResult<()>;
        stat(fd: Resource<Descriptor>) -> FsResult<DescriptorStat>;
        stat_at(fd: Resource<Descriptor>, flags: PathFlags, path: String) -> FsResult<DescriptorStat>;
        set_times_at(
            fd: Resource<Descriptor>,
            flags: PathFlags,
            path: String,
            access: NewTimestamp,
            modification: NewTimestamp
        ) -> FsResult<()>;
        link_at(
            fd: Resource<Descriptor>,
            flags: PathFlags,
            path: String,
            to: Resource<Descriptor>,
            new: String
        ) -> FsResult<()>;
        open_at(
            fd: Resource<Descriptor>,
            path_flags: PathFlags,
            path: String,
            open_flags: OpenFlags,
            flags: DescriptorFlags
        ) -> FsResult<Resource<Descriptor>>;
        readlink_at(fd: Resource<Descriptor>, path: String) -> FsResult<String>;
        remove_directory_at(fd: Resource<Descriptor>, path: String) -> FsResult<()>;
        rename_at(
            fd: Resource<Descriptor>,
            path: String,
            to: Resource<Descriptor>,
            new: String
        ) -> FsResult<()>;
        symlink_at(fd: Resource<Descriptor>, target: String, path: String) -> FsResult<()>;
        unlink_file_at(fd: Resource<Descriptor>, path: String) -> FsResult<()>;
        is_same_object(fd: Resource<Descriptor>, other: Resource<Descriptor>) -> wasmtime::Result<bool>;
        metadata_hash(fd: Resource<Descriptor>) -> FsResult<MetadataHashValue>;
        metadata_hash_at(fd: Resource<Descriptor>, flags: PathFlags, path: String) -> FsResult<MetadataHashValue>;
    }
    rows! {
        "wasi:filesystem/types.descriptor", HostDescriptor, |guest| *guest;
        read_via_stream(fd: Resource<Descriptor>, offset: u64) -> FsResult<Resource<DynInputStream>>;
        write_via_stream(fd: Resource<Descriptor>, offset: u64) -> FsResult<Resource<DynOutputStream>>;
        append_via_stream(fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>>;
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        if self.0.replays() { Ok(()) } else { HostDescriptor::drop(self.0, fd) }
    }
}

impl HostDirectoryEntryStream for Recorded<'_> {
    waiting_rows! {
        "wasi:filesystem/types.directory-entry-stream", HostDirectoryEntryStream, |guest| *guest;
        read_directory_entry(stream: Resource<DirectoryEntryStream>) -> FsResult<Option<DirectoryEntry>>;
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        if self.0.replays() { Ok(()) } else { HostDirectoryEntryStream::drop(self.0, stream) }
    }
}

impl metadata::Host for Recorded<'_> {
    waiting_rows! {
        "metadata", metadata::Host, |guest| *guest;
        stat(path: String, follow: bool) -> wasmtime::Result<Result<metadata::FileStat, metadata::Error>>;
    }

    // The others ask the broker.

    async fn user_name(&mut self, uid: u32) -> wasmtime::Result<Option<String>> {
        metadata::Host::user_name(self.0, uid).await
    }

    async fn group_name(&mut self, gid: u32) -> wasmtime::Result<Option<String>> {
        metadata::Host::group_name(self.0, gid).await
    }

    async fn find_user(&mut self, user: String) -> wasmtime::Result<Option<metadata::Account>> {
        metadata::Host::find_user(self.0, user).await
    }

    async fn find_group(&mut self, group: String) -> wasmtime::Result<Option<u32>> {
        metadata::Host::find_group(self.0, group).await
    }
}
