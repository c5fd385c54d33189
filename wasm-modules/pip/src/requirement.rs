//! What is asked for: a package with versions, an address, or a file.

use std::str::FromStr;

use brine_guest::changes::{self, Kind};
use pep440_rs::{Version, VersionSpecifiers};

/// A package that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Requirement {
    /// As it was written.
    pub(crate) text: String,
    /// The normal name; empty where only pip can know it.
    pub(crate) name: String,
    /// The versions, each with its operator, as text.
    pub(crate) versions: Vec<String>,
}

/// A name in which case, `_` and `.` make no difference.
pub(crate) fn normalized(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

impl Requirement {
    /// Reads a requirement as pip does.
    ///
    /// # Errors
    /// Salt's sentence, where it is none.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let of = |name: &str, versions: Vec<String>| Ok(Self { text: text.into(), name: normalized(name), versions });
        let spec = text.split(" #").next().unwrap_or(text).trim();
        if spec.contains("://") && !spec.contains(" @ ") || spec.starts_with("file:") {
            return match (egg(spec), wheel(spec)) {
                (Some(name), _) => of(name, Vec::new()),
                (None, Some((name, version))) => of(name, vec![format!("=={version}")]),
                (None, None) => of("", Vec::new()),
            };
        }
        if spec.contains('/') && (spec.starts_with(['/', '.']) || changes::is(spec, Kind::Directory).unwrap_or(false)) {
            return match wheel(spec) {
                Some((name, version)) => of(name, vec![format!("=={version}")]),
                None => of("", Vec::new()),
            };
        }
        let spec = spec.split(';').next().unwrap_or_default().trim_end();
        let end = spec.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(spec.len());
        let (name, rest) = spec.split_at(end);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric());
        let mut rest = rest.trim_start();
        if let Some(extras) = rest.strip_prefix('[') {
            rest = extras.split_once(']').map_or("?", |(_, rest)| rest).trim_start();
        }
        if is_name && rest.starts_with('@') {
            return of(name, Vec::new());
        }
        let rest = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest);
        match VersionSpecifiers::from_str(rest) {
            Ok(_) if is_name => {
                of(name, rest.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect())
            }
            _ if text.contains('=') && !text.contains("==") => {
                Err(format!("Invalid version specification in package {text}. '=' is not supported, use '==' instead."))
            }
            _ => Err(format!("pip raised an exception while parsing '{text}': Invalid requirement: '{text}'")),
        }
    }

    /// Whether a version is one of those that are asked for.
    pub(crate) fn is_met_by(&self, version: &str) -> bool {
        let specifiers = VersionSpecifiers::from_str(&self.versions.join(","));
        match (specifiers, Version::from_str(version)) {
            (Ok(specifiers), Ok(version)) => specifiers.contains(&version),
            _ => self.versions.is_empty(),
        }
    }

    /// Which kinds of versions that are not final are left out, as Salt does: by the letters that are asked for.
    pub(crate) fn left_out(&self) -> Vec<&'static str> {
        let asked = |letters: &str| self.versions.iter().any(|version| version.contains(letters));
        ["a", "b", "rc"].into_iter().filter(|letters| !asked(letters)).collect()
    }
}

/// Whether two versions are the same one.
pub(crate) fn same(one: &str, other: &str) -> bool {
    matches!((Version::from_str(one), Version::from_str(other)), (Ok(one), Ok(other)) if one == other)
}

/// The name after `#egg=`.
fn egg(url: &str) -> Option<&str> {
    let (_, fragment) = url.split_once('#')?;
    let name = fragment.split('&').find_map(|part| part.strip_prefix("egg="))?;
    Some(name.split(['[', '=', '<', '>', '!', '~']).next().unwrap_or(name))
}

/// Name and version of a wheel, by its file's name.
fn wheel(path: &str) -> Option<(&str, &str)> {
    let stem = path.rsplit('/').next()?.split('#').next()?.strip_suffix(".whl")?;
    let mut parts = stem.split('-');
    Some((parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_read_as_pip_does() {
        let of = |text: &str| Requirement::read(text).map(|read| (read.name, read.versions));
        let is =
            |name: &str, versions: &[&str]| Ok((name.to_owned(), versions.iter().map(|v| (*v).to_owned()).collect()));
        assert_eq!(of("Foo_Bar.baz"), is("foo-bar-baz", &[]));
        assert_eq!(of("foo[x,y] >= 1.0, <2 ; python_version > '3'"), is("foo", &[">= 1.0", "<2"]));
        assert_eq!(of("foo @ https://h/foo.zip"), is("foo", &[]));
        assert_eq!(of("git+https://h/foo.git#egg=Foo"), is("foo", &[]));
        assert_eq!(of("git+https://h/foo.git"), is("", &[]));
        assert_eq!(of("/srv/foo_bar-1.0-py3-none-any.whl"), is("foo-bar", &["==1.0"]));
        assert_eq!(of("/srv/foo-1.0.tar.gz"), is("", &[]));
        assert!(of("foo=1").unwrap_err().starts_with("Invalid version specification in package foo=1."));
        assert!(of("foo bar").is_err() && of("-e").is_err() && of("foo==").is_err());
    }

    #[test]
    fn versions_are_compared_as_python_does() {
        let read = |text: &str| Requirement::read(text).unwrap();
        assert!(read("foo>=1.9,<3").is_met_by("1.10") && !read("foo<1.9").is_met_by("1.10"));
        assert!(read("foo").is_met_by("anything") && read("foo~=1.4").is_met_by("1.5"));
        assert!(same("1.0", "1.0.0") && !same("1.0", "1.0.post1"));
        assert_eq!(read("foo==1.0b2").left_out(), ["a", "rc"]);
    }
}
