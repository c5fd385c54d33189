//! The bounds on writing and making files: every way counts, and the guest ends when a limit is used up. There is no
//! executor process; the tests call the guest as the engine does.
#![allow(clippy::disallowed_methods, reason = "the test looks at the files")]

use std::sync::Arc;

use brine_executor::guest::Guest;
use brine_sandbox_wire::{ByteBuf, Directory, FromExecutor, FunctionsOp, HostOp, Limits};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, HostDescriptor, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult, StreamError};

use crate::alone::{self, same};

const MIB: u64 = 1 << 20;
const RAISED: &str = "; the owner of this host raises it in the entry of deploy under sandbox: modules: in the minion's \
                      configuration, as in deploy: {limits: ";

struct Place {
    folder: tempfile::TempDir,
    guest: Guest,
    dir: Resource<Descriptor>,
}

impl Place {
    fn new(written: u64, new_files: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let granted = Directory { path: folder.path().to_str().unwrap().to_owned(), writable: true };
        let limits = Limits { written, new_files, ..Limits::default() };
        let (mut guest, _) = alone::guest("deploy", limits, &[granted]);
        let dir = guest.get_directories().unwrap().swap_remove(0).0;
        Self { folder, guest, dir }
    }

    fn dir(&self) -> Resource<Descriptor> {
        Resource::new_borrow(self.dir.rep())
    }

    async fn open(&mut self, path: &str, open: OpenFlags) -> FsResult<Resource<Descriptor>> {
        let flags = DescriptorFlags::READ | DescriptorFlags::WRITE;
        let dir = self.dir();
        self.guest.open_at(dir, PathFlags::empty(), path.into(), open, flags).await
    }

    async fn new_file(&mut self, path: &str) -> Resource<Descriptor> {
        self.open(path, OpenFlags::CREATE).await.unwrap()
    }

    fn length(&self, path: &str) -> u64 {
        std::fs::metadata(self.folder.path().join(path)).unwrap().len()
    }

    fn names(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }
}

fn code(error: FsError) -> ErrorCode {
    error.downcast().unwrap()
}

/// The error that ends the guest.
fn end<T>(result: FsResult<T>) -> String {
    result.err().unwrap().downcast().unwrap_err().to_string()
}

#[tokio::test]
async fn each_way_of_writing_counts() {
    let mut place = Place::new(4 * MIB, 10);
    let used = format!("its limit of 4 MiB written to files is used up{RAISED}{{written: 8MiB}}}}");
    let data = vec![7_u8; MIB as usize];
    let fd = place.new_file("a").await;
    // Overwriting counts again.
    for _ in 0..2 {
        assert_eq!(place.guest.write(same(&fd), data.clone(), 0).await.unwrap(), MIB);
    }
    let stream = place.guest.append_via_stream(same(&fd)).unwrap();
    let stream = place.guest.table.get_mut(&stream).unwrap();
    stream.blocking_write_and_flush(data.clone().into()).await.unwrap();
    assert_eq!(place.guest.files.budget.used(), (3 * MIB, 1));
    // Through another handle and in another way.
    let other = place.new_file("b").await;
    let stream = place.guest.write_via_stream(same(&other), 0).unwrap();
    let stream = place.guest.table.get_mut(&stream).unwrap();
    let (half, more) = (data[..data.len() / 2].to_vec(), data.clone());
    stream.write_ready().await.unwrap();
    stream.write(half.into()).unwrap();
    stream.write_ready().await.unwrap();
    let Err(StreamError::Trap(error)) = stream.write(more.clone().into()) else { panic!("written") };
    assert_eq!(error.to_string(), used);
    let Err(StreamError::Trap(error)) = stream.blocking_write_and_flush(more.into()).await else { panic!("written") };
    assert_eq!(error.to_string(), used);
    assert_eq!(end(place.guest.write(same(&fd), data, 0).await), used);
    assert_eq!((place.length("a"), place.length("b")), (2 * MIB, MIB / 2));
    // Up to the last byte.
    let rest = vec![7; (MIB / 2) as usize];
    place.guest.write(same(&fd), rest, 0).await.unwrap();
    assert_eq!(end(place.guest.write(same(&fd), vec![7], 0).await), used);
    place.guest.write(same(&fd), Vec::new(), 0).await.unwrap();
}

/// What is appended in one piece is not torn by others, and zeroes are of the host's memory.
#[tokio::test]
async fn much_is_appended_at_once_but_for_zeroes() {
    let mut place = Place::new(64 * MIB, 10);
    let fd = place.new_file("a").await;
    let stream = place.guest.append_via_stream(same(&fd)).unwrap();
    let stream = place.guest.table.get_mut(&stream).unwrap();
    assert_eq!(stream.write_ready().await.unwrap() as u64, 16 * MIB);
    assert!(matches!(stream.write_zeroes(MIB as usize), Err(StreamError::Trap(_))));
    stream.write_zeroes(4_096).unwrap();
    stream.write_ready().await.unwrap();
    stream.write(vec![7; 3 * MIB as usize].into()).unwrap();
    stream.write_ready().await.unwrap();
    assert_eq!((place.length("a"), place.guest.files.budget.used().0), (3 * MIB + 4_096, 3 * MIB + 4_096));
    // At an offset nothing is gained by it.
    let stream = place.guest.write_via_stream(same(&fd), 0).unwrap();
    assert!((place.guest.table.get_mut(&stream).unwrap().write_ready().await.unwrap() as u64) < MIB);
}

/// Growth without writing takes no space here, but all of it in a copy.
#[tokio::test]
async fn what_is_skipped_counts() {
    const TIB: u64 = 1 << 40;
    let mut place = Place::new(4 * MIB, 10);
    let used = format!("its limit of 4 MiB written to files is used up{RAISED}{{written: 8MiB}}}}");
    let fd = place.new_file("a").await;
    assert_eq!(end(place.guest.set_size(same(&fd), TIB).await), used);
    assert_eq!(end(place.guest.write(same(&fd), vec![7], TIB).await), used);
    for offset in [TIB, u64::MAX] {
        let stream = place.guest.write_via_stream(same(&fd), offset).unwrap();
        let stream = place.guest.table.get_mut(&stream).unwrap();
        assert!(matches!(stream.blocking_write_and_flush(vec![7].into()).await, Err(StreamError::Trap(_))));
        assert!(matches!(stream.write_zeroes(7), Err(StreamError::Trap(_))));
    }
    assert_eq!((place.length("a"), place.guest.files.budget.used()), (0, (0, 1)));
    place.guest.set_size(same(&fd), 3 * MIB).await.unwrap();
    // Truncated and grown again.
    place.guest.set_size(same(&fd), 0).await.unwrap();
    assert_eq!(end(place.guest.set_size(same(&fd), 2 * MIB).await), used);
    let again = place.open("a", OpenFlags::CREATE | OpenFlags::TRUNCATE).await.unwrap();
    assert_eq!(end(place.guest.write(same(&again), vec![7], MIB).await), used);
    assert_eq!(place.guest.files.budget.used(), (3 * MIB, 1));
}

#[tokio::test]
async fn each_new_name_counts() {
    let mut place = Place::new(0, 4);
    let used = format!("its limit of 4 new files is used up{RAISED}{{new_files: 8}}}}");
    let flags = PathFlags::empty();
    place.new_file("a").await;
    // The file exists, or must not be made.
    place.new_file("a").await;
    for (path, open) in [("a", OpenFlags::CREATE | OpenFlags::EXCLUSIVE), ("none/b", OpenFlags::CREATE)] {
        let error = place.open(path, open).await.err().map(code).unwrap();
        assert!(matches!(error, ErrorCode::Exist | ErrorCode::NoEntry), "{error:?}");
    }
    let dir = place.dir();
    assert_eq!(code(place.guest.create_directory_at(dir, "a".into()).await.unwrap_err()), ErrorCode::Exist);
    assert_eq!(place.guest.files.budget.used().1, 1);
    let (dir, to) = (place.dir(), place.dir());
    place.guest.create_directory_at(dir, "folder".into()).await.unwrap();
    let dir = place.dir();
    place.guest.symlink_at(dir, "a".into(), "link".into()).await.unwrap();
    let dir = place.dir();
    place.guest.link_at(dir, flags, "a".into(), to, "hard".into()).await.unwrap();
    let (dir, to) = (place.dir(), place.dir());
    assert_eq!(end(place.guest.link_at(dir, flags, "a".into(), to, "b".into()).await), used);
    let dir = place.dir();
    assert_eq!(end(place.guest.symlink_at(dir, "a".into(), "b".into()).await), used);
    let dir = place.dir();
    assert_eq!(end(place.guest.create_directory_at(dir, "b".into()).await), used);
    for open in [OpenFlags::CREATE, OpenFlags::CREATE | OpenFlags::EXCLUSIVE] {
        assert_eq!(end(place.open("b", open).await), used);
    }
    // Existing files can still be opened; removing a file gives nothing back.
    place.new_file("a").await;
    let dir = place.dir();
    place.guest.unlink_file_at(dir, "a".into()).await.unwrap();
    assert_eq!(end(place.open("a", OpenFlags::CREATE).await), used);
    assert_eq!(place.names(), 3);
}

/// A called function gets the rest of the budget, and its use counts for its caller too.
#[tokio::test]
async fn what_is_called_shares_its_callers_budget() {
    use brine_executor::host::bindings::brine::host::functions::{Data, Host};
    let mut place = Place::new(4 * MIB, 4);
    let fd = place.new_file("a").await;
    place.guest.write(same(&fd), vec![7; 100], 0).await.unwrap();
    let line = Arc::clone(&place.guest.line);
    let minion = async {
        loop {
            line.changed.notified().await;
            for message in line.outgoing() {
                let FromExecutor::HostCall { request, op: HostOp::Functions(op), .. } = message else { continue };
                let FunctionsOp::Call { written_left, new_files_left, .. } = op;
                assert_eq!((written_left, new_files_left), (4 * MIB - 100, 3));
                let answer = serde_json::json!({"value": true, "success": true, "written": 4 * MIB, "new_files": 2});
                line.reply(request, Ok(ByteBuf::from(rmp_serde::to_vec(&answer).unwrap())));
            }
        }
    };
    let called = Host::call(&mut place.guest, "other.f".into(), Vec::new(), Data { msgpack: vec![0x80] });
    tokio::select! {
        done = called => assert!(done.unwrap().is_ok()),
        () = minion => unreachable!("it goes on"),
    }
    assert_eq!(place.guest.files.budget.left(), (0, 1));
    assert!(place.guest.write(same(&fd), vec![7], 0).await.is_err());
}
