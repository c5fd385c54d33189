//! Making directories, and walking through them.

use brine_guest::changes::{self, Kind};
use brine_guest::path;

use super::mode;
use super::owner::Wanted;

/// Upper bound on the files and directories of one walk.
const MAX_ENTRIES: usize = 500_000;
/// Upper bound on nested directories.
const MAX_DEPTH: usize = 128;

/// Makes a directory and those around it that are missing; all get owner and mode. One that is there stays as it is.
pub(crate) fn make(path: &str, owner: &Wanted, wanted: Option<&str>) -> Result<(), String> {
    let bits = wanted.map(|wanted| mode::bits(wanted).ok_or_else(|| format!("Invalid Mode {wanted}"))).transpose()?;
    changes::make_directory(path, true, &owner.owner(), bits).map(drop)
}

/// A directory with the names in it.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    pub(crate) path: String,
    pub(crate) dirs: Vec<String>,
    pub(crate) files: Vec<String>,
}

/// Python's `os.walk`, from the top down: links to directories are among the directories and not entered. With
/// `max_depth`, levels that are as deep as that are left out.
pub(crate) fn walk(top: &str, max_depth: Option<usize>) -> Result<Vec<Level>, String> {
    let mut levels = Vec::new();
    let mut count = 0;
    enter(top, 0, max_depth, &mut count, &mut levels)?;
    Ok(levels)
}

fn enter(
    top: &str,
    depth: usize,
    max_depth: Option<usize>,
    count: &mut usize,
    levels: &mut Vec<Level>,
) -> Result<(), String> {
    if max_depth.is_some_and(|most| depth >= most) {
        return Ok(());
    }
    if depth > MAX_DEPTH {
        return Err(format!("'{top}' is too deep"));
    }
    // What cannot be read has nothing in it, as with Python's os.walk.
    let names = match changes::list(top) {
        Ok(names) => names,
        Err(why) if why.starts_with("[Errno") => return Ok(()),
        Err(why) => return Err(why),
    };
    *count += names.len();
    if *count > MAX_ENTRIES {
        return Err(format!("more than {MAX_ENTRIES} files and directories are below it"));
    }
    let (mut dirs, mut files, mut below) = (Vec::new(), Vec::new(), Vec::new());
    for (name, kind) in names {
        match kind {
            Kind::Directory => {
                below.push(name.clone());
                dirs.push(name);
            }
            Kind::Symlink if changes::is(&path::join(top, &name), Kind::Directory).unwrap_or(false) => dirs.push(name),
            _ => files.push(name),
        }
    }
    levels.push(Level { path: top.to_owned(), dirs, files });
    for name in below {
        enter(&path::join(top, &name), depth + 1, max_depth, count, levels)?;
    }
    Ok(())
}
