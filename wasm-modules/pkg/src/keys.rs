//! Keys that sign sources of packages: files in a folder of keys, or apt-key's ring where there still is an apt-key.

use brine_apt::arguments::Keywords;
use brine_apt::keys;
use brine_guest::host::changes;
use brine_guest::program::{self, Output};
use brine_guest::{Result, Value};

use crate::host::{self, How};
use crate::targets;

/// The folder of keys.
const FOLDER: &str = "/etc/apt/keyrings";

/// Whether apt-key is to be used: if it is asked for and there.
pub(crate) fn with_apt_key(asked: bool) -> Result<bool> {
    Ok(asked && program::exists("apt-key")?)
}

/// What gpg tells of a file of keys.
fn of_file(path: &str) -> Result<Value> {
    let words = ["gpg", "--no-default-keyring", "--keyring", path, "--list-keys", "--with-colons"];
    Ok(keys::listed(&host::run(&words, How::default())?.stdout))
}

fn files(folder: &str) -> Result<Vec<String>> {
    let names = host::names(folder)?.into_iter().filter(|name| name.kind != changes::Kind::Directory);
    Ok(names.map(|name| format!("{}/{}", folder.trim_end_matches('/'), name.name)).collect())
}

/// The keys: a dict by their ids, or False if there is no such folder.
pub(crate) fn get(aptkey: bool, folder: Option<&str>) -> Result<Value> {
    host::check_family()?;
    if with_apt_key(aptkey)? {
        let words = "apt-key adv --batch --list-public-keys --with-fingerprint --with-fingerprint --with-colons --fixed-list-mode";
        let done = host::run(&words.split(' ').collect::<Vec<_>>(), How::default())?;
        if done.code != 0 {
            return Err(done.stderr);
        }
        return Ok(keys::listed(&done.stdout));
    }
    let folder = folder.unwrap_or(FOLDER);
    if !host::is_directory(folder)? {
        host::log_error(&format!(
            "The directory {folder} does not exist. Please create this directory only writable by root"
        ));
        return Ok(Value::Bool(false));
    }
    let mut all = Value::Dict(Vec::new());
    for file in files(folder)? {
        all.update(&of_file(&file)?, false);
    }
    Ok(all)
}

/// A key that is to be added.
#[derive(Default)]
pub(crate) struct Added<'a> {
    pub path: Option<&'a str>,
    pub text: Option<&'a str>,
    pub keyserver: Option<&'a str>,
    pub keyid: Option<&'a str>,
    pub saltenv: &'a str,
    pub aptkey: bool,
    pub folder: Option<&'a str>,
    pub file: Option<&'a str>,
}

/// Adds a key. False, with the reason in the log, if that is not possible.
pub(crate) fn add(key: &Added<'_>) -> Result<bool> {
    host::check_family()?;
    let aptkey = with_apt_key(key.aptkey)?;
    let folder = key.folder.unwrap_or(FOLDER).trim_end_matches('/');
    if !key.aptkey && !host::is_directory(folder)? {
        let owner = changes::Owner { user: None, group: None };
        changes::make_directory(folder, true, &owner, Some(0o755))?;
    }
    if let Some(keyid) = key.keyid
        && let Value::Dict(known) = get(aptkey, Some(folder))?
        && known.iter().any(|(id, _)| id.text().is_some_and(|id| id.ends_with(keyid)))
    {
        return Ok(true);
    }
    if let Some(path) = key.path {
        let Some(content) = targets::content(path, key.saltenv)? else {
            host::log_error(&format!("Unable to get cached copy of file: {path}"));
            return Ok(false);
        };
        if aptkey {
            return done(host::run(&["apt-key", "add", "-"], How { stdin: Some(content), ..How::default() })?);
        }
        let name = key.file.unwrap_or_else(|| path.rsplit('/').next().unwrap_or(path));
        put(folder, name, content)?;
        return Ok(true);
    }
    if let Some(text) = key.text {
        let how = How { stdin: Some(text.as_bytes().to_vec()), ..How::default() };
        return done(host::run(&["apt-key", "add", "-"], how)?);
    }
    match (key.keyserver, key.keyid) {
        (Some(keyserver), Some(keyid)) if aptkey => {
            done(host::run(&["apt-key", "adv", "--batch", "--keyserver", keyserver, "--recv", keyid], How::default())?)
        }
        (Some(keyserver), Some(keyid)) => {
            let Some(file) = key.file else {
                host::log_error("You must define the name of the key file to save the key. See keyfile argument");
                return Ok(false);
            };
            let ring = if file.starts_with('/') { file.to_owned() } else { format!("{folder}/{file}") };
            let words =
                ["gpg", "--no-default-keyring", "--keyring", &ring, "--keyserver", keyserver, "--recv-keys", keyid];
            let added = done(host::run(&words, How::default())?)?;
            if added {
                let owner = changes::Owner { user: None, group: None };
                changes::set_permissions(&ring, &owner, Some(0o644), false)?;
            }
            Ok(added)
        }
        (Some(keyserver), None) => Err(format!("No keyid or keyid too short for keyserver: {keyserver}")),
        (None, Some(keyid)) => Err(format!("No keyserver specified for keyid: {keyid}")),
        (None, None) => Err("add_repo_key() takes at least 1 argument (0 given)".into()),
    }
}

fn done(done: Output) -> Result<bool> {
    if done.code != 0 {
        host::log_error(&format!("Unable to add repo key: {}", done.stderr));
    }
    Ok(done.code == 0)
}

/// Writes a key into its file: in binary form, unless the file's name says that it is text.
pub(crate) fn put(folder: &str, name: &str, content: Vec<u8>) -> Result<()> {
    let path = if name.starts_with('/') { name.to_owned() } else { format!("{}/{name}", folder.trim_end_matches('/')) };
    let content = match keys::is_armored(&content) && !name.ends_with(".asc") {
        true => keys::dearmored(&content)?,
        false => content,
    };
    host::write(&path, content, Some(0o644))
}

/// Removes a key. Returns its id, or False, with the reason in the log, if there is no such key.
pub(crate) fn delete(aptkey: bool, folder: Option<&str>, keywords: &Keywords) -> Result<Value> {
    host::check_family()?;
    let folder = folder.unwrap_or(FOLDER);
    if !aptkey && !host::is_directory(folder)? {
        host::log_error(&format!(
            "The directory {folder} does not exist. Please create this directory only writable by root"
        ));
        return Ok(false.into());
    }
    if keywords.truthy("keyid_ppa") {
        return Err("keyid_ppa is not resolved: name the key by keyid".into());
    }
    let Some(keyid) = keywords.text("keyid") else {
        return Err("keyid or keyid_ppa and PPA name must be passed".into());
    };
    if with_apt_key(aptkey)? {
        let done = host::run(&["apt-key", "del", &keyid], How::default())?;
        return match (done.code, done.stderr.is_empty()) {
            (0, _) => Ok(keyid.into()),
            (_, true) => Err(format!("Failed to remove keyid {keyid}")),
            (_, false) => Err(format!("Failed to remove keyid {keyid}: {}", done.stderr)),
        };
    }
    if !matches!(keyid.len(), 8 | 16) {
        host::log_error("The keyid needs to be either 8 or 16 characters");
        return Ok(false.into());
    }
    for file in files(folder)? {
        let Value::Dict(found) = of_file(&file)? else { continue };
        if found.iter().any(|(id, _)| id.text().is_some_and(|id| id.ends_with(&keyid))) {
            changes::remove(&file, false)?;
            return Ok(keyid.into());
        }
    }
    host::log_error(&format!("Could not find the key file for keyid: {keyid}"));
    Ok(false.into())
}
