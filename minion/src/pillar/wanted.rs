//! The pillar that the master is asked for.

use brine_protocol::config::{Config, settings};
use brine_protocol::value::{Value, empty_map};

/// One request for a pillar.
pub(crate) struct Wanted {
    pub(super) saltenv: Value,
    pub(super) pillarenv: Value,
    /// A dict that the master merges over the pillar.
    pub(super) overrides: Value,
    /// Whether a master that keeps compiled pillars compiles it anew.
    pub(super) clean_cache: bool,
}

impl Wanted {
    /// The minion's own pillar, for all its jobs.
    pub(crate) fn own(config: &Config, clean_cache: bool) -> Self {
        let saltenv = written(config, settings::SALTENV.row.name);
        Self { saltenv, pillarenv: of_config(config), overrides: empty_map(), clean_cache }
    }

    /// A pillar for one job. Without an environment it is that of the configuration: `pillarenv`, or with
    /// `pillarenv_from_saltenv` the environment of the files.
    pub(crate) fn for_job(
        config: &Config,
        pillarenv: Option<String>,
        saltenv: Option<String>,
        overrides: Option<Value>,
    ) -> Self {
        let from_saltenv = config.get(settings::PILLARENV_FROM_SALTENV).is_ok_and(|from| from);
        let pillarenv = pillarenv.map(Value::from);
        let pillarenv = pillarenv.or_else(|| saltenv.filter(|_| from_saltenv).map(Value::from));
        Self {
            saltenv: Value::Nil,
            pillarenv: pillarenv.unwrap_or_else(|| of_config(config)),
            overrides: overrides.unwrap_or_else(empty_map),
            clean_cache: false,
        }
    }
}

fn of_config(config: &Config) -> Value {
    let from_saltenv = config.get(settings::PILLARENV_FROM_SALTENV).is_ok_and(|from| from);
    match written(config, settings::PILLARENV.row.name) {
        Value::Nil if from_saltenv => written(config, settings::SALTENV.row.name),
        pillarenv => pillarenv,
    }
}

fn written(config: &Config, name: &str) -> Value {
    config.value(name).cloned().unwrap_or(Value::Nil)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use brine_protocol::config::Role;

    use super::*;

    #[test]
    fn environments_come_from_the_call_else_from_the_configuration() {
        let config = |text: &str| {
            Config::from_yaml(&format!("id: a\n{text}"), Path::new("/etc/salt/minion"), Role::Minion).unwrap()
        };
        let asked = |text: &str, pillarenv: Option<&str>, saltenv: Option<&str>| {
            Wanted::for_job(&config(text), pillarenv.map(str::to_owned), saltenv.map(str::to_owned), None).pillarenv
        };
        let from = "pillarenv_from_saltenv: True\nsaltenv: own\n";
        for (text, pillarenv, saltenv, expected) in [
            ("", None, None, Value::Nil),
            ("", None, Some("dev"), Value::Nil),
            ("pillarenv: qa\n", None, Some("dev"), Value::from("qa")),
            ("pillarenv: qa\n", Some("dev"), None, Value::from("dev")),
            (from, None, Some("dev"), Value::from("dev")),
            (from, Some("qa"), Some("dev"), Value::from("qa")),
            (from, None, None, Value::from("own")),
        ] {
            assert_eq!(asked(text, pillarenv, saltenv), expected, "{text} {pillarenv:?} {saltenv:?}");
        }
    }
}
