//! `file.absent`, `file.exists`, `file.missing`

use brine_guest::changes::{self, Kind};
use brine_guest::states::is_dry_run;

use super::Ret;

/// The name of something in a comment, and whether it is a file, to which a link belongs too.
fn described(kind: Kind) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::Regular | Kind::Symlink => Some(("File", "file")),
        Kind::Directory => Some(("Directory", "directory")),
        _ => None,
    }
}

pub(crate) fn absent(name: &str) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.absent"));
    }
    if !name.starts_with('/') {
        return Ok(Ret::bad(format!("Specified file {name} is not an absolute path")));
    }
    if name == "/" {
        return Ok(Ret::bad("Refusing to make \"/\" absent"));
    }
    // A device, a pipe or a socket counts as absent, as in Salt.
    let Some((word, small)) = changes::look(name, false)?.and_then(|entry| described(entry.kind)) else {
        return Ok(Ret::good(format!("File {name} is not present")));
    };
    let mut ret = Ret::new();
    if is_dry_run() {
        ret.result = None;
        ret.comment = format!("{word} {name} is set for removal");
    } else {
        if let Err(why) = changes::remove(name, true) {
            return Ok(Ret::bad(format!("Could not remove '{name}': {why}")));
        }
        ret.comment = format!("Removed {small} {name}");
    }
    ret.change("removed", name);
    Ok(ret)
}

pub(crate) fn exists(name: &str) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.exists"));
    }
    Ok(match changes::look(name, true)? {
        Some(_) => Ret::good(format!("Path {name} exists")),
        None => Ret::bad(format!("Specified path {name} does not exist")),
    })
}

pub(crate) fn missing(name: &str) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.missing"));
    }
    Ok(match changes::look(name, true)? {
        Some(_) => Ret::bad(format!("Specified path {name} exists")),
        None => Ret::good(format!("Path {name} is missing")),
    })
}
