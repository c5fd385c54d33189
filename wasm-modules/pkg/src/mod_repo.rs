//! Making and changing a source of packages.

use brine_apt::arguments::{Keywords, is_true};
use brine_apt::sources::list::Named;
use brine_apt::sources::{Entry, Line, MAIN_FILE, Stanza, to_bool};
use brine_guest::{Result, Value};

use crate::available;
use crate::host::{self, How};
use crate::keys::{self, Added};
use crate::repos::{self, Files};
use crate::targets;

/// Salt's word for an address of a key that is to be fetched.
fn key_error(key: &str) -> String {
    format!("Error: Could not add key: {key}")
}

/// A list of texts: a list, or a text with commas.
fn listed(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        text => text.to_text().split(',').map(|item| item.trim().to_owned()).collect(),
    }
}

/// Makes or changes the source. Returns a dict with it, by its name.
pub(crate) fn mod_repo(repo: &str, saltenv: &str, aptkey: bool, mut keywords: Keywords) -> Result<Value> {
    repos::check_name(repo)?;
    let refresh = keywords.get("refresh_db").or_else(|| keywords.get("refresh")).is_none_or(Value::truthy);
    let aptkey = keys::with_apt_key(aptkey)?;
    if keywords.truthy("consolidate") {
        return Err("consolidate is not supported: it would remove the files of other sources".into());
    }
    let mut files = Files::read()?;
    let named = Named::read(repo)?;
    if named.0.invalid {
        return Err(format!(
            "Name {repo} is not valid. This must be the complete repo entry as seen in the sources file"
        ));
    }
    add_keys(&named.0, saltenv, aptkey, &keywords)?;

    let mut all_comps = named.0.comps.clone();
    let comps = keywords.get("comps").map(listed).unwrap_or_else(|| all_comps.clone());
    all_comps.extend(comps.iter().filter(|comp| !named.0.comps.contains(comp)).cloned());
    let architectures = keywords.get("architectures").map(listed).unwrap_or_else(|| named.0.architectures.clone());
    if let Some(disabled) = keywords.get("disabled").map(is_true) {
        keywords.set("disabled", disabled);
    } else if let Some(enabled) = keywords.get("enabled").map(is_true) {
        keywords.set("disabled", !enabled);
    }

    let found = find(&files.list.entries, &named, &all_comps, &architectures, &keywords);
    let comments = keywords.get("comments").map(|comments| match comments {
        Value::List(lines) => lines.iter().map(Value::to_text).collect::<Vec<_>>().join(" ").trim().to_owned(),
        text => text.to_text().trim().to_owned(),
    });
    let at = match found {
        Some(at) => at,
        None => {
            let trusted = keywords.text("trusted").and_then(|trusted| to_bool(&trusted)).unwrap_or(false);
            if !aptkey && named.0.signed_by.is_empty() && !trusted {
                return Err("missing 'signedby' or 'trusted' option when apt-key is missing".into());
            }
            files.list.entries.push(new_entry(repo, &named.0, &keywords)?);
            files.list.entries.len() - 1
        }
    };
    let entry = &mut files.list.entries[at];
    match (&mut *entry, comments) {
        (Entry::Line(line), Some(comments)) => line.comment = comments,
        (Entry::Stanza(stanza), Some(comments)) => stanza.set_comment(&comments),
        (_, None) => (),
    }
    if let Entry::Line(line) = entry {
        // The options of the line are those of the name.
        line.line = format!("{}\n", named.0.line.trim_end_matches('\n'));
    }
    change(entry, &comps, &architectures, &named.0, &keywords)?;
    files.save()?;
    if refresh {
        available::refresh_db(&Value::None, false, None)?;
    }
    Ok(Value::dict([(repo, repos::get(repo)?)]))
}

/// The place of the entry that is to be changed.
fn find(
    entries: &[Entry],
    named: &Named,
    all_comps: &[String],
    architectures: &[String],
    keywords: &Keywords,
) -> Option<usize> {
    let (kind, dist) = (keywords.text("type"), keywords.text("dist"));
    let valid = entries.iter().enumerate().filter(|(_, entry)| !entry.is_invalid() && !entry.types().is_empty());
    let mut same = valid.filter(|(_, entry)| {
        let by_keywords = match (&kind, &dist) {
            (Some(kind), Some(dist)) => entry.suites().contains(dist) && entry.types().contains(kind),
            _ => false,
        };
        by_keywords || named.is(entry)
    });
    let fits = |entry: &Entry| {
        let comps = entry.comps();
        comps.is_empty() || all_comps.iter().any(|comp| comps.contains(comp)) || entry.architectures() != architectures
    };
    same.find(|(_, entry)| fits(entry)).map(|(at, _)| at)
}

fn new_entry(repo: &str, named: &Line, keywords: &Keywords) -> Result<Entry> {
    let file = keywords.text("file").filter(|file| !file.is_empty()).unwrap_or_else(|| MAIN_FILE.into());
    if !file.ends_with(".sources") {
        return Line::read(repo, &file).map(Entry::Line);
    }
    let mut stanza = Stanza::read("", &file);
    stanza.set("Types", &named.kind);
    stanza.set("URIs", &named.uri);
    stanza.set("Suites", &named.dist);
    stanza.set("Components", &named.comps.join(" "));
    let is_true = |key: &str| keywords.get(key) == Some(&Value::Bool(true));
    let asked = is_true("trusted") || is_true("Trusted");
    if asked || keywords.get("trusted").is_none() && named.trusted == Some(true) {
        stanza.set("Trusted", "yes");
    }
    Ok(Entry::Stanza(stanza))
}

/// Sets what the name and the keywords say.
fn change(
    entry: &mut Entry,
    comps: &[String],
    architectures: &[String],
    named: &Line,
    keywords: &Keywords,
) -> Result<()> {
    if !architectures.is_empty() || !entry.architectures().is_empty() {
        entry.set_architectures(architectures);
    }
    entry.set_comps(comps);
    entry.set_signed_by(&named.signed_by);
    if let Some(disabled) = keywords.get("disabled") {
        entry.set_disabled(is_true(disabled));
    }
    if let Some(file) = keywords.text("file") {
        entry.set_file(file);
    }
    if let Some(dist) = keywords.text("dist") {
        entry.set_suites(&[dist]);
    }
    if let Some(trusted) = keywords.get("trusted") {
        entry.set_trusted(match trusted {
            Value::Bool(trusted) => Some(*trusted),
            Value::None => None,
            other => to_bool(&other.to_text())
                .map(Some)
                .ok_or_else(|| format!("Unable to convert to boolean: {}", other.to_text()))?,
        });
    }
    let uri = keywords.text("uri");
    match entry {
        Entry::Line(line) => {
            if let Some(uri) = uri {
                line.uri = uri;
            }
            // The name has the last word.
            if line.uri != named.uri {
                line.uri = named.uri.clone();
            }
        }
        Entry::Stanza(stanza) => {
            if let Some(uri) = uri {
                stanza.set("URIs", &uri);
            }
            for (key, field) in [("uris", "URIs"), ("suites", "Suites"), ("types", "Types")] {
                if let Some(value) = keywords.get(key) {
                    stanza.set(field, &listed(value).join(" "));
                }
            }
        }
    }
    Ok(())
}

/// Fetches the keys that the keywords name.
fn add_keys(named: &Line, saltenv: &str, aptkey: bool, keywords: &Keywords) -> Result<()> {
    let (folder, file) = named.signed_by.rsplit_once('/').unwrap_or(("", &named.signed_by));
    let folder = Some(folder).filter(|folder| !folder.is_empty());
    let file = Some(file).filter(|file| !file.is_empty());
    if let Some(keyid) = keywords.get("keyid") {
        let keyserver = keywords.text("keyserver").filter(|server| !server.is_empty());
        let (Some(keyserver), true) = (keyserver, keyid.truthy()) else {
            return Err("both keyserver and keyid options required.".into());
        };
        let ids: Vec<String> = match keyid {
            Value::List(ids) => ids.iter().map(as_id).collect(),
            one => vec![as_id(one)],
        };
        for id in &ids {
            if aptkey {
                let known = host::run(&["apt-key", "export", id], How::default())?;
                if known.stdout.starts_with("-----BEGIN PGP") {
                    continue;
                }
                let words =
                    ["apt-key", "adv", "--batch", "--keyserver", &keyserver, "--logger-fd", "1", "--recv-keys", id];
                let done = host::run(&words, How::default())?;
                if done.code != 0 {
                    return Err(format!("Error: key retrieval failed: {}", done.stdout));
                }
            } else {
                let key =
                    Added { keyserver: Some(&keyserver), keyid: Some(id), saltenv, folder, file, ..Added::default() };
                if !keys::add(&key)? {
                    return Err(key_error(id));
                }
            }
        }
    } else if let Some(url) = keywords.text("key_url") {
        let content = targets::content(&url, saltenv)?.ok_or_else(|| format!("Error: file not found: {url}"))?;
        if aptkey {
            add_to_ring(content).map_err(|_| format!("Error: failed to add key from {url}"))?;
        } else {
            let name = file.unwrap_or_else(|| url.rsplit('/').next().unwrap_or(&url));
            let folder = folder.unwrap_or("/etc/apt/keyrings");
            if !host::is_directory(folder)? {
                let owner = brine_guest::host::changes::Owner { user: None, group: None };
                brine_guest::host::changes::make_directory(folder, true, &owner, Some(0o755))?;
            }
            keys::put(folder, name, content).map_err(|why| format!("{}: {why}", key_error(&url)))?;
        }
    } else if let Some(text) = keywords.text("key_text") {
        add_to_ring(text.clone().into_bytes()).map_err(|_| format!("Error: failed to add key:\n{text}"))?;
    }
    Ok(())
}

fn add_to_ring(key: Vec<u8>) -> Result<()> {
    let done = host::run(&["apt-key", "add", "-"], How { stdin: Some(key), ..How::default() })?;
    if done.stdout.to_uppercase().starts_with("OK") { Ok(()) } else { Err(done.stderr) }
}

/// The id of a key. YAML reads one of digits as a number.
fn as_id(id: &Value) -> String {
    match id {
        Value::Int(number) => format!("{number:#x}"),
        Value::Big(number) => format!("{number:#x}"),
        other => other.to_text(),
    }
}
