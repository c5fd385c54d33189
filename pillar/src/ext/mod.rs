//! `ext_pillar`: sources of pillar besides `pillar_roots`.
//!
//! A source is one file with its reader of arguments, and one row in [`SOURCES`].

mod file_tree;
mod http;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value as Wire, ValueExt as _};
use brine_render::{Dict, Value};

use crate::opts::PillarOpts;
use crate::problems::Problems;
use crate::roots::Files;

/// A source of pillar.
pub(crate) trait ExternalPillar: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// Returns what it has for a minion: a dict, or something that is false. Blocks.
    ///
    /// # Errors
    /// A cause for the log, without values of the pillar.
    fn pillar(&self, asked: &Asked<'_>, fetch: &dyn Fetch) -> Result<Value, String>;
}

/// What a source is asked with.
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a MinionId,
    /// A map, with the proved id.
    pub(crate) grains: &'a Wire,
    pub(crate) pillarenv: Option<&'a str>,
    pub(crate) files: &'a Files<'a>,
    pub(crate) opts: &'a PillarOpts,
    /// `opts` of templates.
    pub(crate) context: &'a Dict,
    pub(crate) problems: &'a Problems,
}

/// Fetches documents for sources. Separate, so that a compilation knows no connections.
pub(crate) trait Fetch: Send + Sync {
    /// Returns the body of the answer to a GET. Blocks, but not after `ends`.
    ///
    /// # Errors
    /// One line, without the address's path and without headers.
    fn get(&self, request: &Get<'_>) -> Result<Vec<u8>, String>;
}

/// A request. It does not print: headers may hold credentials.
pub(crate) struct Get<'a> {
    pub(crate) url: &'a str,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) max: usize,
    pub(crate) timeout: Duration,
    pub(crate) ends: Instant,
}

/// A configured source. It does not print, because its arguments may hold credentials.
#[derive(Clone)]
pub(crate) struct Source(Arc<dyn ExternalPillar>);

impl Source {
    pub(crate) fn name(&self) -> &'static str {
        self.0.name()
    }

    pub(crate) fn pillar(&self, asked: &Asked<'_>, fetch: &dyn Fetch) -> Result<Value, String> {
        self.0.pillar(asked, fetch)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Makes a source from its arguments. The error is the end of "must be".
type Read = fn(&Arguments<'_>) -> Result<Arc<dyn ExternalPillar>, String>;

/// All sources.
const SOURCES: [(&str, Read); 3] =
    [("file_tree", file_tree::read), ("http_json", http::read_json), ("http_yaml", http::read_yaml)];

/// Reads `ext_pillar`.
///
/// # Errors
/// A source is not there, or has other arguments.
pub(crate) fn read(c: &Config) -> Result<Vec<Source>, ConfigError> {
    let name = settings::EXT_PILLAR.row.name;
    let wrong = |why: String| c.wrong(name, why);
    let Some(value) = c.find(settings::EXT_PILLAR)?.filter(|value| value.truthy()) else { return Ok(Vec::new()) };
    let Some(entries) = value.list() else { return Err(wrong("a list of sources".to_owned())) };
    let mut sources = Vec::new();
    for entry in entries {
        let Some([_, ..]) = entry.entries() else {
            return Err(wrong("a list of dicts, one for each source".to_owned()));
        };
        for (source, arguments) in entry.entries().unwrap_or_default() {
            let source = source.python_str();
            let Some((_, read)) = SOURCES.iter().find(|(known, _)| *known == source) else {
                let known: Vec<&str> = SOURCES.iter().map(|(known, _)| *known).collect();
                return Err(wrong(format!("made of the sources {}; there is no {source:?}", known.join(", "))));
            };
            let read = read(&Arguments { value: arguments, c });
            sources.push(Source(read.map_err(|why| wrong(format!("right for {source}: {why}")))?));
        }
    }
    Ok(sources)
}

/// The arguments of a source: a dict, a list, or the first one alone, as Salt passes them.
pub(crate) struct Arguments<'a> {
    value: &'a Wire,
    pub(crate) c: &'a Config,
}

impl<'a> Arguments<'a> {
    /// The argument at a place or with a name.
    fn get(&self, at: usize, name: &str) -> Option<&'a Wire> {
        let found = match self.value {
            Wire::Map(_) => self.value.get(name),
            Wire::Array(items) => items.get(at),
            alone => (at == 0).then_some(alone),
        };
        found.filter(|value| !value.is_nil())
    }

    fn text(&self, at: usize, name: &str) -> Result<Option<String>, String> {
        let text = |value: &Wire| value.text().map(str::to_owned).ok_or_else(|| format!("{name} is no text"));
        self.get(at, name).map(text).transpose()
    }

    fn is(&self, at: usize, name: &str) -> bool {
        self.get(at, name).is_some_and(|value| value.truthy())
    }

    fn texts(&self, at: usize, name: &str) -> Vec<String> {
        match self.get(at, name) {
            None => Vec::new(),
            Some(Wire::Array(items)) => items.iter().map(|item| item.python_str()).collect(),
            Some(alone) => vec![alone.python_str()],
        }
    }

    /// Refuses arguments that the source does not have.
    fn only(&self, names: &[&str]) -> Result<(), String> {
        let unknown = match self.value {
            Wire::Map(entries) => {
                entries.iter().map(|(name, _)| name.python_str()).find(|name| !names.contains(&name.as_str()))
            }
            Wire::Array(items) if items.len() > names.len() => Some(format!("number {}", names.len() + 1)),
            _ => None,
        };
        unknown.map_or(Ok(()), |name| Err(format!("there is no argument {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use brine_protocol::config::Role;

    fn read_text(text: &str) -> Result<Vec<&'static str>, String> {
        let config =
            Config::from_yaml(&format!("ext_pillar: {text}"), Path::new("/etc/salt/master"), Role::Master).unwrap();
        read(&config).map(|sources| sources.iter().map(Source::name).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert_eq!(read_text("[]").unwrap().len(), 0);
        let two = "[{file_tree: {root_dir: /srv}}, {http_json: {url: 'http://h.example/%s', password: hunter2}}, {http_yaml: 'https://h.example/'}]";
        assert_eq!(read_text(two).unwrap(), ["file_tree", "http_json", "http_yaml"]);
        for (text, said) in [
            ("[{git: [x]}]", "there is no \"git\""),
            ("{file_tree: {root_dir: /srv}}", "a list of sources"),
            ("[file_tree]", "a list of dicts"),
            ("[{file_tree: {}}]", "root_dir"),
            ("[{file_tree: {root_dir: /srv, roots: 1}}]", "no argument roots"),
            ("[{http_json: {url: 'ftp://h/'}}]", "url"),
            ("[{http_json: {url: 'http://u:hunter2@h/'}}]", "url"),
            ("[{cmd_yaml: 'cat /etc/shadow'}]", "there is no \"cmd_yaml\""),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.contains(said) && !error.contains("hunter2"), "{text}: {error}");
        }
    }
}
