//! `file_roots.*` and `pillar_roots.*`: files under the roots, for programs that edit them. No path leads out of a
//! root: paths are checked, and the kernel enforces every step below the root.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_protocol::ids::SafePath;
use brine_protocol::value::{Value, ValueExt as _, empty_map, map};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::fileserver::{Root, Roots};
use crate::runners::function::{Function, Outcome, Run, functions};

/// Bound on the entries in a list of an environment.
const ENTRIES_MAX: usize = 100_000;
/// Bound on the nesting of folders.
const DEPTH_MAX: usize = 64;
/// Bound on the bytes of a file that is read.
const FILE_MAX: u64 = 16 << 20;
/// Bytes at the start of a file that decide whether it is text.
const BLOCK: usize = 512;

/// The functions of these modules.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Finds a file in the roots of an environment, and says whether it is text (txt) or not (bin).
    "file_roots.find(path, saltenv='base')" => |run| work(run, Kind::Files, find),
    /// Returns the tree of files under each root of an environment.
    "file_roots.list_env(saltenv='base')" => |run| work(run, Kind::Files, list_env),
    /// Returns the trees of all environments.
    "file_roots.list_roots()" => |run| work(run, Kind::Files, list_roots),
    /// Returns the content of a text file, from each root of an environment that has it.
    "file_roots.read(path, saltenv='base')" => |run| work(run, Kind::Files, read),
    /// Writes a file into one of an environment's roots, the first unless index says which.
    "file_roots.write(data, path, saltenv='base', index=0)" => |run| work(run, Kind::Files, write),
    /// Finds a file in the pillar roots of an environment, and says whether it is text (txt) or not (bin).
    "pillar_roots.find(path, saltenv='base')" => |run| work(run, Kind::Pillar, find),
    /// Returns the tree of files under each pillar root of an environment.
    "pillar_roots.list_env(saltenv='base')" => |run| work(run, Kind::Pillar, list_env),
    /// Returns the trees of all environments of the pillar.
    "pillar_roots.list_roots()" => |run| work(run, Kind::Pillar, list_roots),
    /// Returns the content of a text file, from each pillar root of an environment that has it.
    "pillar_roots.read(path, saltenv='base')" => |run| work(run, Kind::Pillar, read),
    /// Writes a file into one of an environment's pillar roots, the first unless index says which.
    "pillar_roots.write(data, path, saltenv='base', index=0)" => |run| work(run, Kind::Pillar, write),
};

/// The kind of roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Files,
    Pillar,
}

/// Runs a function with the roots, on a thread that is allowed to block.
async fn work(run: Run, kind: Kind, act: fn(&Run, &Roots, Kind) -> Outcome) -> Outcome {
    let settings = Arc::clone(&run.parts.live);
    let work = move || {
        let live = settings.load();
        let roots = match kind {
            Kind::Files => &live.file_roots,
            Kind::Pillar => &live.pillar_roots,
        };
        act(&run, roots, kind)
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| "the roots could not be read")?
}

fn of<'a>(roots: &'a Roots, saltenv: &str) -> Option<&'a [PathBuf]> {
    roots.iter().find(|(name, _)| name.as_str() == saltenv).map(|(_, paths)| paths.as_slice())
}

/// Checks a path below a root; `None` if it leads elsewhere.
fn below(path: &str) -> Option<SafePath> {
    if path.starts_with('/') {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    SafePath::try_from(parts.join("/")).ok()
}

/// Opens the files with a path, in each root that has one. Returns their full paths.
fn found(run: &Run, roots: &Roots) -> Vec<(String, File)> {
    let path = run.text("path");
    let Some(safe) = below(&path) else { return Vec::new() };
    let roots = of(roots, &run.text("saltenv")).unwrap_or_default();
    let open = |root: &PathBuf| {
        let found = Root::new(root.clone(), true).open_file(&safe)?;
        Some((root.join(&path).to_string_lossy().into_owned(), found.file))
    };
    roots.iter().filter_map(open).collect()
}

fn find(run: &Run, roots: &Roots, _: Kind) -> Outcome {
    let shown = found(run, roots).into_iter().map(|(path, file)| {
        let form = if is_text(&file) { "txt" } else { "bin" };
        map([(path.as_str(), form)])
    });
    Ok(Value::Array(shown.collect()))
}

fn read(run: &Run, roots: &Roots, _: Kind) -> Outcome {
    let mut shown = Vec::new();
    for (path, file) in found(run, roots) {
        if !is_text(&file) {
            continue;
        }
        let failed = |error: std::io::Error| format!("{path} cannot be read: {error}");
        let mut content = Vec::new();
        (&file).take(FILE_MAX + 1).read_to_end(&mut content).map_err(failed)?;
        if content.len() as u64 > FILE_MAX {
            return Err(format!("{path} has more than the {} MiB that are read", FILE_MAX >> 20).into());
        }
        shown.push(map([(path.as_str(), String::from_utf8_lossy(&content).into_owned())]));
    }
    Ok(Value::Array(shown))
}

/// Guesses like Salt, from the first block: text has no NUL and at most 30 % of other unusual bytes.
fn is_text(file: &File) -> bool {
    use std::os::unix::fs::FileExt as _;
    let mut block = [0; BLOCK];
    let Ok(filled) = file.read_at(&mut block, 0) else { return false };
    let block = &block[..filled];
    let odd = block.iter().filter(|byte| !matches!(byte, 32..=126 | b'\n' | b'\r' | b'\t' | 8)).count();
    !block.contains(&0) && odd * 10 <= block.len() * 3
}

fn list_env(run: &Run, roots: &Roots, _: Kind) -> Outcome {
    tree(of(roots, &run.text("saltenv")).unwrap_or_default())
}

fn list_roots(_: &Run, roots: &Roots, _: Kind) -> Outcome {
    let mut shown = empty_map();
    for (name, paths) in roots {
        shown.insert(name.as_str(), Value::Array(vec![tree(paths)?]));
    }
    Ok(shown)
}

fn tree(roots: &[PathBuf]) -> Outcome {
    let mut shown = empty_map();
    let mut left = ENTRIES_MAX;
    for path in roots {
        let listed = match Root::new(path.clone(), false).open() {
            Some(dir) => list(&dir, DEPTH_MAX, &mut left)
                .ok_or_else(|| format!("{} has more than {ENTRIES_MAX} entries", path.display()))?,
            None => empty_map(),
        };
        shown.insert(&path.to_string_lossy(), listed);
    }
    Ok(shown)
}

/// Returns `{folder: {…}, file: "f"}`, sorted by name; `None` if there are too many entries. Does not follow links.
fn list(dir: &OwnedFd, depth: usize, left: &mut usize) -> Option<Value> {
    let Ok(entries) = Dir::read_from(dir) else { return Some(empty_map()) };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned)).collect();
    names.retain(|name| !matches!(name.as_str(), "." | ".."));
    names.sort();
    let mut shown = Vec::new();
    for name in names {
        *left = left.checked_sub(1)?;
        let Ok(stat) = rustix::fs::statat(dir, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let value = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth > 0 => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                match rustix::fs::openat(dir, name.as_str(), flags, Mode::empty()) {
                    Ok(inner) => list(&inner, depth - 1, left)?,
                    Err(_) => empty_map(),
                }
            }
            FileType::Directory => empty_map(),
            // A link to a folder is shown as an empty folder.
            FileType::Symlink if is_folder(dir, &name) => empty_map(),
            _ => Value::from("f"),
        };
        shown.push((Value::from(name), value));
    }
    Some(Value::Map(shown))
}

fn is_folder(dir: &OwnedFd, name: &str) -> bool {
    let stat = rustix::fs::statat(dir, name, AtFlags::empty());
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Writes a file. An error is returned as the result, as in Salt.
fn write(run: &Run, roots: &Roots, kind: Kind) -> Outcome {
    let (path, saltenv) = (run.text("path"), run.text("saltenv"));
    let Some(roots) = of(roots, &saltenv) else {
        return Ok(Value::from(format!("Named environment {saltenv} is not present")));
    };
    let index = run.value("index");
    let root = index.as_u64().and_then(|at| roots.get(usize::try_from(at).ok()?));
    let Some(root) = root else {
        let index = index.python_str();
        return Ok(Value::from(format!("Specified index {index} in environment {saltenv} is not present")));
    };
    if path.starts_with('/') {
        return Ok(Value::from(format!("The path passed in {path} is not relative to the environment {saltenv}")));
    }
    let Some(safe) = below(&path) else {
        return Ok(Value::from(match kind {
            Kind::Files => format!("Invalid path: {path}"),
            Kind::Pillar => "Invalid path".to_owned(),
        }));
    };
    let data = match run.get("data") {
        Some(Value::Binary(bytes)) => bytes.clone(),
        Some(data) => data.python_str().into_bytes(),
        None => return Err(run.wrong("data must be the content of the file")),
    };
    let dest = root.join(&path);
    put(root, &safe, &data).map_err(|error| format!("{} cannot be written: {error}", dest.display()))?;
    Ok(Value::from(format!("Wrote data to file {}", dest.display())))
}

/// Replaces a file atomically and makes missing folders. Does not follow links.
fn put(root: &Path, path: &SafePath, data: &[u8]) -> std::io::Result<()> {
    put_with(root, path, data, None)
}

/// Like [`put`], with a mode. Without one, the file keeps the mode of the former one.
pub(super) fn put_with(root: &Path, path: &SafePath, data: &[u8], mode: Option<u32>) -> std::io::Result<()> {
    std::fs::create_dir_all(root)?;
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let mut dir = rustix::fs::open(root, flags, Mode::empty())?;
    let (folders, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
    for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
        match rustix::fs::mkdirat(&dir, folder, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        dir = rustix::fs::openat2(dir.as_fd(), folder, flags, Mode::empty(), resolve)?;
    }
    let mode = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        _ if mode.is_some() => mode.unwrap_or_default(),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => stat.st_mode & 0o777,
        _ => 0o644,
    };
    let draft = format!(".brine-{:016x}", rand::random::<u64>());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&dir, draft.as_str(), flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(file);
    let written = file
        .write_all(data)
        .and_then(|()| Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?))
        .and_then(|()| Ok(rustix::fs::renameat(&dir, draft.as_str(), &dir, name)?));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&dir, draft.as_str(), AtFlags::empty());
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn paths_stay_below() {
        for bad in ["/etc/passwd", "../x", "a/../../x", "", ".", "a/\0", "..", "a/.."] {
            assert!(below(bad).is_none(), "{bad:?}");
        }
        for (good, path) in [("a", "a"), ("./a//b", "a/b")] {
            assert_eq!(below(good).unwrap().as_str(), path);
        }
    }

    #[test]
    fn what_is_written_stays_below_its_root() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("file"), "kept").unwrap();
        symlink(&outside, root.join("folder")).unwrap();
        symlink(outside.join("file"), root.join("link")).unwrap();
        let safe = |path: &str| SafePath::try_from(path).unwrap();

        assert!(put(&root, &safe("folder/file"), b"lost").is_err());
        put(&root, &safe("link"), b"new").unwrap();
        assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "kept");
        assert!(std::fs::symlink_metadata(root.join("link")).unwrap().is_file());

        put(&root, &safe("a/b/c.sls"), b"one").unwrap();
        std::fs::set_permissions(root.join("a/b/c.sls"), PermissionsExt::from_mode(0o600)).unwrap();
        put(&root, &safe("a/b/c.sls"), b"two").unwrap();
        assert_eq!(std::fs::read_to_string(root.join("a/b/c.sls")).unwrap(), "two");
        let mode = |path: &str| std::fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("a/b/c.sls"), mode("link")), (0o600, 0o644));
        assert!(put(&root, &safe("a/b"), b"x").is_err(), "a folder is no file");
        assert_eq!(std::fs::read_dir(root.join("a")).unwrap().count(), 1, "no draft is left");

        let listed = tree(std::slice::from_ref(&root)).unwrap();
        let expect =
            map([("a", map([("b", map([("c.sls", "f")]))])), ("folder", empty_map()), ("link", Value::from("f"))]);
        assert_eq!(listed, map([(root.to_string_lossy().into_owned(), expect)]));
    }

    #[test]
    fn text_is_told_from_the_rest() {
        let is_text = |content: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(content).unwrap();
            is_text(&file)
        };
        assert!(is_text(b"") && is_text(b"a\tb\n") && is_text("größere Texte".as_bytes()));
        assert!(!is_text(b"a\0b") && !is_text(&[200; 20]));
    }
}
