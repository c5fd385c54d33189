//! Selects the options of a configuration that jobs and runners may read.
//!
//! A list of words cannot cover all secrets, because owners and modules add settings of their own. So only an
//! allow-list is shown: the settings that the table marks as public, and those that the owner names in `config_public`.
//! A grant can add more.

use super::{Config, ConfigError, settings};
use crate::value::{Value, ValueExt, map};
use brine_patterns::fnmatch;

/// Harmless options that are derived from the configuration.
const DERIVED: [&str; 4] = ["conf_file", "__role", "token_dir", "syndic_dir"];

impl Config {
    /// Returns the options that every requester may read. Default options that are not set are null.
    pub fn shown(&self) -> Value {
        self.shown_with(&[])
    }

    /// Like [`Config::shown`], with the settings in `more` added. These are names or globs; `:` leads into dicts.
    pub fn shown_with(&self, more: &[String]) -> Value {
        let public = match self.value(settings::CONFIG_PUBLIC.row.name) {
            None => Vec::new(),
            Some(Value::Array(items)) => items.iter().map(ValueExt::python_str).collect(),
            Some(other) => vec![other.python_str()],
        };
        let names = || public.iter().chain(more).map(String::as_str);
        // A key may contain the delimiter.
        let whole = names().filter(|name| name.contains(':')).map(|name| vec![name]);
        let patterns: Vec<Vec<&str>> = names().map(|name| name.split(':').collect()).chain(whole).collect();
        let patterns: Vec<&[&str]> = patterns.iter().map(Vec::as_slice).collect();
        let entries = self.opts.entries().unwrap_or_default();
        let shown = entries.iter().filter_map(|(key, value)| {
            let name = key.text()?;
            let named = named(value, name, &patterns);
            let value = named.or_else(|| self.is_harmless(name).then(|| harmless(name, value)).flatten())?;
            Some((key.clone(), value))
        });
        Value::Map(shown.collect())
    }

    /// Returns the options of a master that decide how states run on its minions: what `_master_opts` has besides the environments
    /// (§6.1). Minions expect every one of them.
    ///
    /// # Errors
    /// When one of them has the wrong form.
    pub fn told_to_minions(&self) -> Result<Value, ConfigError> {
        let told = [
            settings::TOP_FILE_MERGING_STRATEGY,
            settings::ENV_ORDER,
            settings::DEFAULT_TOP,
            settings::RENDERER,
            settings::FAILHARD,
            settings::STATE_TOP,
            settings::STATE_TOP_SALTENV,
            settings::NODEGROUPS,
            settings::STATE_AUTO_ORDER,
            settings::STATE_EVENTS,
            settings::STATE_AGGREGATE,
            settings::JINJA_ENV,
            settings::JINJA_SLS_ENV,
            settings::JINJA_LSTRIP_BLOCKS,
            settings::JINJA_TRIM_BLOCKS,
        ];
        let told = told.map(|setting| self.get(setting).map(|value| (setting.row.name, value)));
        Ok(map(told.into_iter().collect::<Result<Vec<_>, _>>()?))
    }

    fn is_harmless(&self, name: &str) -> bool {
        // An application for browsers reads its own settings there.
        (self.role == super::Role::Master && name.starts_with("saltgui_"))
            || settings::row(name).is_some_and(|row| row.public && row.on(self.role).is_some())
            || DERIVED.contains(&name)
    }
}

/// Returns the part of an entry that the patterns name: all of it, or values below it.
fn named(value: &Value, name: &str, patterns: &[&[&str]]) -> Option<Value> {
    let mut below = Vec::new();
    for pattern in patterns {
        match pattern {
            [first, rest @ ..] if fnmatch(first, name) => match rest {
                [] => return Some(value.clone()),
                rest => below.push(rest),
            },
            _ => {}
        }
    }
    let some: Vec<(Value, Value)> = value
        .entries()
        .filter(|_| !below.is_empty())?
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), self::named(value, &key.python_str(), &below)?)))
        .collect();
    (!some.is_empty()).then_some(Value::Map(some))
}

/// Returns a harmless option for display, without values that are secret whatever their name, and without the settings
/// of systems in `external_auth`.
fn harmless(name: &str, value: &Value) -> Option<Value> {
    let mut value = without_secrets(value, 0)?;
    if name == "external_auth"
        && let Value::Map(systems) = &mut value
    {
        for (_, users) in systems {
            if let Value::Map(users) = users {
                users.retain(|(user, _)| user.text().is_none_or(|user| !user.starts_with('^')));
            }
        }
    }
    Some(value)
}

/// Upper bound on nesting, deeper than any configuration.
const MAX_DEPTH: usize = 64;

fn without_secrets(value: &Value, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Map(entries) => Some(Value::Map(
            entries
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), without_secrets(value, depth + 1)?)))
                .collect(),
        )),
        Value::Array(items) => {
            Some(Value::Array(items.iter().filter_map(|item| without_secrets(item, depth + 1)).collect()))
        }
        Value::String(text) => {
            let text = text.as_str()?;
            (!text.contains("-----BEGIN") && !has_password(text)).then(|| value.clone())
        }
        other => Some(other.clone()),
    }
}

/// Checks for `scheme://user:password@host`.
fn has_password(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Role;
    use super::super::settings::SettingKind;
    use super::*;

    fn config(role: Role, yaml: &str) -> Config {
        Config::from_yaml(yaml, Path::new("/etc/salt/x"), role).unwrap()
    }

    const OWN: &str = "
keysize: 3072
log_file: tcp://me:hidden@logs/
grains: {role: web}
schedule: {j: {args: [hidden]}}
mine_functions: {db: [mysql.query, hidden]}
bearer: hidden
passcode: hidden
snmp_community: hidden
license: hidden
ssh_priv: hidden
'sdb:uri': hidden
mysql.host: db
mysql.pass: hidden
app: {url: 'https://a/', deep: {x: 1, key: hidden}, list: [hidden]}
";

    #[test]
    fn settings_that_nobody_called_public_are_not_shown() {
        for role in [Role::Master, Role::Minion] {
            let shown = config(
                role,
                &OWN.replace("grains:", "owngrains:").replace("schedule:", "s:").replace("mine_functions:", "m:"),
            );
            let shown = shown.shown();
            assert_eq!(shown.get_i64("keysize"), Some(3072));
            assert!(!shown.python_repr().contains("hidden") && shown.get("app").is_none(), "{shown}");
        }
        let shown = config(Role::Minion, OWN).shown();
        assert_eq!(shown.traverse("grains:role", ":").unwrap().text(), Some("web"));
        assert!(!shown.python_repr().contains("hidden"), "{shown}");
    }

    #[test]
    fn the_owner_shows_what_config_public_names() {
        let public =
            "config_public: ['mysql.h*', 'app:url', 'app:deep:x', 'absent', 'app:list:0', 'app:url:too', '', 'licens']";
        let shown = config(Role::Minion, &format!("{OWN}{public}\n")).shown();
        assert_eq!(shown.get_text("mysql.host"), Some("db"));
        assert_eq!(shown.get("app").unwrap().python_repr(), "{'url': 'https://a/', 'deep': {'x': 1}}");
        assert!(!shown.python_repr().contains("hidden"), "{shown}");
        let whole = config(Role::Minion, &format!("{OWN}config_public: app\n")).shown();
        assert_eq!(whole.traverse("app:deep:key", ":").unwrap().text(), Some("hidden"));
        let more = config(Role::Minion, OWN).shown_with(&["bearer".to_owned(), "app:url".to_owned()]);
        assert_eq!((more.get_text("bearer"), more.get("license")), (Some("hidden"), None));
    }

    /// Every new setting needs a decision whether it is harmless. Text that passes arguments or credentials is not.
    #[test]
    fn each_setting_that_an_owner_fills_is_decided_on() {
        const MAPS: [&str; 13] = [
            "file_roots",
            "pillar_roots",
            "peer",
            "peer_run",
            "external_auth",
            "publisher_acl",
            "publisher_acl_blacklist",
            "nodegroups",
            "grains",
            "sandbox",
            "mine_get",
            "jinja_env",
            "jinja_sls_env",
        ];
        for row in settings::rows() {
            let key = row.name;
            let decided = !row.public || MAPS.contains(&key.split(':').next().unwrap());
            let speaks = ["pass", "secret", "token", "priv"].iter().any(|word| key.contains(word));
            let known = ["token_expire", "token_expire_user_override", "keep_acl_in_token"].contains(&key);
            let is_map = [row.master, row.minion].into_iter().flatten().any(|side| side.value().entries().is_some());
            assert!(!is_map && !matches!(row.kind, SettingKind::Mapping) || decided, "{key}");
            assert!(!speaks || decided || known, "{key}");
        }
    }
}
