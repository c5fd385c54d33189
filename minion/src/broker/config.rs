//! `brine:host/config`: the minion's settings that are public, and those that the module was granted.

use std::borrow::Cow;

use brine_protocol::config::{Config, settings};
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{Caller, Capability, ConfigOp, HostError, Names};

use super::{MinionBroker, Perform, checked_key};

const CONFIG_PUBLIC: &str = settings::CONFIG_PUBLIC.row.name;

impl Perform<ConfigOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: ConfigOp) -> Result<Value, HostError> {
        answer(&self.opts.config, caller, op)
    }
}

fn answer(config: &Config, caller: &Caller, op: ConfigOp) -> Result<Value, HostError> {
    let ConfigOp::Get { key } = op else {
        return Ok(visible(config, caller.grants.names(Capability::Config)).into_owned());
    };
    let key = checked_key(&key)?;
    if let Some(found) = look(&visible(config, caller.grants.names(Capability::Config)), key) {
        return Ok(found);
    }
    if look(config.opts(), key).is_none() {
        return Ok(Value::Nil);
    }
    // An error and not nil, so that the author of the module learns why the setting is missing.
    Err(HostError::Denied(format!(
        "module {} may not read the setting {key}{}; for all modules, {CONFIG_PUBLIC} in the minion's configuration names settings that are \
         no secrets",
        caller.module,
        caller.setting_line(&nameable(config.opts(), key))
    )))
}

fn visible<'a>(config: &'a Config, granted: &Names) -> Cow<'a, Value> {
    match granted {
        Names::Any => Cow::Borrowed(config.opts()),
        Names::Only(names) => Cow::Owned(config.shown_with(names)),
    }
}

fn look(opts: &Value, key: &str) -> Option<Value> {
    opts.get(key).or_else(|| opts.traverse(key, ":")).cloned()
}

/// The part of `key` that a grant can name: the keys that lead through dicts.
fn nameable(opts: &Value, key: &str) -> String {
    if opts.get(key).is_some() {
        return key.to_owned();
    }
    let mut at = opts;
    let mut parts = Vec::new();
    for part in key.split(':') {
        let Some(below) = at.entries().and_then(|_| at.get(part)) else { break };
        parts.push(part);
        at = below;
    }
    parts.join(":")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use brine_kit_sandbox::{caller, job};
    use brine_protocol::config::Role;
    use brine_sandbox::Grants;

    use super::super::MAX_KEY_BYTES;
    use super::*;

    const SECRETS: [&str; 11] = [
        "bearer",
        "passcode",
        "snmp_community",
        "license",
        "ssh_priv",
        "sdb:uri",
        "mysql.pass",
        "app",
        "app:PASSWORD",
        "app:peers:0",
        "schedule",
    ];

    fn sample() -> Config {
        let yaml = "id: m1\nkeysize: 2048\nbearer: hunter2\npasscode: hunter2\nsnmp_community: hunter2\nlicense: hunter2\n\
             ssh_priv: hunter2\n'sdb:uri': hunter2\nmysql.host: db\nmysql.pass: hunter2\nschedule: {a: hunter2}\n\
             app: {url: 'https://a.example/', PASSWORD: hunter2, peers: [{host: b, key: hunter2}]}\n\
             config_public: [mysql.host]\n";
        Config::from_yaml(yaml, Path::new("/etc/salt/minion"), Role::Minion).unwrap()
    }

    fn caller_with(config: Names) -> Caller {
        let mut grants = Grants::default();
        grants.set_names(Capability::Config, config);
        caller(job("20261120134740245008", "m.f"), "m", grants)
    }

    fn get(granted: &Names, key: &str) -> Result<Value, HostError> {
        answer(&sample(), &caller_with(granted.clone()), ConfigOp::Get { key: key.to_owned() })
    }

    #[test]
    fn settings_that_are_not_public_need_a_grant() {
        let none = Names::default();
        for (key, expected) in [("id", "m1"), ("mysql.host", "db")] {
            assert_eq!(get(&none, key).unwrap().text(), Some(expected), "{key}");
        }
        assert_eq!(get(&none, "keysize").unwrap(), Value::from(2048));
        for key in ["none", "", ":", "id:x"] {
            assert_eq!(get(&none, key), Ok(Value::Nil), "{key}");
        }
        for key in SECRETS {
            let Err(HostError::Denied(why)) = get(&none, key) else { panic!("{key} is shown") };
            assert!(why.contains(key) && why.contains(CONFIG_PUBLIC) && !why.contains("hunter2"), "{why}");
        }
        assert!(get(&none, &"x".repeat(MAX_KEY_BYTES + 1)).is_err());
    }

    #[test]
    fn a_refusal_names_what_a_grant_can_name() {
        let name = |key: &str| nameable(sample().opts(), key);
        for (key, named) in [
            ("bearer", "bearer"),
            ("sdb:uri", "sdb:uri"),
            ("app:peers:0", "app:peers"),
            ("app:PASSWORD", "app:PASSWORD"),
        ] {
            assert_eq!(name(key), named);
        }
    }

    #[test]
    fn a_grant_shows_what_it_names_and_no_more() {
        let some = Names::Only(vec!["bearer".into(), "app:url".into(), "sdb:uri".into()]);
        assert_eq!(get(&some, "bearer").unwrap().text(), Some("hunter2"));
        assert_eq!(get(&some, "app:url").unwrap().text(), Some("https://a.example/"));
        assert_eq!(get(&some, "app").unwrap().python_repr(), "{'url': 'https://a.example/'}");
        for key in ["license", "app:PASSWORD", "app:peers", "mysql.pass"] {
            assert!(get(&some, key).is_err(), "{key}");
        }
        for key in SECRETS {
            assert!(get(&Names::Any, key).is_ok(), "{key}");
        }
    }
}
