//! Finds the file of a program and checks that nobody but root and the minion's user can change the file.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use brine_sandbox::{Names, PROGRAM_FOLDERS, ProcessGrant, Program};

/// Upper bound on the symbolic links on the way to a file, as in the kernel.
const MAX_LINKS: usize = 40;
/// File names of shells.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh"];
/// The shell for a module that may run any program and names no shell.
const SHELL: &str = "/bin/sh";
const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;
const EXECUTABLE: u32 = 0o111;

/// The `PATH` of programs, which is also the search path for them.
pub(super) fn path_variable() -> String {
    PROGRAM_FOLDERS.join(":")
}

/// The file of a granted program; a bare name is searched in the fixed `PATH`. None if no such file can be executed.
pub(super) fn which(granted: &Names, asked: &str) -> Option<String> {
    if asked.contains('/') {
        return (asked.starts_with('/') && granted.has(asked) && runs(Path::new(asked))).then(|| asked.to_owned());
    }
    if *granted != Names::Any || asked.is_empty() || asked == "." || asked == ".." {
        return None;
    }
    PROGRAM_FOLDERS.iter().map(|folder| format!("{folder}/{asked}")).find(|path| runs(Path::new(path)))
}

/// The file of a granted shell: the requested one, else the first of [`SHELLS`] that is granted and exists.
pub(super) fn shell(grant: &ProcessGrant, asked: Option<&str>) -> Option<String> {
    let there = |asked: &str| match grant.find(asked) {
        Program::Granted(path) => which(&grant.programs, path),
        Program::Any => which(&Names::Any, asked),
        Program::No => None,
    };
    match (asked, &grant.programs) {
        (Some(asked), _) => there(asked),
        (None, Names::Any) => there(SHELL),
        (None, Names::Only(programs)) => SHELLS.iter().find_map(|shell| {
            let mut named = programs.iter().filter(|path| path.rsplit('/').next() == Some(*shell));
            named.find_map(|path| there(path))
        }),
    }
}

fn runs(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & EXECUTABLE != 0)
}

/// Resolves the file to run. A user who can change the file, a folder on the way to it or a link could run other code
/// as the program's user, so all of these must belong to one of `trusted`. The error is one line.
pub(super) fn resolve(granted: &Names, asked: &str, trusted: &[u32]) -> Result<PathBuf, String> {
    let path = if asked.contains('/') {
        PathBuf::from(asked)
    } else {
        which(granted, asked).map(PathBuf::from).ok_or_else(|| {
            format!("there is no program {asked:?} in the folders where programs are looked for ({})", path_variable())
        })?
    };
    let meta = trace(&path, trusted)?;
    if !meta.is_file() {
        return Err(format!("{asked:?} is not a file that can be run"));
    }
    if meta.permissions().mode() & EXECUTABLE == 0 {
        return Err(format!("{asked:?} is not executable"));
    }
    Ok(path)
}

/// Follows the path as the kernel does and checks each step.
fn trace(path: &Path, trusted: &[u32]) -> Result<Metadata, String> {
    let mut left: VecDeque<OsString> = path.components().map(|part| part.as_os_str().to_owned()).collect();
    let mut at = PathBuf::from("/");
    let mut links = 0;
    let mut found = look(&at)?;
    check(&at, &found, trusted)?;
    while let Some(part) = left.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => at = PathBuf::from("/"),
            Some(Component::ParentDir) => {
                at.pop();
            }
            Some(Component::Normal(name)) => {
                let next = at.join(name);
                found = look(&next)?;
                check(&next, &found, trusted)?;
                if !found.is_symlink() {
                    at = next;
                    continue;
                }
                links += 1;
                let target = std::fs::read_link(&next).map_err(|e| cannot(&next, &e))?;
                if links > MAX_LINKS {
                    return Err(format!("{} is a loop of links", path.display()));
                }
                for part in target.components().rev() {
                    left.push_front(part.as_os_str().to_owned());
                }
                continue;
            }
            _ => continue,
        }
        found = look(&at)?;
    }
    Ok(found)
}

fn look(path: &Path) -> Result<Metadata, String> {
    path.symlink_metadata().map_err(|e| cannot(path, &e))
}

fn cannot(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no {}", path.display()),
        std::io::ErrorKind::NotADirectory => format!("{} is not in a directory", path.display()),
        _ => format!("{} cannot be looked at: {error}", path.display()),
    }
}

fn check(path: &Path, meta: &Metadata, trusted: &[u32]) -> Result<(), String> {
    let refuse = |why: String| {
        let path = path.display();
        Err(format!("{path} {why}: whoever that is decides what runs; make it root's, or the minion's user's, alone"))
    };
    if !trusted.contains(&meta.uid()) {
        return refuse(format!("belongs to the user {}", meta.uid()));
    }
    // Others may write to a sticky folder such as /tmp but cannot replace files of other users in it. Each step on the
    // way is checked by itself.
    let sticky = meta.is_dir() && meta.mode() & STICKY != 0;
    if !meta.is_symlink() && meta.mode() & WRITABLE_BY_OTHERS != 0 && !sticky {
        return refuse(format!("can be written by others than its owner (mode {:o})", meta.mode() & 0o7777));
    }
    Ok(())
}
