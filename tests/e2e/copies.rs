//! `salt-cp` to a minion whose owner granted a directory.

use brine_kit::files::set_mode;
use brine_tests::salt::{Kind, Master};

#[test]
fn files_and_trees_go_where_the_owner_granted_writing() {
    let master = Master::start("salt_cp_chunk_size: 1000");
    let here = tempfile::tempdir().expect("a temporary folder");
    let there = tempfile::tempdir().expect("a temporary folder");
    // The sandbox's user must reach the folder.
    set_mode(there.path(), 0o777);
    let dest = there.path().display().to_string();
    let _minion = master.minion_kind(
        Kind::Brine,
        "web1",
        &format!("sandbox: {{modules: {{cp: {{filesystem: {{{dest}: rw}}}}}}}}"),
    );
    let path = |name: &str| here.path().join(name).display().to_string();
    let salt_cp = |args: &[&str]| master.command("salt-cp", args);

    // A whole text file.
    std::fs::write(path("motd"), "žluť\n").expect("our own folder");
    let copied = salt_cp(&["web1", &path("motd"), &format!("{dest}/motd")]).exits(0);
    assert_eq!(copied.stdout, format!("web1:\n    ----------\n    {dest}/motd:\n        True\n"));
    assert_eq!(std::fs::read_to_string(there.path().join("motd")).expect("copied"), "žluť\n");
    // Into a directory, under its own name.
    salt_cp(&["web1", &path("motd"), &dest]).exits(0);
    let nowhere = salt_cp(&["web1", &path("motd"), &format!("{dest}/no/such/place")]).exits(1);
    assert!(nowhere.stdout.contains("Destination unavailable"), "{nowhere:?}");

    // A tree in chunks, compressed and uncompressed.
    std::fs::create_dir_all(path("tree/sub/empty")).expect("our own folder");
    let large: Vec<u8> = (0..5000u32).flat_map(|n| (n * n).to_le_bytes()).collect();
    std::fs::write(path("tree/large"), &large).expect("our own folder");
    std::fs::write(path("tree/sub/none"), "").expect("our own folder");
    for (option, into) in [("-C", "packed"), ("-Cn", "plain")] {
        let into = there.path().join(into);
        let copied = salt_cp(&[option, "-G", "id:web1", &path("tree"), &into.display().to_string()]).exits(0);
        assert_eq!(copied.stdout.matches("        True").count(), 3, "{copied:?}");
        assert!(std::fs::read(into.join("tree/large")).expect("copied") == large);
        assert_eq!(std::fs::read(into.join("tree/sub/none")).expect("copied"), b"");
        assert!(into.join("tree/sub/empty").is_dir());
    }

    // A file that only its owner may read is not written to a place where others could read it. Writing into an
    // existing private file works.
    std::fs::write(path("secret"), "secret").expect("our own folder");
    set_mode(path("secret"), 0o600);
    let refused = salt_cp(&["-C", "web1", &path("secret"), &format!("{dest}/secret")]).exits(1);
    assert!(refused.stdout.contains("make the file with that mode first"), "{refused:?}");
    assert!(!there.path().join("secret").exists());

    // Nothing outside the grant is written in any way.
    let outside = tempfile::tempdir().expect("a temporary folder");
    set_mode(outside.path(), 0o777);
    std::os::unix::fs::symlink(outside.path(), there.path().join("link")).expect("our own folder");
    let target = outside.path().join("x").display().to_string();
    for dest in [target.clone(), format!("{dest}/../../{}", target.trim_start_matches('/')), format!("{dest}/link/x")] {
        for option in [&["-C"][..], &[]] {
            let motd = path("motd");
            let args = [option, &["web1", &motd, &dest]].concat();
            salt_cp(&args).exits(1);
            assert!(!outside.path().join("x").exists(), "{args:?}");
        }
    }
    let refused = salt_cp(&["web1", &path("motd"), &target]).exits(1);
    assert!(refused.stdout.contains("cp: {filesystem:"), "the line that grants it: {refused:?}");
}
