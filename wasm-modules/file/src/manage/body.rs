//! Content that is not read before it has to be.

use brine_guest::changes::{self, Content, MasterFile};
use brine_guest::hash::{Hash, sha256};
use brine_guest::host::{files, http};
use brine_guest::url::{redacted, status_error};
use brine_guest::{diff, template};

use super::source::{Place, digest};
use super::sums::Sum;

/// The most bytes of a file that are compared line by line, and held in memory.
pub(crate) const MAX_HELD: u64 = 8 << 20;
/// Bytes by which text is told from other content.
const HEAD: u32 = 512;
/// Upper bound on the bytes that a web server may send.
const MAX_BODY: u64 = 15 << 20;
/// The time for a request.
const PATIENCE_MS: u64 = 50_000;

/// Content.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Bytes(Vec<u8>),
    /// A file of the master.
    Master {
        path: String,
        saltenv: String,
        size: Option<u64>,
    },
    /// A file of this host.
    Local {
        path: String,
        size: u64,
    },
    /// What a web server has.
    Web(String),
}

impl Body {
    /// How many bytes it has, if that is known.
    fn size(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Master { size, .. } => *size,
            Self::Local { size, .. } => Some(*size),
            Self::Web(_) => None,
        }
    }

    /// Whether it is small enough to be held.
    pub(crate) fn is_small(&self) -> bool {
        self.size().is_none_or(|size| size <= MAX_HELD)
    }

    /// All of it.
    pub(crate) fn load(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::Master { path, saltenv, .. } => {
                template::load(path, saltenv)?.ok_or_else(|| format!("Source file 'salt://{path}' not found"))
            }
            Self::Local { path, .. } => {
                changes::read(path)?.ok_or_else(|| format!("Local file source {path} does not exist"))
            }
            Self::Web(url) => fetch(url),
        }
    }

    /// The same, of the content with this hash. The source may have changed since it was hashed.
    pub(crate) fn load_checked(&self, sum: &Sum) -> Result<Vec<u8>, String> {
        let bytes = self.load()?;
        let is = hash(&bytes, &sum.kind)?;
        if is == sum.hex {
            return Ok(bytes);
        }
        Err(format!("it changed while it was read: its {} was {} and is {is}", sum.kind, sum.hex))
    }

    fn head(&self) -> Result<Vec<u8>, String> {
        Ok(match self {
            Self::Bytes(bytes) => bytes[..bytes.len().min(HEAD as usize)].to_vec(),
            Self::Master { path, saltenv, .. } => files::read(path, saltenv, 0, HEAD)?.unwrap_or_default(),
            Self::Local { path, .. } => changes::read_at(path, 0, HEAD)?.unwrap_or_default(),
            Self::Web(url) => fetch(url)?,
        })
    }

    /// For the host: what to put. `sum` is the hash that it has to have.
    pub(crate) fn content(self, sum: Option<&Sum>) -> Result<Content, String> {
        Ok(match self {
            Self::Bytes(bytes) => Content::Bytes(bytes),
            Self::Web(url) => Content::Bytes(fetch(&url)?),
            Self::Master { path, saltenv, .. } => {
                let sha256 = sum.filter(|sum| sum.kind == "sha256").map(|sum| sum.hex.clone());
                Content::Master(MasterFile { path, saltenv, sha256 })
            }
            Self::Local { path, .. } => Content::File(path),
        })
    }

    /// How a file differs from it, as Salt's `file.get_diff` says it. `size` is that of the file.
    pub(crate) fn diff(&self, path: &str, size: u64) -> Result<String, String> {
        if self.is_small() && size <= MAX_HELD {
            let old = changes::read(path)?.unwrap_or_default();
            return Ok(diff::of_contents(&old, &self.load()?));
        }
        let old = changes::read_at(path, 0, HEAD)?.unwrap_or_default();
        Ok(match (diff::is_text(&old), diff::is_text(&self.head()?)) {
            (true, true) => format!("The file has more than {MAX_HELD} bytes, so its lines are not compared\n"),
            (false, false) => "Replace binary file".into(),
            (false, true) => "Replace binary file with text file".into(),
            (true, false) => "Replace text file with binary file".into(),
        })
    }
}

/// The hash of bytes.
pub(crate) fn hash(bytes: &[u8], kind: &str) -> Result<String, String> {
    if kind == "sha256" {
        return Ok(sha256(bytes));
    }
    let mut hash = Hash::new(kind).ok_or_else(|| format!("Invalid hash type: {kind}"))?;
    hash.update(bytes);
    Ok(hash.hex())
}

/// The hash of a file that was looked at with its SHA-256.
pub(crate) fn hash_of(path: &str, entry: &changes::Entry, kind: &str) -> Result<String, String> {
    match &entry.sha256 {
        Some(sha256) if kind == "sha256" => Ok(sha256.clone()),
        _ => hash(&changes::read(path)?.unwrap_or_default(), kind),
    }
}

/// Reads a place; none if there is nothing.
pub(crate) fn load(place: &Place) -> Result<Option<Vec<u8>>, String> {
    match place {
        Place::Master { path, saltenv } => match digest(path, saltenv)? {
            Some(_) => template::load(path, saltenv),
            None => Ok(None),
        },
        Place::Local(path) => changes::read(path),
        Place::Web(url) => fetch(url).map(Some),
        Place::Other(url) => Err(format!("{} is not fetched here: salt, http, https and files are", redacted(url))),
    }
}

/// Fetches a URL. The host refuses one that has a user and a password in it.
pub(crate) fn fetch(url: &str) -> Result<Vec<u8>, String> {
    let request = http::Request {
        method: "GET".into(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: None,
        timeout_ms: Some(PATIENCE_MS),
        max_body: Some(MAX_BODY),
        max_redirects: 10,
    };
    let response = http::send(&request)?;
    match response.status {
        200..300 => Ok(response.body),
        status => Err(status_error(status, url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_changes_after_it_was_hashed_is_refused() {
        let body = Body::Bytes(b"new".to_vec());
        let sum = |text: &[u8]| Sum { kind: "md5".into(), hex: hash(text, "md5").unwrap_or_default() };
        assert_eq!(body.load_checked(&sum(b"new")).as_deref(), Ok(&b"new"[..]));
        let why = body.load_checked(&sum(b"old")).unwrap_err();
        assert!(why.starts_with("it changed while it was read: its md5 was "), "{why}");
    }
}
