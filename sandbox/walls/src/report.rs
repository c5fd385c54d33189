//! The walls in force, for the log and for `sandbox.check`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The walls around one process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walls {
    /// The uid of the process.
    pub uid: u32,
    /// Whether starting a program gives the process no further rights.
    pub no_new_privs: bool,
    /// Whether other processes of the same user cannot trace or inspect the process.
    pub hidden: bool,
    /// Whether system calls are filtered.
    pub seccomp: bool,
    /// The version of landlock in force; 0 for none.
    pub landlock: u32,
    /// The resource limits by name.
    pub limits: BTreeMap<String, u64>,
    /// The control group of the process, or why there is none. The minion fills this in.
    #[serde(default)]
    pub cgroup: Cgroup,
    /// The missing parts of the second wall, one line each.
    pub missing: Vec<String>,
    /// Parts that are weaker than possible without being a hole, one line each.
    pub notes: Vec<String>,
}

/// The control group of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cgroup {
    /// Not determined.
    #[default]
    Unknown,
    /// The path below the hierarchy, and the bounds in force.
    In(String, BTreeMap<String, String>),
    /// Why there is none.
    NotAvailable(String),
}

/// Upper bounds on the lists and lines of a report from another process.
const MAX_ENTRIES: usize = 32;
const MAX_LINE: usize = 300;

impl Walls {
    /// The missing parts of the second wall, in plain words; empty if the wall is complete.
    #[must_use]
    pub fn lacking(&self) -> Vec<String> {
        let mut lacking = Vec::new();
        let mut say = |missing: bool, what: &str| {
            if missing {
                lacking.push(what.to_owned());
            }
        };
        say(self.uid == 0, "it runs as root");
        say(!self.no_new_privs, "no_new_privs is not set");
        say(!self.hidden, "it can be looked into by other processes of its user");
        say(!self.seccomp, "system calls are not filtered (seccomp)");
        say(self.landlock == 0, "files are not confined by the kernel (landlock)");
        lacking.extend(self.missing.iter().cloned());
        lacking
    }

    /// Shortens a report from another process and makes it printable.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        for list in [&mut self.missing, &mut self.notes] {
            list.truncate(MAX_ENTRIES);
            for line in list {
                *line = brine_text::short(line, MAX_LINE);
            }
        }
        let plain = |name: &String| name.len() < 32 && name.bytes().all(|byte| byte.is_ascii_lowercase());
        self.limits = self.limits.into_iter().filter(|(name, _)| plain(name)).take(MAX_ENTRIES).collect();
        // The process cannot know its control group.
        self.cgroup = Cgroup::Unknown;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_said() {
        let whole =
            Walls { uid: 61166, no_new_privs: true, hidden: true, seccomp: true, landlock: 6, ..Walls::default() };
        assert_eq!(whole.lacking(), [""; 0]);
        type Change = fn(&mut Walls);
        let changes: [(Change, &str); 6] = [
            (|walls| walls.uid = 0, "it runs as root"),
            (|walls| walls.no_new_privs = false, "no_new_privs is not set"),
            (|walls| walls.hidden = false, "it can be looked into by other processes of its user"),
            (|walls| walls.seccomp = false, "system calls are not filtered (seccomp)"),
            (|walls| walls.landlock = 0, "files are not confined by the kernel (landlock)"),
            (|walls| walls.missing.push("a door".into()), "a door"),
        ];
        for (change, expect) in changes {
            let mut walls = whole.clone();
            change(&mut walls);
            assert_eq!(walls.lacking(), [expect]);
        }
    }

    #[test]
    fn what_another_process_says_is_bounded() {
        let mut walls = Walls { missing: vec!["\x1b[31m".repeat(1000); 1000], ..Walls::default() };
        walls.limits = (0..1000).map(|n| (format!("x{n}"), n)).chain([("core".into(), 0)]).collect();
        walls.cgroup = Cgroup::In("/x".repeat(100_000), BTreeMap::new());
        let walls = walls.bounded();
        assert_eq!(walls.missing.len(), 32);
        // An invisible character is shown as its number.
        assert!(walls.missing[0].chars().count() <= 4 * MAX_LINE, "{}", walls.missing[0]);
        assert!(!walls.missing[0].contains('\x1b'));
        assert_eq!(walls.limits, BTreeMap::from([("core".into(), 0)]));
        assert_eq!(walls.cgroup, Cgroup::Unknown);
    }
}
