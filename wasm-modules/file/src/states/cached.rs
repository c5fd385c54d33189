//! `file.cached` and `file.not_cached`: copies of files that come from elsewhere.

use brine_guest::changes::{self, Content, Kind, MasterFile, Owner, Put};
use brine_guest::hash::sha256;
use brine_guest::host::job;
use brine_guest::states::is_dry_run;
use brine_guest::url::{is_web, redacted};
use brine_guest::{Value, path};

use super::Ret;
use super::arguments::Arguments;
use crate::manage::Trouble;
use crate::manage::body;
use crate::manage::source::{Place, digest, scheme};
use crate::manage::sums::{self, Sum};

/// The folder of the copies; only the minion's user enters it.
const FOLDER: &str = "/var/cache/brine-files";

pub(crate) fn cached(name: &str, saltenv: Option<&str>, arguments: &Arguments) -> Result<Ret, String> {
    let skips = arguments.flag("skip_verify", false);
    let source_hash = arguments.value("source_hash");
    let is_remote = !matches!(scheme(name), "" | "file" | "salt");
    if is_remote && !skips && !source_hash.truthy() && !arguments.flag("use_etag", false) {
        return Ok(Ret::bad(format!(
            "Unable to verify upstream hash of source file {}, please set source_hash or set skip_verify or use_etag to True",
            redacted(name)
        )));
    }
    if is_dry_run() && is_web(&source_hash.to_text()) {
        // A dry run fetches no hash.
        return Ok(Ret { result: None, ..Ret::good(format!("File will be cached: {name}")) });
    }
    let saltenv = environment(saltenv);
    let mut sum = None;
    if source_hash.truthy() {
        let hash_name = arguments.named("source_hash_name");
        sum = match sums::of("", name, &source_hash, hash_name.as_deref(), &saltenv) {
            Ok(sum) => Some(sum),
            Err(Trouble::Raised(why)) => return Err(why),
            Err(trouble) => return Ok(Ret::bad(trouble.text())),
        };
    }
    let place = Place::of(name, &saltenv);
    if is_dry_run() {
        return would(name, &place, sum.as_ref());
    }
    let sum = sum.filter(|_| !skips);
    let Some(kept) = kept(&place) else {
        return match place {
            Place::Local(path) => local(&path, sum.as_ref()),
            _ => Ok(Ret::bad(not_fetched(name))),
        };
    };
    let kind = sum.as_ref().map_or("sha256", |sum| sum.kind.as_str());
    let before = hash(&kept, kind)?;
    let is_right = before.is_some() && sum.as_ref().is_some_and(|sum| before.as_ref() == Some(&sum.hex));
    match fetch(&place, &kept, is_right) {
        Ok(true) => {}
        Ok(false) => return Ok(Ret::bad(not_fetched(name))),
        Err(why) => return Ok(Ret::bad(redacted(&why))),
    }
    let after = hash(&kept, kind)?.unwrap_or_default();
    let mut ret = Ret::new();
    if before.as_deref() != Some(&*after) {
        let both = [("old", before.into()), ("new", after.as_str().into())];
        ret.change("hash", Value::dict(both));
    }
    ret.comment = match &sum {
        None => format!("File is cached to {kept}"),
        Some(sum) if sum.hex == after => format!("File is already cached to {kept} with hash {after}"),
        Some(sum) => {
            let why = format!("the hash ({after}) does not match the specified hash ({})", sum.hex);
            return Ok(ret.failed(format!("File is cached to {kept}, but {why}")));
        }
    };
    Ok(ret)
}

pub(crate) fn not_cached(name: &str, saltenv: Option<&str>) -> Result<Ret, String> {
    let place = Place::of(name, &environment(saltenv));
    if let Place::Local(path) = &place {
        let path = changes::realpath(path)?;
        return Ok(Ret::good(format!("File {path} is a local path, no action taken")));
    }
    let there = kept(&place).filter(|kept| changes::look(kept, false).is_ok_and(|found| found.is_some()));
    let Some(kept) = there else { return Ok(Ret::good(format!("{name} is not cached"))) };
    let removed = match changes::remove(&kept, false) {
        Ok(removed) => removed,
        Err(why) => return Ok(Ret::bad(format!("Failed to delete {kept}: {why}"))),
    };
    let mut ret = match removed.planned {
        true => Ret { result: None, ..Ret::good(format!("{kept} would be deleted")) },
        false => Ret::good(format!("{kept} was deleted")),
    };
    ret.change("deleted", true);
    Ok(ret)
}

fn environment(given: Option<&str>) -> String {
    let own = || job::state().map(|state| state.saltenv).filter(|env| !env.is_empty());
    given.map(str::to_owned).or_else(own).unwrap_or_else(|| "base".into())
}

fn not_fetched(name: &str) -> String {
    format!("Failed to cache {}, check minion log for more information", redacted(name))
}

/// Where the copy of a place is; none of one that has no copy.
fn kept(place: &Place) -> Option<String> {
    let (key, name) = match place {
        Place::Master { path, saltenv } => (format!("salt://{path}?saltenv={saltenv}"), path.as_str()),
        Place::Web(url) => (url.clone(), url.split(['?', '#']).next().unwrap_or_default()),
        Place::Local(_) | Place::Other(_) => return None,
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let name: String = path::basename(name).chars().map(plain).take(100).collect();
    Some(format!("{FOLDER}/{}-{name}", &sha256(key.as_bytes())[..32]))
}

/// The hash of a copy; none if there is none.
fn hash(kept: &str, kind: &str) -> Result<Option<String>, String> {
    match changes::look_with_hash(kept, false)? {
        Some(entry) if entry.kind == Kind::Regular => body::hash_of(kept, &entry, kind).map(Some),
        _ => Ok(None),
    }
}

/// Makes the copy, unless it is right already. Returns whether there is such a file.
fn fetch(place: &Place, kept: &str, is_right: bool) -> Result<bool, String> {
    let content = match place {
        Place::Master { path, saltenv } => {
            let Some(said) = digest(path, saltenv)? else { return Ok(false) };
            let sha256 = (said.hash_type == "sha256").then_some(said.hsum);
            if sha256.is_some() && hash(kept, "sha256")? == sha256 {
                return Ok(true);
            }
            Content::Master(MasterFile { path: path.clone(), saltenv: saltenv.clone(), sha256 })
        }
        Place::Web(_) if is_right => return Ok(true),
        Place::Web(url) => Content::Bytes(body::fetch(url)?),
        Place::Local(_) | Place::Other(_) => return Ok(false),
    };
    changes::make_directory(FOLDER, true, &Owner { user: None, group: None }, Some(0o700))?;
    Put::new(kept).mode(Some(0o600)).follow(false).content(&content)?;
    Ok(true)
}

/// A path of this host, which has no copy.
fn local(path: &str, sum: Option<&Sum>) -> Result<Ret, String> {
    let path = changes::realpath(path)?;
    let Some(entry) = changes::look_with_hash(&path, true)? else {
        return Ok(Ret::bad(format!("File {path} is not present on the minion")));
    };
    let Some(sum) = sum else { return Ok(Ret::good(format!("File {path} is present on the minion"))) };
    let is = body::hash_of(&path, &entry, &sum.kind)?;
    Ok(match is == sum.hex {
        true => Ret::good(format!("File {path} is present on the minion and has hash {is}")),
        false => Ret::bad(format!(
            "File {path} is present on the minion, but the hash ({is}) does not match the specified hash ({})",
            sum.hex
        )),
    })
}

/// The result of a dry run.
fn would(name: &str, place: &Place, sum: Option<&Sum>) -> Result<Ret, String> {
    // As in Salt, a file of this host is its own copy here.
    let copy = match place {
        Place::Local(path) => Some(changes::realpath(path)?),
        other => kept(other),
    };
    let comment = match (copy.map(|copy| hash(&copy, "sha256")).transpose()?.flatten(), sum) {
        (None, _) => format!("File will be cached: {name}"),
        (Some(_), None) => format!("No hash found. File will be cached: {name}"),
        (Some(is), Some(sum)) if is == sum.hex => format!("File already cached: {name}"),
        (Some(_), Some(_)) => format!("Hashes don't match.\nFile will be cached: {name}"),
    };
    Ok(Ret { result: None, ..Ret::good(comment) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_names_of_their_own_in_one_folder() {
        let kept = |source: &str| kept(&Place::of(source, "base"));
        for source in ["https://h/../../etc/passwd", "https://h/a%2f..?x=/..", "salt://../x", "https://h"] {
            let kept = kept(source).unwrap_or_default();
            let name = kept.strip_prefix("/var/cache/brine-files/").unwrap_or_default();
            assert!(!name.contains('/') && name.len() > 32, "{kept}");
        }
        assert_ne!(kept("https://a/x.tgz"), kept("https://b/x.tgz"));
        assert_ne!(kept("salt://x"), kept("salt://x?saltenv=dev"));
        assert_eq!((kept("/x"), kept("ftp://h/x")), (None, None));
    }
}
