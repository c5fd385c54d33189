//! What is watched in a folder of the test. Events of the kernel are there before the call that caused them returns.

use std::fs::{create_dir, create_dir_all, remove_file, rename, write};
use std::os::unix::fs::symlink;
use std::path::Path;

use brine_sandbox::{Access, Tree, Watch};

use super::super::changes::Said;
use super::bits::*;
use super::*;

const CHANGES: u32 = 0x302;
const ALL: u32 = IN_ALL_EVENTS & !0x39;

struct Rig {
    dir: tempfile::TempDir,
    set: Set,
    last: u64,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["own", "a", "outside"] {
            create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir, set: Set::new("test", Arc::default()).unwrap(), last: 0 }
    }

    fn at(&self, name: &str) -> String {
        self.dir.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
    }

    fn watch(&self, name: &str, mask: u32) -> Watch {
        Watch { path: self.at(name), mask, recurse: true, auto_add: true, skip: Vec::new() }
    }

    fn try_take(&mut self, granted: &[&str], asked: &[Watch]) -> Result<Vec<String>, Said> {
        let trees = granted.iter().map(|name| Tree { path: self.at(name), access: Access::Look }).collect();
        let finder = super::super::changes::Finder::of_test(trees, Path::new(&self.at("own")));
        let taken = self.set.take(finder, asked.to_vec(), self.last)?;
        self.last = taken.last().map_or(self.last, |event| event.number);
        let root = self.at("");
        let shown = |event: &Happened| {
            let path = event.path.strip_prefix(&root).unwrap_or(&event.path);
            let name = event.name.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
            format!("{path}{name} {:x}", event.mask)
        };
        Ok(taken.iter().map(shown).collect())
    }

    fn take(&mut self, asked: &[Watch]) -> Vec<String> {
        self.try_take(&["a"], asked).unwrap()
    }

    fn paths(&self) -> Vec<String> {
        let root = self.at("");
        self.set.paths().iter().map(|path| path.strip_prefix(&root).unwrap().to_owned()).collect()
    }
}

#[test]
fn directories_are_watched_with_those_that_come() {
    let mut rig = Rig::new();
    create_dir_all(rig.at("a/b/c")).unwrap();
    let asked = [rig.watch("a", CHANGES)];
    assert!(rig.take(&asked).is_empty());
    assert_eq!(rig.paths(), ["a", "a/b", "a/b/c"]);
    write(rig.at("a/f"), "x").unwrap();
    write(rig.at("a/b/c/f"), "x").unwrap();
    remove_file(rig.at("a/f")).unwrap();
    let seen = rig.take(&asked);
    assert_eq!(seen, ["a/f 100", "a/f 2", "a/b/c/f 100", "a/b/c/f 2", "a/f 200"]);
    // What is in a directory before it is watched was made too.
    create_dir_all(rig.at("a/new/deep")).unwrap();
    write(rig.at("a/new/deep/f"), "x").unwrap();
    let seen = rig.take(&asked);
    assert_eq!(seen, ["a/new/deep 40000100", "a/new/deep/f 100", "a/new 40000100"]);
    write(rig.at("a/new/deep/g"), "").unwrap();
    assert_eq!(rig.take(&asked), ["a/new/deep/g 100"]);
    // Neither below nor what comes.
    let only = [Watch { recurse: false, auto_add: false, ..rig.watch("a", CHANGES) }];
    assert!(rig.take(&only).is_empty());
    write(rig.at("a/b/f"), "x").unwrap();
    create_dir(rig.at("a/newer")).unwrap();
    assert_eq!(rig.take(&only), ["a/newer 40000100"]);
    assert_eq!(rig.paths(), ["a"]);
    let skips = [Watch { skip: vec![rig.at("a/b"), rig.at("a/new")], ..rig.watch("a", CHANGES) }];
    rig.take(&skips);
    assert_eq!(rig.paths(), ["a"]);
}

/// The mask alone says what is told, whatever else the minion hears for itself.
#[test]
fn only_what_was_asked_for_is_told() {
    let mut rig = Rig::new();
    let asked = [rig.watch("a", 0x200)];
    rig.take(&asked);
    create_dir_all(rig.at("a/new")).unwrap();
    write(rig.at("a/new/f"), "x").unwrap();
    rig.take(&asked);
    rename(rig.at("a/new/f"), rig.at("a/new/g")).unwrap();
    remove_file(rig.at("a/new/g")).unwrap();
    assert_eq!(rig.take(&asked), ["a/new/g 200"]);
}

/// A directory that left a granted one tells nothing more, wherever it is now.
#[test]
fn what_is_moved_away_is_not_watched() {
    let mut rig = Rig::new();
    create_dir_all(rig.at("a/b/c")).unwrap();
    let asked = [rig.watch("a", ALL)];
    rig.take(&asked);
    rename(rig.at("a/b"), rig.at("outside/b")).unwrap();
    write(rig.at("outside/b/c/secret"), "x").unwrap();
    write(rig.at("outside/b/secret"), "x").unwrap();
    assert_eq!(rig.take(&asked), ["a/b 40000040"]);
    write(rig.at("outside/b/c/secret"), "y").unwrap();
    assert!(rig.take(&asked).is_empty());
    assert_eq!(rig.paths(), ["a"]);
    // Within, it comes under its new name, also without auto_add.
    create_dir_all(rig.at("a/d/e")).unwrap();
    let asked = [Watch { auto_add: false, ..rig.watch("a", ALL) }];
    rig.take(&asked);
    rename(rig.at("a/d"), rig.at("a/n")).unwrap();
    rig.take(&asked);
    write(rig.at("a/n/e/f"), "").unwrap();
    assert!(rig.take(&asked).contains(&"a/n/e/f 100".to_owned()));
    assert_eq!(rig.paths(), ["a", "a/n", "a/n/e"]);
    // The directory itself.
    rename(rig.at("a"), rig.at("outside/a")).unwrap();
    write(rig.at("outside/a/n/secret"), "x").unwrap();
    assert_eq!(rig.take(&asked), ["a 800"]);
    write(rig.at("outside/a/secret"), "x").unwrap();
    assert!(rig.take(&asked).is_empty() && rig.paths().is_empty());
}

#[test]
fn a_file_is_found_anew_at_each_look() {
    let mut rig = Rig::new();
    let asked = [Watch { recurse: false, auto_add: false, ..rig.watch("a/f", CHANGES) }];
    assert!(rig.take(&asked).is_empty() && rig.paths().is_empty());
    write(rig.at("a/f"), "x").unwrap();
    rig.take(&asked);
    write(rig.at("a/f"), "y").unwrap();
    assert_eq!(rig.take(&asked), ["a/f 2"]);
    // As editors save.
    write(rig.at("a/g"), "z").unwrap();
    rename(rig.at("a/g"), rig.at("a/f")).unwrap();
    assert_eq!(rig.take(&asked), ["a/f 8000"]);
    write(rig.at("a/f"), "z").unwrap();
    assert_eq!(rig.take(&asked), ["a/f 2"]);
}

#[test]
fn links_and_the_minions_own_folder_lead_nowhere() {
    let mut rig = Rig::new();
    symlink(rig.at("outside"), rig.at("a/link")).unwrap();
    symlink(rig.at("own"), rig.at("a/mine")).unwrap();
    rig.take(&[rig.watch("a", ALL)]);
    assert_eq!(rig.paths(), ["a"], "links are not followed");
    let link = [rig.watch("a/link", ALL)];
    let refused = rig.try_take(&["a"], &link).unwrap_err();
    assert_eq!(refused, Said::NotGranted(rig.at("outside")));
    assert!(rig.paths().is_empty());
    rig.try_take(&["a", "outside"], &link).unwrap();
    assert_eq!(rig.paths(), ["a/link"]);
    // The grant is gone, and so is what was not told yet.
    write(rig.at("outside/secret"), "x").unwrap();
    assert!(rig.try_take(&["a"], &link).is_err());
    assert!(rig.take(&[]).is_empty());
    for own in ["own", "a/mine"] {
        let asked = [rig.watch(own, ALL)];
        assert!(matches!(rig.try_take(&["a", "own"], &asked), Err(Said::Denied(_))), "{own}");
    }
    let all = [rig.watch("", ALL)];
    let all = all.map(|watch| Watch { path: watch.path.trim_end_matches('/').to_owned(), ..watch });
    let trees = vec![Tree { path: all[0].path.clone(), access: Access::Look }];
    let finder = super::super::changes::Finder::of_test(trees, Path::new(&rig.at("own")));
    rig.set.take(finder, all.to_vec(), 0).unwrap();
    assert!(!rig.set.paths().contains(&rig.at("own")) && rig.set.paths().contains(&rig.at("outside")));
    let proc = Watch { path: "/proc/self".to_owned(), ..rig.watch("a", ALL) };
    let finder = super::super::changes::Finder::of_test(
        vec![Tree { path: "/proc".to_owned(), access: Access::Look }],
        Path::new(&rig.at("own")),
    );
    assert!(rig.set.take(finder, vec![proc], 0).is_err());
}

#[test]
fn a_storm_is_bounded_and_said() {
    let mut rig = Rig::new();
    let asked = [rig.watch("a", ALL)];
    rig.take(&asked);
    let mut lost = 0;
    for n in 0..30_000 {
        write(rig.at(&format!("a/f{}", n % 50)), "x").unwrap();
        if n % 2_000 == 0 {
            rig.set.read();
        }
    }
    loop {
        let seen = rig.take(&asked);
        assert!(seen.len() <= 400);
        lost += seen.iter().filter(|seen| *seen == " 4000").count();
        if seen.is_empty() {
            break;
        }
    }
    assert!(lost >= 1);
    write(rig.at("a/after"), "").unwrap();
    assert!(rig.take(&asked).contains(&"a/after 100".to_owned()));
}

#[test]
fn what_all_beacons_watch_is_bounded() {
    let mut rig = Rig::new();
    let all = Arc::new(AtomicUsize::new(set::MAX_WATCHED - 2));
    rig.set = Set::new("test", Arc::clone(&all)).unwrap();
    (0..5).for_each(|n| create_dir(rig.at(&format!("a/{n}"))).unwrap());
    rig.take(&[rig.watch("a", CHANGES)]);
    assert_eq!(rig.paths().len(), 2);
    drop(rig.set);
    assert_eq!(all.load(std::sync::atomic::Ordering::Relaxed), set::MAX_WATCHED - 2);
}

#[tokio::test]
async fn a_set_ends_with_its_beacon() {
    let watches = Watches::new();
    let names = tokio::sync::watch::Sender::new(BTreeSet::from(["one".to_owned(), "other".to_owned()]));
    let of = |name: &str, module: &str| watches.of(name, module, names.subscribe()).map(|(set, _)| set);
    let one = of("one", "m").unwrap();
    assert!(Arc::ptr_eq(&one, &of("one", "m").unwrap()));
    assert!(!Arc::ptr_eq(&one, &of("one", "n").unwrap()), "another module gets none of it");
    of("other", "m").unwrap();
    names.send_replace(BTreeSet::from(["other".to_owned()]));
    let gone = async {
        while lock(&watches.sets).contains_key("one") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    assert!(lock(&watches.sets).contains_key("other"));
    for n in 1..MAX_SETS {
        names.send_modify(|names| names.extend([n.to_string()]));
        of(&n.to_string(), "m").unwrap();
    }
    let more = of("more", "m").err().unwrap();
    assert!(more.to_string().contains("32 beacons watch files"));
}
