use std::io::Read as _;
use std::os::unix::fs::symlink;

use brine_fileserver::{HashType, TreeOpts};
use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{ValueExt as _, map};

use super::*;

struct Fixture {
    dir: tempfile::TempDir,
    inner: Inner,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    for (path, text) in
        [("one/a.txt", "first"), ("one/sub/b", "b"), ("two/a.txt", "second"), ("two/c", "c"), ("secret", "!")]
    {
        std::fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
        std::fs::write(top.join(path), text).unwrap();
    }
    std::fs::create_dir(top.join("one/empty")).unwrap();
    symlink("a.txt", top.join("one/inside")).unwrap();
    symlink("../one/a.txt", top.join("one/out_and_in")).unwrap();
    symlink("../secret", top.join("one/outside")).unwrap();
    symlink(top.join("secret"), top.join("one/absolute")).unwrap();
    symlink("/proc/self/root", top.join("one/magic")).unwrap();
    symlink("..", top.join("one/sub/loop")).unwrap();
    let inner = FileServer::new(&opts(&dir), &top.join("cache")).unwrap().inner.into_inner();
    Fixture { dir, inner: Arc::into_inner(inner).unwrap() }
}

fn opts(dir: &tempfile::TempDir) -> FileOpts {
    let top = dir.path();
    FileOpts {
        tree: TreeOpts {
            roots: vec![(Saltenv::base(), vec![top.join("one"), top.join("two"), top.join("none")])],
            buffer_size: 4,
            hash_type: HashType::Sha256,
            follow_symlinks: true,
            ignore_glob: vec!["*.swp".to_owned()],
            ignore_regex: vec!["/\\.git($|/)".to_owned()],
        },
        recv: true,
        recv_max: 10,
        recv_quota: (0, 0),
    }
}

fn ask(f: &Fixture, what: FileRequest, fields: &[(&str, Value)]) -> Value {
    let mut load = map([("saltenv", "base")]);
    for (name, value) in fields {
        load.insert(name, value.clone());
    }
    f.inner.tree.answer(what, &load)
}

fn content(f: &Fixture, path: &str) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let reply = ask(f, FileRequest::Serve, &[("path", path.into()), ("loc", whole.len().into())]);
        if reply.get_text("dest") == Some("") {
            return None;
        }
        match reply.get_bytes("data").unwrap() {
            [] => return Some(whole),
            piece => whole.extend_from_slice(piece),
        }
    }
}

#[test]
fn files_are_served_in_pieces_and_the_first_root_wins() {
    let f = fixture();
    assert_eq!(content(&f, "a.txt").unwrap(), b"first");
    for path in ["c", "salt://c", "./c", "salt://c?saltenv=base", "sub/../c"] {
        let found = content(&f, path);
        assert_eq!(found.is_some(), !path.contains(".."), "{path}");
    }
    assert!(content(&f, "c?saltenv=dev").is_none());
    for loc in [Value::from(-1), Value::from("0"), Value::Nil, Value::from(u64::MAX)] {
        let reply = ask(&f, FileRequest::Serve, &[("path", "c".into()), ("loc", loc)]);
        assert_eq!(reply.get_bytes("data"), Some(b"".as_slice()));
    }
}

#[test]
fn pieces_are_compressed_each_for_itself() {
    let f = fixture();
    let reply = ask(&f, FileRequest::Serve, &[("path", "a.txt".into()), ("loc", 0.into()), ("gzip", 5.into())]);
    assert_eq!(reply.get_i64("gzip"), Some(5));
    let mut text = String::new();
    flate2::read::GzDecoder::new(reply.get_bytes("data").unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, "firs");
    let end = ask(&f, FileRequest::Serve, &[("path", "a.txt".into()), ("loc", 5.into()), ("gzip", 5.into())]);
    assert_eq!((end.has("gzip"), end.get_bytes("data")), (false, Some(b"".as_slice())));
}

#[test]
fn nothing_leads_out_of_a_root() {
    let f = fixture();
    let absolute = f.dir.path().join("secret").display().to_string();
    for path in [
        "../secret",
        "sub/../../secret",
        "outside",
        "absolute",
        "magic/etc/passwd",
        absolute.as_str(),
        "/etc/passwd",
        "//etc/passwd",
        "salt:///etc/passwd",
        "salt://../secret",
        "..",
        ".",
        "",
        "sub",
        "a.txt\0",
        "a.txt/",
        "..\\secret",
        "sub/loop/../../secret",
    ] {
        let found = content(&f, path);
        assert!(found.is_none() || path == "a.txt/", "{path}: {found:?}");
        if path != "a.txt/" {
            assert_eq!(ask(&f, FileRequest::Hash, &[("path", path.into())]), Value::from(""), "{path}");
            let found = ask(&f, FileRequest::Find, &[("path", path.into())]);
            assert_eq!(found.get_text("path"), Some(""), "{path}");
        }
    }
    for env in ["..", "base/../..", "none", "", "/"] {
        let reply = ask(&f, FileRequest::Serve, &[("path", "c".into()), ("loc", 0.into()), ("saltenv", env.into())]);
        assert_eq!(reply.get_text("dest"), Some(""), "{env}");
        assert_eq!(ask(&f, FileRequest::List, &[("saltenv", env.into())]), Value::Array(Vec::new()));
    }
    assert_eq!(content(&f, "inside").unwrap(), b"first");
}

#[test]
fn lists_are_sorted_and_show_only_what_can_be_had() {
    let f = fixture();
    std::fs::write(f.dir.path().join("one/x.swp"), "").unwrap();
    std::fs::create_dir_all(f.dir.path().join("one/sub/.git")).unwrap();
    let names = |what| {
        let list = ask(&f, what, &[("prefix", "".into())]);
        list.list().unwrap().iter().map(|v| v.text().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(FileRequest::List), ["a.txt", "c", "inside", "sub/b"]);
    assert_eq!(names(FileRequest::DirList), ["empty", "sub", "sub/loop"]);
    assert_eq!(names(FileRequest::EmptyDirs), ["empty"]);
    let links = ask(&f, FileRequest::Symlinks, &[]);
    assert_eq!(links, map([("inside", "a.txt"), ("sub/loop", "..")]));
    let sub = ask(&f, FileRequest::List, &[("prefix", "sub/".into())]);
    assert_eq!(sub, Value::Array(vec!["sub/b".into()]));
    // A new file is listed at once.
    std::fs::write(f.dir.path().join("two/new"), "").unwrap();
    assert!(names(FileRequest::List).contains(&"new".to_owned()));
}

#[test]
fn hashes_follow_changes() {
    let f = fixture();
    let hash = || ask(&f, FileRequest::Hash, &[("path", "c".into())]).get_text("hsum").map(str::to_owned);
    let of = |text: &str| Some(hex::encode(<sha2::Sha256 as sha2::Digest>::digest(text)));
    for text in ["c", "d", "e", "longer"] {
        std::fs::write(f.dir.path().join("two/c"), text).unwrap();
        assert_eq!(hash(), of(text));
    }
    let both = ask(&f, FileRequest::HashAndStat, &[("path", "c".into())]);
    assert_eq!(both.list().unwrap()[1].list().unwrap()[6], Value::from(6));
    let none = ask(&f, FileRequest::HashAndStat, &[("path", "none".into())]);
    assert_eq!(none, Value::Array(vec!["".into(), Value::Nil]));
}

/// Each further file of a request is answered as if it were asked for alone: nothing can be had that a single request refuses.
#[test]
fn further_files_are_answered_as_single_ones() {
    let f = fixture();
    std::fs::write(f.dir.path().join("one/x.swp"), "").unwrap();
    let paths = [
        "a.txt",
        "c",
        "sub/b",
        "inside",
        "none",
        "outside",
        "absolute",
        "magic/etc/passwd",
        "../secret",
        "/etc/passwd",
        "x.swp",
        "",
        "sub",
        "out_and_in",
        "sub/loop/../../secret",
        "c?saltenv=none",
        "salt://c",
        "a.txt\0",
    ];
    let further: Vec<Value> = paths.iter().map(|path| Value::from(*path)).collect();
    let all = |what| ask(&f, what, &[("path", "c".into()), ("loc", 0.into()), ("also", Value::Array(further.clone()))]);
    let alone = |what, path: &Value| ask(&f, what, &[("path", path.clone()), ("loc", 0.into())]);
    let served = all(FileRequest::Serve);
    assert_eq!(served.get_bytes("data"), Some(&b"c"[..]));
    let hashes = all(FileRequest::HashAndStat);
    let hashes = hashes.list().unwrap()[2].list().unwrap();
    for ((path, content), hash) in further.iter().zip(served.get_list("also").unwrap()).zip(hashes) {
        assert_eq!(*content, alone(FileRequest::Serve, path), "{path}");
        assert_eq!(*hash, alone(FileRequest::HashAndStat, path), "{path}");
    }
    let had = served.get_list("also").unwrap().iter().filter(|one| !one.get_bytes("data").unwrap().is_empty()).count();
    assert_eq!(had, 5, "a.txt, c, sub/b, inside, salt://c");
    // Another environment holds for all.
    let other = ask(
        &f,
        FileRequest::Serve,
        &[("path", "c".into()), ("loc", 0.into()), ("saltenv", "dev".into()), ("also", Value::Array(further.clone()))],
    );
    assert!(other.get_list("also").unwrap().iter().all(|one| one.get_bytes("data") == Some(b"")));
    // The field changes no other request, and only a list counts.
    assert_eq!(all(FileRequest::Hash), alone(FileRequest::Hash, &"c".into()));
    for odd in [Value::Nil, Value::from("a.txt"), map([("a", "b")])] {
        let load = [("path", Value::from("c")), ("loc", 0.into()), ("also", odd)];
        assert_eq!(ask(&f, FileRequest::Serve, &load), alone(FileRequest::Serve, &"c".into()));
    }
}

#[test]
fn a_client_says_how_long_a_piece_is_within_a_bound() {
    let f = fixture();
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(f.dir.path().join("one/long"), &content).unwrap();
    let piece = |loc: u64, length: Value| {
        let asked = [("path", "long".into()), ("loc", loc.into()), ("length", length)];
        let answer = ask(&f, FileRequest::Serve, &asked);
        (answer.get_bytes("data").unwrap().to_vec(), answer.get_u64("length"))
    };
    assert_eq!(piece(5, 7.into()), (content[5..12].to_vec(), Some(7)));
    assert_eq!(piece(0, 1_000_000.into()), (content[..1_000_000].to_vec(), Some(1_000_000)));
    assert_eq!(piece(2_999_999, 1000.into()), (vec![content[2_999_999]], Some(1000)), "the last piece is shorter");
    assert_eq!(piece(3_000_000, 1000.into()), (vec![], Some(1000)));
    // No more than the server wants to hold for a request, and no less than a byte: none at all is the end.
    for (asked, granted) in [(u64::MAX, 1 << 20), (2 << 20, 1 << 20), (0, 1)] {
        let (data, said) = piece(0, asked.into());
        assert_eq!((data.len() as u64, said), (granted, Some(granted)));
    }
    // Without the field, or with something else in it, a piece is as long as the master's setting says, and the answer is Salt's.
    let setting = opts(&f.dir).tree.buffer_size;
    for odd in [Value::Nil, Value::from("7"), Value::from(-1)] {
        let (data, said) = piece(0, odd);
        assert_eq!((data.len(), said), (setting.min(content.len()), None));
    }
}

#[test]
fn further_files_are_bounded_in_count_and_bytes() {
    let f = fixture();
    let count = |what, paths: Vec<&str>| {
        let further = Value::Array(paths.into_iter().map(Value::from).collect());
        ask(&f, what, &[("path", "c".into()), ("loc", 0.into()), ("also", further)])
    };
    let many = count(FileRequest::Serve, vec!["c"; 1000]);
    assert_eq!(many.get_list("also").unwrap().len(), 255);
    let many = count(FileRequest::HashAndStat, vec!["c"; 1000]);
    assert_eq!(many.list().unwrap()[2].list().unwrap().len(), 255);
    // A file that is too large is left to a request of its own; so is what would make all of them too large.
    let half = vec![b'x'; 600 << 10];
    std::fs::write(f.dir.path().join("one/half"), &half).unwrap();
    std::fs::write(f.dir.path().join("one/large"), [&half[..], &half[..]].concat()).unwrap();
    let mut whole = opts(&f.dir);
    whole.tree.buffer_size = 4 << 20;
    let f = Fixture {
        inner: Arc::into_inner(FileServer::new(&whole, f.dir.path()).unwrap().inner.into_inner()).unwrap(),
        ..f
    };
    let further = Value::Array(["large", "half", "half", "c"].map(Value::from).to_vec());
    let answer = ask(&f, FileRequest::Serve, &[("path", "c".into()), ("loc", 0.into()), ("also", further)]);
    let sizes: Vec<_> =
        answer.get_list("also").unwrap().iter().map(|one| one.get_bytes("data").map(<[u8]>::len)).collect();
    assert_eq!(sizes, [None, Some(600 << 10), None, Some(1)]);
    let file = std::fs::File::create(f.dir.path().join("one/sparse")).unwrap();
    file.set_len(65 << 20).unwrap();
    let further = Value::Array(["sparse", "c"].map(Value::from).to_vec());
    let answer = ask(&f, FileRequest::HashAndStat, &[("path", "c".into()), ("also", further)]);
    let hashes = answer.list().unwrap()[2].list().unwrap();
    assert!(hashes[0] == Value::Nil && hashes[1].list().unwrap()[0].truthy());
}

#[test]
fn hashes_that_nobody_asks_for_are_forgotten() {
    let f = fixture();
    let ask = |path: &str| ask(&f, FileRequest::Hash, &[("path", path.into())]);
    let upkeep = || {
        f.inner.tree.upkeep();
        f.inner.tree.remembered_hashes()
    };
    // A file that has just changed may change again without another stamp, whatever time of change a program gives it.
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let first = loop {
        let began = std::time::Instant::now();
        std::fs::File::open(f.dir.path().join("one/a.txt")).unwrap().set_modified(long_ago).unwrap();
        let first = ask("a.txt");
        let kept = upkeep();
        // Otherwise the machine was so busy that it may have been kept.
        if began.elapsed() < std::time::Duration::from_millis(50) {
            assert_eq!(kept, 0);
            break first;
        }
        upkeep();
    };
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(ask("a.txt"), first);
    ask("c");
    assert_eq!(upkeep(), 2, "both were asked for since the last time");
    assert_eq!(ask("a.txt"), first);
    assert_eq!((upkeep(), upkeep()), (1, 0));
    assert_eq!(ask("a.txt"), first, "it is made again");
}

#[test]
fn pushed_files_stay_in_their_minions_folder() {
    let f = fixture();
    let id = MinionId::try_from("web1").unwrap();
    let push = |path: &[&str], at: i64, data: &str| {
        let path = Value::Array(path.iter().map(|p| Value::from(*p)).collect());
        f.inner.received.store(&id, &map([("path", path), ("loc", at.into()), ("data", data.into())]))
    };
    let at = |path: &str| f.dir.path().join("cache/minions/web1/files").join(path);
    push(&["var", "log", "x"], 0, "abc").unwrap();
    push(&["var", "log", "x"], 3, "def").unwrap();
    assert_eq!(std::fs::read(at("var/log/x")).unwrap(), b"abcdef");
    push(&["var", "log", "x"], 0, "z").unwrap();
    assert_eq!(std::fs::read(at("var/log/x")).unwrap(), b"z");
    for (path, offset, data) in [
        (&["..", "x"][..], 0, "x"),
        (&["a/../../x"], 0, "x"),
        (&["/etc/x"], 0, "x"),
        (&[""], 0, "x"),
        (&[], 0, "x"),
        (&["y"], -1, "x"),
        (&["y"], 3, "a gap"),
        (&["y"], 0, "more than ten bytes"),
    ] {
        assert!(push(path, offset, data).is_err(), "{path:?} {offset}");
    }
    symlink(f.dir.path(), at("link")).unwrap();
    assert!(push(&["link", "secret"], 0, "x").is_err());
    symlink(f.dir.path().join("secret"), at("file")).unwrap();
    assert!(push(&["file"], 0, "x").is_err());
    assert_eq!(std::fs::read(f.dir.path().join("secret")).unwrap(), b"!");
    assert!(!Path::new("/etc/x").exists());
}

#[test]
fn symlinks_are_not_followed_unless_they_may_be() {
    let f = fixture();
    for (follow, served) in [(true, true), (false, false)] {
        let root = Root::new(f.dir.path().join("one"), follow);
        assert_eq!(root.open_file(&SafePath::try_from("inside").unwrap()).is_some(), served);
        assert!(root.open_file(&SafePath::try_from("a.txt").unwrap()).is_some());
    }
}

#[test]
fn nothing_is_pushed_unless_it_may_be() {
    let f = fixture();
    let path = Value::Array(vec!["x".into()]);
    let load = map([("path", path), ("loc", 0.into()), ("data", "x".into())]);
    let opts = FileOpts { recv: false, recv_max: 10, ..opts(&f.dir) };
    let receiver = recv::PushedFiles::new(f.dir.path().join("cache/minions"), &opts);
    assert!(receiver.store(&MinionId::try_from("web1").unwrap(), &load).is_err());
    assert!(!f.dir.path().join("cache").exists());
}

#[test]
fn what_a_minion_pushed_before_counts_too() {
    let f = fixture();
    let id = MinionId::try_from("web1").unwrap();
    let root = f.dir.path().join("cache/minions");
    let push = |receiver: &recv::PushedFiles, name: &str, data: &str| {
        let load = map([("path", Value::Array(vec![name.into()])), ("loc", 0.into()), ("data", data.into())]);
        receiver.store(&id, &load)
    };
    let receiver = |quota: (u64, u64)| {
        recv::PushedFiles::new(root.clone(), &FileOpts { recv_quota: quota, recv_max: 100, ..opts(&f.dir) })
    };
    let first = receiver((10, 0));
    push(&first, "a", "12345678").unwrap();
    assert!(push(&first, "b", "123").unwrap_err().contains("file_recv_quota"));
    push(&first, "a", "12").unwrap();
    push(&first, "b", "12345678").unwrap();
    // As after a restart of the master.
    let second = receiver((10, 2));
    assert!(push(&second, "a", "123").is_err() && push(&second, "c", "").unwrap_err().contains("_count"));
    std::fs::remove_file(root.join("web1/files/b")).unwrap();
    let third = receiver((10, 2));
    push(&third, "a", "123").unwrap();
    push(&third, "c", "").unwrap();
    assert!(root.join("web1/files/c").exists());
}
