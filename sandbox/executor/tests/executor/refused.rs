//! What this process refuses a guest by itself is told to the minion, once each; and files that were granted without their directory.
//! There is no executor process; the tests call the guest as the engine does.
#![allow(clippy::disallowed_methods, reason = "the test makes the files")]

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use brine_executor::guest::Guest;
use brine_executor::host::bindings::brine::host::metadata;
use brine_executor::planned::WouldWrite;
use brine_kit::wait::within;
use brine_sandbox_wire::{Directory, FromExecutor, Limits, PathAccess, Wanted};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};

use crate::alone::{self, same};

const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
const READ: DescriptorFlags = DescriptorFlags::READ;
const WRITE: DescriptorFlags = DescriptorFlags::WRITE;

/// A folder with `in`, which is granted, `out`, which is not, and a file beside them.
struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for dir in ["in/sub", "out"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        for file in ["in/file", "in/sub/file", "out/secret", "alone"] {
            std::fs::write(root.join(file), file).unwrap();
        }
        symlink("../out/secret", root.join("in/far")).unwrap();
        symlink("../out", root.join("in/folder")).unwrap();
        symlink("sub/file", root.join("in/near")).unwrap();
        symlink("secret", root.join("out/link")).unwrap();
        Self { _folder: folder, root }
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).to_str().unwrap().to_owned()
    }

    /// A guest with these paths granted.
    fn guest(&self, granted: &[(&str, bool)]) -> Guest {
        let granted: Vec<_> =
            granted.iter().map(|(name, writable)| Directory { path: self.path(name), writable: *writable }).collect();
        alone::guest("file", Limits::default(), &granted).0
    }
}

/// The granted directory of this path, or `/`.
fn directory(guest: &mut Guest, path: &str) -> Resource<Descriptor> {
    let mut all = guest.get_directories().unwrap().into_iter();
    all.find(|(_, of)| of == path).unwrap_or_else(|| panic!("{path}")).0
}

fn code(error: FsError) -> ErrorCode {
    error.downcast().unwrap()
}

/// What the minion is told.
fn told(guest: &Guest) -> Vec<Wanted> {
    let wanted = |message| match message {
        FromExecutor::Refused { call: 1, wanted } => Some(wanted),
        _ => None,
    };
    guest.line.outgoing().into_iter().filter_map(wanted).collect()
}

async fn open(
    guest: &mut Guest,
    dir: &Resource<Descriptor>,
    path: &str,
    how: OpenFlags,
    flags: DescriptorFlags,
) -> FsResult<Resource<Descriptor>> {
    within(guest.open_at(same(dir), FOLLOW, path.into(), how, flags)).await
}

/// A guest's library finds `/` for a path outside of what was granted, as wasi-libc does.
#[tokio::test]
async fn a_path_outside_is_refused_and_told() {
    use PathAccess::{ByLink, Change, Name, Read};
    let place = Place::new();
    let made = OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let none = OpenFlags::empty();
    for granted in [&[][..], &[("in", true)]] {
        let mut guest = place.guest(granted);
        let root = directory(&mut guest, "/");
        for (path, how, flags, access) in [
            (place.path("out/secret"), none, READ, Read),
            (place.path("out/missing"), none, READ, Read),
            (place.path("out"), OpenFlags::DIRECTORY, READ, Read),
            (place.path("out/link"), none, READ, ByLink),
            (place.path("out/secret"), none, WRITE, Change),
            (place.path("out/secret"), made, WRITE, Change),
            (place.path("out/new"), made, WRITE, Name),
        ] {
            let opened = open(&mut guest, &root, path.trim_start_matches('/'), how, flags).await;
            assert_eq!(opened.map(drop).map_err(code), Err(ErrorCode::NotPermitted), "{path}");
            let wanted = Wanted::Path { path: path.clone(), access };
            let again = path.clone() == place.path("out/secret") && how == made;
            assert_eq!(told(&guest), if again { vec![] } else { vec![wanted] }, "{path}");
        }
        let stat = within(guest.stat_at(same(&root), FOLLOW, "etc/passwd".into())).await;
        assert_eq!(stat.map(drop).map_err(code), Err(ErrorCode::NotPermitted));
        assert_eq!(told(&guest), [Wanted::Path { path: "/etc/passwd".into(), access: Read }]);
        let gone = within(guest.unlink_file_at(same(&root), "etc/passwd".into())).await;
        assert_eq!(gone.map_err(code), Err(ErrorCode::NotPermitted));
        assert_eq!(told(&guest), [Wanted::Path { path: "/etc/passwd".into(), access: Name }]);
        // Of that directory itself a guest learns nothing.
        assert_eq!(within(guest.get_flags(same(&root))).await.unwrap(), DescriptorFlags::empty());
        assert_eq!(within(guest.get_type(same(&root))).await.unwrap(), DescriptorType::Directory);
        assert!(within(guest.read_directory(same(&root))).await.is_err());
        assert!(within(guest.stat(same(&root))).await.is_err());
        assert!(within(guest.sync(same(&root))).await.is_err());
    }
}

#[tokio::test]
async fn ways_out_of_a_directory_are_told_by_where_they_lead() {
    let place = Place::new();
    let mut guest = place.guest(&[("in", false)]);
    let dir = directory(&mut guest, &place.path("in"));
    let secret = place.path("out/secret");
    for (path, wanted) in [
        ("../out/secret", Some((secret.as_str(), PathAccess::Read))),
        ("sub/../../out/secret", None),
        ("far", Some((secret.as_str(), PathAccess::ByLink))),
        ("folder/secret", None),
        // Within the directory, whatever the spelling.
        ("sub/../../in/file", None),
    ] {
        let opened = open(&mut guest, &dir, path, OpenFlags::empty(), READ).await;
        assert_eq!(opened.map(drop).map_err(code), Err(ErrorCode::NotPermitted), "{path}");
        let expect = wanted.map(|(path, access)| Wanted::Path { path: path.to_owned(), access });
        assert_eq!(told(&guest), Vec::from_iter(expect), "{path}");
    }
    // Below a directory that was opened, too.
    let sub = open(&mut guest, &dir, "sub", OpenFlags::DIRECTORY, READ).await.unwrap();
    assert!(open(&mut guest, &sub, "../../alone", OpenFlags::empty(), READ).await.is_err());
    assert_eq!(told(&guest), [Wanted::Path { path: place.path("alone"), access: PathAccess::Read }]);
    // What is granted for reading alone.
    for (path, access) in [("file", PathAccess::Change), ("new", PathAccess::Name)] {
        assert!(open(&mut guest, &dir, path, OpenFlags::CREATE, WRITE).await.is_err());
        assert_eq!(told(&guest), [Wanted::Path { path: place.path("in").clone() + "/" + path, access }]);
    }
    // What works, and what is missing, is no refusal.
    open(&mut guest, &dir, "near", OpenFlags::empty(), READ).await.unwrap();
    assert_eq!(
        open(&mut guest, &dir, "no", OpenFlags::empty(), READ).await.map_err(code).err(),
        Some(ErrorCode::NoEntry)
    );
    assert_eq!(told(&guest), []);
}

#[tokio::test]
async fn a_file_is_granted_without_its_directory() {
    let place = Place::new();
    let mut guest = place.guest(&[("alone", false), ("out/secret", true)]);
    let root = directory(&mut guest, "/");
    let (alone, secret) = (place.path("alone"), place.path("out/secret"));
    let below = |path: &str| path.trim_start_matches('/').to_owned();
    let fd = open(&mut guest, &root, &below(&alone), OpenFlags::empty(), READ).await.unwrap();
    assert_eq!(within(guest.read(same(&fd), 100, 0)).await.unwrap().0, b"alone");
    assert!(within(guest.write(same(&fd), b"x".to_vec(), 0)).await.is_err());
    let stat = within(guest.stat_at(same(&root), FOLLOW, below(&alone))).await.unwrap();
    assert_eq!((stat.type_, stat.size), (DescriptorType::RegularFile, 5));
    within(guest.metadata_hash_at(same(&root), FOLLOW, below(&alone))).await.unwrap();
    let known = within(metadata::Host::stat(&mut guest, alone.clone(), true)).await.unwrap().unwrap();
    assert_eq!(known.size, 5);
    // Writing, within the grant.
    let denied = open(&mut guest, &root, &below(&alone), OpenFlags::empty(), WRITE).await;
    assert_eq!(denied.map(drop).map_err(code), Err(ErrorCode::NotPermitted));
    let truncated = OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let fd = open(&mut guest, &root, &below(&secret), truncated, WRITE).await.unwrap();
    within(guest.write(same(&fd), b"new".to_vec(), 0)).await.unwrap();
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "new");
    assert_eq!(within(guest.get_flags(same(&root))).await.unwrap(), READ);
    // Nothing beside it, nor its name.
    for path in ["out/link", "out", "in/file"] {
        assert!(open(&mut guest, &root, &below(&place.path(path)), OpenFlags::empty(), READ).await.is_err(), "{path}");
    }
    assert!(within(guest.unlink_file_at(same(&root), below(&secret))).await.is_err());
    assert!(within(guest.rename_at(same(&root), below(&secret), same(&root), below(&alone))).await.is_err());
    // A link that takes its place is not followed.
    std::fs::remove_file(&alone).unwrap();
    symlink(place.path("in/file"), &alone).unwrap();
    assert!(open(&mut guest, &root, &below(&alone), OpenFlags::empty(), READ).await.is_err());
}

/// In plan mode the file comes for reading alone.
#[tokio::test]
async fn a_granted_file_would_be_written() {
    let place = Place::new();
    let mut guest = place.guest(&[("alone", false)]);
    let alone = place.path("alone");
    guest.files.would_write = WouldWrite::new(&guest.files.directories, std::slice::from_ref(&alone));
    let root = directory(&mut guest, "/");
    let opened = open(&mut guest, &root, alone.trim_start_matches('/'), OpenFlags::TRUNCATE, WRITE).await;
    let end = opened.err().unwrap().downcast().unwrap_err().to_string();
    assert!(end.contains(&format!("would write: {alone}")), "{end}");
    assert_eq!(std::fs::read_to_string(&alone).unwrap(), "alone");
}

/// A guest that asks about a path by `brine:host/metadata` is refused there.
#[tokio::test]
async fn who_asks_about_paths_finds_a_root_for_granted_files_alone() {
    let place = Place::new();
    for (granted, roots) in [(&[("in", false)][..], 1), (&[("alone", false)], 1), (&[], 0)] {
        let mut guest = place.guest(granted);
        guest.files.asks = true;
        assert_eq!(guest.get_directories().unwrap().len(), roots, "{granted:?}");
    }
}

#[tokio::test]
async fn the_whole_host_has_no_other_root() {
    let mut guest = alone::guest("file", Limits::default(), &[Directory { path: "/".into(), writable: false }]).0;
    assert_eq!(guest.get_directories().unwrap().len(), 1);
    let root = directory(&mut guest, "/");
    assert!(open(&mut guest, &root, "etc/passwd", OpenFlags::empty(), READ).await.is_ok());
    assert_eq!(told(&guest), []);
}

#[tokio::test]
async fn a_flood_is_bounded() {
    let place = Place::new();
    let mut guest = place.guest(&[]);
    let root = directory(&mut guest, "/");
    for nth in 0..1_000 {
        assert!(open(&mut guest, &root, &format!("etc/{nth}"), OpenFlags::empty(), READ).await.is_err());
    }
    assert_eq!(told(&guest).len(), 64);
}
