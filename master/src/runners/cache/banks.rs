//! `cache.list`, `fetch`, `store`, `flush`: the banks of the cache. `grains`, `pillar` and `mine` contain data of
//! minions, which callers can read and delete but not write. All other banks belong to the callers, below
//! `cachedir/banks`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use brine_protocol::ids::MinionId;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, empty_map};

use super::{Failure, Function, Outcome, Run, functions, known_banks, read, remove};
use crate::files;
use crate::mine::MineRequest;

/// The folder of the callers' own banks.
const FOLDER: &str = "banks";
/// Bound on the nesting of banks.
const DEPTH_MAX: usize = 8;
/// Longest name of a bank or a key in characters.
const NAME_MAX: usize = 128;
/// Bound on the bytes of one key's data.
const DATA_MAX: usize = 1 << 20;
/// Bound on the keys and banks in one bank.
const KEYS_MAX: usize = 10_000;

/// The functions of this module.
pub(in crate::runners) const FUNCTIONS: &[Function] = functions! {
    /// Returns what a key of a bank of the cache holds.
    "cache.fetch(bank, key, cachedir=None)" => fetch,
    /// Forgets a key of a bank of the cache; without a key all of the bank, with the banks in it. Returns whether there
    /// was one.
    "cache.flush(bank, key=None, cachedir=None)" => flush,
    /// Lists the keys of a bank of the cache, and the banks in it.
    "cache.list(bank, cachedir=None)" => list,
    /// Stores data under a key of a bank of the cache. The banks grains, pillar and mine are the minions' own.
    "cache.store(bank, key, data, cachedir=None)" => store,
};

/// A bank of the cache.
enum Bank {
    /// Data of minions, by id.
    Minions(&'static str),
    /// The folder of a caller's bank.
    Own(PathBuf),
}

impl Bank {
    fn of(run: &Run) -> Result<Self, Failure> {
        let cachedir = &run.parts.opts.cachedir;
        if run.find_text("cachedir").is_some_and(|other| Path::new(&other) != cachedir) {
            return Err(run.wrong("cachedir is the master's own: leave it out"));
        }
        let text = run.text("bank");
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        if let [name] = parts[..]
            && let Some(name) = known_banks().into_iter().find(|known| *known == name)
        {
            return Ok(Self::Minions(name));
        }
        if parts.is_empty() || parts.len() > DEPTH_MAX || !parts.iter().all(|part| is_name(part)) {
            return Err(run.wrong("bank must be names parted by /, which do not begin with a dot"));
        }
        let folder = cachedir.join(FOLDER);
        Ok(Self::Own(parts.iter().fold(folder, |folder, part| folder.join(part))))
    }

    /// Returns the path of a key's file.
    fn file(&self, run: &Run) -> Result<PathBuf, Failure> {
        let key = run.text("key");
        match self {
            Self::Minions(bank) => {
                let id = MinionId::try_from(key.as_str()).map_err(|_| run.wrong("key must be the id of a minion"))?;
                Ok(super::path(&run.parts.opts.cachedir, bank, &id))
            }
            Self::Own(folder) if is_name(&key) => Ok(folder.join(format!("{key}.p"))),
            Self::Own(_) => Err(run.wrong("key must be a name that does not begin with a dot")),
        }
    }

    fn folder(&self, cachedir: &Path) -> PathBuf {
        match self {
            Self::Minions(bank) => cachedir.join(bank),
            Self::Own(folder) => folder.clone(),
        }
    }
}

/// Returns whether a text is safe as a file name.
fn is_name(text: &str) -> bool {
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '@' | '+' | '=' | ' ');
    !text.is_empty() && !text.starts_with('.') && text.chars().count() <= NAME_MAX && text.chars().all(fine)
}

async fn fetch(run: Run) -> Outcome {
    let file = Bank::of(&run)?.file(&run)?;
    super::blocking(move || read(&file).unwrap_or_else(empty_map)).await
}

async fn list(run: Run) -> Outcome {
    let folder = Bank::of(&run)?.folder(&run.parts.opts.cachedir);
    let names = blocking(move || names(&folder)).await?;
    Ok(Value::Array(names.into_iter().map(Value::from).collect()))
}

/// Lists keys and banks, sorted.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{} cannot be read: {error}", folder.display())),
    };
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    // Files with a leading dot are being written.
    let names = entries.filter_map(name).filter(|name| !name.starts_with('.'));
    let mut names: Vec<String> = names.map(|name| name.strip_suffix(".p").unwrap_or(&name).to_owned()).collect();
    names.sort();
    Ok(names)
}

async fn store(run: Run) -> Outcome {
    let bank = Bank::of(&run)?;
    let Bank::Own(folder) = &bank else {
        return Err(run.wrong("the banks grains, pillar and mine hold what minions say of themselves"));
    };
    let (folder, file) = (folder.clone(), bank.file(&run)?);
    let data = msgpack::encode_disk(&run.value("data"));
    if data.len() > DATA_MAX {
        return Err(run.wrong(&format!("data has more than {} MiB", DATA_MAX >> 20)));
    }
    blocking(move || {
        let failed = |error: std::io::Error| format!("{} cannot be written: {error}", file.display());
        files::make_private_dir(&folder).map_err(failed)?;
        if !file.exists() && std::fs::read_dir(&folder).map_err(failed)?.count() >= KEYS_MAX {
            return Err(format!("the bank has {KEYS_MAX} keys: flush what is not needed"));
        }
        files::write_atomic(&file, &data, 0o600).map_err(failed)
    })
    .await?;
    Ok(Value::Nil)
}

async fn flush(run: Run) -> Outcome {
    let bank = Bank::of(&run)?;
    let cachedir = run.parts.opts.cachedir.clone();
    let one = run.get("key").is_some();
    let there = match (&bank, one) {
        (Bank::Minions(name), _) => {
            let files = if one { vec![bank.file(&run)?] } else { of_minions(&run, name).await? };
            let there: Vec<PathBuf> = files.into_iter().filter(|file| file.exists()).collect();
            for file in &there {
                forget(&run, name, file).await?;
            }
            !there.is_empty()
        }
        (Bank::Own(_), true) => {
            let file = bank.file(&run)?;
            blocking(move || {
                let there = file.exists();
                remove(&file).map(|()| there).map_err(|error| format!("{} cannot be removed: {error}", file.display()))
            })
            .await?
        }
        (Bank::Own(_), false) => {
            let folder = bank.folder(&cachedir);
            blocking(move || match std::fs::remove_dir_all(&folder) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                Err(error) => Err(format!("{} cannot be removed: {error}", folder.display())),
            })
            .await?
        }
    };
    Ok(Value::from(there))
}

/// Lists the files of a bank with data of minions.
async fn of_minions(run: &Run, bank: &'static str) -> Result<Vec<PathBuf>, Failure> {
    let folder = run.parts.opts.cachedir.join(bank);
    let listed = blocking({
        let folder = folder.clone();
        move || names(&folder)
    });
    let ids = listed.await?.into_iter().filter(|name| MinionId::try_from(name.as_str()).is_ok());
    Ok(ids.map(|id| folder.join(format!("{id}.p"))).collect())
}

/// Deletes a file. A file of the mine is deleted by the mine itself, under its lock.
async fn forget(run: &Run, bank: &str, file: &Path) -> Result<(), Failure> {
    if bank != "mine" {
        return remove(file).map_err(|error| format!("{} cannot be removed: {error}", file.display()).into());
    }
    let id = file.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| MinionId::try_from(stem).ok());
    if let Some(id) = id {
        run.parts.mine.change(&id, MineRequest::Flush, &empty_map()).await?;
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| "the cache could not be used")?.map_err(Failure::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["mybank", "web1:base", "a b", "ž-1", "a..b"] {
            assert!(is_name(name), "{name}");
        }
        let long = "x".repeat(NAME_MAX + 1);
        for name in ["", ".", "..", ".hidden", "a/b", "../x", "a\0b", "a\nb", "a\\b", long.as_str()] {
            assert!(!is_name(name), "{name}");
        }
    }
}
