//! Changes in a folder of the test, with the grants that a test names.
#![expect(clippy::disallowed_methods, reason = "mounts, and a minion that is killed")]
#![expect(clippy::needless_pass_by_value, reason = "changes are made where they are used")]

use std::fs::{Permissions, create_dir, read_dir, read_to_string, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use brine_sandbox::{Access, ByteBuf, Change, Content, JobContext, Owner, Tree};

use super::backup::Backups;
use super::failure::{Failure, Said};
use super::guard::Guard;
use super::journal::Journal;
use super::stage::{Job, Stages};
use super::{Done, Host, Task};

/// The test's folder; the minion's own folder is `own` in it.
struct Rig {
    dir: tempfile::TempDir,
    job: Arc<JobContext>,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["own", "a", "b", "inc", "outside"] {
            create_dir(dir.path().join(name)).unwrap();
        }
        write(dir.path().join("own/minion"), "policy").unwrap();
        write(dir.path().join("outside/file"), "outside").unwrap();
        write(dir.path().join("a/file"), "old").unwrap();
        Self { dir, job: Arc::default() }
    }

    fn at(&self, name: &str) -> String {
        self.dir.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
    }

    fn task(&self, grants: &[(&str, Access)]) -> Task {
        let own = PathBuf::from(self.at("own"));
        let host = Host {
            guard: Guard::of(vec![own.clone()], &[PathBuf::from(self.at("inc/*.conf"))]),
            journal: Journal::new(&own),
            backups: Backups::new(&own),
            stages: Stages::new(&own),
        };
        let path = |path: &str| if path.starts_with('/') { path.to_owned() } else { self.at(path) };
        let mut trees: Vec<Tree> = grants.iter().map(|(at, access)| Tree { path: path(at), access: *access }).collect();
        trees.sort();
        let (over, fetched) = (Arc::default(), None);
        Task { host: Arc::new(host), trees, over, fetched, job: Job::of(&self.job, "mine"), most: u64::MAX }
    }

    fn said(&self, task: &Task, change: Change) -> Result<Done, String> {
        task.make(&change).map_err(|failure| match failure.at(change.path()) {
            Said::Failed(why) | Said::Denied(why) => why.replace(&self.at(""), ""),
            Said::NotGranted(path) => format!("not granted: {}", path.replace(&self.at(""), "")),
        })
    }

    fn put(&self, task: &Task, name: &str, content: &str) -> Result<Done, String> {
        self.said(task, put(&self.at(name), content))
    }
}

fn put(path: &str, content: &str) -> Change {
    Change::Put {
        path: path.to_owned(),
        content: Content::Bytes(ByteBuf::from(content.as_bytes().to_vec())),
        owner: Owner::default(),
        mode: None,
        backup: false,
        follow: false,
        expect: None,
    }
}

fn mode(path: &str) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn user(name: &str) -> Owner {
    Owner { user: Some(name.to_owned()), group: Some(name.to_owned()) }
}

#[test]
fn a_file_is_put_whole_and_says_what_was_there() {
    let rig = Rig::new();
    let task = rig.task(&[("a", Access::Change)]);
    let done = rig.put(&task, "a/file", "new").unwrap();
    let (before, after) = (done.before.unwrap(), done.after.unwrap());
    assert_eq!((before.size, after.size, done.new_files), (3, 3, 0));
    assert_ne!(before.sha256, after.sha256);
    assert_eq!(read_to_string(rig.at("a/file")).unwrap(), "new");
    let done = rig.put(&task, "a/new", "x").unwrap();
    assert_eq!((done.before, mode(&rig.at("a/new")), done.new_files), (None, 0o644, 1));
    // The mode stays, and set-user-id does not.
    std::fs::set_permissions(rig.at("a/file"), Permissions::from_mode(0o4711)).unwrap();
    rig.put(&task, "a/file", "again").unwrap();
    assert_eq!(mode(&rig.at("a/file")), 0o711);
    std::fs::set_permissions(rig.at("a/file"), Permissions::from_mode(0o4711)).unwrap();
    rig.put(&rig.task(&[("a", Access::ChangeSetId)]), "a/file", "again").unwrap();
    assert_eq!(mode(&rig.at("a/file")), 0o4711);
    // No other name of the file changes with it.
    std::fs::hard_link(rig.at("a/file"), rig.at("outside/other")).unwrap();
    rig.put(&task, "a/file", "third").unwrap();
    assert_eq!(read_to_string(rig.at("outside/other")).unwrap(), "again");
    for (name, why) in [
        ("a", "[Errno 21] Is a directory: 'a'"),
        ("a/missing/x", "[Errno 2] No such file or directory: 'a/missing/x'"),
        ("a/file/x", "[Errno 20] Not a directory: 'a/file/x'"),
        ("b/x", "not granted: b/x"),
    ] {
        assert_eq!(rig.put(&task, name, "x").map(drop).unwrap_err(), why);
    }
    assert_eq!(names(&rig.at("a")), ["file", "new"], "a temporary file was left");
    assert!(names(&rig.at("own/changes")).is_empty(), "the journal was left");
}

fn names(dir: &str) -> Vec<String> {
    let mut names: Vec<String> =
        read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn owner_and_mode_are_there_before_the_name() {
    if !is_root() {
        return; // nobody else's file can be made
    }
    let rig = Rig::new();
    let task = rig.task(&[("a", Access::Change)]);
    let Change::Put { path, content, .. } = put(&rig.at("a/x"), "secret") else { unreachable!() };
    let change = |mode, owner| Change::Put {
        path: path.clone(),
        content: content.clone(),
        owner,
        mode: Some(mode),
        backup: false,
        follow: false,
        expect: None,
    };
    rig.said(&task, change(0o600, user("nobody"))).map(drop).unwrap_err();
    let owner = || Owner { user: Some("nobody".into()), group: Some("0".into()) };
    let after = rig.said(&task, change(0o600, owner())).unwrap().after.unwrap();
    let there = std::fs::metadata(rig.at("a/x")).unwrap();
    assert_eq!((after.uid, after.gid, after.mode), (there.uid(), 0, 0o600));
    assert!(there.uid() > 0);
    let error = rig.said(&task, change(0o600, user("no-such-user"))).map(drop).unwrap_err();
    assert_eq!(error, "the user no-such-user is not on this host: 'a/x'");
    // The owner stays when nothing is said of it.
    rig.put(&task, "a/x", "more").unwrap();
    assert_eq!(std::fs::metadata(rig.at("a/x")).unwrap().uid(), there.uid());
}

#[test]
fn links_are_followed_within_what_is_granted() {
    let rig = Rig::new();
    let task = rig.task(&[("a", Access::Change), ("b", Access::Change)]);
    create_dir(rig.at("b/sub")).unwrap();
    for (target, link) in [
        (rig.at("outside"), "a/out"),
        ("../outside".to_owned(), "a/relative"),
        (rig.at("b/sub"), "a/in"),
        ("loop".to_owned(), "a/loop"),
        (rig.at("outside/file"), "a/link"),
        ("file".to_owned(), "a/inner"),
        ("/proc/self/cwd".to_owned(), "a/proc"),
    ] {
        symlink(target, rig.at(link)).unwrap();
    }
    let follow = |name: &str| {
        let mut change = put(&rig.at(name), "followed");
        if let Change::Put { follow, .. } = &mut change {
            *follow = true;
        }
        rig.said(&task, change).map(drop)
    };
    for (name, why) in [
        ("a/out/file", "not granted: outside/file"),
        ("a/relative/file", "not granted: outside/file"),
        ("a/link", "not granted: outside/file"),
        ("a/loop/x", "[Errno 40] Too many levels of symbolic links: 'a/loop/x'"),
        ("a/proc/x", "not granted: /proc/self/cwd/x"),
    ] {
        assert_eq!(follow(name).unwrap_err(), why, "{name}");
    }
    follow("a/in/x").unwrap();
    assert_eq!(read_to_string(rig.at("b/sub/x")).unwrap(), "followed");
    follow("a/inner").unwrap();
    assert_eq!(read_to_string(rig.at("a/file")).unwrap(), "followed");
    // Without following, the link is what changes.
    rig.put(&task, "a/link", "mine").unwrap();
    assert_eq!(read_to_string(rig.at("outside/file")).unwrap(), "outside");
    if is_root() {
        // Another user's link leads from one grant into no other.
        std::os::unix::fs::lchown(rig.at("a/in"), Some(12_345), None).unwrap();
        assert!(follow("a/in/x").unwrap_err().contains("belongs neither to root nor to the minion's user"));
        // Within a grant it leads to what that user owns, and to nothing else: neither to change nor to read.
        let lchown = |name: &str, user: u32| std::os::unix::fs::lchown(rig.at(name), Some(user), None).unwrap();
        lchown("a/inner", 12_345);
        let why = "the link a/inner belongs to the user 12345, and a/file, where it leads, does not: 'a/inner'";
        assert_eq!(follow("a/inner").unwrap_err(), why);
        let read = || task.read(&rig.at("a/inner"), 0, 100).map(|read| read.unwrap()).map_err(drop);
        assert_eq!(read(), Err(()));
        assert_eq!(task.look(&rig.at("a/inner"), true, false).unwrap().unwrap().kind, "regular");
        lchown("a/file", 12_345);
        follow("a/inner").unwrap();
        assert_eq!(read().unwrap(), b"followed");
        // Also where another link comes after it.
        symlink("inner", rig.at("a/first")).unwrap();
        lchown("a/first", 23_456);
        assert!(follow("a/first").unwrap_err().contains("the link a/first belongs to the user 23456"));
        lchown("a/file", 0);
        // A directory of that user is enough for what is in it.
        lchown("a", 12_345);
        follow("a/inner").unwrap();
        lchown("a", 0);
        // In a directory that all may write, it leads nowhere.
        std::fs::set_permissions(rig.at("a"), Permissions::from_mode(0o1777)).unwrap();
        std::os::unix::fs::lchown(rig.at("a/inner"), Some(12_345), None).unwrap();
        assert!(follow("a/inner").unwrap_err().contains("in a directory that all may write"));
    }
    // The grant itself is no link.
    std::fs::rename(rig.at("b"), rig.at("c")).unwrap();
    symlink(rig.at("outside"), rig.at("b")).unwrap();
    let error = rig.put(&task, "b/file", "x").map(drop).unwrap_err();
    assert!(error.contains("a grant has to say a real name"), "{error}");
}

/// A directory is exchanged for a link all the time. Some puts succeed, some fail, and none leads out.
#[test]
fn a_race_leads_nowhere() {
    let rig = Rig::new();
    create_dir(rig.at("a/dir")).unwrap();
    symlink(rig.at("outside"), rig.at("a/link")).unwrap();
    let task = rig.task(&[("a", Access::Change)]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (dir, link, spare) = (rig.at("a/dir"), rig.at("a/link"), rig.at("a/spare"));
            while !stop.load(Ordering::Relaxed) {
                for (from, to) in [(&dir, &spare), (&link, &dir), (&dir, &link), (&spare, &dir)] {
                    std::fs::rename(from, to).unwrap();
                }
            }
        });
        let ends = Instant::now() + Duration::from_secs(30);
        let (mut done, mut refused) = (0, 0);
        while (done < 50 || refused < 50) && Instant::now() < ends {
            for change in [
                put(&rig.at("a/dir/file"), "inside"),
                Change::Remove { path: rig.at("a/dir/file"), recursive: true },
                Change::SetPermissions {
                    path: rig.at("a/dir/file"),
                    owner: Owner::default(),
                    mode: Some(0o600),
                    follow: true,
                },
            ] {
                match task.make(&change) {
                    Ok(_) => done += 1,
                    Err(_) => refused += 1,
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(done >= 50 && refused >= 50, "{done} done, {refused} refused: there was no race");
    });
    assert_eq!(names(&rig.at("outside")), ["file"]);
    assert_eq!(read_to_string(rig.at("outside/file")).unwrap(), "outside");
    assert_eq!(mode(&rig.at("outside/file")), 0o644);
}

#[test]
fn the_minions_own_folders_stay_its_own() {
    let rig = Rig::new();
    let task = rig.task(&[("/", Access::ChangeSetId)]);
    symlink(rig.at("own"), rig.at("a/link")).unwrap();
    std::fs::hard_link(rig.at("own/minion"), rig.at("a/hard")).unwrap();
    write(rig.at("inc/there.conf"), "policy").unwrap();
    std::fs::hard_link(rig.at("inc/there.conf"), rig.at("a/linked.conf")).unwrap();
    let permissions = |name: &str, mode| Change::SetPermissions {
        path: rig.at(name),
        owner: Owner::default(),
        mode: Some(mode),
        follow: true,
    };
    for change in [
        put(&rig.at("own/minion"), "mine"),
        put(&rig.at("own/new"), "mine"),
        put(&rig.at("a/link/minion"), "mine"),
        Change::Remove { path: rig.at("own"), recursive: true },
        Change::Remove { path: rig.at("own/minion"), recursive: false },
        Change::Remove { path: rig.dir.path().to_str().unwrap().to_owned(), recursive: true },
        Change::Rename { path: rig.at("own"), to: rig.at("a/own") },
        Change::Rename { path: rig.at("a/file"), to: rig.at("own/minion") },
        Change::Rename { path: rig.dir.path().to_str().unwrap().to_owned(), to: "/tmp/brine-moved".to_owned() },
        Change::HardLink { path: rig.at("a/other"), target: rig.at("own/minion") },
        Change::Symlink { path: rig.at("own/x"), target: "/".into(), owner: Owner::default(), replace: true },
        Change::MakeDirectory { path: rig.at("own/d"), parents: true, owner: Owner::default(), mode: None },
        permissions("own/minion", 0o666),
        permissions("a/hard", 0o666),
        permissions("", 0o777),
        Change::Touch { path: rig.at("own/minion"), atime: None, mtime: None },
        // Files of the configuration that are elsewhere, those that it would read at its next start included.
        put(&rig.at("inc/there.conf"), "mine"),
        put(&rig.at("inc/new.conf"), "mine"),
        Change::Rename { path: rig.at("a/file"), to: rig.at("inc/new.conf") },
        Change::Rename { path: rig.at("inc"), to: rig.at("a/inc") },
        Change::Remove { path: rig.at("inc"), recursive: true },
        permissions("inc", 0o777),
        permissions("a/linked.conf", 0o666),
    ] {
        let error = rig.said(&task, change.clone()).map(drop).unwrap_err();
        let said = ["is this minion's own, and no grant opens it", "has folders of this minion in it"];
        assert!(said.iter().any(|said| error.contains(said)), "{change:?}: {error}");
    }
    // What is in them is not read either: keys and passwords.
    for (name, via) in [("own/minion", "read"), ("a/link/minion", "read"), ("a/hard", "read"), ("own/minion", "hash")] {
        let read = match via {
            "read" => task.read(&rig.at(name), 0, 100).map(drop),
            _ => task.look(&rig.at(name), true, true).map(drop),
        };
        assert!(matches!(read, Err(Failure::Denied(_))), "{name}");
    }
    assert!(matches!(task.list(&rig.at("own"), None), Err(Failure::Denied(_))));
    assert_eq!(read_to_string(rig.at("own/minion")).unwrap(), "policy");
    assert_eq!(mode(&rig.at("own/minion")), 0o644);
    // A bind mount is another name.
    let bound = rig.at("a/bound");
    create_dir(&bound).unwrap();
    let mount = std::process::Command::new("mount").args(["--bind", &rig.at("own"), &bound]).output();
    if mount.is_ok_and(|mount| mount.status.success()) {
        let error = rig.put(&task, "a/bound/minion", "mine").map(drop).unwrap_err();
        std::process::Command::new("umount").arg(&bound).status().unwrap();
        assert!(error.contains("is this minion's own"), "{error}");
    }
}

#[test]
fn the_kernels_files_are_no_files() {
    let rig = Rig::new();
    let task = rig.task(&[("/", Access::Change)]);
    for path in
        ["/proc/sys/kernel/hostname", "/proc/self/environ", "/sys/kernel/uevent_helper", "/proc/self/root/tmp/x/y"]
    {
        let error = task.make(&put(path, "x")).map(drop).unwrap_err();
        assert!(matches!(error, Failure::Denied(_) | Failure::NotGranted(_) | Failure::System(_)), "{path}: {error:?}");
        assert!(task.read(path, 0, 10).ok().flatten().is_none(), "{path}");
    }
    assert!(matches!(task.make(&put("/proc/sys/kernel/hostname", "x")), Err(Failure::Denied(_))));
    assert!(matches!(task.read("/proc/self/environ", 0, 10), Err(Failure::Denied(_))));
    // A link of the kernel is not followed by its text either, which is another process's view.
    let below = format!("/proc/self/root{}", rig.at("a/file"));
    write(rig.at("a/file"), "text").unwrap();
    assert!(matches!(task.read(&below, 0, 10), Err(Failure::Denied(_))));
    assert!(matches!(task.make(&put(&below, "x")), Err(Failure::Denied(_))));
}

#[test]
fn a_read_only_grant_within_a_writable_one_stays() {
    let rig = Rig::new();
    create_dir(rig.at("a/keys")).unwrap();
    create_dir(rig.at("a/keys/open")).unwrap();
    write(rig.at("a/keys/key"), "key").unwrap();
    write(rig.at("a/keys/conf"), "conf").unwrap();
    symlink("keys", rig.at("a/link")).unwrap();
    let task = rig.task(&[
        ("a", Access::Change),
        ("a/keys", Access::Look),
        ("a/keys/open", Access::Change),
        ("a/keys/conf", Access::Change),
    ]);
    let rename = |from: &str, to: &str| Change::Rename { path: rig.at(from), to: rig.at(to) };
    for change in [
        put(&rig.at("a/keys/key"), "x"),
        put(&rig.at("a/link/key"), "x"),
        Change::Remove { path: rig.at("a/keys"), recursive: true },
        rename("a/keys", "a/moved"),
        rename("a/file", "a/keys/file"),
        rename("a/keys/key", "a/key"),
    ] {
        rig.said(&task, change.clone()).map(drop).unwrap_err();
    }
    assert_eq!(read_to_string(rig.at("a/keys/key")).unwrap(), "key");
    rig.put(&task, "a/keys/open/x", "x").unwrap();
    rig.put(&task, "a/link/open/y", "y").unwrap();
    rig.put(&task, "a/keys/conf", "changed").unwrap();
    let bound = rig.at("a/bound");
    create_dir(&bound).unwrap();
    let mount = std::process::Command::new("mount").args(["--bind", &rig.at("a/keys"), &bound]).output();
    if mount.is_ok_and(|mount| mount.status.success()) {
        let error = rig.put(&task, "a/bound/key", "x").map(drop).unwrap_err();
        std::process::Command::new("umount").arg(&bound).status().unwrap();
        assert_eq!(error, "not granted: a/bound/key");
    }
}

#[test]
fn trees_are_made_and_removed_without_following() {
    let rig = Rig::new();
    let task = rig.task(&[("a", Access::Change)]);
    let make = |name: &str, parents, mode| Change::MakeDirectory {
        path: rig.at(name),
        parents,
        owner: Owner::default(),
        mode,
    };
    assert!(rig.said(&task, make("a/x/y/z", false, None)).is_err());
    let done = rig.said(&task, make("a/x/y/z", true, Some(0o2750))).unwrap();
    assert_eq!((done.count, done.new_files, mode(&rig.at("a/x")), mode(&rig.at("a/x/y/z"))), (3, 3, 0o2750, 0o2750));
    let done = rig.said(&task, make("a/x/y/z", true, Some(0o700))).unwrap();
    assert_eq!((done.count, done.before.is_some(), mode(&rig.at("a/x"))), (0, true, 0o2750));
    assert_eq!(rig.said(&task, make("a/file", true, None)).map(drop).unwrap_err(), "[Errno 17] File exists: 'a/file'");
    write(rig.at("a/x/file"), "").unwrap();
    symlink(rig.at("outside"), rig.at("a/x/y/link")).unwrap();
    let remove = |recursive| Change::Remove { path: rig.at("a/x"), recursive };
    assert_eq!(rig.said(&task, remove(false)).map(drop).unwrap_err(), "[Errno 39] Directory not empty: 'a/x'");
    let done = rig.said(&task, remove(true)).unwrap();
    assert_eq!((done.count, done.after, Path::new(&rig.at("a/x")).exists()), (5, None, false));
    assert_eq!(names(&rig.at("outside")), ["file"]);
    assert_eq!(rig.said(&task, remove(true)).unwrap().count, 0);
}

#[test]
fn permissions_times_and_links() {
    let rig = Rig::new();
    let task = rig.task(&[("a", Access::Change)]);
    let set =
        |name: &str, mode, follow| Change::SetPermissions { path: rig.at(name), owner: Owner::default(), mode, follow };
    let done = rig.said(&task, set("a/file", Some(0o640), true)).unwrap();
    assert_eq!((done.before.unwrap().mode, done.after.unwrap().mode), (0o644, 0o640));
    assert!(rig.said(&task, set("a/file", Some(0o2755), true)).map(drop).unwrap_err().contains("rw+setid"));
    create_dir(rig.at("a/d")).unwrap();
    rig.said(&task, set("a/d", Some(0o2755), true)).unwrap();
    symlink(rig.at("outside/file"), rig.at("a/out")).unwrap();
    assert_eq!(rig.said(&task, set("a/out", Some(0o600), true)).map(drop).unwrap_err(), "not granted: outside/file");
    assert!(rig.said(&task, set("a/out", Some(0o600), false)).is_err());
    assert_eq!(mode(&rig.at("outside/file")), 0o644);

    let touch = |name: &str| Change::Touch { path: rig.at(name), atime: Some(1), mtime: Some(2) };
    let done = rig.said(&task, touch("a/touched")).unwrap();
    assert_eq!((done.before, done.after.unwrap().times[1]), (None, 2.0));
    rig.said(&task, touch("a/file")).unwrap();
    assert_eq!(std::fs::metadata(rig.at("a/file")).unwrap().mtime(), 2);

    let link = |name: &str, replace| Change::Symlink {
        path: rig.at(name),
        target: "anything".into(),
        owner: Owner::default(),
        replace,
    };
    assert_eq!(rig.said(&task, link("a/file", false)).map(drop).unwrap_err(), "[Errno 17] File exists: 'a/file'");
    assert!(rig.said(&task, link("a/d", true)).is_err(), "a directory is no file");
    let done = rig.said(&task, link("a/file", true)).unwrap();
    assert_eq!(done.after.unwrap().target.as_deref(), Some("anything"));
    assert_eq!(std::fs::read_link(rig.at("a/file")).unwrap().to_str(), Some("anything"));
    assert_eq!(names(&rig.at("a")), ["d", "file", "out", "touched"]);
}

#[test]
fn more_than_a_call_may_write_is_not_begun() {
    let rig = Rig::new();
    let mut task = rig.task(&[("a", Access::Change)]);
    task.most = 5;
    rig.put(&task, "a/file", "short").unwrap();
    let why = rig.put(&task, "a/file", "longer").map(drop).unwrap_err();
    assert!(why.contains("6 bytes would be written") && why.contains("5 at most"), "{why}");
    let mut change = put(&rig.at("a/file"), "x");
    if let Change::Put { backup, .. } = &mut change {
        *backup = true;
    }
    assert!(rig.said(&task, change).map(drop).unwrap_err().contains("6 bytes would be written"), "the copy counts too");
    assert_eq!(read_to_string(rig.at("a/file")).unwrap(), "short");
    assert!(task.backups(&rig.at("a/file")).unwrap().as_array().unwrap().is_empty());
}

/// Nobody would count what is left of it, however often it is tried.
#[test]
fn a_change_that_fails_leaves_no_backup() {
    let rig = Rig::new();
    let mut task = rig.task(&[("a", Access::Change)]);
    task.fetched = Some(Arc::new(std::fs::File::open(rig.at("outside/file")).unwrap()));
    let mut change = put(&rig.at("a/file"), "");
    if let Change::Put { content, backup, .. } = &mut change {
        let sha256 = Some("0".repeat(64));
        (*content, *backup) = (Content::Master { path: "x".to_owned(), saltenv: "base".to_owned(), sha256 }, true);
    }
    let why = rig.said(&task, change).map(drop).unwrap_err();
    assert!(why.contains("was expected"), "{why}");
    assert!(task.backups(&rig.at("a/file")).unwrap().as_array().unwrap().is_empty());
    assert_eq!(read_to_string(rig.at("a/file")).unwrap(), "old");
}

#[test]
fn a_backup_is_where_salt_looks_for_it() {
    let rig = Rig::new();
    let task = rig.task(&[("a", Access::Change)]);
    let mut change = put(&rig.at("a/file"), "new");
    if let Change::Put { backup, .. } = &mut change {
        *backup = true;
    }
    let done = rig.said(&task, change).unwrap();
    assert_eq!(done.written, "new".len() as u64 + "old".len() as u64, "the copy is written too");
    assert_eq!(done.new_files, 1);
    let backup = done.backup.unwrap();
    assert!(backup.starts_with(&format!("{}/file_backup{}/file_", rig.at("own"), rig.at("a"))), "{backup}");
    assert_eq!(read_to_string(&backup).unwrap(), "old");
    let listed = task.backups(&rig.at("a/file")).unwrap();
    assert_eq!(listed[0]["location"].as_str(), Some(backup.as_str()));
    let name = listed[0]["name"].as_str().unwrap().to_owned();
    let Change::Put { path, owner, .. } = put(&rig.at("a/file"), "") else { unreachable!() };
    let restore = |name: &str| Change::Put {
        path: path.clone(),
        content: Content::Backup(name.to_owned()),
        owner: owner.clone(),
        mode: None,
        backup: false,
        follow: false,
        expect: None,
    };
    for bad in ["../file", "file_x", "other_Tue_Nov_24_06:52:03_000123_2026", ""] {
        assert!(rig.said(&task, restore(bad)).is_err(), "{bad}");
    }
    rig.said(&task, restore(&name)).unwrap();
    assert_eq!(read_to_string(rig.at("a/file")).unwrap(), "old");
    rig.said(&task, Change::RemoveBackup { path: path.clone(), name }).unwrap();
    assert!(!Path::new(&backup).exists());
}

#[test]
fn a_change_of_what_was_read_fails_where_it_changed() {
    let rig = Rig::new();
    let task = rig.task(&[("a", Access::Change)]);
    let old = task.look(&rig.at("a/file"), false, true).unwrap().unwrap().sha256.unwrap();
    let expecting = |expected: &str| {
        let mut change = put(&rig.at("a/file"), "new");
        if let Change::Put { expect, .. } = &mut change {
            *expect = Some(expected.to_owned());
        }
        change
    };
    assert!(rig.said(&task, expecting("")).map(drop).unwrap_err().contains("has changed since it was read"));
    rig.said(&task, expecting(&old)).unwrap();
    assert!(rig.said(&task, expecting(&old)).is_err());
    assert_eq!(names(&rig.at("a")), ["file"]);
}

/// A file of the master that changed between its hash and its content.
#[test]
fn a_source_that_changed_since_it_was_hashed_is_not_put() {
    let rig = Rig::new();
    let fetched = std::fs::File::open(rig.at("outside/file")).unwrap();
    let mut task = rig.task(&[("a", Access::Change)]);
    task.fetched = Some(Arc::new(fetched));
    let from_master = |sha256: &str| {
        let mut change = put(&rig.at("a/file"), "");
        if let Change::Put { content, .. } = &mut change {
            let (path, saltenv) = ("app/x".to_owned(), "base".to_owned());
            *content = Content::Master { path, saltenv, sha256: Some(sha256.to_owned()) };
        }
        rig.said(&task, change).map(drop)
    };
    let why = from_master(&"0".repeat(64)).unwrap_err();
    assert!(why.starts_with("salt://app/x has the SHA-256 ") && why.contains("it may have changed meanwhile"), "{why}");
    assert_eq!(
        (read_to_string(rig.at("a/file")).unwrap().as_str(), names(&rig.at("a"))),
        ("old", vec!["file".to_owned()])
    );
    let is = task.look(&rig.at("a/file"), false, true).unwrap().unwrap().sha256.unwrap();
    assert!(from_master(&is).is_err());
    write(rig.at("b/same"), "outside").unwrap();
    let same = rig.task(&[("b", Access::Look)]).look(&rig.at("b/same"), false, true).unwrap().unwrap().sha256.unwrap();
    from_master(&same).unwrap();
    assert_eq!(read_to_string(rig.at("a/file")).unwrap(), "outside");
}

#[test]
fn stages_are_of_one_call() {
    let rig = Rig::new();
    let task = rig.task(&[("a", Access::Change)]);
    let take = |stage, data: &[u8]| task.host.stages.take(&task.job, stage, data);
    let number = take(None, b"one ").unwrap();
    assert_eq!(take(Some(number), b"two").unwrap(), number);
    let other = Arc::new(JobContext::default());
    assert!(task.host.stages.take(&Job::of(&other, "mine"), Some(number), b"x").is_err(), "another call's");
    let staged = |number| {
        let mut change = put(&rig.at("a/staged"), "");
        if let Change::Put { content, .. } = &mut change {
            *content = Content::Staged(number);
        }
        change
    };
    let done = rig.said(&task, staged(number)).unwrap();
    assert_eq!(done.written, 0, "it was counted when it was staged");
    assert_eq!(read_to_string(rig.at("a/staged")).unwrap(), "one two");
    assert!(rig.said(&task, staged(number)).is_err(), "it is used once");
    // A plan may have as many changes as what it is the plan of.
    for _ in 0..5 {
        let number = take(None, b"one two").unwrap();
        assert_eq!(task.plan(&staged(number)).unwrap().count, 0, "it is so already");
    }
    for _ in 0..4 {
        take(None, b"x").unwrap();
    }
    assert!(take(None, b"x").is_err());
}

#[test]
fn the_stages_of_one_module_leave_room_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let stages = Stages::new(dir.path());
    let jobs: Vec<Arc<JobContext>> = (0..16).map(|_| Arc::default()).collect();
    let take = |job: &Arc<JobContext>, module: &str| stages.take(&Job::of(job, module), None, b"x").is_ok();
    let taken = jobs.iter().flat_map(|job| [job; 4]).filter(|job| take(job, "greedy")).count();
    assert_eq!(taken, 48);
    let other = Arc::default();
    assert!(take(&other, "other"));
}

#[test]
fn a_plan_changes_nothing() {
    let rig = Rig::new();
    let task = rig.task(&[("a", Access::Change)]);
    let at = |name: &str| rig.at(name);
    for change in [
        put(&at("a/file"), "new"),
        put(&at("a/missing/x"), "new"),
        Change::Remove { path: at("a/file"), recursive: true },
        Change::MakeDirectory { path: at("a/d/e"), parents: true, owner: user("nobody-yet"), mode: None },
        Change::Symlink { path: at("a/l"), target: "x".into(), owner: Owner::default(), replace: true },
        Change::HardLink { path: at("a/h"), target: at("a/file") },
        Change::Rename { path: at("a/file"), to: at("a/g") },
        Change::SetPermissions { path: at("a/file"), owner: Owner::default(), mode: Some(0), follow: true },
        Change::Touch { path: at("a/t"), atime: None, mtime: Some(1) },
    ] {
        let done = task.plan(&change).unwrap();
        assert_eq!(done.count, 1, "{change:?}");
    }
    assert_eq!((names(&at("a")), read_to_string(at("a/file")).unwrap()), (vec!["file".to_owned()], "old".to_owned()));
    assert_eq!(mode(&at("a/file")), 0o644);
    assert_eq!(names(&at("own")), ["minion"]);
    assert_eq!(task.plan(&put(&at("a/file"), "old")).unwrap().count, 0, "it is so already");
    assert!(matches!(task.plan(&put(&at("own/x"), "x")), Err(Failure::NotGranted(_))));
}

/// Puts until it is killed.
#[test]
#[ignore = "the child of the test below"]
fn endless_puts() {
    let Some(dir) = std::env::var_os("BRINE_PUTS") else { return };
    let rig = Rig { dir: tempfile::TempDir::with_prefix_in("unused", &dir).unwrap(), job: Arc::default() };
    let own = PathBuf::from(&dir).join("own");
    let mut task = rig.task(&[]);
    task.host = Arc::new(Host {
        guard: Guard::of(vec![own.clone()], &[]),
        journal: Journal::new(&own),
        backups: Backups::new(&own),
        stages: Stages::new(&own),
    });
    let target = PathBuf::from(&dir).join("a");
    task.trees = vec![Tree { path: target.to_str().unwrap().to_owned(), access: Access::Change }];
    for n in 0_u64.. {
        let byte = char::from(b'a' + u8::try_from(n % 26).unwrap());
        let path = target.join("file");
        task.make(&put(path.to_str().unwrap(), &byte.to_string().repeat(300_000))).map(drop).unwrap();
    }
}

#[test]
fn a_minion_that_is_killed_leaves_whole_files() {
    // Where a put takes a hundredth of a round, twenty kills may all miss it.
    const KILLS: std::ops::Range<u64> = 20..1_000;
    let rig = Rig::new();
    let (mut left, mut round, path) = (0, 0, rig.at("a/file"));
    while round < KILLS.start || left == 0 {
        assert!(round < KILLS.end, "no kill came in the middle of a put, of {round}");
        round += 1;
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "broker::changes::tests::endless_puts", "--ignored", "--nocapture"])
            .env("BRINE_PUTS", rig.at(""))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Wait until it works, and then for a moment that differs from round to round.
        let before = std::fs::metadata(&path).unwrap().ino();
        let ends = Instant::now() + Duration::from_secs(30);
        while std::fs::metadata(&path).unwrap().ino() == before {
            assert!(Instant::now() < ends, "nothing was put");
            assert!(child.try_wait().unwrap().is_none(), "it failed");
        }
        let spin = Instant::now() + Duration::from_micros(rand::random_range(0..4_000));
        while Instant::now() < spin {}
        child.kill().unwrap();
        child.wait().unwrap();
        let content = read_to_string(&path).unwrap();
        assert_eq!(content.len(), 300_000);
        assert!(content.bytes().all(|byte| byte == content.as_bytes()[0]), "a mixed file");
        left += names(&rig.at("a")).len() - 1;
        Journal::new(Path::new(&rig.at("own"))).sweep();
        assert_eq!(names(&rig.at("a")), ["file"], "a temporary file stays");
        assert!(names(&rig.at("own/changes")).is_empty());
    }
}

/// A sweep leaves what a minion that lives is writing, and removes nothing that it does not know.
#[test]
fn a_sweep_removes_only_what_was_left() {
    let rig = Rig::new();
    let journal = Journal::new(Path::new(&rig.at("own")));
    let dir = rustix::fs::open(rig.at("a"), rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    let living = journal.temporary(&dir, &rig.at("a")).unwrap();
    write(rig.at(&format!("a/{}", living.name)), "").unwrap();
    write(rig.at(&format!("own/changes/{}", "0".repeat(32))), rig.at("outside")).unwrap();
    write(rig.at("own/changes/other"), rig.at("a")).unwrap();
    journal.sweep();
    assert_eq!(names(&rig.at("a")).len(), 2, "a living minion's file is gone");
    assert_eq!(names(&rig.at("own/changes")).len(), 2);
    drop(living);
    assert_eq!(names(&rig.at("a")), ["file"]);
    assert_eq!(names(&rig.at("outside")), ["file"]);
}
