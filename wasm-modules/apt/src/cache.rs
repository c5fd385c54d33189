//! What apt-cache and apt-get print.

use brine_guest::Value;

/// Reads `apt-cache policy`: the candidate of each package, empty if it has none.
pub fn candidates(output: &str, names: &[String]) -> Vec<(String, String)> {
    let short: Vec<&str> = names.iter().map(|name| name.split(':').next().unwrap_or(name)).collect();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut package: Option<&str> = None;
    for line in output.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(':').filter(|_| !line.starts_with("Version table")) {
            if names.iter().any(|asked| asked == name) || short.contains(&name.split(':').next().unwrap_or(name)) {
                package = Some(name);
            }
        } else if line.starts_with("Candidate") {
            let words = line.split_whitespace().skip(1);
            let candidate = words.last().filter(|version| !version.eq_ignore_ascii_case("(none)")).unwrap_or_default();
            if let Some(package) = package {
                found.retain(|(known, _)| known != package);
                found.push((package.into(), candidate.into()));
            }
        }
    }
    found
}

/// Reads `apt-cache show` or `apt-cache dump`: the versions of each package, in their order.
pub fn versions(output: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut package: Option<&str> = None;
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("Package: ").filter(|name| Some(*name) != package) {
            package = Some(name);
            continue;
        }
        let Some((key, value)) = line.trim().split_once(char::is_whitespace) else { continue };
        if let (Some(package), "Version:") = (package, key) {
            match found.iter_mut().rev().find(|(known, _)| known == package) {
                Some((_, versions)) => versions.push(value.trim_start().into()),
                None => found.push((package.into(), vec![value.trim_start().into()])),
            }
        }
    }
    found
}

/// Reads `apt-cache show`: a dict of fields, by version, by package. `wanted` has lower-case names of fields; all if it is empty.
pub fn show(output: &str, wanted: &[String]) -> Value {
    let mut found = Value::Dict(Vec::new());
    let mut fields: Vec<(Value, Value)> = Vec::new();
    let mut add = |fields: &mut Vec<(Value, Value)>| {
        let mut take = |name: &str| {
            let at = fields.iter().position(|(key, _)| key.text() == Some(name))?;
            Some(fields.remove(at).1)
        };
        let (package, version) = (take("Package"), take("Version"));
        let fields = std::mem::take(fields);
        if let (Some(package), Some(version)) = (package, version) {
            let one = Value::Dict(vec![(package, Value::Dict(vec![(version, Value::Dict(fields))]))]);
            found.update(&one, false);
        }
    };
    for line in output.lines().map(str::trim) {
        if line.is_empty() {
            add(&mut fields);
        } else if let Some((name, value)) = line.split_once(':') {
            let name = name.trim();
            let key = name.to_lowercase();
            if wanted.is_empty() || matches!(&key[..], "package" | "version") || wanted.contains(&key) {
                fields.retain(|(known, _)| known.text() != Some(name));
                fields.push((name.into(), value.trim().into()));
            }
        }
    }
    add(&mut fields);
    found
}

/// Reads `apt-get update`: by lines of repositories, True if it was fetched, None if it was in order, False if it failed; and the
/// lines of those that failed.
pub fn refreshed(output: &str) -> (Value, Vec<String>) {
    let mut found: Vec<(Value, Value)> = Vec::new();
    let mut failed = Vec::new();
    for line in output.lines() {
        let mut words = line.split_whitespace();
        let Some(kind) = words.next() else { continue };
        let mut repository = words.collect::<Vec<_>>().join(" ");
        let result = if kind.contains("Get") {
            repository = without_size(&repository).into();
            Value::Bool(true)
        } else if kind.contains("Ign") {
            Value::Bool(false)
        } else if kind.contains("Hit") {
            Value::None
        } else if kind.contains("Err") {
            failed.push(repository.clone());
            Value::Bool(false)
        } else {
            continue;
        };
        match found.iter_mut().find(|(known, _)| known.text() == Some(&repository)) {
            Some((_, slot)) => *slot = result,
            None => found.push((repository.into(), result)),
        }
    }
    (Value::Dict(found), failed)
}

/// Removes ` [12.3 kB]` from the end.
fn without_size(line: &str) -> &str {
    match line.find(" [") {
        Some(at) if line.ends_with("B]") && line.len() > at + 4 => &line[..at],
        _ => line,
    }
}

/// Reads `apt-get --just-print upgrade`: the versions that would be configured, by package.
pub fn upgrades(output: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in output.lines() {
        let Some((name, rest)) = line.strip_prefix("Conf ").and_then(|rest| rest.split_once(" (")) else { continue };
        let version = rest.split(' ').next().unwrap_or_default();
        if !name.is_empty() && !name.contains(' ') && !version.is_empty() {
            found.retain(|(known, _)| known != name);
            found.push((name.into(), version.into()));
        }
    }
    found
}

/// Reads `apt-get --assume-no autoremove`: the packages that would go, sorted.
pub fn superfluous(output: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut within = false;
    for line in output.lines() {
        if within && line.starts_with(' ') {
            found.extend(line.split_whitespace().map(str::to_owned));
        } else {
            within = !within && line.contains("The following packages will be REMOVED:");
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_those_of_the_packages_that_were_asked_for() {
        let output = "a:\n  Installed: (none)\n  Candidate: 2.0\n  Version table:\n     2.0 500\n        500 file:/repo ./ Packages\n\
                      b:i386:\n  Installed: 1\n  Candidate: (none)\n  Version table:\n";
        let names = ["a".to_owned(), "b".into(), "c".into()];
        assert_eq!(candidates(output, &names), [("a".to_owned(), "2.0".to_owned()), ("b:i386".into(), "".into())]);
    }

    #[test]
    fn versions_are_read_of_both_programs() {
        let show = "Package: a\nVersion: 2\n\nPackage: a\nVersion: 1\n\nPackage: b\nVersion: 3\n";
        let dump = "Using Versioned Index\nPackage: a\n Version: 2\n     File: x\n Version: 1\nPackage: v\nPackage: b\n Version: 3\n";
        let expected = [("a".to_owned(), vec!["2".to_owned(), "1".to_owned()]), ("b".into(), vec!["3".into()])];
        assert_eq!((versions(show), versions(dump)), (expected.to_vec(), expected.to_vec()));
    }

    #[test]
    fn an_update_says_what_became_of_each_repository() {
        let output = "Get:1 file:/repo ./ InRelease\nIgn:1 file:/repo ./ InRelease\nGet:2 http://d.example stable InRelease [12.3 kB]\n\
                      Hit:3 http://x stable InRelease\nErr:4 http://y stable Release\n  404 Not Found\nReading package lists...\n";
        let (found, failed) = refreshed(output);
        assert_eq!(
            found,
            Value::dict([
                ("file:/repo ./ InRelease", Value::Bool(false)),
                ("http://d.example stable InRelease", Value::Bool(true)),
                ("http://x stable InRelease", Value::None),
                ("http://y stable Release", Value::Bool(false)),
            ])
        );
        assert_eq!(failed, ["http://y stable Release"]);
    }

    #[test]
    fn what_would_be_upgraded_is_what_would_be_configured() {
        let output = "NOTE: simulated\nInst a [1] (2 repo [amd64])\nConf a (2 repo [amd64])\nRemv b [1]\n";
        assert_eq!(upgrades(output), [("a".to_owned(), "2".to_owned())]);
    }

    #[test]
    fn what_nothing_needs_is_listed() {
        let output = "Reading…\nThe following packages will be REMOVED:\n  b a\n  c\n0 upgraded, 3 to remove\nAbort.\n";
        assert_eq!(superfluous(output), ["a", "b", "c"]);
    }

    #[test]
    fn fields_are_by_package_and_version() {
        let output =
            "Package: a\nVersion: 1\nSection: x\nDescription: d\n more\n\nPackage: a\nVersion: 2\nSection: y\n";
        let of = |section: &str| Value::dict([("Section", section.into())]);
        assert_eq!(
            show(output, &["section".into()]),
            Value::dict([("a", Value::dict([("1", of("x")), ("2", of("y"))]))])
        );
    }
}
