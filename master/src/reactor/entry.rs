//! One reaction: a glob of tags and its SLS files.

use std::sync::atomic::{AtomicU64, Ordering};

use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, ValueExt as _, map};

/// The key of an entry, beside its tag, that lets it react to events of minions.
const FROM_MINIONS: &str = "from_minions";
/// The same for events of engines.
const FROM_ENGINES: &str = "from_engines";
/// Upper bound on the characters of a glob, and of a path.
const TEXT_MAX: usize = 4_096;
/// Upper bound on the SLS files of an entry.
const SLS_MAX: usize = 1_000;

/// An entry of `reactor`.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its number, which no other entry of this process has.
    pub(super) id: u64,
    /// The glob of tags.
    pub(super) tag: String,
    pub(super) sls: Vec<Sls>,
    /// It reacts to events that minions fire, too.
    pub(super) from_minions: bool,
    /// It reacts to events that engines fire, too.
    pub(super) from_engines: bool,
    /// As it was written.
    pub(super) written: Value,
}

/// Where SLS files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sls {
    /// A file of the file server.
    Served { path: String, saltenv: String },
    /// An absolute path, or a glob of such.
    Path(String),
}

impl Entry {
    /// Reads an entry as the configuration has it.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence.
    pub(super) fn new(written: &Value) -> Result<Self, String> {
        let entries = written.entries().ok_or("it is no map")?;
        let (mut named, mut from_minions, mut from_engines) = (None, false, false);
        for (key, value) in entries {
            let key = key.python_str();
            match (key.as_str(), value) {
                (FROM_MINIONS, Value::Boolean(yes)) => from_minions = *yes,
                (FROM_ENGINES, Value::Boolean(yes)) => from_engines = *yes,
                (FROM_ENGINES, _) => return Err("from_engines is true or false".to_owned()),
                (FROM_MINIONS, _) => return Err("from_minions is true or false".to_owned()),
                _ if named.is_some() => {
                    return Err(
                        "it names two tags: write an entry for each, and from_minions and from_engines as the only other keys".to_owned()
                    );
                }
                _ => named = Some((key, value)),
            }
        }
        let (tag, sls) = named.filter(|(tag, _)| !tag.is_empty()).ok_or("it names no tag")?;
        Ok(Self::of(tag, sls, from_minions)?.with_engines(from_engines))
    }

    /// Makes an entry of its parts.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn of(tag: String, sls: &Value, from_minions: bool) -> Result<Self, String> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if tag.chars().count() > TEXT_MAX {
            return Err(format!("its tag has more than {TEXT_MAX} characters"));
        }
        let paths = sls.list().unwrap_or(std::slice::from_ref(sls));
        if paths.len() > SLS_MAX {
            return Err(format!("it has more than {SLS_MAX} SLS files"));
        }
        let mut written = map([(tag.as_str(), sls.clone())]);
        if from_minions {
            written.insert(FROM_MINIONS, true);
        }
        let sls = paths.iter().map(Sls::new).collect::<Result<_, _>>()?;
        Ok(Self { id: NEXT.fetch_add(1, Ordering::Relaxed), tag, sls, from_minions, from_engines: false, written })
    }

    /// Lets it react to events of engines too, or not.
    fn with_engines(mut self, from_engines: bool) -> Self {
        self.from_engines = from_engines;
        if from_engines {
            self.written.insert(FROM_ENGINES, true);
        }
        self
    }
}

impl Sls {
    fn new(path: &Value) -> Result<Self, String> {
        let text = path.text().ok_or_else(|| format!("{} is no SLS file", path.python_repr()))?;
        if text.chars().count() > TEXT_MAX || text.contains('\0') {
            return Err("a path is too long, or has a NUL".to_owned());
        }
        if let Some(path) = text.strip_prefix("salt://") {
            let (path, saltenv) = path.split_once("?saltenv=").unwrap_or((path, "base"));
            if SafePath::try_from(path).is_err() || Saltenv::try_from(saltenv).is_err() {
                return Err(format!("{text:?} is no path below the file roots"));
            }
            return Ok(Self::Served { path: path.to_owned(), saltenv: saltenv.to_owned() });
        }
        if !text.starts_with('/') {
            return Err(format!("{text:?} neither begins with salt:// nor with /"));
        }
        if text.split('/').any(|part| part == "..") {
            return Err(format!("{text:?} must not have .. in it"));
        }
        Ok(Self::Path(text.to_owned()))
    }
}

impl std::fmt::Display for Sls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Served { path, saltenv } if saltenv == "base" => write!(f, "salt://{path}"),
            Self::Served { path, saltenv } => write!(f, "salt://{path}?saltenv={saltenv}"),
            Self::Path(path) => f.write_str(path),
        }
    }
}
