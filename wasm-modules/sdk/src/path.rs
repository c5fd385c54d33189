//! Paths as text, like Python's `os.path`. These functions do not access files.

/// The part of `path` below `dir`, compared by whole names; `.` for `dir` itself. Repeated slashes and `.` are ignored;
/// `..` stays unchanged.
pub fn below(path: &str, dir: &str) -> Option<String> {
    let plain = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
    };
    let (parts, dir) = (plain(path), plain(dir));
    let rest = parts.strip_prefix(dir.as_slice())?;
    if rest.is_empty() {
        return Some(".".into());
    }
    // The slash is kept, so that `file/` is refused if `file` is not a directory.
    let slash = if path.ends_with('/') { "/" } else { "" };
    Some(rest.join("/") + slash)
}

/// `os.path.split`: the parts before and after the last slash.
pub fn split(path: &str) -> (&str, &str) {
    let (head, tail) = path.split_at(path.rfind('/').map_or(0, |slash| slash + 1));
    let trimmed = head.trim_end_matches('/');
    (if trimmed.is_empty() { head } else { trimmed }, tail)
}

/// `os.path.dirname`
pub fn dirname(path: &str) -> &str {
    split(path).0
}

/// `os.path.basename`
pub fn basename(path: &str) -> &str {
    split(path).1
}

/// `os.path.join` with two parts
pub fn join(head: &str, tail: &str) -> String {
    if tail.starts_with('/') || head.is_empty() {
        tail.into()
    } else if head.ends_with('/') {
        format!("{head}{tail}")
    } else {
        format!("{head}/{tail}")
    }
}

/// `os.path.normpath`
pub fn normpath(path: &str) -> String {
    // POSIX keeps two slashes at the start and reduces three to one.
    let root = if path.starts_with("//") && !path.starts_with("///") {
        "//"
    } else if path.starts_with('/') {
        "/"
    } else {
        ""
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part != ".." || (root.is_empty() && parts.last().is_none_or(|last| *last == "..")) {
            parts.push(part);
        } else {
            parts.pop();
        }
    }
    let normal = format!("{root}{}", parts.join("/"));
    if normal.is_empty() { ".".into() } else { normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_goes_by_whole_names() {
        for (path, dir, rest) in [
            ("/srv/app/x", "/srv/app", Some("x")),
            ("/srv/app", "/srv/app", Some(".")),
            ("/srv/app/", "/srv/app", Some(".")),
            ("/srv/app/x/", "/srv/app/", Some("x/")),
            ("//srv/./app//x/y", "/srv/app", Some("x/y")),
            ("/srv/app/../etc", "/srv/app", Some("../etc")),
            ("/srv/application", "/srv/app", None),
            ("/srv", "/srv/app", None),
            ("/etc/passwd", "/", Some("etc/passwd")),
            ("/", "/", Some(".")),
        ] {
            assert_eq!(below(path, dir).as_deref(), rest, "{path} below {dir}");
        }
    }

    #[test]
    fn as_python_does() {
        // (path, os.path.dirname(path), os.path.basename(path), os.path.normpath(path))
        for (path, dir, base, normal) in [
            ("/a/b", "/a", "b", "/a/b"),
            ("/a/b/", "/a/b", "", "/a/b"),
            ("/a", "/", "a", "/a"),
            ("/", "/", "", "/"),
            ("//", "//", "", "//"),
            ("///a", "///", "a", "/a"),
            ("//a", "//", "a", "//a"),
            ("a", "", "a", "a"),
            ("", "", "", "."),
            ("/a//b", "/a", "b", "/a/b"),
            ("/a/./b/../c", "/a/./b/..", "c", "/a/c"),
            ("/../a", "/..", "a", "/a"),
            ("../../a", "../..", "a", "../../a"),
            ("a/..", "a", "..", "."),
        ] {
            assert_eq!((dirname(path), basename(path)), (dir, base), "{path}");
            assert_eq!(normpath(path), normal, "{path}");
        }
        for (head, tail, joined) in
            [("/a", "b", "/a/b"), ("/a/", "b", "/a/b"), ("/a", "/b", "/b"), ("", "b", "b"), ("a", "", "a/")]
        {
            assert_eq!(join(head, tail), joined);
        }
    }
}
