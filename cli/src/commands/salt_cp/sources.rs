//! The files to copy and their destinations.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use brine_protocol::exit;

use super::chunks::unreadable;
use crate::Failure;
use crate::print::stdout;

/// Upper bound on nested directories, which also ends cycles of links.
const MAX_DEPTH: usize = 64;
/// Upper bound on the files of one call; each takes at least one job.
const MAX_FILES: usize = 100_000;
/// Upper bound on the bytes of all files that are sent in one job.
const MAX_WHOLE: u64 = 8 << 20;

/// A file or directory to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A file with its permission bits.
    File {
        /// The path.
        path: PathBuf,
        /// The mode, 0o7777 at most.
        mode: u32,
    },
    /// An empty directory.
    EmptyDir(PathBuf),
}

impl Source {
    fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::EmptyDir(path) => path,
        }
    }
}

/// The names on the command line, and everything below them.
#[derive(Debug)]
pub(super) struct Sources {
    named: Vec<PathBuf>,
    /// Files, then directories.
    pub(super) all: Vec<Source>,
}

impl Sources {
    /// Finds the named files; with `below`, also the content of the named directories.
    pub(super) fn find(names: &[String], below: bool) -> Result<Self, Failure> {
        let mut found = Self { named: Vec::new(), all: Vec::new() };
        for name in names {
            // For a missing file: Salt's exit code and text.
            let path = std::fs::canonicalize(name).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Failure::new(exit::OPTION, format!("{name} does not exist")),
                _ => unreadable(Path::new(name), &error),
            })?;
            if below {
                found.collect(&path, 0)?;
            }
            found.named.push(path);
        }
        found.all.sort_by_key(|source| matches!(source, Source::EmptyDir(_)));
        Ok(found)
    }

    fn collect(&mut self, path: &Path, depth: usize) -> Result<(), Failure> {
        let too = |what: String| Failure::new(exit::GENERIC, format!("salt-cp: {}: {what}", path.display()));
        let data = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if self.all.len() >= MAX_FILES {
            return Err(too(format!(
                "more than {MAX_FILES} files: let the minions fetch them from the master's file server"
            )));
        }
        if data.is_file() {
            self.all.push(Source::File { path: path.to_owned(), mode: data.permissions().mode() & 0o7777 });
            return Ok(());
        }
        if !data.is_dir() {
            return Err(too("it is neither a file nor a directory".to_owned()));
        }
        if depth >= MAX_DEPTH {
            return Err(too(format!(
                "more than {MAX_DEPTH} directories within each other; is there a link to one of them?"
            )));
        }
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let mut entries: Vec<PathBuf> =
            entries.map_err(|error| unreadable(path, &error))?.into_iter().map(|entry| entry.path()).collect();
        entries.sort();
        if entries.is_empty() {
            self.all.push(Source::EmptyDir(path.to_owned()));
        }
        entries.iter().try_for_each(|entry| self.collect(entry, depth + 1))
    }

    /// The destination of a file on the minion. If several files are copied or `dest` ends with a slash, the file goes
    /// into `dest` under its own name; otherwise its destination is `dest` itself.
    pub(super) fn place(&self, source: &Source, dest: &str) -> String {
        let path = source.path();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let base = |path: &Path| path.file_name().map(|name| text(Path::new(name))).unwrap_or_default();
        if self.named.iter().any(|named| named == path) {
            let is_dir = self.all.len() > 1
                || dest.ends_with(['/', '\\'])
                || self.all.iter().any(|source| matches!(source, Source::EmptyDir(_)));
            return if is_dir { join(dest, &base(path)) } else { dest.to_owned() };
        }
        for named in &self.named {
            if let Ok(below) = path.strip_prefix(named) {
                return join(&join(dest, &base(named)), &text(below));
            }
        }
        join(dest, &base(path))
    }

    /// The path and text of each file, for sending them in one job.
    pub(super) fn texts(&self) -> Result<Vec<(String, String)>, Failure> {
        // Salt's exit code for this error.
        let chunked = |why: String| Failure::new(exit::GENERIC, why);
        if let Some(dir) = self.named.iter().find(|named| named.is_dir()) {
            // Salt prints this on standard output.
            stdout(&format!(
                "{} is a directory, only files are supported in non-chunked mode. Use \"--chunked\" command line argument.",
                dir.display()
            ));
            return Err(Failure { message: None, code: exit::GENERIC });
        }
        let mut texts = Vec::new();
        let mut size = 0;
        for path in &self.named {
            let data = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
            if !data.is_file() {
                return Err(chunked(format!("salt-cp: {}: it is neither a file nor a directory", path.display())));
            }
            size += data.len();
            if size > MAX_WHOLE {
                return Err(chunked(format!(
                    "salt-cp: more than {} MiB go only in chunks. Use \"--chunked\" command line argument.",
                    MAX_WHOLE >> 20
                )));
            }
            let content = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
            let text = String::from_utf8(content).map_err(|_| {
                chunked(format!("salt-cp: {} is no text. Use \"--chunked\" command line argument.", path.display()))
            })?;
            texts.push((path.to_string_lossy().into_owned(), text));
        }
        Ok(texts)
    }
}

/// Python's `os.path.join`.
fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() || dir.ends_with('/') { format!("{dir}{name}") } else { format!("{dir}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dir: &Path, names: &[&str], dest: &str) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| dir.join(name).display().to_string()).collect();
        let sources = Sources::find(&names, true).unwrap();
        sources.all.iter().map(|source| sources.place(source, dest)).collect()
    }

    #[test]
    fn where_files_go() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::create_dir_all(dir.join("tree/sub/empty")).unwrap();
        std::fs::write(dir.join("tree/a"), "a").unwrap();
        std::fs::write(dir.join("tree/sub/b"), "b").unwrap();
        std::fs::write(dir.join("one"), "1").unwrap();
        assert_eq!(places(dir, &["one"], "/tmp/x"), ["/tmp/x"]);
        assert_eq!(places(dir, &["one"], "/tmp/x/"), ["/tmp/x/one"]);
        assert_eq!(places(dir, &["one", "tree/a"], "/tmp/x"), ["/tmp/x/one", "/tmp/x/a"]);
        assert_eq!(places(dir, &["tree"], "/x"), ["/x/tree/a", "/x/tree/sub/b", "/x/tree/sub/empty"]);
        assert_eq!(places(dir, &["tree/sub/empty"], "/x"), ["/x/empty"]);
        assert_eq!(Sources::find(&["/no/such/file".to_owned()], false).unwrap_err().code, 42);
    }

    #[test]
    fn circles_end() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(".", dir.path().join("again")).unwrap();
        let failure = Sources::find(&[dir.path().display().to_string()], true).unwrap_err();
        assert!(failure.message.is_some(), "{failure:?}");
    }

    #[test]
    fn what_goes_in_one_piece() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let texts = || Sources::find(&[path.display().to_string()], false).unwrap().texts();
        std::fs::write(&path, "žluť").unwrap();
        assert_eq!(texts().unwrap()[0].1, "žluť");
        std::fs::write(&path, b"\xff").unwrap();
        assert!(texts().unwrap_err().message.unwrap().contains("is no text"));
        std::fs::File::create(&path).unwrap().set_len(MAX_WHOLE + 1).unwrap();
        assert!(texts().unwrap_err().message.unwrap().contains("8 MiB"));
        let of_dir = Sources::find(&[dir.path().display().to_string()], false).unwrap().texts();
        assert_eq!(of_dir.unwrap_err().code, exit::GENERIC);
    }
}
