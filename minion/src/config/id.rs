//! The minion's id: from the command line, the configuration, the cache of an earlier start, or the host's name.

use std::fmt;
use std::path::PathBuf;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, ValueExt};

use super::OptsError;

/// Bytes of `minion_id`: an id and a line's end.
const MAX_CACHE: u64 = 4096;

/// Where the id was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdSource {
    /// `--id`
    CommandLine,
    /// `id`
    Setting,
    /// The file `minion_id` beside the configuration.
    Cache(PathBuf),
    /// The host's name.
    HostName,
}

impl fmt::Display for IdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("the command line"),
            Self::Setting => f.write_str("the setting `id`"),
            Self::Cache(path) => write!(f, "{}", path.display()),
            Self::HostName => f.write_str("the host's name"),
        }
    }
}

/// Finds the id; one made from the host's name is kept in `minion_id` unless `minion_id_caching` is off.
pub(super) fn find(config: &Config, given: Option<&str>) -> Result<(MinionId, IdSource), OptsError> {
    let checked = |text: &str, source: IdSource| match text.parse::<MinionId>() {
        Ok(id) => Ok((id, source)),
        Err(e) => Err(OptsError::Id { why: format!("{e} (from {source})"), file: config.path().to_owned() }),
    };
    if let Some(id) = given.filter(|id| !id.is_empty()) {
        return checked(id, IdSource::CommandLine);
    }
    if let Some(id) = config.find(settings::ID)? {
        return checked(&id, IdSource::Setting);
    }
    let caching = config.get(settings::MINION_ID_CACHING)?;
    let cache = config.dir().join("minion_id");
    if caching && let Ok(text) = brine_files::read_named_text(&cache, MAX_CACHE) {
        let text = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default().trim();
        if !text.is_empty() && text != "localhost" {
            return checked(text, IdSource::Cache(cache));
        }
    }
    let (id, source) = checked(&from_host(config)?, IdSource::HostName)?;
    if caching && let Err(e) = brine_protocol::files::write_synced(&cache, id.as_str().as_bytes(), 0o644) {
        tracing::warn!("cannot keep the minion's id in {}: {e}", cache.display());
    }
    Ok((id, source))
}

fn from_host(config: &Config) -> Result<String, ConfigError> {
    let names = crate::host_names::host_names();
    let mut id = if names.fqdn.starts_with("localhost") { names.host_name } else { names.fqdn };
    if config.get(settings::MINION_ID_LOWERCASE)? {
        id = id.to_lowercase();
    }
    match config.get(settings::MINION_ID_REMOVE_DOMAIN)? {
        Value::Nil | Value::Boolean(false) => {}
        Value::Boolean(true) => id = id.split('.').next().unwrap_or_default().to_owned(),
        domains => {
            let one = std::slice::from_ref(&domains);
            let domains = domains.list().unwrap_or(one).iter().map(ValueExt::python_str);
            let mut short = domains.filter_map(|domain| id.strip_suffix(&format!(".{domain}")).map(str::to_owned));
            id = short.next().unwrap_or(id);
        }
    }
    Ok(match config.find(settings::APPEND_DOMAIN)? {
        Some(domain) if !id.ends_with(&format!(".{domain}")) => format!("{id}.{domain}"),
        _ => id,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use brine_protocol::config::Role;

    fn find_in(dir: &std::path::Path, text: &str, given: Option<&str>) -> Result<(MinionId, IdSource), OptsError> {
        find(&Config::from_yaml(text, &dir.join("minion"), Role::Minion).unwrap(), given)
    }

    #[test]
    fn the_nearest_source_wins_and_the_host_name_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("minion_id");
        let (from_host, source) = find_in(dir.path(), "", None).unwrap();
        assert_eq!(source, IdSource::HostName);
        assert_eq!(fs::read_to_string(&cache).unwrap(), from_host.as_str());
        fs::write(&cache, "\u{feff}cached\nsecond line").unwrap();
        assert_eq!(find_in(dir.path(), "", None).unwrap().0.as_str(), "cached");
        assert_eq!(find_in(dir.path(), "id: set", None).unwrap().0.as_str(), "set");
        assert_eq!(find_in(dir.path(), "id: set", Some("given")).unwrap().0.as_str(), "given");
        fs::remove_file(&cache).unwrap();
        find_in(dir.path(), "minion_id_caching: False", None).unwrap();
        assert!(!cache.exists());
    }

    #[test]
    fn an_id_that_names_another_place_is_refused_wherever_it_is_from() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("minion_id"), "../../etc").unwrap();
        for (text, given) in [("", None), ("id: '..'", None), ("id: ok", Some("a/b")), ("id: ok", Some("a\0b"))] {
            assert!(find_in(dir.path(), text, given).is_err(), "{text} {given:?}");
        }
    }
}
