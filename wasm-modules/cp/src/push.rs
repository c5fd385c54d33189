//! Sends files of this host to the master.

use brine_guest::host::files;
use brine_guest::{fnmatch, fs, path};

use crate::url;

/// Bytes of one request, as Salt's `file_buffer_size`.
const CHUNK: u64 = 256 * 1024;
/// Upper bound on nested directories.
const MAX_DEPTH: usize = 64;

/// `cp.push`: returns whether the master accepted the file. As in Salt, the result is False if the path is not absolute
/// or not a file.
pub(crate) fn file(path: &str, keep_symlinks: bool, upload_path: Option<&str>, remove: bool) -> Result<bool, String> {
    if path.contains("../") || !path.starts_with('/') {
        return Ok(false);
    }
    let path = if keep_symlinks { path.to_owned() } else { fs::realpath(path).map_err(|error| error.at(path))? };
    match fs::stat(&path, true) {
        Ok(stat) if stat.kind == fs::Kind::Regular => {}
        Ok(_) | Err(fs::Error::NotFound) => return Ok(false),
        Err(error) => return Err(error.at(&path)),
    }
    let name = upload_path.filter(|name| !name.is_empty()).unwrap_or(&path);
    let Some(name) = (!name.contains("../")).then(|| url::upload(name)).flatten() else { return Ok(false) };

    let source = fs::open(&path).map_err(|error| error.at(&path))?;
    let size = source.stat.as_ref().map_or(0, |stat| stat.size);
    let mut offset = 0;
    loop {
        let mut part = Vec::new();
        while (part.len() as u64) < CHUNK {
            let more = source.read_at(offset + part.len() as u64, CHUNK - part.len() as u64);
            let more = more.map_err(|error| error.at(&path))?;
            if more.is_empty() {
                break;
            }
            part.extend(more);
        }
        // An empty file is sent too.
        if part.is_empty() && offset > 0 {
            break;
        }
        if !files::push(&name, offset, &part, size)? {
            return Ok(false);
        }
        if part.is_empty() {
            break;
        }
        offset += part.len() as u64;
    }
    if remove {
        fs::remove_file(&path).map_err(|error| error.at(&path))?;
    }
    Ok(true)
}

/// `cp.push_dir`
pub(crate) fn dir(path: &str, glob: Option<&str>, upload_path: Option<&str>) -> Result<bool, String> {
    if path.contains("../") || !path.starts_with('/') {
        return Ok(false);
    }
    let top = fs::realpath(path).map_err(|error| error.at(path))?;
    if fs::stat(&top, true).is_ok_and(|stat| stat.kind == fs::Kind::Regular) {
        return file(&top, false, upload_path, false);
    }
    let mut found = Vec::new();
    below(&top, 0, &mut found)?;
    found.retain(|file| glob.is_none_or(|glob| fnmatch(glob, path::basename(file))));
    if found.is_empty() {
        return Ok(false);
    }
    for place in found {
        let name = upload_path.filter(|name| !name.is_empty()).map(|name| {
            let rest = place.strip_prefix(&top).unwrap_or_default().trim_matches('/');
            format!("/{}/{rest}", name.trim_matches('/'))
        });
        if !file(&place, false, name.as_deref(), false)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Collects the files below a directory; links to directories are not followed.
fn below(dir: &str, depth: usize, found: &mut Vec<String>) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("'{dir}' is too deep"));
    }
    for (name, kind) in fs::read_dir(dir).map_err(|error| error.at(dir))? {
        let place = path::join(dir, &name);
        match kind {
            fs::Kind::Directory => below(&place, depth + 1, found)?,
            _ => found.push(place),
        }
    }
    Ok(())
}
