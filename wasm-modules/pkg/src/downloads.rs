//! Packages that were downloaded and not installed.

use std::collections::BTreeMap;

use brine_apt::dpkg::{Versions, utc};
use brine_guest::host::changes::{self, Kind};
use brine_guest::{Result, Value};

use crate::host;
use crate::targets::file_info;

const CACHE: &str = "/var/cache/apt";
/// Levels of directories below it.
const MAX_DEPTH: usize = 8;

/// Files of packages: a dict of path, size and time, by version, by package.
pub(crate) fn list() -> Result<Value> {
    host::check_family()?;
    let mut found = Value::Dict(Vec::new());
    let mut paths = Vec::new();
    walk(CACHE, MAX_DEPTH, &mut paths)?;
    for path in paths {
        let info = file_info(&path)?;
        let Some(entry) = changes::look(&path, true, false)? else { continue };
        let time = entry.ctime as u64;
        let file = Value::dict([
            ("path", path.into()),
            ("size", entry.size.into()),
            ("creation_date_time_t", time.into()),
            ("creation_date_time", utc(time).trim_end_matches('Z').into()),
        ]);
        let version = Value::Dict(vec![(info.version.into(), file)]);
        found.update(&Value::Dict(vec![(info.name.into(), version)]), false);
    }
    Ok(found)
}

fn walk(directory: &str, depth: usize, paths: &mut Vec<String>) -> Result<()> {
    for name in host::names(directory)? {
        let path = format!("{directory}/{}", name.name);
        match name.kind {
            Kind::Directory if depth > 0 => walk(&path, depth - 1, paths)?,
            Kind::Regular if name.name.ends_with(".deb") => paths.push(path),
            _ => (),
        }
    }
    Ok(())
}

/// The versions that were downloaded, by package.
pub(crate) fn versions() -> Result<Versions> {
    let Value::Dict(packages) = list()? else { return Ok(BTreeMap::new()) };
    let versions = |value: &Value| match value {
        Value::Dict(versions) => versions.iter().map(|(version, _)| version.to_text()).collect(),
        _ => Vec::new(),
    };
    Ok(packages.iter().map(|(name, value)| (name.to_text(), versions(value))).collect())
}
