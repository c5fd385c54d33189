//! Names of files, as Python's `posixpath` takes them apart.

/// `os.path.join`
pub fn join<'a>(first: &str, rest: impl IntoIterator<Item = &'a str>) -> String {
    let mut path = first.to_owned();
    for part in rest {
        if part.starts_with('/') {
            path.clear();
        } else if !path.is_empty() && !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(part);
    }
    path
}

/// `os.path.normpath`
pub fn normalize(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    // exactly two slashes at the start have a meaning of their own
    let slashes = match path.len() - path.trim_start_matches('/').len() {
        0 => 0,
        2 => 2,
        _ => 1,
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if slashes > 0 && parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = "/".repeat(slashes) + &parts.join("/");
    if path.is_empty() { ".".to_owned() } else { path }
}

/// `os.path.dirname`
pub fn folder(path: &str) -> &str {
    let head = &path[..path.rfind('/').map_or(0, |at| at + 1)];
    let trimmed = head.trim_end_matches('/');
    if trimmed.is_empty() { head } else { trimmed }
}

/// `os.path.basename`
pub fn name(path: &str) -> &str {
    &path[path.rfind('/').map_or(0, |at| at + 1)..]
}

/// `salt.utils.path.join`: later parts are below the first also if they begin with a slash.
pub fn join_below(parts: &[&str]) -> String {
    let Some((first, rest)) = parts.split_first() else { return String::new() };
    let rest: Vec<String> = rest.iter().map(|part| normalize(part).trim_start_matches('/').to_owned()).collect();
    normalize(&join(&normalize(first), rest.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_pythons() {
        for (path, expect) in [
            ("", "."),
            ("/", "/"),
            ("//a/b", "//a/b"),
            ("///a//b/", "/a/b"),
            ("a/../../b", "../b"),
            ("/../a", "/a"),
            ("./a/./b/..", "a"),
        ] {
            assert_eq!(normalize(path), expect, "{path}");
        }
        for (path, head, tail) in
            [("/a/b", "/a", "b"), ("a", "", "a"), ("/", "/", ""), ("//a", "//", "a"), ("a//b", "a", "b")]
        {
            assert_eq!((folder(path), name(path)), (head, tail), "{path}");
        }
        assert_eq!(join("a", ["b", "/c", "d/", "e"]), "/c/d/e");
        assert_eq!(join("", ["b"]), "b");
        assert_eq!(join_below(&["/a", "/b/../c", "."]), "/a/c");
        assert_eq!(join_below(&[]), "");
    }
}
