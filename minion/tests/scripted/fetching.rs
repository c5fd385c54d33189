//! Modules from the master's file server.

use std::time::Duration;

use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{FilesOp, Grants, HostOp};
use sha2::{Digest, Sha256};

use crate::master::{File, Master, Seen};
use crate::modules::{module, module_of_size};
use crate::running::{Running, begin, ready};

#[tokio::test(flavor = "multi_thread")]
async fn sync_fetches_what_changed_and_names_it() {
    let (_dir, mut master, minion) = begin("").await;
    master.put_file("_modules/hello.wasm", &module_of_size(6000)); // several chunks
    master.put_file("_modules/notes.txt", b"x");
    master.put_file("_modules/../../etc/passwd.wasm", b"x");
    let jid = master.publish("saltutil.sync_modules", vec![]);
    let load = master.expect_return(&jid).await;
    assert_eq!(load.get("return"), Some(&Value::Array(vec![Value::from("modules.hello")])));
    assert_eq!(minion.sandbox.describe("hello").unwrap().size, 6000);
    assert_eq!(minion.sandbox.describe("hello").unwrap().origin, "base");

    let again = master.publish("saltutil.sync_modules", vec![]);
    let (load, before) = master.expect_return_after(&again).await;
    assert_eq!(load.get("return"), Some(&Value::Array(vec![])));
    assert!(before.iter().any(|seen| is_request(seen, "_file_list")), "{before:?}");
    assert!(!before.iter().any(|seen| is_request(seen, "_serve_file")), "{before:?}");

    master.put_file("_modules/hello.wasm", &module("changed"));
    let changed = master.publish("saltutil.sync_modules", vec![]);
    let load = master.expect_return(&changed).await;
    assert_eq!(load.get_list("return").unwrap().len(), 1);
    minion.end().await.unwrap();
}

fn is_request(seen: &Seen, wanted: &str) -> bool {
    matches!(seen, Seen::Request { cmd, .. } if cmd == wanted)
}

async fn sync(master: &mut Master, saltenv: &str) -> Value {
    let jid = master.publish("saltutil.sync_modules", vec![Value::from(saltenv)]);
    master.expect_return(&jid).await.get("return").unwrap().clone()
}

fn changed(names: &[&str]) -> Value {
    Value::Array(names.iter().map(|name| Value::from(format!("modules.{name}"))).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_removes_what_the_master_does_not_have_any_more() {
    let (_dir, mut master, minion) = begin("").await;
    let has = |name: &str| minion.sandbox.describe(name).is_some();
    for name in ["one", "two", "three"] {
        master.put_file(&format!("_modules/{name}.wasm"), &module(name));
    }
    assert_eq!(sync(&mut master, "base").await, changed(&["one", "three", "two"]));
    master.script().files.remove("_modules/two.wasm");
    // A listing of another environment does not affect this one.
    assert_eq!(sync(&mut master, "dev").await, changed(&[]));
    assert!(has("two"));
    assert_eq!(sync(&mut master, "base").await, changed(&["two"]));
    assert!(has("one") && !has("two") && has("three") && has("test"));
    assert_eq!(sync(&mut master, "base").await, changed(&[]));
    // The last modules are removed: the environment still has other files, so the removal is intended.
    master.put_file("top.sls", b"x");
    master.script().files.retain(|path, _| path == "top.sls");
    assert_eq!(sync(&mut master, "dev,base").await, changed(&["one", "three"]));
    assert_eq!(minion.sandbox.names(), ["test"]);
    minion.end().await.unwrap();
}

/// A partial listing, or one that is empty like that of a missing environment, removes no modules.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_in_trouble_removes_nothing() {
    let (_dir, mut master, minion) = begin("").await;
    master.put_file("_modules/one.wasm", &module("one"));
    assert_eq!(sync(&mut master, "base").await, changed(&["one"]));
    let file = master.script().files.remove("_modules/one.wasm").unwrap();
    // The master's file roots are not mounted.
    assert_eq!(sync(&mut master, "base").await, changed(&[]));
    assert!(minion.sandbox.describe("one").is_some());
    // Its file server failed.
    master.put_file("top.sls", b"x");
    for list in [Value::from(""), Value::Nil, Value::Map(vec![]), Value::from(false)] {
        master.script().list = Some(list.clone());
        let said = sync(&mut master, "base").await;
        assert!(said.text().unwrap().contains("malformed"), "{list}: {said}");
        assert!(minion.sandbox.describe("one").is_some());
    }
    // The master lists the module but cannot serve it.
    master.script().list = Some(Value::Array(vec![Value::from("_modules/one.wasm")]));
    assert_eq!(sync(&mut master, "base").await, changed(&[]));
    assert!(minion.sandbox.describe("one").is_some());
    master.script().list = None;
    master.script().files.insert("_modules/one.wasm".into(), file);
    assert_eq!(sync(&mut master, "base").await, changed(&[]));
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_can_keep_what_the_master_removed() {
    let (_dir, mut master, minion) = begin("clean_dynamic_modules: False").await;
    master.put_file("_modules/one.wasm", &module("one"));
    master.put_file("_modules/two.wasm", &module("two"));
    assert_eq!(sync(&mut master, "base").await, changed(&["one", "two"]));
    master.script().files.remove("_modules/two.wasm");
    assert_eq!(sync(&mut master, "base").await, changed(&[]));
    assert!(minion.sandbox.describe("two").is_some());
    minion.end().await.unwrap();
}

/// CVE-2021-21996, CVE-2024-22231: the module's name determines the file's name, and the hash verifies its content.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_what_was_announced_is_refused_and_the_last_one_stays() {
    let (_dir, mut master, minion) = begin("").await;
    master.put_file("_modules/hello.wasm", &module("good"));
    let jid = master.publish("saltutil.sync_modules", vec![]);
    master.expect_return(&jid).await;
    let before = minion.sandbox.describe("hello").unwrap().sha256;

    let cases = [
        (File { content: b"evil".to_vec(), said: Some("00".repeat(32)), hash_type: "sha256" }, "another hash"),
        (File { content: b"evil".to_vec(), said: None, hash_type: "md5" }, "hash_type"),
        (File { content: b"bad component".to_vec(), said: None, hash_type: "sha256" }, "is not WebAssembly"),
    ];
    for (file, why) in cases {
        master.script().files.insert("_modules/hello.wasm".into(), file);
        let jid = master.publish("saltutil.sync_modules", vec![]);
        let load = master.expect_return(&jid).await;
        assert_eq!(load.get_bool("success"), Some(false));
        let text = load.get_text("return").unwrap();
        assert!(text.contains(why) && text.contains("hello"), "{text}");
        assert_eq!(minion.sandbox.describe("hello").unwrap().sha256, before);
    }
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_end_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let more = "sandbox: {compile: {module: 10KiB}}";
    let minion = ready(&mut master, dir.path(), more).await;
    master.put_file("_modules/large.wasm", &vec![0; 100_000]);
    let jid = master.publish("saltutil.sync_modules", vec![]);
    let load = master.expect_return(&jid).await;
    assert!(load.get_text("return").unwrap().contains("larger than"), "{load}");
    assert!(minion.sandbox.describe("large").is_none());
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_names_an_unknown_module_fetches_it_once() {
    let (_dir, mut master, minion) = begin("autoload_dynamic_modules: True\nprocess_count_max: 100").await;
    master.put_file("_modules/late.wasm", &module("late"));
    let jids: Vec<_> = (0..50).map(|_| master.publish("late.fun", vec![])).collect();
    let mut served = 0;
    let mut left = jids.len();
    master
        .expect("all returns", |seen| {
            if let Seen::Request { cmd, load } = seen {
                // The chunk, and the empty one that ends the file.
                served += usize::from(cmd == "_serve_file" && load.get_u64("loc") == Some(0));
                if cmd == "_return" {
                    assert_eq!(load.get_text("return"), Some("late"));
                    left -= 1;
                }
            }
            (left == 0).then_some(())
        })
        .await;
    assert_eq!(served, 1);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_the_master_does_not_have_is_not_asked_for_again_and_again() {
    let (_dir, mut master, minion) = begin("autoload_dynamic_modules: True").await;
    master.expect_request("_file_list").await; // the sync at start, which clears the memory of earlier misses
    let mut asked = 0;
    for _ in 0..5 {
        let jid = master.publish("absent.fun", vec![]);
        let load = master
            .expect("the return", |seen| match seen {
                Seen::Request { cmd, .. } if cmd == "_file_hash_and_stat" => {
                    asked += 1;
                    None
                }
                Seen::Request { cmd, load } if cmd == "_return" && load.get_text("jid") == Some(jid.as_str()) => {
                    Some(load.clone())
                }
                _ => None,
            })
            .await;
        assert_eq!(load.get_text("return"), Some("'absent.fun' is not available."));
    }
    assert_eq!(asked, 1);
    // A requested sync asks the master again.
    master.put_file("_modules/absent.wasm", &module("here now"));
    let jid = master.publish("saltutil.sync_modules", vec![]);
    master.expect_return(&jid).await;
    let jid = master.publish("absent.fun", vec![]);
    assert_eq!(master.expect_return(&jid).await.get_text("return"), Some("absent"));
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_module_says_why_in_the_return_of_the_job_that_named_it() {
    let (_dir, mut master, minion) = begin("autoload_dynamic_modules: True").await;
    master.put_file("_modules/broken.wasm", b"bad");
    let jid = master.publish("broken.fun", vec![]);
    let load = master.expect_return(&jid).await;
    let text = load.get_text("return").unwrap();
    assert!(text.starts_with("'broken.fun' is not available.") && text.contains("is not WebAssembly"), "{text}");
    minion.end().await.unwrap();
}

/// A signature belongs to its module: it is fetched with the module, or alone if only the signature is new.
#[tokio::test(flavor = "multi_thread")]
async fn a_signature_beside_a_module_comes_with_it() {
    let (_dir, mut master, minion) = begin("").await;
    let signature = |minion: &Running| minion.sandbox.signature("one");
    master.put_file("_modules/one.wasm", &module("one"));
    assert_eq!(sync(&mut master, "base").await, changed(&["one"]));
    assert_eq!(signature(&minion), None);
    master.put_file("_modules/one.wasm.minisig", b"signed");
    let jid = master.publish("saltutil.sync_modules", vec![]);
    // Of the module itself nothing is requested: it is here, and its end is known.
    let mut content = Vec::new();
    master
        .expect("the return", |seen| {
            content.extend(asked(seen, "_modules/one.wasm"));
            matches!(seen, Seen::Request { cmd, load } if cmd == "_return" && load.get_text("jid") == Some(jid.as_str()))
                .then_some(())
        })
        .await;
    assert_eq!(content, [0_u64; 0]);
    assert_eq!(signature(&minion).unwrap(), b"signed");
    // Existing content is not fetched.
    let jid = master.publish("saltutil.sync_modules", vec![]);
    let (load, before) = master.expect_return_after(&jid).await;
    assert_eq!(load.get("return"), Some(&changed(&[])));
    assert!(before.iter().any(|seen| is_request(seen, "_file_list")), "{before:?}");
    assert!(!before.iter().any(|seen| is_request(seen, "_serve_file")), "{before:?}");
    master.put_file("_modules/one.wasm.minisig", &[b'x'; 100_000]);
    let said = sync(&mut master, "base").await;
    assert!(said.as_str().unwrap().contains("its signature"), "{said}");
    assert_eq!(signature(&minion).unwrap(), b"signed");
    master.script().files.remove("_modules/one.wasm.minisig");
    sync(&mut master, "base").await;
    assert_eq!(signature(&minion), None);
    minion.end().await.unwrap();
}

/// Fetches continue without the jobs that started them, but their number is bounded.
#[tokio::test(flavor = "multi_thread")]
async fn fetches_that_wait_for_a_slow_master_are_bounded() {
    let (_dir, mut master, minion) = begin("process_count_max: 100\nrequest_channel_timeout: 60").await;
    master.script().no_list = true;
    for _ in 0..33 {
        master.publish("saltutil.sync_modules", vec![]);
    }
    let said = master
        .expect("the one that is too much", |seen| match seen {
            Seen::Request { cmd, load } if cmd == "_return" => load.get_text("return").map(str::to_owned),
            _ => None,
        })
        .await;
    assert!(said.contains("many fetches of modules wait for the master already"), "{said}");
    minion.kill().await;
}

/// The server answers each request in time, but the whole file would take a week.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_gives_a_byte_a_piece_holds_nothing_up() {
    let (_dir, mut master, minion) = begin("").await;
    master.script().chunk = 1;
    master.put_file("_modules/slow.wasm", &module_of_size(100_000));
    master.put_file("tiny", b"fifty bytes, each a piece of its own, are no harm.");
    let said = sync(&mut master, "base").await;
    let said = said.text().unwrap_or_else(|| panic!("{said}"));
    assert!(said.contains("the master serves _modules/slow.wasm too slowly: 65 pieces had 65 bytes"), "{said}");
    assert!(said.contains("file_buffer_size"), "{said}");
    let cache = |path: &str| {
        let op = HostOp::Files(FilesOp::Cache { path: path.into(), saltenv: "base".into() });
        minion.functions.ask("20261120134740245008", Grants::default(), op)
    };
    let error = cache("_modules/slow.wasm").await.unwrap_err();
    assert!(error.contains("too slowly"), "{error}");
    assert!(cache("tiny").await.unwrap().text().is_some());
    // No rest prevents a fetch when the master is faster again.
    master.script().chunk = 1000;
    assert_eq!(sync(&mut master, "base").await, changed(&["slow"]));
    minion.end().await.unwrap();
}

/// The offset in the minion's next request for a module.
fn asked(seen: &Seen, path: &str) -> Option<u64> {
    match seen {
        Seen::Request { cmd, load } if cmd == "_serve_file" && load.get_text("path") == Some(path) => {
            load.get_u64("loc")
        }
        _ => None,
    }
}

const BIG: &str = "_modules/big.wasm";
/// Between pieces: what is interrupted is not over before.
const SLOW: Duration = Duration::from_millis(2);

fn big() -> Vec<u8> {
    module_of_size(900_000)
}

/// After an interruption by the connection, the master or the minion, the received part is not fetched again.
#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_goes_on_where_it_was_interrupted() {
    let (dir, mut master, minion) = begin("").await;
    master.put_file(BIG, &big());
    let reached = |at: u64| move |seen: &Seen| asked(seen, BIG).filter(|loc| *loc >= at);
    // Two pieces of 1,000 bytes may be under way before the one that is seen.
    let before = 2_000;
    master.script().pause = SLOW;
    master.publish("saltutil.sync_modules", vec![]);
    master.expect("a third", reached(300_000)).await;
    master.stop().await;
    master.drain();
    master.listen().await;
    let first = master.expect("the rest", reached(0)).await;
    assert!(first >= 300_000 - before, "it began again at {first}");

    // The minion ends without notice, and the next one gets a request to sync.
    master.expect("two thirds", reached(600_000)).await;
    minion.kill().await;
    master.drain();
    let minion = ready(&mut master, dir.path(), "").await;
    let again = master.publish("saltutil.sync_modules", vec![]);
    let first = master.expect("the rest", reached(0)).await;
    assert!(first >= 600_000 - before, "it began again at {first}");
    let load = master.expect_return(&again).await;
    assert_eq!(load.get("return"), Some(&changed(&["big"])));
    assert_eq!(minion.sandbox.describe("big").unwrap().size, 900_000);
    // Nothing of it is left.
    assert_eq!(std::fs::read_dir(dir.path().join("cache/modules/partial")).unwrap().count(), 0);
    minion.end().await.unwrap();
}

/// A kept part may be damaged, or belong to another file. Only a whole module with the right hash is installed.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_kept_counts_only_as_part_of_the_right_whole() {
    let (dir, mut master, minion) = begin("").await;
    master.put_file(BIG, &big());
    let reached = |at: u64| move |seen: &Seen| asked(seen, BIG).filter(|loc| *loc >= at);
    master.script().pause = SLOW;
    master.publish("saltutil.sync_modules", vec![]);
    master.expect("most", reached(700_000)).await;
    minion.kill().await;
    let kept = std::fs::read_dir(dir.path().join("cache/modules/partial")).unwrap().next().unwrap().unwrap().path();
    let mut damaged = std::fs::read(&kept).unwrap();
    damaged[1000] ^= 1;
    std::fs::write(&kept, damaged).unwrap();
    master.drain();
    let minion = ready(&mut master, dir.path(), "").await;
    assert_eq!(sync(&mut master, "base").await, changed(&["big"]));
    assert_eq!(minion.sandbox.describe("big").unwrap().sha256.bytes(), &<[u8; 32]>::from(Sha256::digest(big())));
    minion.end().await.unwrap();
}

/// While a large module is stuck because its master stopped, jobs that need another module do not wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_module_does_not_wait_for_the_fetch_of_a_large_one() {
    let (_dir, mut master, minion) = begin("autoload_dynamic_modules: True\nrequest_channel_timeout: 60").await;
    master.expect_request("_file_list").await;
    master.put_file(BIG, &vec![1; 2 << 20]);
    master.script().no_content = Some(BIG.to_owned());
    master.put_file("_modules/small.wasm", &module("small"));
    master.publish("big.fun", vec![]);
    master.expect("the large one is asked for", |seen| asked(seen, BIG)).await;
    let small = master.publish("small.fun", vec![]);
    assert_eq!(master.expect_return(&small).await.get_text("return"), Some("small"));
    // Jobs that need an installed module do not wait either.
    let ping = master.publish("test.ping", vec![]);
    assert_eq!(master.expect_return(&ping).await.get("return"), Some(&Value::from(true)));
    assert!(minion.sandbox.describe("big").is_none());
    minion.kill().await;
}
