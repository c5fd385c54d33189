//! Where content comes from: `salt://`, `http://`, a path of this host; and the choice among several.

use brine_guest::Value;
use brine_guest::host::files::{self, Kind};
use brine_guest::host::http;
use brine_guest::states::is_dry_run;

use crate::look::fs;

/// A place of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A file of the master.
    Master { path: String, saltenv: String },
    /// A file of this host.
    Local(String),
    /// `http://`, `https://`
    Web(String),
    /// A protocol that is not spoken here.
    Other(String),
}

/// The scheme of a URL, empty for a path.
pub(crate) fn scheme(source: &str) -> &str {
    let (scheme, _) = source.split_once(':').unwrap_or_default();
    let known = ["salt", "file", "http", "https", "ftp", "swift", "s3"];
    known.into_iter().find(|known| scheme.eq_ignore_ascii_case(known)).unwrap_or_default()
}

impl Place {
    pub(crate) fn of(source: &str, saltenv: &str) -> Self {
        match scheme(source) {
            "salt" => {
                let (path, given) = master_path(source);
                Self::Master { path, saltenv: given.unwrap_or_else(|| saltenv.to_owned()) }
            }
            "http" | "https" => Self::Web(source.to_owned()),
            "file" => Self::Local(source[5..].trim_start_matches("//").to_owned()),
            "" => Self::Local(source.to_owned()),
            _ => Self::Other(source.to_owned()),
        }
    }
}

/// Path and environment of `salt://PATH?saltenv=ENV`.
pub(crate) fn master_path(source: &str) -> (String, Option<String>) {
    let resource = source.strip_prefix("salt://").unwrap_or(source);
    let (path, saltenv) = match (resource.split_once("?env="), resource.split_once("?saltenv=")) {
        (Some((path, _)), _) => (path, None),
        (_, Some((path, saltenv))) => (path, Some(saltenv.to_owned())),
        _ => (resource, None),
    };
    (path.trim_start_matches('/').to_owned(), saltenv)
}

/// Whether a path of the master's file server is one: without parts that are empty, `.` or `..`.
pub(crate) fn is_plain(path: &str) -> bool {
    !path.split('/').any(|part| matches!(part, "" | "." | ".."))
}

/// The hash that the master says of a file; none if there is no such file.
pub(crate) fn digest(path: &str, saltenv: &str) -> Result<Option<files::Digest>, String> {
    if is_plain(path) { files::hash(path, saltenv) } else { Ok(None) }
}

/// Salt's `file.source_list`: the first source that is there, with its hash. Both as they are if there is one source.
pub(crate) fn choose(source: &Value, source_hash: &Value, saltenv: &str) -> Result<(Value, Value), String> {
    let Value::List(sources) = source else { return Ok((source.clone(), source_hash.clone())) };
    let mut listed = Listed::default();
    for single in sources {
        let (single, hash) = match single {
            Value::Dict(entries) => match &entries[..] {
                [(name, hash)] => (name.to_text(), if hash.truthy() { hash.clone() } else { source_hash.clone() }),
                _ => continue,
            },
            Value::Text(single) => (single.clone(), source_hash.clone()),
            _ => continue,
        };
        let is_there = match Place::of(&single, saltenv) {
            Place::Master { path, saltenv } => listed.has(&path, &saltenv, sources)?,
            Place::Local(path) => path.starts_with('/') && exists(&path)?,
            // A dry run asks no server, and takes the first.
            Place::Web(url) => is_dry_run() || answers(&url),
            Place::Other(_) => false,
        };
        if is_there {
            return Ok((single.into(), hash));
        }
    }
    Err("none of the specified sources were found".into())
}

fn exists(path: &str) -> Result<bool, String> {
    match fs::stat(path, true) {
        Ok(_) => Ok(true),
        Err(fs::Error::NotGranted(why)) => Err(why),
        Err(_) => Ok(false),
    }
}

fn answers(url: &str) -> bool {
    let request = http::Request {
        method: "HEAD".into(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: None,
        timeout_ms: None,
        max_body: None,
        max_redirects: 10,
    };
    http::send(&request).is_ok_and(|response| (200..400).contains(&response.status))
}

/// The files of environments, listed once.
#[derive(Default)]
struct Listed(Vec<(String, Vec<String>)>);

impl Listed {
    /// Whether there is such a file or directory. Only what is below the folder that all sources have in common is listed.
    fn has(&mut self, path: &str, saltenv: &str, sources: &[Value]) -> Result<bool, String> {
        if !is_plain(path) {
            return Ok(false);
        }
        if !self.0.iter().any(|(env, _)| env == saltenv) {
            let prefix = common_folder(sources);
            let prefix = prefix.as_deref().filter(|prefix| is_plain(prefix));
            let mut names = files::list(saltenv, prefix, Kind::Files)?;
            names.extend(files::list(saltenv, prefix, Kind::Dirs)?);
            self.0.push((saltenv.to_owned(), names));
        }
        Ok(self.0.iter().any(|(env, names)| env == saltenv && names.iter().any(|name| name == path)))
    }
}

/// The folder in which all of the master's files among some sources are.
fn common_folder(sources: &[Value]) -> Option<String> {
    let mut common: Option<Vec<String>> = None;
    for source in sources {
        let source = match source {
            Value::Dict(entries) => entries.first()?.0.to_text(),
            other => other.to_text(),
        };
        if scheme(&source) != "salt" {
            continue;
        }
        let (path, _) = master_path(&source);
        let mut folders: Vec<String> = path.split('/').map(str::to_owned).collect();
        folders.pop();
        common = Some(match common {
            None => folders,
            Some(known) => known.into_iter().zip(folders).take_while(|(a, b)| a == b).map(|(a, _)| a).collect(),
        });
    }
    common.filter(|common| !common.is_empty()).map(|common| common.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_by_their_scheme() {
        let master = |path: &str, saltenv: &str| Place::Master { path: path.into(), saltenv: saltenv.into() };
        for (source, place) in [
            ("salt://a/b", master("a/b", "base")),
            ("salt:///a", master("a", "base")),
            ("salt://a?saltenv=dev", master("a", "dev")),
            ("salt://a?env=dev", master("a", "base")),
            ("/a/b", Place::Local("/a/b".into())),
            ("file:///a/b", Place::Local("/a/b".into())),
            ("HTTP://a/b", Place::Web("HTTP://a/b".into())),
            ("ftp://a/b", Place::Other("ftp://a/b".into())),
            ("a:b", Place::Local("a:b".into())),
        ] {
            assert_eq!(Place::of(source, "base"), place, "{source}");
        }
        assert!(is_plain("a/b") && !is_plain("../a") && !is_plain("a//b") && !is_plain("a/..") && !is_plain(""));
    }

    #[test]
    fn only_the_folder_that_sources_share_is_listed() {
        let common = |sources: &[&str]| common_folder(&sources.iter().map(|&one| one.into()).collect::<Vec<_>>());
        assert_eq!(common(&["salt://a/b/c", "salt://a/b/d/e", "/x"]).as_deref(), Some("a/b"));
        assert_eq!(common(&["salt://a/c", "salt://b/c"]), None);
        assert_eq!(common(&["salt://a"]), None);
    }
}
