//! Fetches files from the master to a path on this host.

use brine_guest::host::files::{self, Digest, Kind};
use brine_guest::{Value, fs, path, salt_files};
use sha2::{Digest as _, Sha256};

use crate::url::{self, Source};

/// Bytes of one request.
const CHUNK: u32 = 256 * 1024;
/// Upper bound on the fetches of a file whose content differs from the announced hash.
const TRIES: u32 = 3;
/// Files that are fetched together and then written: few enough that the minion keeps them open meanwhile.
const TOGETHER: usize = 48;
/// Upper bound on the bytes of a returned file. The minion's bound on a job's return is lower.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// `cp.get_file`: returns the path of the file; an empty text if the master has no such file, False if the directory
/// does not exist.
pub(crate) fn file(source: &Source, dest: &str, makedirs: bool) -> Result<Value, String> {
    if dest.is_empty() {
        let cached = files::cache(&source.path, &source.saltenv)?;
        return Ok(cached.map_or_else(|| "".into(), Value::from));
    }
    let Some(digest) = files::hash(&source.path, &source.saltenv)? else { return Ok("".into()) };
    let mut dest = dest.to_owned();
    let is = |path: &str, kind: fs::Kind| match fs::stat(path, true) {
        Ok(stat) => Ok(stat.kind == kind),
        Err(fs::Error::NotFound) => Ok(false),
        Err(error) => Err(error.at(path)),
    };
    if dest.ends_with('/') || is(&dest, fs::Kind::Directory)? {
        dest = path::join(&dest, path::basename(&source.path));
    }
    if is(&dest, fs::Kind::Regular)? && digest.hash_type == "sha256" && sha256(&dest)? == digest.hsum {
        return Ok(dest.into());
    }
    let parent = path::dirname(&dest);
    if makedirs {
        fs::create_dir_all(parent).map_err(|error| error.at(parent))?;
    }
    match download(source, digest, &dest) {
        Err(Failed::Here(fs::Error::NotFound)) if !makedirs => Ok(false.into()),
        Err(Failed::Here(error)) => Err(error.at(&dest)),
        Err(Failed::There(text)) => Err(text),
        Ok(()) => Ok(dest.into()),
    }
}

enum Failed {
    /// Writing the file on this host failed.
    Here(fs::Error),
    /// Reading the file from the master failed.
    There(String),
}

/// Writes the content to the destination. An existing file keeps its mode and owner.
fn download(source: &Source, mut digest: Digest, dest: &str) -> Result<(), Failed> {
    for _ in 0..TRIES {
        let file = fs::create(dest).map_err(Failed::Here)?;
        let mut hash = Sha256::new();
        let mut offset = 0;
        loop {
            let part = files::read(&source.path, &source.saltenv, offset, CHUNK).map_err(Failed::There)?;
            // The file was removed on the master in the meantime.
            let part = part.ok_or_else(|| Failed::There(format!("salt://{} is not there any more", source.path)))?;
            if part.is_empty() {
                break;
            }
            hash.update(&part);
            file.write_at(offset, &part).map_err(Failed::Here)?;
            offset += part.len() as u64;
        }
        if digest.hash_type != "sha256" || hex(&hash.finalize()) == digest.hsum {
            return Ok(());
        }
        // The file may have changed on the master.
        if let Some(now) = files::hash(&source.path, &source.saltenv).map_err(Failed::There)? {
            digest = now;
        }
    }
    Err(Failed::There(format!("salt://{} does not have the hash that the master says, {TRIES} times", source.path)))
}

/// `cp.get_dir`: returns the paths of the files.
pub(crate) fn dir(source: &Source, dest: &str) -> Result<Vec<String>, String> {
    let dir = source.path.trim_end_matches('/');
    let prefix = path::dirname(dir);
    let place = |path: &str| url::relative(path, dir, prefix).map(|relative| format!("{dest}/{relative}"));
    let mut places = Vec::new();
    let mut wanted = files::list(&source.saltenv, Some(dir), Kind::Files)?;
    wanted.retain(|path| place(path).is_some());
    for group in wanted.chunks(TOGETHER) {
        salt_files::cache_all(group, &source.saltenv)?;
        for path in group {
            let Some(place) = place(path) else { continue };
            let source = Source { path: path.clone(), saltenv: source.saltenv.clone() };
            match file(&source, &place, true)? {
                Value::Text(place) => places.push(place),
                other => return Err(format!("{place}: {}", other.to_text())),
            }
        }
    }
    for path in files::list(&source.saltenv, Some(dir), Kind::EmptyDirs)? {
        let Some(place) = place(&path) else { continue };
        fs::create_dir_all(&place).map_err(|error| error.at(&place))?;
        places.push(place);
    }
    places.sort();
    Ok(places)
}

/// The content of a file on the master, as text if it is text; False if there is no such file.
pub(crate) fn text(source: &Source) -> Result<Value, String> {
    let mut content: Vec<u8> = Vec::new();
    loop {
        let Some(part) = files::read(&source.path, &source.saltenv, content.len() as u64, CHUNK)? else {
            return Ok(false.into());
        };
        if part.is_empty() {
            break;
        }
        content.extend(part);
        if content.len() > MAX_TEXT {
            return Err(format!("salt://{} is larger than {MAX_TEXT} bytes", source.path));
        }
    }
    Ok(String::from_utf8(content).map_or_else(|error| Value::Bytes(error.into_bytes()), Value::from))
}

/// The SHA-256 of a file on this host, in hex.
pub(crate) fn sha256(path: &str) -> Result<String, String> {
    let mut hash = Sha256::new();
    let read = fs::open(path).and_then(|file| {
        file.each(|part| {
            hash.update(part);
            true
        })
    });
    read.map_err(|error| error.at(path))?;
    Ok(hex(&hash.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
