//! The Brine file server and Python's `cp`.

use std::os::unix::fs::symlink;
use std::path::Path;

use brine_tests::salt::{Kind, Master};
use serde_json::{Value, json};

use super::{publish_port, restart_with, wait_until_back};

/// Returns incompressible bytes, the same each time.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(next).collect()
}

fn names(list: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = list.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names
}

fn pushed(master: &Master, path: &str) -> std::path::PathBuf {
    master.path("cache/minions/python/files").join(path.trim_start_matches('/'))
}

#[test]
fn files_of_the_master_and_to_the_master() {
    let mut master = Master::start("timeout: 30\ngather_job_timeout: 2");
    let dir = master.path("").display().to_string();
    let dev = master.path("srv/dev");
    std::fs::create_dir_all(&dev).expect("our own folder");
    std::fs::write(dev.join("of_dev.txt"), "dev").expect("our own folder");
    restart_with(&mut master, &format!("file_roots:\n  base: [{dir}srv/salt]\n  dev: [{dir}srv/dev]\n"));
    let big = noise(12 << 20);
    let top = master.path("srv/salt");
    for (path, content) in [
        ("big.bin", big.as_slice()),
        ("empty", b""),
        ("tree/one.txt", b"one\n"),
        ("tree/sub/two.txt", b"two\n"),
        ("tree/sub/žluťoučký kůň.txt", "日本語\n".as_bytes()),
    ] {
        master.serve(path, content);
    }
    std::fs::write(master.path("secret"), "secret").expect("our own folder");
    symlink("one.txt", top.join("tree/link.txt")).expect("our own folder");
    symlink("tree", top.join("linked_tree")).expect("our own folder");
    symlink("../../secret", top.join("out.txt")).expect("our own folder");
    symlink("/etc/passwd", top.join("absolute.txt")).expect("our own folder");

    let minion = master.minion_kind(Kind::Python, "python", &publish_port(&master));
    let json = |master: &Master, args: &[&str]| master.json("python", args);
    let to = |name: &str| minion.path("fetched").join(name).display().to_string();
    let read = |path: &str| std::fs::read(path).unwrap_or_else(|e| panic!("{path}: {e}"));

    // One file after the other, whole and in compressed chunks.
    for (args, content) in [
        (vec!["salt://big.bin"], big.as_slice()),
        (vec!["salt://big.bin", "gzip=5"], &big),
        (vec!["salt://empty"], b""),
        (vec!["salt://tree/sub/žluťoučký kůň.txt"], "日本語\n".as_bytes()),
        (vec!["salt://tree/link.txt"], b"one\n"),
        (vec!["salt://linked_tree/sub/two.txt"], b"two\n"),
        (vec!["salt://of_dev.txt", "saltenv=dev"], b"dev"),
        (vec!["salt://of_dev.txt?saltenv=dev"], b"dev"),
    ] {
        let target = to(&format!("file{}", args.join("_").len()));
        let mut all = vec!["cp.get_file", args[0], &target, "makedirs=True"];
        all.extend(&args[1..]);
        assert_eq!(json(&master, &all), json!(target), "{args:?}");
        assert_eq!(read(&target), content, "{args:?}");
    }
    for (path, why) in [
        ("salt://none.txt", "not there"),
        ("salt://of_dev.txt", "in another environment"),
        ("salt://out.txt", "a link out of the root"),
        ("salt://absolute.txt", "a link out of the root"),
        ("salt://../../secret", "a path out of the root"),
    ] {
        let target = to("refused");
        json(&master, &["cp.get_file", path, &target]);
        assert!(!Path::new(&target).exists(), "{path}: {why}");
    }

    let listed = json(&master, &["cp.list_master"]);
    let expected = [
        "big.bin",
        "empty",
        "linked_tree/link.txt",
        "linked_tree/one.txt",
        "linked_tree/sub/two.txt",
        "linked_tree/sub/žluťoučký kůň.txt",
        "tree/link.txt",
        "tree/one.txt",
        "tree/sub/two.txt",
        "tree/sub/žluťoučký kůň.txt",
    ];
    assert_eq!(names(&listed), expected);
    assert_eq!(names(&json(&master, &["cp.list_master", "saltenv=dev"])), ["of_dev.txt"]);
    assert_eq!(names(&json(&master, &["cp.list_master", "prefix=tree/sub"])).len(), 2);
    assert!(names(&json(&master, &["cp.list_master_dirs"])).contains(&"tree/sub"));
    assert_eq!(names(&json(&master, &["cp.envs"])), ["base", "dev"]);
    let links = json(&master, &["cp.list_master_symlinks"]);
    assert_eq!((&links["tree/link.txt"], &links["linked_tree"]), (&json!("one.txt"), &json!("tree")));
    assert!(links["out.txt"].is_null(), "a link that leads out is not shown: {links}");

    let sum = minion.path("sum").display().to_string();
    json(&master, &["cmd.run", &format!("sha256sum {}/big.bin > {sum}", top.display())]);
    let hash = json(&master, &["cp.hash_file", "salt://big.bin"]);
    assert_eq!(hash["hash_type"], json!("sha256"));
    assert!(String::from_utf8_lossy(&read(&sum)).starts_with(hash["hsum"].as_str().expect("a hash")));
    let cached = json(&master, &["cp.cache_file", "salt://tree/one.txt"]);
    assert_eq!(read(cached.as_str().expect("a path")), b"one\n");
    assert_eq!(json(&master, &["cp.is_cached", "salt://tree/one.txt"]), cached);
    // A changed file is fetched again, because its hash differs.
    master.serve("tree/one.txt", b"changed\n");
    assert_eq!(json(&master, &["cp.cache_file", "salt://tree/one.txt"]), cached);
    assert_eq!(read(cached.as_str().expect("a path")), b"changed\n");
    assert_eq!(json(&master, &["cp.get_file_str", "salt://tree/sub/two.txt"]), json!("two\n"));
    let got = json(&master, &["cp.get_dir", "salt://tree", &to("dir")]);
    assert_eq!(names(&got).len(), 4);
    assert_eq!(read(&to("dir/tree/sub/žluťoučký kůň.txt")), "日本語\n".as_bytes());

    // Pushes to the master: only if allowed, only into the minion's own folder, and only up to the limit.
    let events = master.events();
    let source = minion.path("own.bin").display().to_string();
    std::fs::write(&source, &big[..3 << 20]).expect("our own folder");
    assert_eq!(json(&master, &["cp.push", &source]), json!(false));
    assert!(!pushed(&master, &source).exists());
    drop(events);
    let events = restart_with(
        &mut master,
        &format!(
            "file_recv: True\nfile_recv_max_size: 4\nfileserver_followsymlinks: False\nfile_roots:\n  base: [{dir}srv/salt]\n"
        ),
    );
    wait_until_back(&master, &events, "python");
    assert_eq!(json(&master, &["cp.push", &source]), json!(true));
    assert_eq!(std::fs::read(pushed(&master, &source)).expect("pushed"), big[..3 << 20]);
    assert_eq!(json(&master, &["cp.push", &source, "upload_path=/other/name.bin"]), json!(true));
    assert_eq!(std::fs::read(pushed(&master, "other/name.bin")).expect("pushed"), big[..3 << 20]);
    std::fs::write(&source, &big).expect("our own folder");
    assert_eq!(json(&master, &["cp.push", &source, "upload_path=/large.bin"]), json!(false));
    std::fs::write(&source, "x").expect("our own folder");
    for path in ["../../escaped", "/../../../escaped", "a/../../../../escaped"] {
        json(&master, &["cp.push", &source, &format!("upload_path={path}")]);
    }
    let escaped: Vec<_> = ["cache/minions/escaped", "cache/escaped", "escaped", "cache/minions/python/escaped"]
        .into_iter()
        .filter(|path| master.path(path).exists())
        .collect();
    assert!(escaped.is_empty(), "{escaped:?}");

    // Symbolic links are not followed any more.
    json(&master, &["cp.get_file", "salt://tree/link.txt", &to("not_followed")]);
    assert!(!Path::new(&to("not_followed")).exists());
    assert!(!names(&json(&master, &["cp.list_master"])).contains(&"linked_tree/one.txt"));
}
