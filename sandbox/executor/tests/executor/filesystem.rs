//! The files that a guest can reach: those in granted directories and no others, whatever path it tries. There is no
//! executor process; the tests call the guest as the engine does.
#![allow(clippy::disallowed_methods, reason = "the test makes the files")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brine_executor::directories::Directories;
use brine_executor::guest::Guest;
use brine_executor::host::bindings::brine::host::metadata::{self, Error, Kind};
use brine_kit::wait::within;
use brine_sandbox_wire::{ByteBuf, DirectoriesOp, Directory, FromExecutor, HostOp, Limits};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor, HostDirectoryEntryStream, NewTimestamp, OpenFlags,
    PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};

use crate::alone::{self, same};

const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
const READ: DescriptorFlags = DescriptorFlags::READ;

fn guest(directories: &[(&Path, bool)]) -> Guest {
    let granted: Vec<_> = directories
        .iter()
        .map(|(path, writable)| Directory { path: path.to_str().unwrap().to_owned(), writable: *writable })
        .collect();
    alone::guest("file", Limits::default(), &granted).0
}

/// A folder with a granted directory `in` and other files.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("in/sub")).unwrap();
        std::fs::create_dir(root.join("out")).unwrap();
        std::fs::write(root.join("in/file"), "inside").unwrap();
        std::fs::write(root.join("in/sub/file"), "below").unwrap();
        std::fs::write(root.join("out/secret"), "secret").unwrap();
        std::fs::hard_link(root.join("in/file"), root.join("in/hard")).unwrap();
        for (link, target) in [
            ("near", "sub/file"),
            ("updown", "sub/../file"),
            ("far", "../out/secret"),
            ("absolute", "/etc/passwd"),
            ("own", root.join("in/file").to_str().unwrap()),
            ("folder", "../out"),
            ("parent", ".."),
            ("loop", "loop"),
            ("magic", "/proc/self/root/etc/passwd"),
            ("dangling", "../out/new"),
        ] {
            symlink(target, root.join("in").join(link)).unwrap();
        }
        Self { folder }
    }

    fn inside(&self) -> PathBuf {
        self.folder.path().join("in")
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("out")
    }
}

fn first(guest: &mut Guest) -> Resource<Descriptor> {
    guest.get_directories().unwrap().swap_remove(0).0
}

async fn open(guest: &mut Guest, dir: &Resource<Descriptor>, path: &str) -> FsResult<Resource<Descriptor>> {
    within(guest.open_at(same(dir), FOLLOW, path.into(), OpenFlags::empty(), READ)).await
}

async fn read(guest: &mut Guest, dir: &Resource<Descriptor>, path: &str) -> Result<String, ErrorCode> {
    let fd = open(guest, dir, path).await.map_err(code)?;
    let (bytes, _) = within(guest.read(same(&fd), 100, 0)).await.map_err(code)?;
    HostDescriptor::drop(guest, fd).unwrap();
    Ok(String::from_utf8(bytes).unwrap())
}

fn code(error: FsError) -> ErrorCode {
    error.downcast().unwrap()
}

/// The error that ends the guest.
fn end<T>(result: FsResult<T>) -> String {
    result.err().unwrap().downcast().unwrap_err().to_string()
}

const ESCAPES: [&str; 21] = [
    "..",
    "../",
    "../out/secret",
    "sub/../../out/secret",
    "./../out/secret",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "far",
    "far/",
    "absolute",
    "absolute/",
    "own",
    "folder",
    "folder/",
    "folder/secret",
    "folder/../in/file",
    "parent/out/secret",
    "parent/in/file",
    "magic",
    "sub/../folder/secret",
];

#[tokio::test]
async fn a_directory_under_its_own_path() {
    let place = Place::new();
    let mut guest = guest(&[(&place.inside(), false), (Path::new("/does/not/exist"), true)]);
    let directories = guest.get_directories().unwrap();
    let paths: Vec<_> = directories.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(paths, [place.inside().to_str().unwrap(), "/"]);
    let dir = &directories[0].0;
    for (path, content) in [
        ("file", "inside"),
        ("./file", "inside"),
        ("sub/../file", "inside"),
        ("near", "below"),
        ("updown", "inside"),
        ("hard", "inside"),
        ("sub//file", "below"),
    ] {
        assert_eq!(read(&mut guest, dir, path).await, Ok(content.to_owned()), "{path}");
    }
    assert_eq!(read(&mut guest, dir, "file/").await, Err(ErrorCode::NotDirectory));
    assert_eq!(read(&mut guest, dir, "none").await, Err(ErrorCode::NoEntry));
    assert_eq!(read(&mut guest, dir, "").await, Err(ErrorCode::NoEntry));
    assert_eq!(read(&mut guest, dir, "loop").await, Err(ErrorCode::Loop));
    assert_eq!(read(&mut guest, dir, "fi\0le").await, Err(ErrorCode::Invalid));
    assert_eq!(read(&mut guest, dir, &"x".repeat(5_000)).await, Err(ErrorCode::NameTooLong));
    // The missing directory was reported.
    let (_, lines) = Directories::open(&[Directory { path: "/does/not/exist".into(), writable: true }]);
    assert_eq!(lines, ["the directory /does/not/exist cannot be seen: No such file or directory (os error 2)"]);
}

#[tokio::test]
async fn nothing_leads_out() {
    let place = Place::new();
    for writable in [false, true] {
        let mut guest = guest(&[(&place.inside(), writable)]);
        let dir = first(&mut guest);
        let sub = open(&mut guest, &dir, "sub").await.unwrap();
        for path in ESCAPES {
            let from_sub = format!("../{path}");
            let denied = ErrorCode::NotPermitted;
            for (dir, path) in [(&dir, path), (&sub, from_sub.as_str())] {
                assert_eq!(open(&mut guest, dir, path).await.map_err(code).err(), Some(denied), "open {path}");
                let stat = within(guest.stat_at(same(dir), FOLLOW, path.into())).await;
                assert_eq!(stat.map_err(code).err(), Some(denied), "stat {path}");
                let hash = within(guest.metadata_hash_at(same(dir), FOLLOW, path.into())).await;
                assert_eq!(hash.map_err(code).err(), Some(denied), "hash {path}");
                let times = guest.set_times_at(same(dir), FOLLOW, path.into(), NewTimestamp::Now, NewTimestamp::Now);
                assert_eq!(within(times).await.map_err(code).err(), Some(denied), "times {path}");
            }
            if writable {
                for flags in [OpenFlags::CREATE, OpenFlags::TRUNCATE, OpenFlags::CREATE | OpenFlags::TRUNCATE] {
                    let made = guest.open_at(same(&dir), FOLLOW, path.into(), flags, DescriptorFlags::WRITE);
                    let error = within(made).await.map_err(code).err().unwrap();
                    assert!(
                        matches!(error, ErrorCode::NotPermitted | ErrorCode::IsDirectory),
                        "create {path}: {error:?}"
                    );
                }
            }
        }
        for path in ["../out/new", "folder/new", "parent/new", "/tmp/brine-new", "folder/", "..", "dangling/"] {
            let outcomes = [
                within(guest.create_directory_at(same(&dir), path.into())).await.map_err(code),
                within(guest.unlink_file_at(same(&dir), path.into())).await.map_err(code),
                within(guest.remove_directory_at(same(&dir), path.into())).await.map_err(code),
                within(guest.rename_at(same(&dir), "file".into(), same(&dir), path.into())).await.map_err(code),
                within(guest.rename_at(same(&dir), path.into(), same(&dir), "moved".into())).await.map_err(code),
                within(guest.link_at(same(&dir), PathFlags::empty(), path.into(), same(&dir), "linked".into()))
                    .await
                    .map_err(code),
                within(guest.symlink_at(same(&dir), "file".into(), path.into())).await.map_err(code),
            ];
            for (index, outcome) in outcomes.iter().enumerate() {
                assert!(outcome.is_err(), "{index} {path}");
            }
        }
        // Making a file through a link that leads out.
        let flags = OpenFlags::CREATE;
        let made = guest.open_at(same(&dir), FOLLOW, "dangling".into(), flags, DescriptorFlags::WRITE);
        assert_eq!(within(made).await.map_err(code).err(), Some(ErrorCode::NotPermitted));
        assert_eq!(std::fs::read_dir(place.outside()).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(place.outside().join("secret")).unwrap(), "secret");
        assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 2);
    }
}

#[tokio::test]
async fn read_only_is_read_only() {
    let place = Place::new();
    let mut guest = guest(&[(&place.inside(), false)]);
    let dir = first(&mut guest);
    let denied = Err(ErrorCode::NotPermitted);
    for (open, flags) in [
        (OpenFlags::CREATE, READ),
        (OpenFlags::TRUNCATE, READ),
        (OpenFlags::empty(), DescriptorFlags::WRITE),
        (OpenFlags::empty(), READ | DescriptorFlags::WRITE),
        (OpenFlags::CREATE | OpenFlags::EXCLUSIVE, DescriptorFlags::WRITE),
    ] {
        for path in ["file", "new"] {
            let opened = within(guest.open_at(same(&dir), FOLLOW, path.into(), open, flags)).await;
            assert_eq!(opened.map(drop).map_err(code), denied);
        }
    }
    let fd = open(&mut guest, &dir, "file").await.unwrap();
    let sub = open(&mut guest, &dir, "sub").await.unwrap();
    assert_eq!(within(guest.write(same(&fd), vec![1], 0)).await.map(drop).map_err(code), denied);
    assert_eq!(guest.write_via_stream(same(&fd), 0).map(drop).map_err(code), denied);
    assert_eq!(guest.append_via_stream(same(&fd)).map(drop).map_err(code), denied);
    assert_eq!(within(guest.set_size(same(&fd), 0)).await.map_err(code), denied);
    let now = NewTimestamp::Now;
    assert_eq!(within(guest.set_times(same(&fd), now, now)).await.map_err(code), denied);
    assert_eq!(within(guest.set_times_at(same(&dir), FOLLOW, "file".into(), now, now)).await.map_err(code), denied);
    for dir in [&dir, &sub] {
        assert_eq!(within(guest.create_directory_at(same(dir), "new".into())).await.map_err(code), denied);
        assert_eq!(within(guest.unlink_file_at(same(dir), "file".into())).await.map_err(code), denied);
        assert_eq!(within(guest.symlink_at(same(dir), "file".into(), "new".into())).await.map_err(code), denied);
        let renamed = guest.rename_at(same(dir), "file".into(), same(dir), "new".into());
        assert_eq!(within(renamed).await.map_err(code), denied);
        let linked = guest.link_at(same(dir), PathFlags::empty(), "file".into(), same(dir), "new".into());
        assert_eq!(within(linked).await.map_err(code), denied);
    }
    assert_eq!(within(guest.remove_directory_at(same(&dir), "sub".into())).await.map_err(code), denied);
    assert_eq!(std::fs::read_to_string(place.inside().join("file")).unwrap(), "inside");
}

#[tokio::test]
async fn one_directory_is_no_way_to_write_to_another() {
    let place = Place::new();
    let mut guest = guest(&[(&place.inside(), true), (&place.outside(), false)]);
    let directories = guest.get_directories().unwrap();
    let (writable, fixed) = (&directories[0].0, &directories[1].0);
    let denied = Err(ErrorCode::NotPermitted);
    let moved = guest.rename_at(same(fixed), "secret".into(), same(writable), "moved".into());
    assert_eq!(within(moved).await.map_err(code), denied);
    let linked = guest.link_at(same(fixed), PathFlags::empty(), "secret".into(), same(writable), "linked".into());
    assert_eq!(within(linked).await.map_err(code), denied);
    let moved = guest.rename_at(same(writable), "file".into(), same(fixed), "moved".into());
    assert_eq!(within(moved).await.map_err(code), denied);
    // A directory granted as writable can be written.
    let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let made = guest.open_at(same(writable), FOLLOW, "new".into(), flags, DescriptorFlags::WRITE);
    let made = within(made).await.unwrap();
    assert_eq!(within(guest.write(same(&made), b"new".to_vec(), 0)).await.unwrap(), 3);
    within(guest.rename_at(same(writable), "new".into(), same(writable), "sub/newer".into())).await.unwrap();
    assert_eq!(std::fs::read_to_string(place.inside().join("sub/newer")).unwrap(), "new");
    let now = NewTimestamp::Now;
    within(guest.set_times_at(same(writable), FOLLOW, "near".into(), now, NewTimestamp::NoChange)).await.unwrap();
}

#[tokio::test]
async fn only_files_and_directories_are_opened() {
    let place = Place::new();
    let fifo = place.inside().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.inside().join("socket")).unwrap();
    symlink("fifo", place.inside().join("to-fifo")).unwrap();
    let mut guest = guest(&[(&place.inside(), true), (Path::new("/dev"), true), (Path::new("/proc"), false)]);
    let directories = guest.get_directories().unwrap();
    let (dir, dev, proc) = (&directories[0].0, &directories[1].0, &directories[2].0);
    for flags in [READ, DescriptorFlags::WRITE, READ | DescriptorFlags::WRITE] {
        for (dir, path) in [(dir, "fifo"), (dir, "to-fifo"), (dir, "socket"), (dev, "null"), (dev, "tty")] {
            let opened = within(guest.open_at(same(dir), FOLLOW, path.into(), OpenFlags::empty(), flags)).await;
            assert_eq!(opened.map(drop).map_err(code), Err(ErrorCode::NotPermitted), "{path}");
        }
    }
    let now = NewTimestamp::Now;
    assert!(within(guest.set_times_at(same(dir), FOLLOW, "fifo".into(), now, now)).await.is_err());
    // /proc has this process's memory as a file.
    for path in ["self/mem", "self/environ", "self/maps", "self/fd/0", "self/cwd/Cargo.toml", "self/root/etc/passwd"] {
        assert!(open(&mut guest, proc, path).await.is_err(), "{path}");
    }
    let own = format!("{}/mem", std::process::id());
    assert_eq!(open(&mut guest, proc, &own).await.map(drop).map_err(code), Err(ErrorCode::NotPermitted));
    // Their metadata can be read.
    let stat = within(guest.stat_at(same(dir), FOLLOW, "fifo".into())).await.unwrap();
    assert_eq!(stat.type_, DescriptorType::Fifo);
}

#[tokio::test]
async fn the_whole_host_as_it_is() {
    let place = Place::new();
    let mut guest = guest(&[(Path::new("/"), false)]);
    let root = first(&mut guest);
    let path = |name: &str| place.inside().join(name).to_str().unwrap().trim_start_matches('/').to_owned();
    // Absolute links lead to the same files as on the host.
    for (name, content) in [("file", "inside"), ("own", "inside"), ("far", "secret"), ("folder/secret", "secret")] {
        assert_eq!(read(&mut guest, &root, &path(name)).await, Ok(content.to_owned()), "{name}");
    }
    assert!(read(&mut guest, &root, &path("absolute")).await.unwrap().contains("root"));
    assert!(read(&mut guest, &root, "../../etc/passwd").await.unwrap().contains("root"));
    // Links to files that a process has open are not followed.
    assert!(read(&mut guest, &root, &path("magic")).await.is_err());
    assert!(read(&mut guest, &root, "proc/self/mem").await.is_err());
    let stat = within(guest.stat_at(same(&root), FOLLOW, path("own"))).await.unwrap();
    assert_eq!((stat.type_, stat.size), (DescriptorType::RegularFile, 6));
}

/// A path that changes during its resolution: the directory in its middle is replaced by a link that leads out, and
/// back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_of_renames_leads_nowhere() {
    let place = Place::new();
    std::fs::write(place.inside().join("sub/secret"), "below").unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let racing = std::thread::spawn({
        let (ended, inside) = (Arc::clone(&ended), place.inside());
        move || {
            let (real, link, here) = (inside.join("real"), inside.join("link"), inside.join("sub"));
            symlink("../out", &link).unwrap();
            while !ended.load(Ordering::SeqCst) {
                std::fs::rename(&here, &real).unwrap();
                std::fs::rename(&link, &here).unwrap();
                std::fs::rename(&here, &link).unwrap();
                std::fs::rename(&real, &here).unwrap();
            }
        }
    });
    let mut guest = guest(&[(&place.inside(), false)]);
    let dir = first(&mut guest);
    let mut seen = [0, 0];
    for _ in 0..3_000 {
        match read(&mut guest, &dir, "sub/secret").await {
            Ok(content) => {
                assert_eq!(content, "below");
                seen[0] += 1;
            }
            Err(error) => {
                assert!(matches!(error, ErrorCode::NotPermitted | ErrorCode::NoEntry | ErrorCode::Busy), "{error:?}");
                seen[1] += 1;
            }
        }
    }
    ended.store(true, Ordering::SeqCst);
    racing.join().unwrap();
    assert!(seen[0] > 0, "{seen:?}");
}

#[tokio::test]
async fn directories_are_listed_a_page_at_a_time() {
    let place = Place::new();
    for n in 0..1_000 {
        std::fs::write(place.inside().join(format!("sub/{n}")), "").unwrap();
    }
    let mut guest = guest(&[(&place.inside(), false)]);
    let dir = first(&mut guest);
    let sub = open(&mut guest, &dir, "sub").await.unwrap();
    let stream = within(guest.read_directory(same(&sub))).await.unwrap();
    let mut names = std::collections::BTreeSet::new();
    while let Some(entry) = within(guest.read_directory_entry(Resource::new_borrow(stream.rep()))).await.unwrap() {
        assert_eq!(entry.type_, DescriptorType::RegularFile);
        assert!(names.insert(entry.name));
    }
    assert_eq!(names.len(), 1_001);
    HostDirectoryEntryStream::drop(&mut guest, stream).unwrap();
    let stream = within(guest.read_directory(same(&dir))).await.unwrap();
    let mut kinds = Vec::new();
    while let Some(entry) = within(guest.read_directory_entry(Resource::new_borrow(stream.rep()))).await.unwrap() {
        kinds.push((entry.name, entry.type_));
    }
    assert!(kinds.contains(&("far".into(), DescriptorType::SymbolicLink)));
    assert!(kinds.contains(&("sub".into(), DescriptorType::Directory)));
    assert!(!kinds.iter().any(|(name, _)| name == "." || name == ".."));
}

#[tokio::test]
async fn open_files_are_bounded_however_they_are_held() {
    let place = Place::new();
    let mut guest = guest(&[(&place.inside(), false)]);
    let dir = first(&mut guest);
    let limit = "its limit of 100 open files is used up";
    // Closed files do not count.
    for _ in 0..300 {
        read(&mut guest, &dir, "file").await.unwrap();
    }
    // A stream keeps its file open after the descriptor is dropped.
    let mut streams = Vec::new();
    for _ in 0..100 {
        let fd = open(&mut guest, &dir, "file").await.unwrap();
        streams.push(guest.read_via_stream(same(&fd), 0).unwrap());
        HostDescriptor::drop(&mut guest, fd).unwrap();
    }
    assert_eq!(end(open(&mut guest, &dir, "file").await), limit);
    assert_eq!(end(within(guest.read_directory(same(&dir))).await), limit);
    for stream in streams {
        guest.table.delete(stream).unwrap();
    }
    for _ in 0..100 {
        within(guest.read_directory(same(&dir))).await.unwrap();
    }
    assert_eq!(end(open(&mut guest, &dir, "sub").await), limit);
}

#[tokio::test]
async fn streams_are_bounded() {
    let place = Place::new();
    let mut guest = guest(&[(&place.inside(), false)]);
    let dir = first(&mut guest);
    let fd = open(&mut guest, &dir, "file").await.unwrap();
    let mut made = 0;
    let refused = loop {
        match guest.read_via_stream(same(&fd), 0) {
            Ok(_) => made += 1,
            Err(error) => break end::<()>(Err(error)),
        }
        assert!(made < 1_000);
    };
    assert_eq!((made, refused.as_str()), (253, "resource table has no free keys"));
}

async fn stat(guest: &mut Guest, path: &str, follow: bool) -> Result<metadata::FileStat, Error> {
    let line = Arc::clone(&guest.line);
    // The minion knows the line of configuration that would grant a directory.
    let minion = async {
        loop {
            line.changed.notified().await;
            for message in line.outgoing() {
                if let FromExecutor::HostCall { request, op, .. } = message {
                    let HostOp::Directories(DirectoriesOp::Line { path, .. }) = op else { panic!("{op:?}") };
                    let text = rmp_serde::to_vec(&format!("; grant {path}")).unwrap();
                    line.reply(request, Ok(ByteBuf::from(text)));
                }
            }
        }
    };
    tokio::select! {
        outcome = within(metadata::Host::stat(guest, path.into(), follow)) => outcome.unwrap(),
        () = minion => unreachable!("it goes on"),
    }
}

#[tokio::test]
async fn metadata_of_files() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    let (inside, outside) = (place.inside(), place.outside());
    let mut guest = guest(&[(&inside, false), (Path::new("/does/not/exist"), false)]);
    let path = |name: &str| format!("{}/{name}", inside.display());
    let known = std::fs::metadata(inside.join("file")).unwrap();
    let file = stat(&mut guest, &path("file"), true).await.unwrap();
    assert_eq!(
        (file.kind, file.mode, file.uid, file.gid),
        (Kind::Regular, known.mode() & 0o7777, known.uid(), known.gid())
    );
    assert_eq!((file.inode, file.device, file.nlink, file.size), (known.ino(), known.dev(), 2, 6));
    assert!((file.mtime - known.mtime() as f64).abs() < 1.0 && file.target.is_none());
    assert_eq!(stat(&mut guest, inside.to_str().unwrap(), true).await.unwrap().kind, Kind::Directory);
    let link = stat(&mut guest, &path("far"), false).await.unwrap();
    assert_eq!((link.kind, link.target.as_deref()), (Kind::Symlink, Some("../out/secret")));
    assert_eq!(stat(&mut guest, &path("near"), true).await.unwrap().size, 5);
    for missing in [path("none"), path("file/x"), path("file/"), "/does/not/exist/x".into(), "/does/not/exist".into()] {
        assert!(matches!(stat(&mut guest, &missing, true).await, Err(Error::NotFound)), "{missing}");
    }
    for escape in ESCAPES.into_iter().filter(|escape| *escape != "/") {
        let outcome = stat(&mut guest, &path(&format!("sub/../{}", escape.trim_start_matches('/'))), true).await;
        assert!(matches!(outcome, Err(Error::NotGranted(_) | Error::NotFound)), "{escape}: {outcome:?}");
    }
    for (path, parent) in [
        (outside.join("secret").to_str().unwrap().to_owned(), outside.to_str().unwrap()),
        ("/etc/passwd".into(), "/etc"),
        ("/etc".into(), "/etc"),
    ] {
        let Err(Error::NotGranted(text)) = stat(&mut guest, &path, false).await else { panic!("{path}") };
        assert_eq!(text, format!("{path} is in no directory that was granted to module file; grant {parent}"));
    }
    assert!(matches!(stat(&mut guest, "file", true).await, Err(Error::NotGranted(_))));
}

#[tokio::test]
async fn metadata_by_the_closest_directory_and_the_ones_around_it() {
    let place = Place::new();
    let mut guest = guest(&[(&place.inside(), false), (place.folder.path(), false), (Path::new("/"), false)]);
    for name in ["far", "absolute", "own", "folder/secret", "parent/out/secret"] {
        let path = place.inside().join(name);
        let kind = stat(&mut guest, path.to_str().unwrap(), true).await.map(|stat| stat.kind);
        assert!(matches!(kind, Ok(Kind::Regular)), "{name}: {kind:?}");
    }
    assert!(stat(&mut guest, "/proc/self/root/etc/passwd", true).await.is_err());
}
