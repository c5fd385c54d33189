//! Archives that come from elsewhere: each is kept in a folder of this module, so that it is fetched again only if it
//! changed.

use brine_guest::changes::{self, Content, Kind, MasterFile, Put};
use brine_guest::hash::{Hash, sha256};
use brine_guest::host::{changes as host_changes, files, http};
use brine_guest::url::status_error;
use brine_guest::{Result, path};

use crate::unpack::nobody;

/// The folder; only the minion's user enters it.
const FOLDER: &str = "/var/cache/brine-archives";
/// Bytes that are asked of a web server at once.
const PART: u64 = 8 << 20;
/// Upper bound on the bytes of an archive: the host's own for a file.
const MAX: u64 = 1 << 30;
const MAX_REDIRECTS: u32 = 10;

/// Where an archive is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Local(String),
    Master {
        path: String,
        saltenv: String,
    },
    Web(String),
    /// A protocol that is not spoken here.
    Other,
}

/// A hash that an archive has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sum {
    pub kind: String,
    /// In lower case.
    pub hex: String,
}

impl Place {
    pub(crate) fn of(source: &str, saltenv: &str) -> Self {
        if let Some(rest) = source.strip_prefix("salt://") {
            let (path, named) = match (rest.split_once("?env="), rest.split_once("?saltenv=")) {
                (Some((path, _)), _) => (path, None),
                (None, Some((path, env))) => (path, Some(env)),
                (None, None) => (rest, None),
            };
            let saltenv = named.filter(|env| !env.is_empty()).unwrap_or(saltenv).to_owned();
            return Self::Master { path: path.trim_start_matches('/').to_owned(), saltenv };
        }
        match source.split_once("://") {
            Some(("http" | "https", _)) => Self::Web(source.to_owned()),
            Some(("file", path)) => Self::Local(path.to_owned()),
            Some(_) => Self::Other,
            None => Self::Local(source.to_owned()),
        }
    }

    /// Where its copy is kept; a local one stays where it is.
    pub(crate) fn kept(&self) -> String {
        let (key, name) = match self {
            Self::Local(path) => return path.clone(),
            Self::Master { path, saltenv } => (format!("salt://{path}?saltenv={saltenv}"), path.as_str()),
            Self::Web(url) => (url.clone(), url.split(['?', '#']).next().unwrap_or_default()),
            Self::Other => (String::new(), ""),
        };
        let name: String = path::basename(name)
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' })
            .take(100)
            .collect();
        format!("{FOLDER}/{}-{name}", &sha256(key.as_bytes())[..32])
    }
}

/// Fetches an archive if it is not here as it should be. Returns its path; the inner error is a comment.
pub(crate) fn fetch(
    place: &Place,
    shown: &str,
    sum: Option<&Sum>,
    skip_verify: bool,
) -> Result<core::result::Result<String, String>> {
    let kept = place.kept();
    let sum = sum.filter(|_| !skip_verify);
    match place {
        Place::Local(_) => return Ok(Ok(kept)),
        Place::Other => {
            return Ok(Err(format!("Failed to cache {shown}: salt, http, https and files of this host are fetched")));
        }
        Place::Master { path, saltenv } => {
            let Some(digest) = files::hash(path, saltenv)? else {
                return Ok(Err(format!("Failed to cache {shown}, check minion log for more information")));
            };
            let said = (digest.hash_type == "sha256").then_some(digest.hsum);
            let here = changes::look_with_hash(&kept, false)?.and_then(|entry| entry.sha256);
            if said.is_none() || here != said {
                folder()?;
                let content = MasterFile { path: path.clone(), saltenv: saltenv.clone(), sha256: said };
                Put::new(&kept).mode(Some(0o600)).follow(false).content(&Content::Master(content))?;
            }
        }
        Place::Web(url) => {
            let here = match sum {
                Some(sum) if changes::look(&kept, false)?.is_some() => hash(&kept, &sum.kind)? == sum.hex,
                _ => false,
            };
            if !here {
                folder()?;
                if let Err(why) = download(url, &kept) {
                    return Ok(Err(why));
                }
            }
        }
    }
    if let Some(sum) = sum {
        let found = hash(&kept, &sum.kind)?;
        if found != sum.hex {
            return Ok(Err(format!(
                "File is cached to {kept}, but the hash ({found}) does not match the specified hash ({})",
                sum.hex
            )));
        }
    }
    Ok(Ok(kept))
}

fn folder() -> Result<()> {
    changes::make_directory(FOLDER, true, &nobody(), Some(0o700)).map(drop)
}

/// The hash of a file.
pub(crate) fn hash(path: &str, kind: &str) -> Result<String> {
    if kind == "sha256" {
        let entry = changes::look_with_hash(path, true)?;
        return entry
            .and_then(|entry| entry.sha256)
            .ok_or_else(|| format!("[Errno 2] No such file or directory: '{path}'"));
    }
    let mut hash = Hash::new(kind).ok_or_else(|| format!("Invalid hash type '{kind}'"))?;
    let mut offset = 0;
    while let Some(part) = changes::read_at(path, offset, 1 << 20)?.filter(|part| !part.is_empty()) {
        offset += part.len() as u64;
        hash.update(&part);
    }
    Ok(hash.hex())
}

/// Removes the copy of an archive.
pub(crate) fn forget(place: &Place) -> Result<()> {
    match place {
        Place::Local(_) | Place::Other => Ok(()),
        _ => changes::remove(&place.kept(), false).map(drop),
    }
}

/// Fetches a file of a web server in parts; a server that knows no parts has to send it at once.
fn download(url: &str, to: &str) -> Result<()> {
    let mut stage = None;
    let mut offset = 0;
    loop {
        let range = format!("bytes={offset}-{}", offset + PART - 1);
        let response = http::send(&http::Request {
            method: "GET".into(),
            url: url.to_owned(),
            headers: vec![("Range".into(), range), ("Accept-Encoding".into(), "identity".into())],
            body: None,
            timeout_ms: None,
            max_body: None,
            max_redirects: MAX_REDIRECTS,
        })?;
        let header = |name: &str| {
            response.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
        };
        let total = header("content-range").and_then(|range| range.rsplit_once('/')?.1.parse::<u64>().ok());
        let is_last = match response.status {
            200 if offset == 0 => true,
            206 => {
                let begins = header("content-range").and_then(|range| range.strip_prefix("bytes ")?.split('-').next());
                if begins.and_then(|begins| begins.parse().ok()) != Some(offset) {
                    return Err("the server sent another part than it was asked for".into());
                }
                let end = offset + response.body.len() as u64;
                response.body.is_empty() || total.is_none_or(|total| end >= total)
            }
            // There is nothing in it, or nothing after the last part.
            416 => true,
            status => return Err(status_error(status, url)),
        };
        let body = if response.status == 416 { Vec::new() } else { response.body };
        offset += body.len() as u64;
        if offset > MAX {
            return Err(format!("it has more than {MAX} bytes"));
        }
        for part in body.chunks(1 << 20) {
            stage = Some(host_changes::stage(stage, part)?);
        }
        if is_last {
            break;
        }
    }
    let content = stage.map_or_else(|| Content::Bytes(Vec::new()), Content::Staged);
    Put::new(to).mode(Some(0o600)).follow(false).content(&content).map(drop)
}

/// The hash that an archive had when it was unpacked last; none if that is not known.
pub(crate) fn remembered(place: &Place) -> Result<Option<String>> {
    let text = changes::read_text(&note(place))?;
    Ok(text.and_then(|text| Some(text.trim().strip_prefix("sha256:")?.to_owned())))
}

/// Remembers the hash of an archive.
pub(crate) fn remember(place: &Place, archive: &str) -> Result<()> {
    folder()?;
    let text = format!("sha256:{}\n", hash(archive, "sha256")?);
    Put::new(&note(place)).mode(Some(0o600)).follow(false).text(&text).map(drop)
}

fn note(place: &Place) -> String {
    match place {
        Place::Local(path) => format!("{FOLDER}/{}.hash", &sha256(path.as_bytes())[..32]),
        other => format!("{}.hash", other.kept()),
    }
}

/// Whether a file is at a path; links are followed.
pub(crate) fn is_file(path: &str) -> Result<bool> {
    changes::is(path, Kind::Regular)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_names_of_their_own_in_one_folder() {
        let master = |path: &str, saltenv: &str| Place::Master { path: path.into(), saltenv: saltenv.into() };
        assert_eq!(Place::of("salt://a/b.tgz", "base"), master("a/b.tgz", "base"));
        assert_eq!(Place::of("salt://a/b.tgz?saltenv=dev", "base"), master("a/b.tgz", "dev"));
        assert_eq!(Place::of("/srv/a.tgz", "base").kept(), "/srv/a.tgz");
        assert_eq!(Place::of("file:///srv/a.tgz", "base"), Place::Local("/srv/a.tgz".into()));
        assert_eq!(Place::of("ftp://h/a", "base"), Place::Other);
        let kept = |source: &str| Place::of(source, "base").kept();
        for source in ["https://h/../../etc/passwd", "https://h/a%2f..?x=/..", "salt://../x", "https://h"] {
            let kept = kept(source);
            let name = kept.strip_prefix("/var/cache/brine-archives/").unwrap();
            assert!(!name.contains('/') && name.len() > 32, "{kept}");
        }
        assert_ne!(kept("https://a/x.tgz"), kept("https://b/x.tgz"));
    }
}
