//! The decisions about modules on this host: contents that the owner approved, contents left by a rollback, and the
//! newest version seen of each signed module. All are in one bounded file that is written atomically.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use brine_component::ModuleInfo;
use brine_sandbox_wire::Sha256Hex;
use serde::{Deserialize, Serialize};

use crate::ModuleName;
use crate::kernel::cache;

/// The file, beside the modules. The watcher waits for this name.
pub(crate) const FILE: &str = "decisions.json";
/// Upper bound on the modules remembered; more than one host has.
const MAX_NAMES: usize = 4_096;
/// Upper bound on the contents of one module in each list. The oldest are dropped.
const MAX_CONTENTS: usize = 32;
/// Upper bound on the file's bytes. All names with all contents would be larger, but nobody approves so many.
const MAX_BYTES: u64 = 8 << 20;

/// All decisions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Decisions {
    #[serde(default)]
    modules: BTreeMap<String, Decided>,
}

/// The decisions about one module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Decided {
    /// Contents that the owner approved, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    approved: Vec<Approval>,
    /// Contents approved automatically, because each replaced an approved one and asks for no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    followed: Vec<Approval>,
    /// Contents that a master may not install again automatically.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rolled_back: Vec<String>,
    /// The newest version seen with a signature by a key of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    newest: Option<Seen>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Approval {
    sha256: String,
    /// Seconds since 1970.
    at: u64,
    /// The approved content that this one replaced. None if the owner approved this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// A signed version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// The version in the component's description.
    pub(crate) version: Option<String>,
    /// When it was signed, in seconds since 1970.
    pub(crate) time: Option<u64>,
    pub(crate) sha256: String,
}

impl Seen {
    /// Returns the record of a module that a key of the policy signed at this time.
    pub(crate) fn new(info: &ModuleInfo, time: Option<u64>, sha256: Sha256Hex) -> Self {
        Self { version: info.version.clone(), time, sha256: sha256.to_string() }
    }

    /// Parses the version for semver's order. A missing or invalid version comes before all others.
    fn version(&self) -> Option<semver::Version> {
        self.version.as_deref().and_then(|version| semver::Version::parse(version).ok())
    }

    /// Checks whether this version is older than another: by version, or by signing time if the versions are equal.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        match self.version().cmp(&other.version()) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => self.sha256 != other.sha256 && self.time < other.time,
            std::cmp::Ordering::Greater => false,
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version.as_deref().unwrap_or("without a version"))?;
        let time = self.time.and_then(|time| UNIX_EPOCH.checked_add(Duration::from_secs(time)));
        time.map_or(Ok(()), |time| write!(f, ", signed {}", super::clock::text(time)))
    }
}

impl Decided {
    /// Checks whether this content is approved.
    pub(crate) fn approves(&self, sha256: Sha256Hex) -> bool {
        self.find(sha256).is_some()
    }

    fn find(&self, sha256: Sha256Hex) -> Option<&Approval> {
        let sha256 = sha256.to_string();
        self.approved.iter().chain(&self.followed).find(|approval| approval.sha256 == sha256)
    }

    /// Returns when a content was approved, and whether that happened automatically after an approved version.
    pub(crate) fn approval(&self, sha256: Sha256Hex) -> Option<(SystemTime, bool)> {
        let approval = self.find(sha256)?;
        Some((UNIX_EPOCH.checked_add(Duration::from_secs(approval.at))?, approval.after.is_some()))
    }

    pub(crate) fn was_rolled_back(&self, sha256: Sha256Hex) -> bool {
        self.rolled_back.contains(&sha256.to_string())
    }

    pub(crate) fn newest(&self) -> Option<&Seen> {
        self.newest.as_ref()
    }

    /// Approves a content. `after` is the approved content that it replaces. An earlier approval by the owner stays as
    /// it is.
    pub(crate) fn approve(&mut self, sha256: Sha256Hex, after: Option<Sha256Hex>) {
        if self.find(sha256).is_some_and(|known| known.after.is_none()) && !self.was_rolled_back(sha256) {
            return;
        }
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.forget(sha256);
        let after = after.map(|sha256| sha256.to_string());
        let list = if after.is_none() { &mut self.approved } else { &mut self.followed };
        push(list, Approval { sha256: sha256.to_string(), at, after });
    }

    /// Withdraws the approval of a content, and blocks its automatic return.
    pub(crate) fn roll_back(&mut self, sha256: Sha256Hex) {
        self.forget(sha256);
        push(&mut self.rolled_back, sha256.to_string());
    }

    fn forget(&mut self, sha256: Sha256Hex) {
        let sha256 = sha256.to_string();
        self.approved.retain(|approval| approval.sha256 != sha256);
        self.followed.retain(|approval| approval.sha256 != sha256);
        self.rolled_back.retain(|other| *other != sha256);
    }

    /// Separates the two kinds of approvals, which older versions of the file kept in one list.
    fn sort_out(&mut self) {
        let (followed, approved) = std::mem::take(&mut self.approved).into_iter().partition(|it| it.after.is_some());
        self.approved = approved;
        self.followed.splice(0..0, Vec::<Approval>::into_iter(followed));
    }

    /// Clears the rolled-back contents, because another version was installed.
    pub(crate) fn forgive(&mut self) {
        self.rolled_back.clear();
    }

    /// Remembers this version if it is the newest.
    pub(crate) fn saw(&mut self, seen: Seen) {
        let newer = match &self.newest {
            None => true,
            Some(newest) => *newest != seen && newest.is_older_than(&seen),
        };
        if newer {
            self.newest = Some(seen);
        }
    }
}

fn push<T>(list: &mut Vec<T>, item: T) {
    list.push(item);
    if list.len() > MAX_CONTENTS {
        list.remove(0);
    }
}

impl Decisions {
    /// Reads the file in this folder. A missing file means no decisions.
    pub(super) fn read(dir: &Path) -> io::Result<Self> {
        let text = match brine_files::read_own(&dir.join(FILE), MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text?,
        };
        let mut decisions: Self = serde_json::from_slice(&text)?;
        decisions.modules.values_mut().for_each(Decided::sort_out);
        Ok(decisions)
    }

    pub(super) fn write(&self, dir: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        if text.len() as u64 >= MAX_BYTES {
            return Err(io::Error::other(format!("{FILE} would have more than {MAX_BYTES} bytes")));
        }
        cache::write_whole(&dir.join(FILE), &text)
    }

    /// Returns the decisions about a module.
    pub(crate) fn of(&self, name: &ModuleName) -> Decided {
        self.modules.get(name.as_str()).cloned().unwrap_or_default()
    }

    /// Replaces the decisions about a module, within the bound on names.
    pub(super) fn set(&mut self, name: &ModuleName, decided: Decided) -> io::Result<()> {
        let room = self.modules.len() < MAX_NAMES || self.modules.contains_key(name.as_str());
        if decided != Decided::default() && !room {
            return Err(io::Error::other(format!("{FILE} has {MAX_NAMES} modules already")));
        }
        self.put(name, decided);
        Ok(())
    }

    /// Takes over the file's decisions about a module.
    pub(crate) fn put(&mut self, name: &ModuleName, decided: Decided) {
        if decided == Decided::default() {
            self.modules.remove(name.as_str());
        } else {
            self.modules.insert(name.to_string(), decided);
        }
    }

    /// Returns the modules about which the two differ.
    pub(crate) fn changed(&self, other: &Self) -> Vec<ModuleName> {
        let names = self
            .modules
            .keys()
            .chain(other.modules.keys())
            .filter(|name| self.modules.get(*name) != other.modules.get(*name));
        let mut names: Vec<ModuleName> = names.filter_map(|name| name.parse().ok()).collect();
        names.sort();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{name, sha};

    fn seen(version: &str, time: u64, content: u8) -> Seen {
        Seen { version: Some(version.to_owned()), time: Some(time), sha256: sha(content).to_string() }
    }

    #[test]
    fn older_is_by_version_and_then_by_time() {
        let base = seen("1.2.0", 100, 1);
        for (other, older) in [
            (seen("1.1.9", 200, 2), true),
            (seen("1.2.0-rc.1", 200, 2), true),
            (seen("1.2.0", 99, 2), true),
            // The same content, signed again by the same key or by another.
            (seen("1.2.0", 99, 1), false),
            (seen("1.2.0", 100, 2), false),
            (seen("1.2.0", 101, 2), false),
            (seen("1.10.0", 1, 2), false),
            // Without a version, or with an invalid one.
            (Seen { version: None, ..seen("", 200, 2) }, true),
            (seen("newest", 200, 2), true),
            (Seen { time: None, ..seen("1.2.0", 0, 2) }, true),
        ] {
            assert_eq!(other.is_older_than(&base), older, "{other:?}");
        }
        let unnamed = |time, content| Seen { version: None, ..seen("", time, content) };
        assert!(unnamed(1, 2).is_older_than(&unnamed(2, 1)));
        assert!(!unnamed(2, 1).is_older_than(&unnamed(1, 2)));
    }

    #[test]
    fn the_newest_is_kept_and_contents_are_forgotten_in_order() {
        let mut decided = Decided::default();
        for (version, newest) in [("1.0.0", "1.0.0"), ("2.0.0", "2.0.0"), ("1.5.0", "2.0.0")] {
            decided.saw(seen(version, 1, 1));
            assert_eq!(decided.newest().unwrap().version.as_deref(), Some(newest));
        }
        for content in 0..40 {
            decided.approve(sha(content), None);
        }
        assert!(!decided.approves(sha(7)) && decided.approves(sha(8)) && decided.approves(sha(39)));
        // A content that was rolled back is not approved any more, until it is approved again.
        decided.roll_back(sha(39));
        assert!(!decided.approves(sha(39)) && decided.was_rolled_back(sha(39)));
        decided.approve(sha(39), Some(sha(38)));
        assert!(decided.approves(sha(39)) && !decided.was_rolled_back(sha(39)));
        assert!(decided.approval(sha(39)).unwrap().1);
    }

    #[test]
    fn what_the_owner_did_not_say_is_not_written_down_as_said() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two, three) = (sha(1), sha(2), sha(3));
        // The older form of the file.
        let old = format!(
            r#"{{"modules": {{"mine": {{"approved": [{{"sha256": "{one}", "at": 7}}, {{"sha256": "{two}", "at": 8, "after": "{one}"}}]}}}}}}"#
        );
        std::fs::write(dir.path().join(FILE), old).unwrap();
        let mut decisions = Decisions::read(dir.path()).unwrap();
        let mut decided = decisions.of(&name("mine"));
        assert!(decided.approves(one) && decided.approves(two));
        assert_eq!((decided.approval(one).unwrap().1, decided.approval(two).unwrap().1), (false, true));
        decided.approve(three, Some(two));
        decisions.set(&name("mine"), decided.clone()).unwrap();
        decisions.write(dir.path()).unwrap();
        let text = std::fs::read(dir.path().join(FILE)).unwrap();
        let file: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let listed = |list: &str| {
            let items = file["modules"]["mine"][list].as_array().unwrap().iter();
            items.map(|item| item["sha256"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(listed("approved"), [one.to_string()]);
        assert_eq!(listed("followed"), [two.to_string(), three.to_string()]);
        assert_eq!(Decisions::read(dir.path()).unwrap(), decisions);
        // The owner's approval takes precedence, and a second one changes nothing.
        decided.approve(two, None);
        let said = decided.clone();
        decided.approve(two, None);
        decided.approve(two, Some(one));
        assert_eq!(decided, said);
        assert!(!decided.approval(two).unwrap().1);
        decided.roll_back(three);
        assert!(!decided.approves(three));
    }

    #[test]
    fn a_file_comes_back_as_it_was_and_a_broken_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (mut decisions, mine) = (Decisions::read(dir.path()).unwrap(), name("mine"));
        assert_eq!(decisions, Decisions::default());
        let mut decided = Decided::default();
        decided.approve(sha(1), None);
        decided.roll_back(sha(2));
        decided.saw(seen("1.0.0", 5, 1));
        decisions.set(&mine, decided.clone()).unwrap();
        decisions.write(dir.path()).unwrap();
        let again = Decisions::read(dir.path()).unwrap();
        assert_eq!((again.of(&mine), again.changed(&Decisions::default())), (decided, vec![mine.clone()]));
        assert_eq!(again.changed(&decisions), vec![]);
        decisions.set(&mine, Decided::default()).unwrap();
        assert_eq!(decisions, Decisions::default());
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(Decisions::read(dir.path()).is_err());
        for n in 0..MAX_NAMES {
            decisions.set(&name(&format!("m{n}")), again.of(&mine)).unwrap();
        }
        assert!(decisions.set(&mine, again.of(&mine)).is_err());
    }
}
