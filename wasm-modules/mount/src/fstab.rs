//! The file of mounts, `fstab(5)`: a line for each file system.

use brine_guest::Value;

/// The fields of an entry, by their names in Salt.
pub(crate) const FIELDS: [&str; 6] = ["device", "name", "fstype", "opts", "dump", "pass_num"];
const DEVICE: usize = 0;
const NAME: usize = 1;
const FSTYPE: usize = 2;
const OPTS: usize = 3;

/// File systems that are known by their place, since their device says nothing.
const WITHOUT_DEVICE: [&str; 14] = [
    "none",
    "tmpfs",
    "sysfs",
    "proc",
    "fusectl",
    "debugfs",
    "securityfs",
    "devtmpfs",
    "cgroup",
    "nfs",
    "nfs4",
    "glusterfs",
    "btrfs",
    "ceph",
];

/// An entry, in the order of [`FIELDS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry(pub [String; 6]);

impl Entry {
    /// Reads a line; none for a comment or what is no entry.
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with('#') || !(4..=6).contains(&words.len()) {
            return None;
        }
        let mut fields = ["0"; 6];
        fields[..words.len()].copy_from_slice(&words);
        Some(Self(fields.map(str::to_owned)))
    }

    fn line(&self) -> String {
        let [device, name, fstype, opts, dump, pass_num] = &self.0;
        format!("{device}\t\t{name}\t{fstype}\t{opts}\t{dump} {pass_num}\n")
    }

    /// Whether two entries have the same fields of these.
    fn agrees(&self, other: &Self, fields: &[usize]) -> bool {
        let sorted = |opts: &str| {
            let mut opts: Vec<String> = opts.split(',').map(str::to_owned).collect();
            opts.sort();
            opts
        };
        fields.iter().all(|&field| match field {
            OPTS => sorted(&self.0[OPTS]) == sorted(&other.0[OPTS]),
            field => self.0[field] == other.0[field],
        })
    }

    /// The fields by which an entry of this kind is known: those that were said, or those that Salt takes.
    ///
    /// # Errors
    /// A name that is no field's.
    pub(crate) fn known_by(&self, said: &Value) -> Result<Vec<usize>, String> {
        let names = match said {
            Value::List(names) => names.iter().map(Value::to_text).collect(),
            Value::None => vec!["auto".to_owned()],
            Value::Text(name) => vec![name.clone()],
            _ => return Err("match_on must be a string or list of strings".into()),
        };
        if names == ["auto"] {
            return Ok(vec![if WITHOUT_DEVICE.contains(&self.0[FSTYPE].as_str()) { NAME } else { DEVICE }]);
        }
        let field = |name: &String| FIELDS.iter().position(|field| field == name);
        let known = names.iter().map(|name| field(name).ok_or(name)).collect::<Result<_, _>>();
        known.map_err(|name| format!("Unrecognized keys in match_on: \"{name}\""))
    }
}

/// The entries of a file by place, as Salt shows them. A place that is there twice gets underscores.
pub(crate) fn entries(text: &str) -> Vec<(String, Entry)> {
    let mut entries: Vec<(String, Entry)> = Vec::new();
    for entry in text.lines().filter_map(Entry::read) {
        let mut name = entry.0[NAME].clone();
        while entries.iter().any(|(known, _)| *known == name) {
            name.push('_');
        }
        entries.push((name, entry));
    }
    entries
}

/// [`entries`] as a dict.
pub(crate) fn value(text: &str) -> Value {
    let value = |entry: &Entry| {
        let [device, _, fstype, opts, dump, pass_num] = &entry.0;
        Value::dict([
            ("device", device.as_str().into()),
            ("fstype", fstype.as_str().into()),
            ("opts", opts.split(',').collect::<Vec<_>>().into()),
            ("dump", dump.as_str().into()),
            ("pass", pass_num.as_str().into()),
        ])
    };
    Value::Dict(entries(text).iter().map(|(name, entry)| (name.as_str().into(), value(entry))).collect())
}

/// Sets an entry: `new`, `change` or `present`, and the text that the file is to have.
pub(crate) fn set(text: &str, wanted: &Entry, known_by: &[usize], keeps: bool) -> (&'static str, String) {
    let mut word = "new";
    let mut new = String::new();
    for line in text.split_inclusive('\n') {
        match Entry::read(line).filter(|entry| entry.agrees(wanted, known_by)) {
            Some(entry) if !keeps && !entry.agrees(wanted, &[0, 1, 2, 3, 4, 5]) => {
                word = "change";
                new.push_str(&wanted.line());
            }
            Some(_) => {
                word = "present";
                new.push_str(line);
            }
            None => new.push_str(line),
        }
    }
    if word == "new" {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new.push_str(&wanted.line());
    }
    (word, new)
}

/// The text without the entries of a place, and, if it is said, of a device.
pub(crate) fn without(text: &str, name: &str, device: Option<&str>) -> String {
    let is_it = |line: &str| {
        Entry::read(line)
            .is_some_and(|entry| entry.0[NAME] == name && device.is_none_or(|device| entry.0[DEVICE] == device))
    };
    text.split_inclusive('\n').filter(|line| !is_it(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# fs\n/dev/sda1 / ext4 rw,noatime 0 1\ntmpfs /tmp tmpfs defaults\nbroken line\n";

    fn entry(text: &str) -> Entry {
        Entry::read(text).unwrap()
    }

    /// As `mount.set_fstab` of Salt 3008 does.
    #[test]
    fn entries_are_set_and_removed() {
        let set = |line: &str, on: &str| {
            let wanted = entry(line);
            let (word, new) = set(TEXT, &wanted, &wanted.known_by(&on.into()).unwrap(), false);
            (word, new.replace(TEXT, "="))
        };
        assert_eq!(set("/dev/sda1 / ext4 noatime,rw 0 1", "auto"), ("present", "=".into()));
        assert_eq!(set("/dev/sdb1 / ext4 rw 0 0", "auto").0, "new");
        assert_eq!(set("/dev/sdb1 / ext4 rw 0 0", "name").0, "change");
        let changed = TEXT.replace("tmpfs /tmp tmpfs defaults\n", "none\t\t/tmp\ttmpfs\tsize=1m\t0 0\n");
        assert_eq!(set("none /tmp tmpfs size=1m 0 0", "auto"), ("change", changed));
        assert!(entry("a b c d").known_by(&"place".into()).is_err());
        assert_eq!(without(TEXT, "/tmp", Some("none")), TEXT);
        assert_eq!(without(TEXT, "/tmp", None), TEXT.replace("tmpfs /tmp tmpfs defaults\n", ""));
        assert_eq!(super::set("a b c d", &entry("e f g h"), &[0], false).1, "a b c d\ne\t\tf\tg\th\t0 0\n");
    }
}
