//! What dpkg-query and dpkg print.

use std::collections::BTreeMap;

use brine_guest::Value;

/// Versions by the names of packages.
pub type Versions = BTreeMap<String, Vec<String>>;

/// The format in which the list of packages is asked for.
pub const LIST_FORMAT: &str = "${Status} ${Package} ${Version} ${Architecture}\n";

/// This host's architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Architecture {
    /// The grain `osarch`, such as `amd64`.
    pub os: String,
    /// The grain `cpuarch`, such as `x86_64`.
    pub cpu: String,
}

impl Architecture {
    /// A package's name, with its architecture if that is a foreign one. Only hosts of `amd64` have such.
    pub fn qualified(&self, name: &str, architecture: &str) -> String {
        let foreign = self.cpu == "x86_64" && self.os == "amd64" && architecture != "all" && architecture != self.os;
        if foreign { format!("{name}:{architecture}") } else { name.into() }
    }

    /// A package's name without an architecture that this host has anyway.
    pub fn normalized(&self, name: &str) -> String {
        match name.rsplit_once(':') {
            Some((short, architecture)) if architecture == self.os || matches!(architecture, "all" | "any") => {
                short.into()
            }
            _ => name.into(),
        }
    }
}

/// The packages of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    pub installed: Versions,
    /// Those of which only configuration files are left.
    pub removed: Versions,
    /// Those that are installed and selected to be purged.
    pub purge_desired: Versions,
}

impl Installed {
    /// Reads dpkg-query's list in [`LIST_FORMAT`].
    pub fn read(output: &str, architecture: &Architecture) -> Self {
        let mut lists = Self::default();
        for line in output.lines() {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let [wanted, _, status, name, version, arch, ..] = columns[..] else { continue };
            let list = match wanted {
                _ if (wanted.contains("install") || wanted.contains("hold")) && status.contains("installed") => {
                    &mut lists.installed
                }
                _ if wanted.contains("deinstall") => &mut lists.removed,
                _ if wanted.contains("purge") && status == "installed" => &mut lists.purge_desired,
                _ => continue,
            };
            let versions = list.entry(architecture.qualified(name, arch)).or_default();
            versions.push(version.into());
            versions.sort();
            versions.dedup();
        }
        lists
    }

    /// What Salt lists: the removed ones; or those selected to be purged, with the installed ones unless `purge_desired`.
    pub fn listed(&self, removed: bool, purge_desired: bool) -> Versions {
        if removed {
            return self.removed.clone();
        }
        let mut listed = self.purge_desired.clone();
        if !purge_desired {
            listed.extend(self.installed.clone());
        }
        listed
    }
}

/// As a dict, of lists or of texts with the versions joined by commas.
pub fn to_value(versions: &Versions, as_list: bool) -> Value {
    let each = |versions: &Vec<String>| if as_list { versions.clone().into() } else { versions.join(",").into() };
    Value::Dict(versions.iter().map(|(name, versions)| (name.clone().into(), each(versions))).collect())
}

/// What is different after a change: a dict of `old` and `new` by names.
pub fn differences(old: &Versions, new: &Versions) -> Value {
    let text = |versions: Option<&Vec<String>>| Value::from(versions.map(|v| v.join(",")).unwrap_or_default());
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let changed = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    Value::Dict(
        changed
            .map(|name| {
                let change = Value::dict([("old", text(old.get(name))), ("new", text(new.get(name)))]);
                (name.clone().into(), change)
            })
            .collect(),
    )
}

/// Reads lines of a name and a selection: names by selections, each in their order.
pub fn selections(output: &str) -> Vec<(String, Vec<String>)> {
    let mut result: Vec<(String, Vec<String>)> = Vec::new();
    for line in output.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(selection)) = (words.next(), words.next()) else { continue };
        match result.iter_mut().find(|(known, _)| known == selection) {
            Some((_, names)) => names.push(name.into()),
            None => result.push((selection.into(), vec![name.into()])),
        }
    }
    result
}

/// The fields of a package that Salt tells, in the order of [`info_format`].
const INFO: [(&str, &str); 17] = [
    ("package", "${Package}"),
    ("revision", "${binary:Revision}"),
    ("architecture", "${Architecture}"),
    ("maintainer", "${Maintainer}"),
    ("summary", "${Summary}"),
    ("source", "${source:Package}"),
    ("version", "${Version}"),
    ("section", "${Section}"),
    ("installed_size", "${Installed-size}"),
    ("size", "${Size}"),
    ("MD5", "${MD5sum}"),
    ("SHA1", "${SHA1}"),
    ("SHA256", "${SHA256}"),
    ("origin", "${Origin}"),
    ("homepage", "${Homepage}"),
    ("status", "${db:Status-Abbrev}"),
    ("install_date", "${db-fsys:Last-Modified}"),
];
const DESCRIPTION: &str = "\ndescription:";
const END: &str = "\n*/~^\\*\n";

/// The format in which [`info`] is asked for.
pub fn info_format() -> String {
    let fields: Vec<String> = INFO.iter().map(|(name, field)| format!("{name}:{field}")).collect();
    format!("{}{DESCRIPTION}${{Description}}\n{END}", fields.join("\n")).replace('\\', "\\\\").replace('\n', "\\n")
}

/// Reads packages in [`info_format`]: fields by name, for each package.
pub fn info(output: &str) -> Vec<Vec<(String, String)>> {
    let packages = output.split(END).filter(|text| !text.trim().is_empty());
    packages
        .filter_map(|package| {
            let (head, description) = package.split_once(DESCRIPTION)?;
            let mut fields: Vec<(String, String)> = head
                .lines()
                .filter_map(|line| line.trim().split_once(':'))
                .map(|(name, value)| match name {
                    "install_date" => (name.into(), value.parse().map(utc).unwrap_or_default()),
                    _ => (name.into(), value.into()),
                })
                .filter(|(_, value): &(String, String)| !value.is_empty())
                .collect();
            let description = description.strip_suffix('\n').unwrap_or(description);
            fields.push(("description".into(), description.into()));
            Some(fields)
        })
        .collect()
}

/// Seconds since 1970 as a date and time of day, `2024-02-29T12:00:00Z`.
pub fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted in eras of 400 years that begin with March, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    format!("{year:04}-{month:02}-{day_of_month:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amd64() -> Architecture {
        Architecture { os: "amd64".into(), cpu: "x86_64".into() }
    }

    #[test]
    fn packages_are_listed_by_their_state() {
        let output = "install ok installed a 1.0-1 amd64\nhold ok installed b 1 all\ndeinstall ok config-files c 2 amd64\n\
                      purge ok installed d 3 amd64\ninstall ok half-configured e 1 amd64\ninstall ok installed f 1 i386\n\
                      install ok installed a 0.9-1 amd64\nunknown ok not-installed g amd64\n";
        let lists = Installed::read(output, &amd64());
        let names = |list: &Versions| list.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&lists.installed), ["a", "b", "f:i386"]);
        assert_eq!(lists.installed["a"], ["0.9-1", "1.0-1"]);
        assert_eq!((names(&lists.removed), names(&lists.purge_desired)), (vec!["c".into()], vec!["d".into()]));
        assert_eq!(names(&lists.listed(false, false)), ["a", "b", "d", "f:i386"]);
        assert_eq!(names(&lists.listed(false, true)), ["d"]);
        assert_eq!(to_value(&lists.removed, false), Value::dict([("c", "2".into())]));
    }

    #[test]
    fn names_keep_a_foreign_architecture() {
        for (name, expected) in [("a:amd64", "a"), ("a:any", "a"), ("a:i386", "a:i386"), ("a", "a")] {
            assert_eq!(amd64().normalized(name), expected);
        }
    }

    #[test]
    fn differences_are_old_and_new() {
        let list = |entries: &[(&str, &str)]| -> Versions {
            entries.iter().map(|(name, version)| (name.to_string(), vec![version.to_string()])).collect()
        };
        let found =
            differences(&list(&[("a", "1"), ("b", "1"), ("c", "1")]), &list(&[("b", "2"), ("c", "1"), ("d", "1")]));
        let change = |old: &str, new: &str| Value::dict([("old", old.into()), ("new", new.into())]);
        assert_eq!(found, Value::dict([("a", change("1", "")), ("b", change("1", "2")), ("d", change("", "1"))]));
    }

    #[test]
    fn information_is_read_as_it_was_asked_for() {
        assert!(info_format().starts_with("package:${Package}\\nrevision:"));
        assert!(info_format().ends_with("\\ndescription:${Description}\\n\\n*/~^\\\\*\\n"));
        let output = "package:a\nrevision:1\norigin:\ninstall_date:86400\ndescription:short\n long: text\n\n*/~^\\*\n";
        let expected = [
            ("package", "a"),
            ("revision", "1"),
            ("install_date", "1970-01-02T00:00:00Z"),
            ("description", "short\n long: text"),
        ];
        assert_eq!(info(output), [expected.map(|(name, value)| (name.to_owned(), value.to_owned()))]);
    }

    #[test]
    fn days_are_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
    }
}
