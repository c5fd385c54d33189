//! `salt://` URLs.

/// A path on the file server with its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub path: String,
    pub saltenv: String,
}

/// Parses `salt://path?saltenv=env`; none if the text is not a `salt://` URL.
pub(crate) fn parse(url: &str, saltenv: &str) -> Option<Source> {
    let rest = url.strip_prefix("salt://")?;
    let (path, named) = match (rest.split_once("?env="), rest.split_once("?saltenv=")) {
        // An old name of the parameter, which Salt ignores.
        (Some((path, _)), _) => (path, None),
        (None, Some((path, env))) => (path, Some(env)),
        (None, None) => (rest, None),
    };
    let named = named.filter(|env| !env.is_empty());
    Some(Source { path: path.trim_start_matches('/').into(), saltenv: named.unwrap_or(saltenv).into() })
}

/// As [`parse`], with an error if the text is not a `salt://` URL.
pub(crate) fn salt(url: &str, saltenv: &str) -> Result<Source, String> {
    parse(url, saltenv).ok_or_else(|| format!("Unsupported path: {url}"))
}

/// A path below `dir`, compared by whole names, relative to `prefix`, the directory above.
pub(crate) fn relative<'a>(path: &'a str, dir: &str, prefix: &str) -> Option<&'a str> {
    if dir.is_empty() || !path.strip_prefix(dir)?.starts_with('/') {
        return None;
    }
    Some(path.strip_prefix(prefix)?.trim_start_matches('/'))
}

/// The parts of a file's name on the master. None if the name leads out of the minion's folder.
pub(crate) fn upload(path: &str) -> Option<Vec<String>> {
    let parts: Vec<String> =
        brine_guest::path::normpath(path.trim_start_matches('/')).split('/').map(str::to_owned).collect();
    (!parts.iter().any(|part| part == "..")).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_name_its_environment() {
        let source = |path: &str, saltenv: &str| Some(Source { path: path.into(), saltenv: saltenv.into() });
        assert_eq!(parse("salt://a/b", "base"), source("a/b", "base"));
        assert_eq!(parse("salt:///a", "base"), source("a", "base"));
        assert_eq!(parse("salt://a?saltenv=dev", "base"), source("a", "dev"));
        assert_eq!(parse("salt://a?saltenv=", "base"), source("a", "base"));
        assert_eq!(parse("salt://a?env=dev", "base"), source("a", "base"));
        assert_eq!(parse("salt://a?b", "base"), source("a?b", "base"));
        assert_eq!(parse("/a", "base"), None);
        assert_eq!(salt("http://a/b", "base"), Err("Unsupported path: http://a/b".into()));
    }

    #[test]
    fn what_is_below_a_directory_keeps_the_directorys_name() {
        for (path, dir, prefix, expected) in [
            ("a/b/c", "a/b", "a", Some("b/c")),
            ("a/b", "a", "", Some("a/b")),
            ("ab/c", "a", "", None),
            ("a", "a", "", None),
            ("a/b", "", "", None),
        ] {
            assert_eq!(relative(path, dir, prefix), expected, "{path} below {dir}");
        }
    }

    #[test]
    fn a_name_on_the_master_leads_nowhere_else() {
        let parts = |parts: &[&str]| Some(parts.iter().map(|part| part.to_string()).collect::<Vec<_>>());
        assert_eq!(upload("/etc/fstab"), parts(&["etc", "fstab"]));
        assert_eq!(upload("//a/./b/../c"), parts(&["a", "c"]));
        assert_eq!(upload("../a"), None);
        assert_eq!(upload("/a/../../b"), None);
    }
}
