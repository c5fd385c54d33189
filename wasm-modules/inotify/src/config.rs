//! What is watched, as the owner wrote it.

use brine_guest::host::watches::{Event, Watch};
use brine_guest::{Value, fnmatch};
use brine_render::regex::{Flags, Regex};

use crate::names;

/// Upper bound on the steps of one search that goes back.
const STEPS: usize = 100_000;
/// What is excluded of lost events: nothing.
const OVERFLOW: u32 = 0x4000;

/// Judges a configuration, in Salt's words.
pub fn judge(config: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("Configuration for inotify beacon {what}"));
    let files = match config.get("files") {
        None => return wrong("must include files."),
        Some(Value::Dict(files)) => files,
        Some(_) => return wrong("invalid, files must be a dict."),
    };
    for (_, said) in files {
        if !matches!(said, Value::Dict(_)) {
            return wrong("must be a list of dictionaries.");
        }
        if ["mask", "recurse", "auto_add"].iter().all(|key| said.get(key).is_none()) {
            return wrong("must contain mask, recurse or auto_add items.");
        }
        for key in ["auto_add", "recurse"] {
            if said.get(key).is_some_and(|value| !matches!(value, Value::Bool(_))) {
                return wrong(&format!("{key} must be boolean."));
            }
        }
        match said.get("mask") {
            None => {}
            Some(Value::List(words)) => {
                if let Some(word) = words.iter().find(|word| word.text().and_then(names::bit).is_none()) {
                    return wrong(&format!("invalid mask option {}.", word.to_text()));
                }
            }
            Some(_) => return wrong("mask must be list."),
        }
    }
    Ok(())
}

/// The paths that are watched.
pub struct Files(Vec<File>);

struct File {
    path: String,
    mask: u32,
    recurse: bool,
    auto_add: bool,
    exclude: Vec<Exclude>,
}

enum Exclude {
    Beginning(String),
    Glob(String),
    Regex { search: Regex, at_start: Regex },
}

impl Files {
    pub fn read(config: &Value) -> Result<Self, String> {
        let Some(Value::Dict(files)) = config.get("files") else { return Err("there are no files".into()) };
        let is = |said: &Value, key: &str| said.get(key).is_some_and(Value::truthy);
        let files = files.iter().map(|(path, said)| {
            let path = path.to_text();
            let plain = path.trim_end_matches('/');
            File {
                path: if plain.is_empty() { "/".into() } else { plain.into() },
                mask: match said.get("mask") {
                    Some(Value::List(words)) => {
                        names::mask(words.iter().filter_map(|word| word.text().and_then(names::bit)))
                    }
                    _ => names::DEFAULT,
                },
                recurse: is(said, "recurse"),
                auto_add: is(said, "auto_add"),
                exclude: match said.get("exclude") {
                    Some(Value::List(items)) => items.iter().filter_map(Exclude::read).collect(),
                    _ => Vec::new(),
                },
            }
        });
        Ok(Self(files.collect()))
    }

    pub fn watches(&self) -> Vec<Watch> {
        let watch = |file: &File| Watch {
            path: file.path.clone(),
            mask: file.mask,
            recurse: file.recurse,
            auto_add: file.auto_add,
            skip: file.exclude.iter().filter_map(Exclude::beginning).collect(),
        };
        self.0.iter().map(watch).collect()
    }

    /// Whether an event at a path is not to be told.
    pub fn exclude(&self, event: &Event, path: &str) -> bool {
        if event.mask & OVERFLOW != 0 {
            return false;
        }
        let around = |file: &&File| {
            let rest = event.path.strip_prefix(file.path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let Some(file) = self.0.iter().filter(around).max_by_key(|file| file.path.len()) else { return false };
        file.exclude.iter().any(|exclude| exclude.matches(&file.path, &event.path, path))
    }
}

impl Exclude {
    /// None for an expression that is none: the log of the minion cannot say more than that nothing is excluded.
    fn read(said: &Value) -> Option<Self> {
        match said {
            Value::Dict(entries) => {
                let (pattern, how) = entries.first()?;
                let pattern = pattern.to_text();
                if !how.get("regex").is_some_and(Value::truthy) {
                    return Some(Self::Beginning(pattern));
                }
                let search = Regex::new(&pattern, Flags::default(), STEPS).ok()?;
                Some(Self::Regex { search, at_start: Regex::at_start(&pattern, Flags::default(), STEPS).ok()? })
            }
            other => {
                let pattern = other.to_text();
                Some(if pattern.contains('*') { Self::Glob(pattern) } else { Self::Beginning(pattern) })
            }
        }
    }

    fn beginning(&self) -> Option<String> {
        match self {
            Self::Beginning(path) if !path.is_empty() => Some(path.clone()),
            _ => None,
        }
    }

    /// `root` is watched, `directory` is where something happened, to `path`.
    fn matches(&self, root: &str, directory: &str, path: &str) -> bool {
        match self {
            Self::Beginning(beginning) => path.starts_with(beginning.as_str()),
            Self::Glob(glob) => fnmatch(glob, path),
            // Salt does not watch a directory that an expression matches: nothing below it is told.
            Self::Regex { search, at_start } => {
                matches!(search.find(path), Ok(Some(_)))
                    || directories(root, directory).any(|directory| matches!(at_start.find(directory), Ok(Some(_))))
            }
        }
    }
}

/// A directory and those around it, up to the one that is watched.
fn directories<'a>(root: &'a str, directory: &'a str) -> impl Iterator<Item = &'a str> {
    let outer = |path: &&'a str| path.rsplit_once('/').map(|(outer, _)| outer);
    std::iter::successors(Some(directory), outer).take_while(|path| path.len() > root.trim_end_matches('/').len())
}
