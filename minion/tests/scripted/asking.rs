//! Requests of modules to the master through the broker: files, events, the mine, the pillar.

use std::os::unix::fs::symlink;

use brine_kit::files::mode;
use brine_protocol::ids::Jid;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, empty_map, list, map, text};
use brine_sandbox::{
    Capability, EventsOp, FilesOp, Grants, HostOp, ListKind, MineOp, ModulesOp, Names, PillarOp, ProgressOp,
};
use sha2::{Digest as _, Sha512};
use tempfile::TempDir;

use crate::master::{File, Master, Seen, job};
use crate::running::{Running, begin, start};

const JID: &str = "20261120134740245008";

/// Like [`begin`]; what the minion asked at its start is forgotten.
async fn quiet() -> (TempDir, Master, Running) {
    let mut begun = begin("").await;
    begun.1.drain();
    begun
}

async fn ask(minion: &Running, op: HostOp) -> Result<Value, String> {
    minion.functions.ask(JID, Grants::default(), op).await
}

async fn read(minion: &Running, path: &str, offset: u64, length: u32) -> Result<Value, String> {
    let op = FilesOp::Read { path: path.into(), saltenv: "base".into(), offset, length };
    ask(minion, HostOp::Files(op)).await
}

async fn cache(minion: &Running, path: &str) -> Result<Value, String> {
    ask(minion, HostOp::Files(FilesOp::Cache { path: path.into(), saltenv: "base".into() })).await
}

async fn cache_all(minion: &Running, paths: &[&str]) -> Result<Value, String> {
    let paths = paths.iter().map(ToString::to_string).collect();
    ask(minion, HostOp::Files(FilesOp::CacheAll { paths, saltenv: "base".into() })).await
}

/// The number of requests with this command.
fn requests(seen: &[Seen], wanted: &str) -> usize {
    seen.iter().filter(|seen| matches!(seen, Seen::Request { cmd, .. } if cmd == wanted)).count()
}

fn served(master: &mut Master) -> Vec<u64> {
    let loc = |seen: Seen| match seen {
        Seen::Request { cmd, load } if cmd == "_serve_file" => load.get_u64("loc"),
        _ => None,
    };
    master.drain().into_iter().filter_map(loc).collect()
}

/// Each byte is fetched from the master once, however small the reads are. A file that changes meanwhile is read to its
/// end in the first version.
#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_in_pieces_and_fetched_once() {
    let (_dir, mut master, minion) = quiet().await;
    let content: Vec<u8> = (0..10_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    master.put_file("a/large", &content);
    let mut got = Vec::new();
    loop {
        let piece = read(&minion, "a/large", got.len() as u64, 640).await.unwrap();
        let Value::Binary(piece) = piece else { panic!("{piece}") };
        if piece.is_empty() {
            break;
        }
        got.extend(piece);
    }
    assert_eq!(got, content);
    // Several are under way at once. The end is known by the size that the master said.
    let mut pieces = served(&mut master);
    pieces.sort_unstable();
    assert_eq!(pieces, (0..10).map(|n| n * 1000).collect::<Vec<u64>>());
    master.put_file("a/large", b"new and short");
    assert_eq!(read(&minion, "a/large", 9_990, 640).await, Ok(Value::Binary(content[9_990..].to_vec())));
    assert_eq!(read(&minion, "a/large", 0, 640).await, Ok(Value::Binary(b"new and short".to_vec())));
    assert_eq!(read(&minion, "a/large", 4, 3).await, Ok(Value::Binary(b"and".to_vec())));
    assert_eq!(read(&minion, "a/large", 100, 3).await, Ok(Value::Binary(vec![])));
    assert_eq!(read(&minion, "a/none", 0, 640).await, Ok(Value::Nil));
    // Another job reads the present version without fetching it again.
    served(&mut master);
    let op = FilesOp::Read { path: "a/large".into(), saltenv: "base".into(), offset: 4, length: 3 };
    let other = minion.functions.ask("20261120134740245009", Grants::default(), HostOp::Files(op)).await;
    assert_eq!((other, served(&mut master)), (Ok(Value::Binary(b"and".to_vec())), vec![]));
    minion.end().await.unwrap();
}

/// A master that sends pieces as long as they are asked for is asked for longer and longer ones, several at once, and nothing twice. It
/// sends them under an AEAD.
#[tokio::test(flavor = "multi_thread")]
async fn pieces_are_as_long_as_the_connection_carries() {
    let (dir, mut master, minion) = quiet().await;
    master.script().by_length = true;
    let content: Vec<u8> = (0..4_000_001_u32).map(|n| (n % 251) as u8).collect();
    master.put_file("a/large", &content);
    cache(&minion, "a/large").await.unwrap();
    assert!(std::fs::read(dir.path().join("cache/files/base/a/large")).unwrap() == content);
    let pieces = |seen: Vec<Seen>| -> Vec<(u64, u64)> {
        let piece = |seen: Seen| match seen {
            Seen::Request { cmd, load } if cmd == "_serve_file" => {
                Some((load.get_u64("loc").unwrap(), load.get_u64("length").unwrap()))
            }
            _ => None,
        };
        let mut pieces: Vec<_> = seen.into_iter().filter_map(piece).collect();
        pieces.sort_unstable();
        pieces
    };
    let fast = pieces(master.drain());
    // Each begins where the one before ends, from the first byte to the last.
    let end = fast.iter().fold(0, |at, (loc, length)| {
        assert_eq!(*loc, at, "{fast:?}");
        loc + length
    });
    assert_eq!(end, content.len() as u64);
    assert!(fast[0].1 == 256 << 10 && fast.iter().all(|(_, length)| *length <= 1 << 20), "{fast:?}");
    // A connection that has become slow gets short ones.
    master.script().pause = std::time::Duration::from_millis(500);
    let content: Vec<u8> = content.into_iter().rev().collect();
    master.put_file("a/large", &content);
    cache(&minion, "a/large").await.unwrap();
    assert!(std::fs::read(dir.path().join("cache/files/base/a/large")).unwrap() == content);
    let slow = pieces(master.drain());
    let shortest = slow[..slow.len() - 1].iter().map(|(_, length)| *length).min();
    assert!(shortest.is_some_and(|length| length < 256 << 10), "{slow:?}");
    minion.end().await.unwrap();
}

/// A file whose hash takes the master a while is fetched meanwhile, unless a version of it is there. It is taken only if it has the hash.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_while_the_master_makes_its_hash() {
    let (dir, mut master, minion) = quiet().await;
    let content: Vec<u8> = (0..300_001_u32).map(|n| (n % 251) as u8).collect();
    let place = dir.path().join("cache/files/base/a/large");
    for by_length in [true, false] {
        master.script().by_length = by_length;
        master.script().chunk = 100_000;
        master.put_file("a/large", &content);
        // This master says the hash only when all has been fetched, so a minion that waits for it gets nothing.
        master.script().hash_last = Some("a/large".into());
        assert_eq!(cache(&minion, "a/large").await, Ok(text(place.to_str().unwrap())));
        assert!(std::fs::read(&place).unwrap() == content);
        // It counts as fetched.
        master.drain();
        cache(&minion, "a/large").await.unwrap();
        assert_eq!(served(&mut master), Vec::<u64>::new());
        std::fs::remove_file(&place).unwrap();
    }
    // One that has another hash is fetched again, and not taken.
    let file = |said: &str, hash_type| File { content: b"x".to_vec(), said: Some(said.to_owned()), hash_type };
    let sha512 = hex::encode(Sha512::digest(b"x"));
    for (said, hash_type, why) in [
        ("0".repeat(64), "sha256", Some("has another hash")),
        ("00".into(), "md5", Some("proves nothing")),
        (sha512, "sha512", None),
    ] {
        master.script().files.insert("a/large".into(), file(&said, hash_type));
        master.script().hash_last = Some("a/large".into());
        match (cache(&minion, "a/large").await, why) {
            (Ok(_), None) => assert_eq!(std::fs::read(&place).unwrap(), b"x"),
            (Err(error), Some(why)) => assert!(error.contains(why) && !place.exists(), "{error}"),
            (got, _) => panic!("{got:?}"),
        }
    }
    assert_eq!(std::fs::read_dir(dir.path().join("cache/files.part")).unwrap().count(), 0);
    // One that is not there.
    master.script().hash_last = Some("a/none".into());
    assert_eq!(cache(&minion, "a/none").await, Ok(Value::Nil));
    minion.end().await.unwrap();
}

/// A master that answers about several files at once is asked twice for all, another one as often as before. The same files are there.
#[tokio::test(flavor = "multi_thread")]
async fn many_files_are_cached_together_or_side_by_side() {
    for together in [true, false] {
        let (dir, mut master, minion) = quiet().await;
        master.script().together = together;
        let names: Vec<String> = (0..40).map(|n| format!("a/{}/{n}", n % 3)).collect();
        for name in &names {
            master.put_file(name, name.as_bytes());
        }
        // Of several pieces, and too large to come with others.
        let large = b"large".repeat(20_000);
        master.put_file("a/large", &large);
        master.script().chunk = 50_000;
        let mut paths: Vec<&str> = names.iter().map(String::as_str).collect();
        paths.extend(["a/none", "a/large"]);
        let place = |path: &str| dir.path().join("cache/files/base").join(path);
        let cached = cache_all(&minion, &paths).await.unwrap();
        let wanted = |path: &&str| if *path == "a/none" { Value::Nil } else { text(place(path).to_str().unwrap()) };
        assert_eq!(cached, Value::Array(paths.iter().map(wanted).collect()));
        for name in &names {
            assert_eq!(std::fs::read(place(name)).unwrap(), name.as_bytes());
            assert_eq!(mode(place(name)), 0o600);
        }
        assert_eq!(std::fs::read(place("a/large")).unwrap(), large);
        let seen = master.drain();
        let asked = (requests(&seen, "_file_hash_and_stat"), requests(&seen, "_serve_file"));
        assert_eq!(asked, if together { (1, 3) } else { (42, 42) });
        // The job's next questions about them need no request; those of another job do.
        let op = || FilesOp::Hash { path: "a/0/0".into(), saltenv: "base".into() };
        ask(&minion, HostOp::Files(op())).await.unwrap();
        assert_eq!(read(&minion, "a/1/1", 0, 640).await, Ok(Value::Binary(b"a/1/1".to_vec())));
        assert_eq!(requests(&master.drain(), "_file_hash_and_stat"), 0);
        minion.functions.ask("20261120134740245009", Grants::default(), HostOp::Files(op())).await.unwrap();
        assert_eq!(requests(&master.drain(), "_file_hash_and_stat"), 1);
        // What is there already is not fetched again.
        cache_all(&minion, &paths).await.unwrap();
        assert_eq!(served(&mut master), Vec::<u64>::new());
        minion.end().await.unwrap();
    }
}

/// Whatever a master sends together, a file has its hash or is not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_comes_with_others_is_verified_too() {
    let (dir, master, minion) = quiet().await;
    master.script().together = true;
    master.put_file("a/good", b"good");
    let file = |said: &str, hash_type| File { content: b"x".to_vec(), said: Some(said.to_owned()), hash_type };
    for (said, hash_type, why) in
        [("0".repeat(64), "sha256", "has another hash"), ("00".into(), "md5", "proves nothing")]
    {
        master.script().files.insert("a/false".into(), file(&said, hash_type));
        let error = cache_all(&minion, &["a/good", "a/false"]).await.unwrap_err();
        assert!(error.contains(why), "{error}");
        assert!(!dir.path().join("cache/files/base/a/false").exists());
    }
    assert_eq!(std::fs::read_dir(dir.path().join("cache/files.part")).unwrap().count(), 0);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_files_are_whole_verified_and_in_their_place() {
    let (dir, mut master, minion) = quiet().await;
    master.put_file("a/b.txt", &b"text ".repeat(500));
    let path = dir.path().join("cache/files/base/a/b.txt");
    assert_eq!(cache(&minion, "a/b.txt").await, Ok(text(path.to_str().unwrap())));
    assert_eq!(std::fs::read(&path).unwrap(), b"text ".repeat(500));
    assert_eq!(mode(&path), 0o600);
    assert_eq!(served(&mut master).len(), 3);
    // A cached file is fetched again only if it was changed on this host.
    cache(&minion, "a/b.txt").await.unwrap();
    assert_eq!(served(&mut master).len(), 0);
    std::fs::write(&path, "tampered with").unwrap();
    cache(&minion, "a/b.txt").await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"text ".repeat(500));
    // A file with another hash than announced is not kept, not even in part.
    let said = Some("0".repeat(64));
    master.script().files.insert("a/false".into(), File { content: b"x".to_vec(), said, hash_type: "sha256" });
    assert!(cache(&minion, "a/false").await.unwrap_err().contains("has another hash"));
    let md5 = File { content: b"x".to_vec(), said: None, hash_type: "md5" };
    master.script().files.insert("a/md5".into(), md5);
    assert!(cache(&minion, "a/md5").await.unwrap_err().contains("proves nothing"));
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(dir.path().join("cache/files.part")).unwrap().count(), 0);
    // A symbolic link does not redirect a fetched file.
    let outside = dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, dir.path().join("cache/files/base/link")).unwrap();
    master.put_file("link/x", b"x");
    assert!(cache(&minion, "link/x").await.unwrap_err().contains("is no folder"));
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    for path in ["../x", "/etc/passwd", "a/../../x", ""] {
        assert!(cache(&minion, path).await.is_err(), "{path}");
        assert!(read(&minion, path, 0, 1).await.is_err(), "{path}");
    }
    assert_eq!(cache(&minion, "a/none").await, Ok(Value::Nil));
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_hashes() {
    let (_dir, master, minion) = quiet().await;
    for path in ["b/two", "a/one", "a/../../etc/passwd", "/abs"] {
        master.put_file(path, b"12345");
    }
    let listed = async |prefix: &str, kind| {
        let op = FilesOp::List { saltenv: "base".into(), prefix: prefix.into(), kind };
        ask(&minion, HostOp::Files(op)).await
    };
    assert_eq!(listed("", ListKind::Files).await, Ok(list(["a/one", "b/two"])));
    assert_eq!(listed("a/", ListKind::Files).await, Ok(list(["a/one"])));
    assert_eq!(listed("", ListKind::EmptyDirs).await, Ok(list(["empty"])));
    assert_eq!(listed("", ListKind::Symlinks).await, Ok(list(["link"])));
    assert!(listed("../", ListKind::Files).await.is_err());
    master.script().list = Some(list(["a/one", "unasked"]));
    assert_eq!(listed("a", ListKind::Files).await, Ok(list(["a/one"])));
    assert_eq!(ask(&minion, HostOp::Files(FilesOp::Envs)).await, Ok(list(["base", "dev"])));
    let hash = async |path: &str| {
        ask(&minion, HostOp::Files(FilesOp::Hash { path: path.into(), saltenv: "base".into() })).await
    };
    let one = hash("a/one").await.unwrap();
    assert_eq!((one.get_text("hash_type"), one.get_u64("size")), (Some("sha256"), Some(5)));
    assert_eq!(hash("a/none").await, Ok(Value::Nil));
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_pushed_below_a_name_that_leads_nowhere_else() {
    let (_dir, mut master, minion) = quiet().await;
    let push = async |path: &[&str], offset, size| {
        let path = path.iter().map(ToString::to_string).collect();
        let op = FilesOp::Push { path, offset, data: b"12345".to_vec().into(), size };
        ask(&minion, HostOp::Files(op)).await
    };
    assert_eq!(push(&["etc", "hosts"], 5, 10).await, Ok(Value::from(true)));
    let load = master.expect_request("_file_recv").await;
    assert_eq!(load.get("path"), Some(&list(["etc", "hosts"])));
    assert_eq!((load.get_u64("loc"), load.get_u64("size")), (Some(5), Some(10)));
    assert_eq!(load.get_bytes("data"), Some(&b"12345"[..]));
    master.script().refuses = true;
    assert_eq!(push(&["etc", "hosts"], 0, 5).await, Ok(Value::from(false)));
    for path in [&["..", "x"][..], &["", "etc"], &["a/b"], &[]] {
        assert!(push(path, 0, 5).await.is_err(), "{path:?}");
    }
    assert!(push(&["x"], 6, 10).await.is_err());
    minion.end().await.unwrap();
}

fn packed(value: &Value) -> Vec<u8> {
    msgpack::encode_disk(value)
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_the_mine_wait_for_the_masters_word() {
    let (_dir, mut master, minion) = quiet().await;
    let fire = async |tag: &str, data: Value| {
        let op = EventsOp::Fire { tag: tag.into(), data: packed(&data).into() };
        ask(&minion, HostOp::Events(op)).await
    };
    assert_eq!(fire("deploy/done", map([("id", "m2"), ("x", "1")])).await, Ok(Value::from(true)));
    let load = master.expect_request("_minion_event").await;
    assert_eq!((load.get_text("tag"), load.get_text("id")), (Some("deploy/done"), Some("m1")));
    assert_eq!(load.get("data"), Some(&map([("id", "m2"), ("x", "1")])));
    for data in [text("x"), list([1]), Value::Nil] {
        assert!(fire("deploy/done", data).await.unwrap_err().contains("a dict"));
    }
    assert!(fire("a\n\nb", empty_map()).await.is_err());
    let publish = MineOp::Publish { name: "ip".into(), data: packed(&text("1.2.3.4")).into() };
    assert_eq!(ask(&minion, HostOp::Mine(publish.clone())).await, Ok(Value::from(true)));
    let load = master.expect_request("_mine").await;
    assert_eq!(load.get("data"), Some(&map([("ip", "1.2.3.4")])));
    let delete = MineOp::Delete { name: "ip".into() };
    assert_eq!(ask(&minion, HostOp::Mine(delete)).await, Ok(Value::from(true)));
    assert_eq!(master.expect_request("_mine_delete").await.get_text("fun"), Some("ip"));
    master.script().refuses = true;
    assert!(fire("deploy/done", empty_map()).await.unwrap_err().contains("the master refused the event"));
    assert!(ask(&minion, HostOp::Mine(publish)).await.unwrap_err().contains("did not take the mine value ip"));
    master.script().refuses = false;
    let mut sent = 0;
    while fire("deploy/done", empty_map()).await.is_ok() {
        sent += 1;
        assert!(sent < 1000, "nothing slows it");
    }
    let other = EventsOp::Fire { tag: "x".into(), data: packed(&empty_map()).into() };
    let other = minion.functions.ask("20261120134740245009", Grants::default(), HostOp::Events(other)).await;
    assert_eq!(other, Ok(Value::from(true)), "another job's events are its own");
    minion.end().await.unwrap();
}

/// The events have the job's own tag and a number, and share the rate of events.
#[tokio::test(flavor = "multi_thread")]
async fn how_far_a_job_is_goes_to_the_bus() {
    let (_dir, mut master, minion) = quiet().await;
    let report = async |jid: &str, value: &Value| {
        let op = ProgressOp::Report { value: packed(value).into() };
        minion.functions.ask(jid, Grants::default(), HostOp::Progress(op)).await
    };
    for number in 0..3 {
        let value = map([("done", Value::from(number))]);
        assert_eq!(report(JID, &value).await, Ok(Value::from(true)));
        let load = master.expect_request("_minion_event").await;
        let tag = format!("salt/job/{JID}/prog/m1/{number}");
        assert_eq!((load.get_text("tag"), load.get_text("id")), (Some(tag.as_str()), Some("m1")));
        assert_eq!(load.get("data"), Some(&map([("return", value)])));
    }
    let other = "20261120134740245009";
    assert_eq!(report(other, &text("half")).await, Ok(Value::from(true)));
    let load = master.expect_request("_minion_event").await;
    assert_eq!(load.get_text("tag"), Some(format!("salt/job/{other}/prog/m1/0").as_str()));
    // The data is not one value.
    let op = ProgressOp::Report { value: vec![0xc0, 0xc0].into() };
    assert!(ask(&minion, HostOp::Progress(op)).await.is_err());
    let mut sent = 0;
    while report(JID, &Value::Nil).await.is_ok() {
        sent += 1;
        assert!(sent < 1000, "nothing slows it");
    }
    // Progress does not use up the job's right to fire an event.
    let event = EventsOp::Fire { tag: "deploy/done".into(), data: packed(&empty_map()).into() };
    assert_eq!(ask(&minion, HostOp::Events(event)).await, Ok(Value::from(true)));
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_pillar_there_is_what_was_granted() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    master.script().pillar = map([("deploy", map([("token", "t")])), ("db", map([("password", "secret")]))]);
    let minion = start(dir.path(), &master, "").await;
    master.expect_start().await;
    let asked = async |pillar: Names, op| {
        let mut grants = Grants::default();
        grants.set_names(Capability::Pillar, pillar);
        minion.functions.ask(JID, grants, HostOp::Pillar(op)).await
    };
    let deploy = || Names::Only(vec!["deploy".into()]);
    assert_eq!(asked(deploy(), PillarOp::Items).await, Ok(map([("deploy", map([("token", "t")]))])));
    let get = |key: &str| PillarOp::Get { key: key.into(), delimiter: None };
    assert_eq!(asked(deploy(), get("deploy:token")).await, Ok(text("t")));
    assert_eq!(asked(deploy(), get("db:password")).await, Ok(Value::Nil));
    assert_eq!(asked(Names::default(), PillarOp::Items).await, Ok(empty_map()));
    assert_eq!(asked(Names::Any, get("db:password")).await, Ok(text("secret")));
    minion.end().await.unwrap();
}

/// A refreshed pillar reaches the master and later jobs; a pillar requested by one job stays with that job.
#[tokio::test(flavor = "multi_thread")]
async fn grains_and_pillar_are_made_anew_when_a_job_wants_it() {
    let (dir, mut master, minion) = quiet().await;
    let get = async || {
        let mut grants = Grants::default();
        grants.set_names(Capability::Pillar, Names::Any);
        let op = PillarOp::Get { key: "role".into(), delimiter: None };
        minion.functions.ask(JID, grants, HostOp::Pillar(op)).await.unwrap()
    };
    let refresh =
        async |grains, pillar| ask(&minion, HostOp::Modules(ModulesOp::RefreshFacts { grains, pillar })).await;
    master.script().pillar = map([("role", "new"), ("secret", "s")]);
    let mut grants = Grants::default();
    grants.set_names(Capability::Pillar, Names::Only(vec!["role".into()]));
    let fetched = minion.functions.ask(JID, grants, HostOp::Pillar(PillarOp::Fetch)).await;
    assert_eq!((fetched, get().await), (Ok(map([("role", "new")])), text("test")));
    master.expect_request("_pillar").await;

    std::fs::write(dir.path().join("grains"), "added: 1").unwrap();
    let sent = |load: &Value| load.get("grains").unwrap().get_i64("added");
    assert_eq!(refresh(false, true).await, Ok(Value::from(true)));
    assert_eq!((sent(&master.expect_request("_pillar").await), get().await), (None, text("new")));
    assert_eq!(refresh(true, false).await, Ok(Value::from(true)));
    assert!(master.drain().is_empty(), "the master is asked for a pillar that nobody wants");
    assert_eq!(refresh(true, true).await, Ok(Value::from(true)));
    assert_eq!(sent(&master.expect_request("_pillar").await), Some(1));
    // A malformed pillar does not replace a valid one.
    master.script().pillar = text("x");
    assert_eq!(refresh(false, true).await, Err("the master's pillar is no dict".into()));
    assert_eq!(get().await, text("new"));
    minion.end().await.unwrap();
}

/// A pillar for one job is asked for with the job's environment and values, and a master that keeps pillars is told when
/// to make them anew. What the master could not make does not replace what was good.
#[tokio::test(flavor = "multi_thread")]
async fn the_master_is_asked_for_the_pillar_that_is_wanted() {
    let (_dir, mut master, minion) = quiet().await;
    let mut grants = Grants::default();
    grants.set_names(Capability::Pillar, Names::Any);
    let asked = async |op: PillarOp| minion.functions.ask(JID, grants.clone(), HostOp::Pillar(op)).await;
    let compile = |overrides: Option<Value>, pillarenv: Option<&str>| PillarOp::Compile {
        pillarenv: pillarenv.map(str::to_owned),
        saltenv: Some("dev".into()),
        overrides: overrides.map(|overrides| packed(&overrides).into()),
    };
    assert_eq!(asked(compile(Some(map([("a", 1)])), Some("qa"))).await, Ok(map([("role", "test")])));
    let load = master.expect_request("_pillar").await;
    assert_eq!((load.get_text("pillarenv"), load.get("saltenv")), (Some("qa"), Some(&Value::Nil)));
    assert_eq!((load.get("pillar_override"), load.has("clean_cache")), (Some(&map([("a", 1)])), false));
    assert_eq!(asked(compile(None, None)).await, Ok(map([("role", "test")])));
    let load = master.expect_request("_pillar").await;
    assert_eq!((load.get("pillarenv"), load.get("pillar_override")), (Some(&Value::Nil), Some(&empty_map())));
    assert!(asked(compile(Some(text("no dict")), None)).await.is_err());
    assert!(master.drain().is_empty(), "what is no dict goes nowhere");

    let refresh = async |clean_cache, timeout_ms| {
        ask(&minion, HostOp::Modules(ModulesOp::RefreshPillar { clean_cache, timeout_ms })).await
    };
    master.script().pillar = map([("role", text("new")), ("_errors", list(["Rendering SLS 'a' failed."]))]);
    for clean_cache in [false, true] {
        assert_eq!(refresh(clean_cache, Some(30_000)).await, Ok(Value::from(true)));
        assert_eq!(master.expect_request("_pillar").await.has("clean_cache"), clean_cache);
        let kept = map([("role", text("test")), ("_errors", list(["Rendering SLS 'a' failed."]))]);
        assert_eq!(asked(PillarOp::Items).await, Ok(kept));
    }
    master.script().pillar = map([("role", "new")]);
    assert_eq!(refresh(true, None).await, Ok(Value::from(true)));
    assert_eq!(asked(PillarOp::Items).await, Ok(map([("role", "new")])));
    minion.end().await.unwrap();
}

/// The mine is read with the job's target and written several values at a time.
#[tokio::test(flavor = "multi_thread")]
async fn the_mine_is_read_and_written() {
    let (_dir, mut master, minion) = quiet().await;
    let asked = async |op: MineOp| minion.functions.ask(JID, Grants::default(), HostOp::Mine(op)).await;
    let get = |names: &[&str], by_name| MineOp::Get {
        tgt: packed(&text("web*")).into(),
        tgt_type: "glob".into(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        by_name,
    };
    for (names, by_name, fun) in
        [(&["load"][..], false, text("load")), (&["load"], true, list(["load"])), (&["a", "b"], true, list(["a", "b"]))]
    {
        assert_eq!(asked(get(names, by_name)).await, Ok(map([("web1", 7)])));
        let load = master.expect_request("_mine_get").await;
        assert_eq!(
            (load.get("fun"), load.get_text("tgt"), load.get_text("id")),
            (Some(&fun), Some("web*"), Some("m1"))
        );
    }
    let values = vec![("a".to_owned(), packed(&Value::from(1)).into()), ("b".to_owned(), packed(&Value::Nil).into())];
    assert_eq!(asked(MineOp::PublishAll { values, clear: true }).await, Ok(Value::from(true)));
    let load = master.expect_request("_mine").await;
    assert_eq!(
        (load.get_bool("clear"), load.get("data")),
        (Some(true), Some(&map([("a", Value::from(1)), ("b", Value::Nil)])))
    );
    assert_eq!(asked(MineOp::Flush).await, Ok(Value::from(true)));
    master.expect_request("_mine_flush").await;
    for name in ["", "a,b", "a\nb"] {
        assert!(asked(get(&[name], false)).await.is_err(), "{name:?}");
    }
    assert!(master.drain().is_empty());
    minion.end().await.unwrap();
}

/// With functions for the mine in the configuration or the pillar, the mine is filled at start and after each interval.
#[tokio::test(flavor = "multi_thread")]
async fn the_mine_is_filled_at_start_and_from_time_to_time() {
    for (config, role, filled) in [
        ("mine_functions: {test.ping: []}\nmine_interval: 0.001", Value::from("x"), true),
        ("mine_interval: 0.001", map([("test.ping", list::<Value>([]))]), true),
        ("mine_functions: {test.ping: []}\nmine_enabled: False", Value::from("x"), false),
        ("", Value::Nil, false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut master = Master::start().await;
        master.script().pillar = map([(if filled { "mine_functions" } else { "role" }, role)]);
        let minion = start(dir.path(), &master, config).await;
        master.expect_start().await;
        if filled {
            for _ in 0..2 {
                assert_eq!(master.expect_request("_mine").await.get("data"), Some(&map([("x", 20)])), "{config}");
            }
        } else {
            master.subscribed().await;
            let jid = master.publish("test.ping", vec![]);
            master
                .expect("the return, and nothing for the mine", |seen| match seen {
                    Seen::Request { cmd, .. } if cmd == "_mine" => panic!("{config}"),
                    Seen::Request { cmd, load } => {
                        (cmd == "_return" && load.get_text("jid") == Some(jid.as_str())).then_some(())
                    }
                    _ => None,
                })
                .await;
        }
        minion.end().await.unwrap();
    }
}

/// The asker of a job is the master whose key signed it; the remaining time is that of the job.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_know_their_master_and_their_own_time() {
    let (_dir, mut master, minion) = quiet().await;
    let run = async |master: &mut Master, opts: Value| {
        let jid = Jid::now();
        let mut load = job(&jid, "test.origin", vec![]);
        load.insert("master", "aa:bb");
        load.insert("executor_opts", opts);
        let payload = master.seal(&load);
        master.send(vec![payload]);
        master.expect_return(&jid).await.get("return").unwrap().clone()
    };
    let fingerprint = master.key.public().fingerprint();
    assert_eq!(run(&mut master, Value::Nil).await, list([text(fingerprint), Value::Nil]));
    for opts in [map([("timeout", "5s")]), map([("timeout", 5)])] {
        let left = run(&mut master, opts).await.list().unwrap()[1].as_u64().unwrap();
        assert!((1..=5_000).contains(&left), "{left}");
    }
    let refused = run(&mut master, map([("timeout", "soon")])).await;
    assert!(refused.as_str().unwrap().contains("no time"), "{refused}");
    minion.end().await.unwrap();
}
