//! Completion candidates of the operators' commands: ids of minions, functions, runners.
//!
//! A few minions are asked for their functions. The answer is kept in a file of the user, so that not each press of the
//! key starts a job.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::commandline::user_cache;
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyKind, KeyState, KeyStore};
use brine_protocol::target::Glob;
use brine_protocol::value::{self, Value, ValueExt};

use super::block_on;
use brine_client::{ClientOpts, Job, LocalClient, RunnerClient};

/// Upper bound on the wait for minions or the master after the key is pressed.
const WAIT: Duration = Duration::from_secs(2);
/// Number of minions to ask; most have the same modules.
const ASKED: usize = 3;
/// Age at which a kept answer is replaced.
const FRESH: Duration = Duration::from_secs(300);
/// Upper bound on the bytes of a kept answer.
const MAX_KEPT: u64 = 1 << 20;

/// The ids of minions with these statuses.
pub(super) fn ids(opts: &ClientOpts, statuses: &[KeyState]) -> Vec<String> {
    ids_of(KeyKind::Minions, opts, statuses)
}

/// The ids of keys of a kind with these statuses.
pub(super) fn ids_of(kind: KeyKind, opts: &ClientOpts, statuses: &[KeyState]) -> Vec<String> {
    let store = KeyStore::of(kind, &opts.pki_dir);
    let ids = statuses.iter().flat_map(|status| store.list(*status).unwrap_or_default());
    ids.map(MinionId::into_string).collect()
}

/// The functions of the minions that a glob matches; of any minions if the target is not a glob.
pub(super) fn functions(opts: &ClientOpts, glob: &str) -> Vec<String> {
    read_or_find(&file(opts, "functions"), || {
        let accepted = ids(opts, &[KeyState::Accepted]);
        let matches = Glob::new(glob);
        let mut asked: Vec<&String> = accepted.iter().filter(|id| matches.matches(id)).collect();
        if asked.is_empty() {
            asked = accepted.iter().collect();
        }
        asked.truncate(ASKED);
        if asked.is_empty() {
            return Vec::new();
        }
        let mut job = Job::new("", "sys.list_functions", Vec::new());
        job.tgt = value::list(asked.into_iter().map(String::as_str));
        job.tgt_type = "list".to_owned();
        job.timeout = Some(WAIT);
        let client = LocalClient::new(opts.clone());
        let returns = block_on(async { tokio::time::timeout(WAIT, client.cmd(&job)).await });
        let Ok(Ok(Ok(returns))) = returns else { return Vec::new() };
        returns.iter().flat_map(|(_, functions)| names(functions)).collect()
    })
}

/// The master's runners.
pub(super) fn runners(opts: &ClientOpts) -> Vec<String> {
    read_or_find(&file(opts, "runners"), || {
        let client = RunnerClient::new(opts.clone());
        let docs = block_on(client.cmd("doc.runner", Vec::new(), Vec::new(), Some(WAIT)));
        let Ok(Ok(docs)) = docs else { return Vec::new() };
        let docs = docs.ret.entries().unwrap_or_default();
        docs.iter().filter_map(|(name, _)| name.text().map(str::to_owned)).collect()
    })
}

fn names(functions: &Value) -> Vec<String> {
    functions.list().unwrap_or_default().iter().filter_map(|name| name.text().map(str::to_owned)).collect()
}

/// The file for data of this master; none if the user has no cache folder.
fn file(opts: &ClientOpts, what: &str) -> Option<PathBuf> {
    let master = opts.pki_dir.to_string_lossy().replace('%', "%25").replace('/', "%");
    Some(user_cache()?.join("completion").join(format!("{what}{master}")))
}

/// Returns the content of the file if it is fresh, or else the result of `find`. An empty result is not kept.
fn read_or_find(file: &Option<PathBuf>, find: impl FnOnce() -> Vec<String>) -> Vec<String> {
    if let Some(text) = file.as_deref().and_then(read_fresh) {
        return text.lines().map(str::to_owned).collect();
    }
    let found = find();
    if let (Some(file), false) = (file, found.is_empty())
        && let Some(dir) = file.parent()
    {
        // If the result cannot be kept, the next call finds it again.
        let _ = std::fs::create_dir_all(dir).and_then(|()| {
            let temporary = tempfile::NamedTempFile::new_in(dir)?;
            std::fs::write(&temporary, found.join("\n"))?;
            temporary.persist(file).map_err(std::io::Error::from)
        });
    }
    found
}

fn read_fresh(file: &Path) -> Option<String> {
    let modified = file.metadata().ok()?.modified().ok()?;
    SystemTime::now().duration_since(modified).ok().filter(|age| *age < FRESH)?;
    brine_files::read_named_text(file, MAX_KEPT).ok()
}

/// Files and folders of this host whose paths begin with `current`; folders end with a slash.
pub(super) fn paths(current: &str) -> Vec<String> {
    let dir = current.rfind('/').map_or("", |at| &current[..=at]);
    let entries = std::fs::read_dir(if dir.is_empty() { "." } else { dir });
    let path = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let slash = if entry.path().is_dir() { "/" } else { "" };
        Some(format!("{dir}{name}{slash}"))
    };
    entries.into_iter().flatten().filter_map(|entry| path(entry.ok()?)).collect()
}

/// Candidates for the last of several names separated by commas; each candidate has the names before it.
pub(super) fn after_comma(current: &str, names: Vec<String>) -> Vec<String> {
    match current.rsplit_once(',') {
        None => names,
        Some((before, _)) => names.into_iter().map(|name| format!("{before},{name}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let file = Some(dir.path().join("new/functions"));
        let names = |found: &[&str]| found.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(read_or_find(&file, Vec::new).is_empty());
        assert_eq!(read_or_find(&file, || names(&["a.b", "c.d"])), ["a.b", "c.d"], "nothing is not kept");
        assert_eq!(read_or_find(&file, || unreachable!("it is fresh")), ["a.b", "c.d"]);
        let old = SystemTime::now() - FRESH - Duration::from_secs(1);
        std::fs::File::options().write(true).open(file.as_ref().unwrap()).unwrap().set_modified(old).unwrap();
        assert_eq!(read_or_find(&file, || names(&["e.f"])), ["e.f"]);
        assert_eq!(read_or_find(&None, || names(&["g.h"])), ["g.h"]);
    }

    #[test]
    fn files_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let base = dir.path().display().to_string();
        let mut found = paths(&format!("{base}/fi"));
        found.sort();
        assert_eq!(found, [format!("{base}/file"), format!("{base}/folder/")]);
        assert!(paths("/no/such/folder/").is_empty());
    }

    #[test]
    fn several_functions() {
        assert_eq!(after_comma("te", vec!["test.ping".into()]), ["test.ping"]);
        assert_eq!(after_comma("a.b,te", vec!["test.ping".into()]), ["a.b,test.ping"]);
    }
}
