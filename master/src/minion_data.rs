//! Grains and pillar of the minions, in memory as far as targets need them.
//!
//! The files `cachedir/grains` and `cachedir/pillar`, one for each minion, are authoritative, and others write them too
//! (Python's programs, `rm`). Reading ten thousand files takes most of a second, so the entries that targets have used
//! (`os`, `roles`, …) stay in memory. A folder whose modification time is unchanged is not read again: every writer
//! replaces files, which changes the folder's time. In a changed folder, only files with another inode, size or time
//! are read.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use brine_protocol::config::settings;
use brine_protocol::ids::MinionId;
use brine_protocol::msgpack;
use brine_protocol::options;
use brine_protocol::target::{Keys, Known, Resolved, Target, read_entries};
use brine_protocol::value::Value;
use rustix::fs::AtFlags;

/// Bound on the keys in memory. Targets written by hand need fewer. With more keys, the older ones are dropped.
const KEYS_MAX: usize = 32;
/// Bound on the packed entries of one minion in memory. Larger ones are read for each target, so that one host cannot
/// fill the memory.
const ROW_BYTES_MAX: usize = 32 << 10;
/// A folder that changed less than this before the check may change again without a new modification time.
const SETTLED: Duration = Duration::from_secs(1);

options! {
    /// The settings of the data of minions.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct MinionDataOpts from c {
        pub(crate) keep: bool = c.get(settings::MINION_DATA_CACHE)?,
        pub(crate) events: bool = c.get(settings::MINION_DATA_CACHE_EVENTS)?,
    }
}

/// The data of all minions in memory.
#[derive(Debug)]
pub(crate) struct MinionData {
    grains: Mutex<Bank>,
    pillar: Mutex<Bank>,
}

/// The files of one folder.
#[derive(Debug)]
struct Bank {
    dir: PathBuf,
    keys: BTreeSet<String>,
    /// The folder's modification time that the rows match; `None` if the files must be checked.
    as_of: Option<SystemTime>,
    rows: HashMap<MinionId, Row>,
}

#[derive(Debug)]
struct Row {
    /// The version of the file that the row was read from; `None` if there was no file.
    version: Option<Version>,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    Kept(Option<Value>),
    /// Too large to keep: read for each target.
    Large,
}

/// Distinguishes one content of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    inode: u64,
    size: i64,
    seconds: i64,
    nanoseconds: i64,
}

impl MinionData {
    pub(crate) fn new(cachedir: &Path) -> Self {
        let bank = |name| Mutex::new(Bank::new(cachedir.join(name)));
        Self { grains: bank("grains"), pillar: bank("pillar") }
    }

    /// Resolves a target to the minions among `ids`, and returns listed ids that are not among `ids`. Blocks while it
    /// reads files.
    pub(crate) fn resolve(&self, target: &Target, ids: &[MinionId]) -> Resolved {
        let needs = target.needs();
        // Locks are always taken in this order, against deadlocks.
        let grains = Bank::refreshed(&self.grains, &needs.grains, ids);
        let pillar = Bank::refreshed(&self.pillar, &needs.pillar, ids);
        let (grains, pillar) = (grains.as_deref(), pillar.as_deref());
        target.resolve_with(ids, |id| Known {
            id,
            grains: grains.and_then(|bank| bank.entries(id, &needs.grains)),
            pillar: pillar.and_then(|bank| bank.entries(id, &needs.pillar)),
        })
    }

    /// Returns the minions among `ids` whose grains are known and satisfy `is`. `is` gets only the grains under `keys`.
    pub(crate) fn having<'a>(
        &self,
        keys: &Keys,
        ids: &'a [MinionId],
        is: impl Fn(&Value) -> bool,
    ) -> Vec<&'a MinionId> {
        let Some(bank) = Bank::refreshed(&self.grains, keys, ids) else { return Vec::new() };
        ids.iter().filter(|id| bank.entries(id, keys).is_some_and(|grains| is(&grains))).collect()
    }

    /// Shows `each` the grains under `keys` of every minion of `ids`; `None` for a minion without known grains.
    pub(crate) fn each_grains(&self, keys: &Keys, ids: &[MinionId], mut each: impl FnMut(&MinionId, Option<&Value>)) {
        let Some(bank) = Bank::refreshed(&self.grains, keys, ids) else { return };
        for id in ids {
            each(id, bank.entries(id, keys).as_deref());
        }
    }
}

impl Bank {
    fn new(dir: PathBuf) -> Self {
        Self { dir, keys: BTreeSet::new(), as_of: None, rows: HashMap::new() }
    }

    /// Returns a folder whose rows are up to date for `keys`; `None` if there are no keys.
    fn refreshed<'a>(bank: &'a Mutex<Self>, keys: &Keys, ids: &[MinionId]) -> Option<MutexGuard<'a, Self>> {
        if keys.is_empty() {
            return None;
        }
        let mut bank = bank.lock().unwrap_or_else(PoisonError::into_inner);
        if let Keys::These(keys) = keys {
            bank.refresh(keys, ids);
        }
        Some(bank)
    }

    fn refresh(&mut self, wanted: &BTreeSet<String>, ids: &[MinionId]) {
        if wanted.len() > KEYS_MAX {
            return;
        }
        if !wanted.is_subset(&self.keys) {
            if self.keys.union(wanted).count() > KEYS_MAX {
                self.keys.clear();
            }
            self.keys.extend(wanted.iter().cloned());
            self.rows.clear();
            self.as_of = None;
        }
        // Read before the files, so that a change in between is found by the next check.
        let changed = std::fs::metadata(&self.dir).and_then(|dir| dir.modified()).ok();
        let all_known = || ids.iter().all(|id| self.rows.contains_key(id));
        if changed.is_some() && self.as_of == changed && all_known() {
            return;
        }
        let mut before = std::mem::take(&mut self.rows);
        let keys = Keys::These(self.keys.clone());
        let dir = File::open(&self.dir).ok();
        for id in ids {
            let version = dir.as_ref().and_then(|dir| version(dir, id));
            let row = match before.remove(id).filter(|row| row.version == version) {
                Some(row) => row,
                None => Row { version, entries: version.map_or(Entries::Kept(None), |_| self.read(id, &keys)) },
            };
            self.rows.insert(id.clone(), row);
        }
        let settled = |at: &SystemTime| at.elapsed().is_ok_and(|ago| ago > SETTLED);
        self.as_of = changed.filter(settled);
    }

    fn read(&self, id: &MinionId, keys: &Keys) -> Entries {
        let entries = read_entries(&self.path(id), keys);
        match &entries {
            Some(entries) if msgpack::encode_disk(entries).len() > ROW_BYTES_MAX => Entries::Large,
            _ => Entries::Kept(entries),
        }
    }

    fn path(&self, id: &MinionId) -> PathBuf {
        self.dir.join(format!("{id}.p"))
    }

    /// Returns the data of a minion with at least these keys.
    fn entries(&self, id: &MinionId, keys: &Keys) -> Option<Cow<'_, Value>> {
        let kept = match keys {
            Keys::These(keys) if keys.is_subset(&self.keys) => self.rows.get(id),
            _ => None,
        };
        match kept {
            Some(Row { entries: Entries::Kept(entries), .. }) => entries.as_ref().map(Cow::Borrowed),
            _ => read_entries(&self.path(id), keys).map(Cow::Owned),
        }
    }
}

/// Returns the version of a minion's file; `None` if there is no file.
fn version(dir: &File, id: &MinionId) -> Option<Version> {
    let stat = rustix::fs::statat(dir, format!("{id}.p"), AtFlags::empty()).ok()?;
    Some(Version {
        inode: stat.st_ino,
        size: stat.st_size,
        seconds: stat.st_mtime,
        nanoseconds: stat.st_mtime_nsec as i64,
    })
}

#[cfg(test)]
mod tests {
    use brine_protocol::target::TargetType;
    use brine_protocol::value::{ValueExt as _, list, map, text};

    use super::*;

    struct Fleet {
        dir: tempfile::TempDir,
        ids: Vec<MinionId>,
        known: MinionData,
    }

    impl Fleet {
        fn new(ids: &[&str]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let ids = ids.iter().map(|id| id.parse().unwrap()).collect();
            let known = MinionData::new(dir.path());
            Self { dir, ids, known }
        }

        fn say(&self, bank: &str, id: &str, facts: &Value) {
            let dir = self.dir.path().join(bank);
            std::fs::create_dir_all(&dir).unwrap();
            crate::files::write_atomic(&dir.join(format!("{id}.p")), &msgpack::encode_disk(facts), 0o600).unwrap();
        }

        /// Makes all files old, so that the folder counts as settled.
        fn settle(&self) {
            for bank in ["grains", "pillar"] {
                if let Ok(dir) = File::open(self.dir.path().join(bank)) {
                    dir.set_modified(SystemTime::now() - 2 * SETTLED).unwrap();
                }
            }
        }

        fn found(&self, kind: TargetType, expr: &str) -> String {
            let target = Target::parse(kind, &text(expr), ":").unwrap();
            let found = self.known.resolve(&target, &self.ids);
            let read = target.resolve_known(&self.ids, self.dir.path());
            assert_eq!(found, read, "{expr}: what is kept is what is on disk");
            found.matched.iter().map(MinionId::as_str).collect::<Vec<_>>().join(" ")
        }
    }

    #[test]
    fn what_is_kept_follows_what_is_written() {
        let fleet = Fleet::new(&["a", "b", "c"]);
        assert_eq!(fleet.found(TargetType::Grain, "os:*"), "", "nothing is known yet");
        fleet.say("grains", "a", &map([("os", "Debian")]));
        fleet.say("grains", "b", &map([("os", "Alma")]));
        for settled in [false, true] {
            if settled {
                fleet.settle();
            }
            assert_eq!(fleet.found(TargetType::Grain, "os:Debian"), "a");
            assert_eq!(fleet.found(TargetType::Grain, "os:Debian"), "a");
        }
        fleet.say("grains", "b", &map([("os", "Debian"), ("role", "db")]));
        assert_eq!(fleet.found(TargetType::Grain, "os:Debian"), "a b");
        assert_eq!(fleet.found(TargetType::Grain, "role:db"), "b", "another key");
        fleet.settle();
        assert_eq!(fleet.found(TargetType::Compound, "G@os:Debian and not G@role:*"), "a");
        std::fs::remove_file(fleet.dir.path().join("grains/a.p")).unwrap();
        assert_eq!(fleet.found(TargetType::Grain, "os:Debian"), "b");
        fleet.say("pillar", "c", &map([("role", list(["db"]))]));
        assert_eq!(fleet.found(TargetType::Compound, "G@os:Debian or I@role:db"), "b c");
        // Minions without grains match every address.
        assert_eq!(fleet.found(TargetType::IpCidr, "10.0.0.0/8"), "a c");
    }

    /// An unchanged folder is not read again, unless its last change is too recent.
    #[test]
    fn a_settled_folder_is_believed() {
        let fleet = Fleet::new(&["a"]);
        fleet.say("grains", "a", &map([("os", "x")]));
        let changed = |fleet: &Fleet, byte: u8| {
            let path = fleet.dir.path().join("grains/a.p");
            let mut packed = std::fs::read(&path).unwrap();
            *packed.last_mut().unwrap() = byte;
            std::fs::write(path, packed).unwrap();
        };
        let target = |os: &str| Target::parse(TargetType::Grain, &text(format!("os:{os}")), ":").unwrap();
        let found = |os| fleet.known.resolve(&target(os), &fleet.ids).matched.len();
        assert_eq!(found("x"), 1);
        // The file changes in place, which leaves the folder's time unchanged, but that time is recent.
        changed(&fleet, b'y');
        assert_eq!((found("x"), found("y")), (0, 1));
        fleet.settle();
        assert_eq!(found("y"), 1);
        changed(&fleet, b'z');
        assert_eq!((found("y"), found("z")), (1, 0));
    }

    #[test]
    fn bounds() {
        let fleet = Fleet::new(&["a", "b"]);
        let many: Vec<(String, Value)> = (0..2 * KEYS_MAX).map(|n| (format!("k{n}"), text("v"))).collect();
        fleet.say("grains", "a", &map(many.iter().map(|(key, value)| (key.as_str(), value.clone()))));
        fleet.say("grains", "b", &map([("k0", text("v")), ("large", text("x".repeat(ROW_BYTES_MAX)))]));
        let keys = |fleet: &Fleet| fleet.known.grains.lock().unwrap().keys.len();
        for n in 0..2 * KEYS_MAX {
            assert_eq!(fleet.found(TargetType::Grain, &format!("k{n}:v")), if n == 0 { "a b" } else { "a" });
            assert!(keys(&fleet) <= KEYS_MAX);
        }
        let all = (0..KEYS_MAX + 1).map(|n| format!("G@k{n}:v")).collect::<Vec<_>>().join(" and ");
        assert_eq!(fleet.found(TargetType::Compound, &all), "a");
        assert_eq!(fleet.found(TargetType::Grain, "large:x*"), "b");
        let bank = fleet.known.grains.lock().unwrap();
        assert!(matches!(bank.rows[&fleet.ids[1]].entries, Entries::Large));
        drop(bank);
        assert_eq!(fleet.found(TargetType::Grain, "*:v"), "a b", "any key");
    }

    /// `cargo test --release -p brine-master --lib -- --ignored --nocapture ten_thousand`
    #[test]
    #[ignore = "it measures"]
    fn ten_thousand() {
        let names: Vec<String> = (0..10_000).map(|n| format!("minion{n:05}")).collect();
        let fleet = Fleet::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let filler: Vec<(String, Value)> = (0..150).map(|n| (format!("grain{n}"), text("x".repeat(30)))).collect();
        for (n, name) in names.iter().enumerate() {
            let mut grains = map([
                ("os", text(["Debian", "Alma", "Arch"][n % 3])),
                ("roles", list([["web", "db"][n % 2]])),
                ("ipv4", list([format!("10.0.{}.{}", n / 256, n % 256).as_str(), "127.0.0.1"])),
            ]);
            for (key, value) in &filler {
                grains.insert(key.as_str(), value.clone());
            }
            fleet.say("grains", name, &grains);
        }
        let run = |what: &str, kind, expr: &str| {
            let target = Target::parse(kind, &text(expr), ":").unwrap();
            let began = std::time::Instant::now();
            let found = fleet.known.resolve(&target, &fleet.ids).matched.len();
            println!("{what}: {found} minions in {:.1?}", began.elapsed());
        };
        for what in ["first", "young folder", "settled folder, looked at", "settled folder"] {
            if what.starts_with("settled folder, ") {
                fleet.settle();
            }
            run(&format!("{what}, glob"), TargetType::Glob, "minion*1");
            run(&format!("{what}, grain"), TargetType::Grain, "os:Deb*");
            run(
                &format!("{what}, compound"),
                TargetType::Compound,
                "G@os:Alma and G@roles:web or S@10.0.3.0/24 and not E@.*7",
            );
        }
    }
}
