//! A directory granted as read-only within a writable one can only be read, whatever way a guest takes. There is no
//! executor process; the tests call the guest as the engine does.
#![allow(clippy::disallowed_methods, reason = "the test makes the files")]

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brine_executor::guest::Guest;
use brine_sandbox_wire::{Directory, Limits};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, HostDescriptor, NewTimestamp, OpenFlags, PathFlags,
};

use crate::alone::{self, same};

const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
const WRITE: DescriptorFlags = DescriptorFlags::WRITE;
const NOW: NewTimestamp = NewTimestamp::Now;

/// Waits for a result.
async fn within<T>(future: impl Future<Output = FsResult<T>>) -> Result<T, ErrorCode> {
    brine_kit::wait::within(future).await.map_err(|error| error.downcast().unwrap())
}

/// A folder in which directories are granted.
struct Place {
    folder: tempfile::TempDir,
}

/// A guest with directories, named by their paths below the folder.
struct Attacker {
    guest: Guest,
    directories: Vec<(Resource<Descriptor>, String)>,
    said: Vec<String>,
}

impl Place {
    /// `outer` is writable except `outer/mid/inner`.
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for directory in ["outer/mid/inner/sub", "outer/spare", "outer/full/inner"] {
            std::fs::create_dir_all(place.path(directory)).unwrap();
        }
        std::fs::write(place.path("outer/mid/inner/file"), "kept").unwrap();
        std::fs::write(place.path("outer/mid/inner/sub/file"), "kept").unwrap();
        std::fs::write(place.path("outer/full/inner/file"), "forged").unwrap();
        std::fs::write(place.path("outer/own"), "own").unwrap();
        symlink("mid/inner/file", place.path("outer/to-file")).unwrap();
        symlink("mid/../mid/inner", place.path("outer/to-inner")).unwrap();
        symlink("mid", place.path("outer/to-mid")).unwrap();
        symlink("to-file", place.path("outer/twice")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn attacker(&self, granted: &[(&str, bool)]) -> Attacker {
        let of = |name: &str| self.path(name).to_str().unwrap().to_owned();
        let granted: Vec<_> =
            granted.iter().map(|(name, writable)| Directory { path: of(name), writable: *writable }).collect();
        let (mut guest, said) = alone::guest("file", Limits::default(), &granted);
        let root = format!("{}/", of("").trim_end_matches('/'));
        let directories = guest.get_directories().unwrap().into_iter();
        // All but the one that stands for what is not granted.
        let directories = directories.filter(|(_, path)| path != "/");
        let directories = directories.map(|(fd, path)| (fd, path.strip_prefix(&root).unwrap().to_owned())).collect();
        Attacker { guest, directories, said }
    }

    fn usual(&self) -> Attacker {
        self.attacker(&[("outer", true), ("outer/mid/inner", false)])
    }

    /// The content of the read-only directory with the times of change.
    fn inner(&self) -> Vec<(PathBuf, String, std::time::SystemTime)> {
        let file = |path: &str| {
            let path = self.path(path);
            let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
            let content = std::fs::read_to_string(&path).unwrap_or_default();
            (path, content, modified)
        };
        let inner = "outer/mid/inner";
        assert_eq!(std::fs::read_dir(self.path(inner)).unwrap().count(), 2);
        assert_eq!(std::fs::read_dir(self.path("outer/mid/inner/sub")).unwrap().count(), 1);
        ["", "/file", "/sub", "/sub/file"].iter().map(|rest| file(&format!("{inner}{rest}"))).collect()
    }
}

impl Attacker {
    fn directory(&self, name: &str) -> Resource<Descriptor> {
        same(&self.directories.iter().find(|(_, path)| path == name).unwrap().0)
    }

    async fn open(
        &mut self,
        dir: &Resource<Descriptor>,
        path: &str,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Resource<Descriptor>, ErrorCode> {
        within(self.guest.open_at(same(dir), FOLLOW, path.into(), open, flags)).await
    }

    /// Opens a directory to work from.
    async fn handle(&mut self, dir: &Resource<Descriptor>, path: &str) -> Resource<Descriptor> {
        self.open(dir, path, OpenFlags::DIRECTORY, DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY)
            .await
            .unwrap_or_else(|error| panic!("{path}: {error:?}"))
    }

    async fn writes(&mut self, dir: &Resource<Descriptor>, path: &str, content: &str) -> Result<(), ErrorCode> {
        let file = self.open(dir, path, OpenFlags::CREATE | OpenFlags::TRUNCATE, WRITE).await?;
        within(self.guest.write(same(&file), content.into(), 0)).await?;
        HostDescriptor::drop(&mut self.guest, file).unwrap();
        Ok(())
    }

    async fn renames(&mut self, dir: &Resource<Descriptor>, from: &str, to: &str) -> Result<(), ErrorCode> {
        within(self.guest.rename_at(same(dir), from.into(), same(dir), to.into())).await
    }

    async fn links(&mut self, dir: &Resource<Descriptor>, from: &str, to: &str) -> Result<(), ErrorCode> {
        within(self.guest.link_at(same(dir), PathFlags::empty(), from.into(), same(dir), to.into())).await
    }
}

const DENIED: ErrorCode = ErrorCode::NotPermitted;

/// Paths from the writable directory to a file of the read-only directory, and to that directory itself.
const FILES: [&str; 8] = [
    "mid/inner/file",
    "mid//inner/./file",
    "spare/../mid/inner/file",
    "mid/inner/sub/../file",
    "to-file",
    "twice",
    "to-inner/file",
    "to-mid/inner/file",
];

#[tokio::test]
async fn what_is_in_it_is_not_changed_through_the_wider_one() {
    let place = Place::new();
    let before = place.inner();
    let mut attacker = place.usual();
    assert_eq!(attacker.said, [""; 0]);
    let outer = attacker.directory("outer");
    for path in FILES {
        for (open, flags) in [
            (OpenFlags::empty(), WRITE),
            (OpenFlags::empty(), WRITE | DescriptorFlags::READ),
            (OpenFlags::TRUNCATE, DescriptorFlags::READ),
            (OpenFlags::CREATE, DescriptorFlags::READ),
            (OpenFlags::CREATE | OpenFlags::TRUNCATE, WRITE),
        ] {
            let opened = attacker.open(&outer, path, open, flags).await;
            assert_eq!(opened.map(drop), Err(DENIED), "{path} {open:?} {flags:?}");
        }
        let guest = &mut attacker.guest;
        let times = within(guest.set_times_at(same(&outer), FOLLOW, path.into(), NOW, NOW)).await;
        assert_eq!(times, Err(DENIED), "{path}");
        // The file can be read, and its handle permits nothing more.
        let file = attacker.open(&outer, path, OpenFlags::empty(), DescriptorFlags::READ).await.unwrap();
        let guest = &mut attacker.guest;
        assert_eq!(within(guest.read(same(&file), 10, 0)).await.unwrap().0, b"kept", "{path}");
        assert!(within(guest.write(same(&file), vec![1], 0)).await.is_err());
        assert!(within(guest.set_size(same(&file), 0)).await.is_err());
        assert!(within(guest.set_times(same(&file), NOW, NOW)).await.is_err());
        assert!(guest.write_via_stream(same(&file), 0).is_err());
        assert!(guest.append_via_stream(same(&file)).is_err());
        HostDescriptor::drop(guest, file).unwrap();
    }
    for path in ["mid/inner", "mid/inner/", "to-inner", "to-inner/", "mid/inner/sub", "to-inner/sub/../."] {
        let guest = &mut attacker.guest;
        let times = within(guest.set_times_at(same(&outer), FOLLOW, path.into(), NOW, NOW)).await;
        assert_eq!(times, Err(DENIED), "{path}");
        // A handle of the directory that was opened through the writable one.
        let handle = attacker.handle(&outer, path).await;
        assert_eq!(attacker.writes(&handle, "new", "x").await, Err(DENIED), "{path}");
        assert_eq!(attacker.writes(&handle, "file", "x").await, Err(DENIED), "{path}");
        let guest = &mut attacker.guest;
        assert_eq!(within(guest.set_times(same(&handle), NOW, NOW)).await, Err(DENIED), "{path}");
        assert_eq!(within(guest.create_directory_at(same(&handle), "new".into())).await, Err(DENIED), "{path}");
        assert_eq!(within(guest.unlink_file_at(same(&handle), "file".into())).await, Err(DENIED), "{path}");
        HostDescriptor::drop(guest, handle).unwrap();
    }
    for inner in ["mid/inner", "to-inner", "to-mid/inner", "spare/../mid/inner"] {
        let guest = &mut attacker.guest;
        let new = format!("{inner}/new");
        assert_eq!(within(guest.create_directory_at(same(&outer), new.clone())).await, Err(DENIED));
        assert_eq!(within(guest.symlink_at(same(&outer), "file".into(), new.clone())).await, Err(DENIED));
        assert_eq!(within(guest.unlink_file_at(same(&outer), format!("{inner}/file"))).await, Err(DENIED));
        assert_eq!(within(guest.remove_directory_at(same(&outer), format!("{inner}/sub"))).await, Err(DENIED));
        assert_eq!(attacker.renames(&outer, "own", &new).await, Err(DENIED), "into it");
        assert_eq!(attacker.renames(&outer, "own", &format!("{inner}/file")).await, Err(DENIED), "over what is in it");
        assert_eq!(attacker.renames(&outer, &format!("{inner}/file"), "taken").await, Err(DENIED), "out of it");
        assert_eq!(attacker.renames(&outer, &format!("{inner}/file"), &new).await, Err(DENIED), "within it");
        assert_eq!(attacker.links(&outer, "own", &new).await, Err(DENIED), "a link into it");
        assert_eq!(attacker.links(&outer, &format!("{inner}/file"), "linked").await, Err(DENIED), "a link out of it");
    }
    assert_eq!(place.inner(), before);
}

#[tokio::test]
async fn it_and_its_parents_stay_where_they_are() {
    let place = Place::new();
    let before = place.inner();
    let mut attacker = place.usual();
    let outer = attacker.directory("outer");
    let mid = attacker.handle(&outer, "mid").await;
    for (from, to) in [
        ("mid/inner", "moved"),
        ("mid/inner/", "moved"),
        ("mid", "moved"),
        ("to-mid/inner", "moved"),
        ("spare/../mid", "spare/mid"),
        // Replacing them.
        ("full", "mid"),
        ("full/inner", "mid/inner"),
        ("own", "mid/inner"),
    ] {
        assert_eq!(attacker.renames(&outer, from, to).await, Err(DENIED), "{from} to {to}");
    }
    assert_eq!(attacker.renames(&mid, "inner", "moved").await, Err(DENIED));
    let moved = attacker.guest.rename_at(same(&mid), "inner".into(), same(&outer), "moved".into());
    assert_eq!(within(moved).await, Err(DENIED));
    for path in ["mid", "mid/inner", "to-mid/inner"] {
        let guest = &mut attacker.guest;
        assert_eq!(within(guest.remove_directory_at(same(&outer), path.into())).await, Err(DENIED), "{path}");
        assert_eq!(within(guest.unlink_file_at(same(&outer), path.into())).await, Err(DENIED), "{path}");
    }
    assert_eq!(place.inner(), before);
    // The module may change everything around it.
    attacker.writes(&outer, "mid/new", "new").await.unwrap();
    attacker.writes(&mid, "newer", "new").await.unwrap();
    assert_eq!(attacker.writes(&mid, "../new", "new").await, Err(DENIED), "as from any handle");
    attacker.writes(&outer, "own", "mine").await.unwrap();
    attacker.writes(&outer, "full/inner/file", "mine").await.unwrap();
    attacker.renames(&outer, "full", "spare/full").await.unwrap();
    attacker.links(&outer, "own", "mid/linked").await.unwrap();
    attacker.renames(&outer, "to-mid", "elsewhere").await.unwrap();
    let guest = &mut attacker.guest;
    within(guest.create_directory_at(same(&outer), "made/".into())).await.unwrap();
    within(guest.symlink_at(same(&outer), "own".into(), "mid/link".into())).await.unwrap();
    within(guest.set_times_at(same(&outer), FOLLOW, "mid".into(), NOW, NOW)).await.unwrap();
    within(guest.unlink_file_at(same(&outer), "mid/linked".into())).await.unwrap();
    within(guest.remove_directory_at(same(&outer), "made".into())).await.unwrap();
    assert_eq!(std::fs::read_to_string(place.path("outer/mid/link")).ok(), None, "it leads to mid/own");
    assert_eq!(std::fs::read_to_string(place.path("outer/own")).unwrap(), "mine");
    // The errors are the usual ones.
    for (path, code) in [("none/x", ErrorCode::NoEntry), ("own/x", ErrorCode::NotDirectory), ("../x", DENIED)] {
        assert_eq!(attacker.writes(&outer, path, "x").await, Err(code), "{path}");
        let made = attacker.guest.create_directory_at(same(&outer), path.into());
        assert_eq!(within(made).await, Err(code), "{path}");
    }
    assert_eq!(within(attacker.guest.create_directory_at(same(&outer), "mid".into())).await, Err(ErrorCode::Exist));
    assert_eq!(within(attacker.guest.unlink_file_at(same(&outer), "own/".into())).await, Err(ErrorCode::NotDirectory));
    // Nothing that was opened on the way stays open: there is room for 254 files.
    for _ in 0..150 {
        attacker.renames(&outer, "own", "own-too").await.unwrap();
        attacker.renames(&outer, "own-too", "own").await.unwrap();
        assert_eq!(attacker.renames(&outer, "own", "mid/inner").await, Err(DENIED));
    }
}

#[tokio::test]
async fn what_is_missing_of_it_is_not_made_by_the_module() {
    let place = Place::new();
    let granted = [("outer", true), ("outer/spare/late/inner", false)];
    let mut attacker = place.attacker(&granted);
    let outer = attacker.directory("outer");
    for path in ["spare/late", "spare/late/", "spare/LATE", "spare/../spare/late"] {
        let guest = &mut attacker.guest;
        assert_eq!(within(guest.create_directory_at(same(&outer), path.into())).await, Err(DENIED), "{path}");
        assert!(within(guest.symlink_at(same(&outer), "../full".into(), path.into())).await.is_err(), "{path}");
        assert!(attacker.writes(&outer, path, "x").await.is_err(), "{path}");
        assert_eq!(attacker.renames(&outer, "full", path).await, Err(DENIED), "{path}");
    }
    assert_eq!(attacker.renames(&outer, "spare", "moved").await, Err(DENIED));
    attacker.writes(&outer, "spare/later", "x").await.unwrap();
    // The owner makes the directory while the job runs: the grant applies at once.
    std::fs::create_dir_all(place.path("outer/spare/late/inner")).unwrap();
    assert_eq!(attacker.writes(&outer, "spare/late/inner/new", "x").await, Err(DENIED));
    attacker.writes(&outer, "spare/late/new", "x").await.unwrap();
    // The owner replaces the directory.
    std::fs::rename(place.path("outer/spare/late/inner"), place.path("outer/spare/old")).unwrap();
    std::fs::create_dir(place.path("outer/spare/late/inner")).unwrap();
    assert_eq!(attacker.writes(&outer, "spare/late/inner/new", "x").await, Err(DENIED));
}

/// A file cannot be granted as a directory, but an owner who lists one wants it unchanged.
#[tokio::test]
async fn a_file_or_a_link_in_its_place_is_as_narrow() {
    let place = Place::new();
    let mut attacker = place.attacker(&[("outer", true), ("outer/own", false)]);
    let outer = attacker.directory("outer");
    std::fs::hard_link(place.path("outer/own"), place.path("outer/other-name")).unwrap();
    for path in ["own", "other-name"] {
        assert_eq!(attacker.writes(&outer, path, "x").await, Err(DENIED), "{path}");
        assert_eq!(attacker.links(&outer, path, "linked").await, Err(DENIED), "{path}");
        assert_eq!(attacker.renames(&outer, path, "moved").await, Err(DENIED), "{path}");
        assert_eq!(attacker.renames(&outer, "full/inner/file", path).await, Err(DENIED), "{path}");
        assert_eq!(within(attacker.guest.unlink_file_at(same(&outer), path.into())).await, Err(DENIED), "{path}");
    }
    attacker.writes(&outer, "full/inner/file", "x").await.unwrap();
    assert_eq!(std::fs::read_to_string(place.path("outer/own")).unwrap(), "own");

    // If the way to the directory cannot be followed, it is unknown what the grant protects.
    for narrow in ["outer/to-inner", "outer/to-mid/inner"] {
        let mut attacker = place.attacker(&[("outer", true), (narrow, false)]);
        let (of, outer_path) = (place.path(narrow), place.path("outer"));
        let why = format!(
            "{} cannot be changed: {} in it was granted for reading alone, and a part of its path is a symbolic link",
            outer_path.display(),
            of.display()
        );
        assert_eq!(attacker.said.last(), Some(&why));
        let outer = attacker.directory("outer");
        assert_eq!(attacker.writes(&outer, "spare/new", "x").await, Err(DENIED));
        assert_eq!(attacker.renames(&outer, "other-name", "moved").await, Err(DENIED));
        attacker.open(&outer, "own", OpenFlags::empty(), DescriptorFlags::READ).await.unwrap();
    }
}

#[tokio::test]
async fn the_closest_directory_has_the_word() {
    let place = Place::new();
    let granted = [("outer", true), ("outer/mid", false), ("outer/mid/inner", true), ("outer/mid/inner/sub", false)];
    let mut attacker = place.attacker(&granted);
    let (outer, mid, inner) =
        (attacker.directory("outer"), attacker.directory("outer/mid"), attacker.directory("outer/mid/inner"));
    for (dir, path, may) in [
        (&outer, "new", true),
        (&outer, "mid/new", false),
        (&outer, "mid/inner/new", true),
        (&outer, "mid/inner/sub/new", false),
        (&outer, "mid/inner/sub/file", false),
        // A handle never has more rights than its grant.
        (&mid, "inner/new", false),
        (&inner, "new", true),
        (&inner, "sub/file", false),
    ] {
        let expected = if may { Ok(()) } else { Err(DENIED) };
        assert_eq!(attacker.writes(dir, path, "x").await, expected, "{path}");
    }
    let handle = attacker.handle(&outer, "mid/inner").await;
    attacker.writes(&handle, "newer", "x").await.unwrap();
    assert_eq!(attacker.writes(&handle, "sub/new", "x").await, Err(DENIED));
    attacker.writes(&outer, "newer", "x").await.unwrap();
    // Between two writable directories.
    attacker.renames(&outer, "newer", "mid/inner/moved").await.unwrap();
    assert_eq!(attacker.renames(&outer, "mid/inner", "moved").await, Err(DENIED));
    // A read-only directory beside a writable one has no effect on it.
    let mut beside = place.attacker(&[("outer/spare", true), ("outer/full", false)]);
    let (spare, full) = (beside.directory("outer/spare"), beside.directory("outer/full"));
    beside.writes(&spare, "new", "x").await.unwrap();
    assert_eq!(beside.writes(&full, "new", "x").await, Err(DENIED));
}

/// Two instances of a module at once: one moves a directory on the way back and forth while the other writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_of_renames_writes_nothing() {
    let place = Place::new();
    let before = place.inner();
    let ended = Arc::new(AtomicBool::new(false));
    std::fs::create_dir_all(place.path("outer/spare/inner")).unwrap();
    std::fs::write(place.path("outer/spare/inner/file"), "spare").unwrap();
    let mut mover = place.usual();
    let moving = tokio::spawn({
        let ended = Arc::clone(&ended);
        async move {
            let outer = mover.directory("outer");
            while !ended.load(Ordering::SeqCst) {
                for (from, to) in
                    [("spare", "way"), ("way", "aside"), ("to-mid", "way"), ("way", "to-mid"), ("aside", "spare")]
                {
                    mover.renames(&outer, from, to).await.unwrap();
                }
                assert_eq!(mover.renames(&outer, "mid", "way").await, Err(DENIED));
            }
        }
    });
    let mut attacker = place.usual();
    let outer = attacker.directory("outer");
    let mut written = 0;
    for _ in 0..1_500 {
        match attacker.writes(&outer, "way/inner/file", "forged").await {
            Ok(()) => written += 1,
            Err(error) => assert!(
                matches!(error, DENIED | ErrorCode::NoEntry | ErrorCode::Busy | ErrorCode::NotDirectory),
                "{error:?}"
            ),
        }
    }
    ended.store(true, Ordering::SeqCst);
    moving.await.unwrap();
    assert_eq!(place.inner(), before);
    assert!(written > 0, "the race was never on");
}
