//! The sources of packages on this host: reading, finding and removing them.

use brine_apt::sources::list::Named;
use brine_apt::sources::{MAIN_FILE, PARTS, SourcesList};
use brine_guest::host::changes;
use brine_guest::{Result, Value};

use crate::available;
use crate::host;

/// A list of sources, and what its files have now.
pub(crate) struct Files {
    pub list: SourcesList,
    read: Vec<(String, String)>,
}

impl Files {
    pub(crate) fn read() -> Result<Self> {
        host::check_family()?;
        let mut files = Self { list: SourcesList::default(), read: Vec::new() };
        files.load(MAIN_FILE.into())?;
        for name in host::names(PARTS)? {
            if name.name.ends_with(".sources") || name.name.ends_with(".list") {
                files.load(format!("{PARTS}{}", name.name))?;
            }
        }
        Ok(files)
    }

    fn load(&mut self, path: String) -> Result<()> {
        if !host::is_file(&path)? {
            return Ok(());
        }
        if let Some(content) = host::read(&path)? {
            let text = String::from_utf8(content).map_err(|_| format!("{path} is no text"))?;
            self.list.load(&path, &text);
            self.read.push((path, text));
        }
        Ok(())
    }

    /// Writes the files that are to be other than they are.
    pub(crate) fn save(&self) -> Result<()> {
        for written in self.list.written() {
            let same = self.read.iter().any(|(path, text)| *path == written.file && *text == written.text);
            if !same {
                host::write(&written.file, written.text.into_bytes(), None)?;
            }
        }
        Ok(())
    }
}

/// Refuses archives of Launchpad by their short names: who signs them is to be had from there only.
pub(crate) fn check_name(repo: &str) -> Result<()> {
    match repo.strip_prefix("ppa:") {
        None => Ok(()),
        Some(ppa) => Err(format!(
            "ppa:{ppa} is not resolved: name the repository by its line, `deb [signed-by=/etc/apt/keyrings/NAME.gpg] \
             https://ppa.launchpadcontent.net/{ppa}/ubuntu RELEASE main`, and its key by key_url or keyid and keyserver"
        )),
    }
}

/// All sources: lists of dicts by address.
pub(crate) fn list() -> Result<Value> {
    let described = Files::read()?.list.described();
    Ok(Value::Dict(described.into_iter().map(|(uri, list)| (uri.into(), Value::List(list))).collect()))
}

/// The source of this name, as a dict; an empty one if there is none.
pub(crate) fn get(repo: &str) -> Result<Value> {
    check_name(repo)?;
    let files = Files::read()?;
    if files.list.entries.is_empty() {
        return Ok(Value::Dict(Vec::new()));
    }
    Ok(files.list.find(&Named::read(repo)?))
}

/// Removes a source. Returns what became of its files.
pub(crate) fn delete(repo: &str) -> Result<String> {
    check_name(repo)?;
    let mut files = Files::read()?;
    let named = Named::read(repo)?;
    let from = files.list.remove(&named);
    if from.is_empty() {
        return Err(format!("Repo {repo} doesn't exist in the sources.list(s)"));
    }
    let mut said = String::new();
    if !files.list.entries.is_empty() {
        files.save()?;
    }
    for file in from {
        let gone = files.list.count(&file) == 0 && file.starts_with(PARTS);
        if gone && host::is_file(&file)? {
            changes::remove(&file, false)?;
            said.push_str(&format!("File {file} containing repo '{repo}' has been removed."));
            continue;
        }
        // A file without any line left is not among those that were written.
        if files.list.entries.iter().all(|entry| entry.file() != file) {
            host::write(&file, Vec::new(), None)?;
        }
        said.push_str(&format!("Repo '{repo}' has been removed from {file}.\n"));
    }
    available::refresh_db(&Value::None, false, None)?;
    Ok(said)
}
