//! The minion's id: from the command line, the configuration, the cache of an earlier start, or the host's name.

use std::fmt;
use std::path::PathBuf;

use brine_protocol::config::Config;
use brine_protocol::ids::MinionId;

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
    if let Some(id) = config.opt_str("id")? {
        return checked(&id, IdSource::Setting);
    }
    let caching = config.value("minion_id_caching").is_none_or(|v| v.as_bool() != Some(false));
    let cache = config.dir().join("minion_id");
    if caching && let Ok(text) = brine_files::read_named_text(&cache, MAX_CACHE) {
        let text = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default().trim();
        if !text.is_empty() && text != "localhost" {
            return checked(text, IdSource::Cache(cache));
        }
    }
    let (id, source) = checked(&from_host(config), IdSource::HostName)?;
    if caching && let Err(e) = brine_protocol::keys::write_file(&cache, id.as_str().as_bytes(), 0o644) {
        tracing::warn!("cannot keep the minion's id in {}: {e}", cache.display());
    }
    Ok((id, source))
}

fn from_host(config: &Config) -> String {
    let names = crate::host_names::host_names();
    let mut id = if names.fqdn.starts_with("localhost") { names.host_name } else { names.fqdn };
    let on = |key: &str| config.value(key).and_then(brine_protocol::value::Value::as_bool) == Some(true);
    if on("minion_id_lowercase") {
        id = id.to_lowercase();
    }
    match config.value("minion_id_remove_domain") {
        Some(v) if v.as_bool() == Some(true) => id = id.split('.').next().unwrap_or_default().to_owned(),
        Some(_) => {
            for domain in config.get_list("minion_id_remove_domain").unwrap_or_default() {
                if let Some(short) = id.strip_suffix(&format!(".{domain}")) {
                    id = short.to_owned();
                    break;
                }
            }
        }
        None => {}
    }
    match config.opt_str("append_domain") {
        Ok(Some(domain)) if !id.ends_with(&format!(".{domain}")) => format!("{id}.{domain}"),
        _ => id,
    }
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
