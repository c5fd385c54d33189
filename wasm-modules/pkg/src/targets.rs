//! What is to be installed or removed: names, lists, files.

use brine_apt::arguments::{self, Packages};
use brine_guest::host::{changes, files, http};
use brine_guest::{Result, Value};

use crate::host;

/// Where packages of web servers are put, as apt's own downloads are.
const ARCHIVES: &str = "/var/cache/apt/archives";
/// Upper bound on a package of a web server, which is in this instance's memory.
const MAX_PACKAGE: u64 = 15 << 20;

/// What to install.
pub(crate) enum Targets {
    /// Names with the versions that are asked for.
    Repository(Packages),
    /// Paths of package files.
    Files(Vec<String>),
}

/// What a function was asked for.
pub(crate) struct Asked<'a> {
    pub name: Option<&'a str>,
    pub version: Option<&'a str>,
    pub pkgs: &'a Value,
    pub sources: &'a Value,
    /// Whether architectures that this host has anyway are taken off the names.
    pub normalize: bool,
    pub saltenv: &'a str,
}

impl Asked<'_> {
    /// Returns the name as packages are listed.
    fn normalized(&self, name: &str) -> String {
        if self.normalize { host::architecture().normalized(name) } else { name.into() }
    }

    /// None if there is nothing to do, or what was asked is not clear.
    pub(crate) fn parse(&self) -> Result<Option<Targets>> {
        host::check_family()?;
        if self.pkgs.truthy() && self.sources.truthy() {
            host::log_error("Only one of \"pkgs\" and \"sources\" can be used.");
            return Ok(None);
        }
        if self.pkgs.truthy() {
            let packages = arguments::packages(self.pkgs, |name| self.normalized(name))?;
            return Ok((!packages.is_empty()).then_some(Targets::Repository(packages)));
        }
        if self.sources.truthy() {
            let sources = arguments::sources(self.sources, |name| self.normalized(name));
            let mut paths = Vec::new();
            for (name, source) in &sources {
                paths.push(match has_scheme(source) {
                    true => cached(source, self.saltenv)?
                        .ok_or_else(|| format!("Unable to cache source {source} for package {name}"))?,
                    false if source.starts_with('/') => source.clone(),
                    false => {
                        return Err(format!(
                            "Path {source} for package {name} is either not absolute or an invalid protocol"
                        ));
                    }
                });
            }
            return Ok((!paths.is_empty()).then_some(Targets::Files(paths)));
        }
        let Some(name) = self.name.filter(|name| !name.is_empty()) else {
            host::log_error("No package sources provided");
            return Ok(None);
        };
        let version = self.version.map(str::to_owned);
        let mut packages = Packages::new();
        for name in name.split(',').map(|name| self.normalized(name)) {
            if packages.iter().all(|(known, _)| *known != name) {
                packages.push((name, version.clone()));
            }
        }
        Ok(Some(Targets::Repository(packages)))
    }
}

/// Whether a source is an address, and no path.
pub(crate) fn has_scheme(source: &str) -> bool {
    ["salt://", "http://", "https://", "ftp://"].iter().any(|scheme| source.starts_with(scheme))
}

/// Brings a file here and returns its path; none if the master has no such file.
pub(crate) fn cached(source: &str, saltenv: &str) -> Result<Option<String>> {
    if let Some(path) = source.strip_prefix("salt://") {
        let (path, env) = path.split_once("?saltenv=").unwrap_or((path, saltenv));
        return files::cache(path.trim_start_matches('/'), if env.is_empty() { saltenv } else { env });
    }
    if source.starts_with('/') || source.starts_with("file://") {
        return Ok(Some(source.trim_start_matches("file://").into()));
    }
    let name = source.split(['?', '#']).next().and_then(|address| address.rsplit('/').next()).unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._+-~%".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
        return Err(format!("{source} ends with no name of a file"));
    }
    let path = format!("{ARCHIVES}/{}", name.replace('%', "_"));
    let content = fetched(source)?;
    let owner = changes::Owner { user: None, group: None };
    let options = changes::PutOptions { owner, mode: None, backup: false, follow: false, expect: None };
    changes::put(&path, &changes::Content::Bytes(content), &options)?;
    Ok(Some(path))
}

/// The content of an address, or of a file of the master or of this host.
pub(crate) fn content(source: &str, saltenv: &str) -> Result<Option<Vec<u8>>> {
    if let Some(path) = source.strip_prefix("salt://") {
        let (path, env) = path.split_once("?saltenv=").unwrap_or((path, saltenv));
        let (path, env) = (path.trim_start_matches('/'), if env.is_empty() { saltenv } else { env });
        let mut all = Vec::new();
        loop {
            match files::read(path, env, all.len() as u64, 1 << 20)? {
                None if all.is_empty() => return Ok(None),
                Some(part) if !part.is_empty() => all.extend(part),
                _ => return Ok(Some(all)),
            }
            if all.len() as u64 > MAX_PACKAGE {
                return Err(format!("{source} has more than {MAX_PACKAGE} bytes"));
            }
        }
    }
    match has_scheme(source) {
        true => fetched(source).map(Some),
        false => host::read(source.trim_start_matches("file://")),
    }
}

fn fetched(url: &str) -> Result<Vec<u8>> {
    let request = http::Request {
        method: "GET".into(),
        url: url.into(),
        headers: Vec::new(),
        body: None,
        timeout_ms: None,
        max_body: Some(MAX_PACKAGE),
        max_redirects: 5,
    };
    let response = http::send(&request).map_err(|why| format!("Error: {why} reading {url}"))?;
    match response.status {
        200..=299 => Ok(response.body),
        status => Err(format!("Failed to read from {url}: HTTP {status}")),
    }
}

/// What a package file says of itself.
pub(crate) struct FileInfo {
    pub name: String,
    pub version: String,
}

pub(crate) fn file_info(path: &str) -> Result<FileInfo> {
    let failed = |why: &str| format!("Unable to get info for {path}{why}");
    if !path.starts_with('/') {
        return Err(format!("{path} does not exist on minion"));
    }
    let words = ["dpkg-deb", "--field", path, "Package", "Version", "Architecture"];
    let done = host::run(&words, host::How::default())?;
    if done.code != 0 {
        return Err(failed(&if done.stderr.is_empty() { String::new() } else { format!(": {}", done.stderr) }));
    }
    let field = |name: &str| {
        let found = done.stdout.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| *key == name);
        found.map(|(_, value)| value.trim().to_owned()).ok_or_else(|| failed(&format!(": it has no {name}")))
    };
    let name = host::architecture().qualified(&field("Package")?, &field("Architecture")?);
    Ok(FileInfo { name, version: field("Version")? })
}
