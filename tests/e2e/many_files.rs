//! Many files of the master at once: all that fetches several gets the same files, with few requests, and none where the minion has them.

use std::path::Path;

use brine_kit::files::set_mode;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

use crate::link::Link;

/// Small files: more than one request and one group of a state names.
const FILES: usize = 300;
/// A file of several pieces.
const LARGE: usize = 3 << 20;

/// Bytes on the wire that are no content, for a command about all files: its job, its return, hashes, names.
const FEW: u64 = 200 << 10;

struct Tree {
    names: Vec<String>,
    large: Vec<u8>,
}

fn content(name: &str) -> String {
    format!("{name}\n").repeat(40)
}

/// Serves a tree of small files and a large one, which no compression makes smaller.
fn serve(master: &Master) -> Tree {
    let names: Vec<String> = (0..FILES).map(|n| format!("tree/{}/file-{n}", n % 7)).collect();
    for name in &names {
        master.serve(name, content(name).as_bytes());
    }
    let mut state = 1_u64;
    let large = (0..LARGE / 8).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()
    });
    let large: Vec<u8> = large.collect();
    master.serve("tree/large", &large);
    Tree { names, large }
}

impl Tree {
    fn assert_at(&self, root: &Path) {
        for name in &self.names {
            let there = std::fs::read_to_string(root.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(there, content(name), "{name}");
        }
        assert!(std::fs::read(root.join("tree/large")).expect("it came") == self.large);
    }

    fn bytes(&self) -> u64 {
        (self.names.iter().map(|name| content(name).len()).sum::<usize>() + LARGE) as u64
    }
}

fn minion(master: &Master, link: &Link, dest: &Path) -> Minion {
    let dest = dest.display();
    let config = format!(
        "sandbox: {{modules: {{cp: {{filesystem: {{{dest}: rw}}}}, \
         file: {{changes: {{{dest}: rw}}, files: any, limits: {{cpu: 60s, wall: 300s}}}}}}}}"
    );
    let mut minion = Minion::prepare(Kind::Brine, "web1", link.port, &config);
    master.accept(&mut minion);
    minion
}

#[test]
fn a_tree_is_fetched_once_and_put_wherever_it_is_wanted() {
    let (master, there) = (Master::start("timeout: 120"), tempfile::tempdir().expect("a temporary folder"));
    // The sandbox's user must reach the folder.
    set_mode(there.path(), 0o777);
    let link = Link::to(master.ret_port, None);
    let tree = serve(&master);
    let minion = minion(&master, &link, there.path());
    let dest = |name: &str| there.path().join(name).display().to_string();
    let counted = |args: &[&str]| -> (Value, u64) {
        let before = link.bytes();
        let answer = master.json("web1", args);
        (answer, link.bytes() - before)
    };

    let (cached, bytes) = counted(&["cp.cache_dir", "salt://tree"]);
    assert_eq!(cached.as_array().map(Vec::len), Some(FILES + 1), "{cached}");
    assert!((tree.bytes()..tree.bytes() + FEW).contains(&bytes), "{bytes} bytes came for {}", tree.bytes());
    tree.assert_at(&minion.path("cache/files/base"));

    // The cache holds everything.
    let (got, bytes) = counted(&["cp.get_dir", "salt://tree", &dest("one")]);
    assert_eq!(got.as_array().map(Vec::len), Some(FILES + 1), "{got}");
    assert!(bytes < FEW, "{bytes} bytes came for what was there");
    tree.assert_at(&there.path().join("one"));

    // The cache holds nothing: all comes once.
    std::fs::remove_dir_all(minion.path("cache/files/base")).expect("the minion's folder");
    let (got, bytes) = counted(&["cp.get_dir", "salt://tree", &dest("two")]);
    assert_eq!(got.as_array().map(Vec::len), Some(FILES + 1), "{got}");
    assert!((tree.bytes()..tree.bytes() + FEW).contains(&bytes), "{bytes} bytes came for {}", tree.bytes());
    tree.assert_at(&there.path().join("two"));
    drop(minion);
}

#[test]
fn several_named_files_come_in_the_order_of_their_names() {
    let master = Master::start("");
    master.serve("a", b"a");
    master.serve("b", b"b");
    let link = Link::to(master.ret_port, None);
    let mut minion = Minion::prepare(Kind::Brine, "web1", link.port, "");
    master.accept(&mut minion);
    let place = |name: &str| minion.path("cache/files/base").join(name).display().to_string();
    let wanted = json!([place("b"), "/etc/hostname", false, place("a"), place("b"), false]);
    let names = json!(["salt://b", "/etc/hostname", "salt://none", "salt://a", "salt://b", "salt://a?saltenv=none"]);
    assert_eq!(master.json("web1", &["cp.cache_files", &names.to_string()]), wanted);
    assert_eq!(master.json("web1", &["cp.cache_files", "salt://a, salt://b"]), json!([place("a"), place("b")]));
    let refused = master.json("web1", &["cp.cache_files", "salt://a,ftp://b"]);
    assert!(refused.as_str().is_some_and(|text| text.contains("ftp://b")), "{refused}");
}

#[test]
fn a_state_for_a_tree_asks_for_its_files_together() {
    let (master, there) = (Master::start("timeout: 120"), tempfile::tempdir().expect("a temporary folder"));
    set_mode(there.path(), 0o777);
    let link = Link::to(master.ret_port, None);
    let tree = serve(&master);
    let minion = minion(&master, &link, there.path());
    let dest = there.path().display();
    let sls = format!("all:\n  file.recurse: [name: {dest}/tree, source: 'salt://tree', file_mode: '0644']\n");
    master.serve("all.sls", sls.as_bytes());
    let apply = |args: &[&str]| -> (Value, u64) {
        let before = link.bytes();
        let run = master.json("web1", &[&["state.apply", "all"], args].concat());
        let state = run.as_object().and_then(|states| states.values().next()).cloned();
        (state.unwrap_or_else(|| panic!("{run}")), link.bytes() - before)
    };

    let (planned, bytes) = apply(&["test=True"]);
    assert_eq!(planned["result"], Value::Null, "{planned}");
    assert!(bytes < FEW && !there.path().join("tree").exists(), "a dry run fetched {bytes} bytes");
    let (done, bytes) = apply(&[]);
    assert_eq!(done["result"], json!(true), "{done}");
    assert!((tree.bytes()..tree.bytes() + FEW).contains(&bytes), "{bytes} bytes came for {}", tree.bytes());
    tree.assert_at(there.path());

    // All is in its place: what came were hashes. Then one file changes, on each side.
    let (done, bytes) = apply(&[]);
    assert_eq!((&done["result"], &done["changes"]), (&json!(true), &json!({})), "{done}");
    assert!(bytes < FEW, "{bytes} bytes came for what was there");
    master.serve(&tree.names[5], content("tree/0/FILE-5").as_bytes());
    std::fs::write(there.path().join(&tree.names[6]), "x").expect("our own folder");
    let (done, bytes) = apply(&[]);
    let changed: Vec<&String> = done["changes"].as_object().expect("changes").keys().collect();
    let places = [5, 6].map(|n| format!("{dest}/{}", tree.names[n]));
    assert!(changed.len() == 2 && places.iter().all(|place| changed.contains(&place)), "{done}");
    assert!(bytes < FEW, "{bytes} bytes came for two files");
    let read = |n: usize| std::fs::read_to_string(there.path().join(&tree.names[n])).expect("it is there");
    assert_eq!((read(5), read(6)), (content("tree/0/FILE-5"), content(&tree.names[6])));
    drop(minion);
}
