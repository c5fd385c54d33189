//! The settings of the reactor.

use std::sync::Arc;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::options;
use brine_protocol::value::{Value, ValueExt as _};

use super::entry::Entry;
use crate::access::{Permission, permissions};

/// Upper bound on the reactions.
pub(super) const ENTRIES_MAX: usize = 10_000;

options! {
    /// The settings of the reactor.
    #[derive(Debug, Clone)]
    pub(crate) struct ReactorOpts from c {
        /// `reactor`
        pub(super) entries: Vec<Arc<Entry>> = entries(c)?,
        /// `reactor_acl`; `None` permits everything.
        pub(super) permissions: Option<Arc<[Permission]>> = acl(c)?,
        /// `reactor_worker_threads`
        pub(super) at_once: usize = c.get(settings::REACTOR_WORKER_THREADS)?,
        /// `reactor_worker_hwm`
        pub(super) waiting_max: usize = c.get(settings::REACTOR_WORKER_HWM)?,
    }
}

fn entries(c: &Config) -> Result<Vec<Arc<Entry>>, ConfigError> {
    let wrong = |why: String| {
        let form = "a list of maps, each of one glob of tags to a list of SLS files (salt://… or /…)";
        c.wrong(settings::REACTOR.row.name, format!("{form}; {why}"))
    };
    let given = match c.get(settings::REACTOR)? {
        Value::Nil => return Ok(Vec::new()),
        given => given,
    };
    let Some(list) = given.list() else { return Err(wrong("it is no list".to_owned())) };
    if list.len() > ENTRIES_MAX {
        return Err(wrong(format!("it has more than {ENTRIES_MAX} entries")));
    }
    let mut entries: Vec<Arc<Entry>> = Vec::with_capacity(list.len());
    for (at, written) in list.iter().enumerate() {
        let entry = Entry::new(written).map_err(|why| wrong(format!("entry {}: {why}", at + 1)))?;
        entries.push(Arc::new(entry));
    }
    Ok(entries)
}

fn acl(c: &Config) -> Result<Option<Arc<[Permission]>>, ConfigError> {
    let given = match c.get(settings::REACTOR_ACL)? {
        Value::Nil => return Ok(None),
        given => given,
    };
    permissions(&given).map(|list| Some(list.into())).map_err(|why| {
        let form = "a list of functions, of maps of a target to functions, and of @runner, @wheel and their modules";
        c.wrong(settings::REACTOR_ACL.row.name, format!("{form}; {why}"))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use brine_protocol::config::Role;

    use super::*;

    fn opts(yaml: &str) -> Result<ReactorOpts, String> {
        let config = Config::from_yaml(yaml, Path::new("/x/master"), Role::Master).unwrap();
        ReactorOpts::from_config(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn a_configuration_of_salt_is_taken() {
        let plain = "
reactor:
  - 'salt/minion/*/start':
    - /srv/reactor/start.sls
    - /srv/reactor/monitor.sls
  - 'salt/cloud/*/destroyed':
    - /srv/reactor/destroy/*.sls
  - 'myco/custom/event/tag':
    - salt://reactor/mycustom.sls
  - one: salt://reactor/one.sls
  - none: []
";
        let opts = opts(plain).unwrap();
        let shown: Vec<_> = opts.entries.iter().map(|entry| (entry.tag.as_str(), entry.sls.len())).collect();
        let all = [
            ("salt/minion/*/start", 2),
            ("salt/cloud/*/destroyed", 1),
            ("myco/custom/event/tag", 1),
            ("one", 1),
            ("none", 0),
        ];
        assert_eq!(shown, all);
        assert!(opts.entries.iter().all(|entry| !entry.from_minions) && opts.permissions.is_none());
        assert!(super::tests::opts("{}").unwrap().entries.is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        for (yaml, said) in [
            ("reactor: /etc/salt/reactor.conf", "it is no list"),
            ("reactor: {a: [/b]}", "it is no list"),
            ("reactor: [a]", "entry 1: it is no map"),
            ("reactor: [{a: /a.sls}, {from_minions: true}]", "entry 2: it names no tag"),
            ("reactor: [{a: /a.sls, b: /b.sls}]", "entry 1: it names two tags"),
            ("reactor: [{a: /a.sls, from_minions: yes please}]", "from_minions is true or false"),
            ("reactor: [{a: /a.sls, from_engines: 1}]", "from_engines is true or false"),
            ("reactor: [{a: [reactor/a.sls]}]", "neither begins with salt:// nor with /"),
            ("reactor: [{a: [/srv/../etc/shadow]}]", "must not have .."),
            ("reactor: [{a: ['salt://../a.sls']}]", "salt://../a.sls"),
            ("reactor: [{a: [{b: c}]}]", "is no SLS file"),
            ("reactor: [{'': /a.sls}]", "it names no tag"),
            ("reactor_acl: test.ping", "reactor_acl"),
            ("reactor_acl: ['(']", "reactor_acl"),
            ("reactor_worker_hwm: 0", "reactor_worker_hwm"),
        ] {
            let error = opts(yaml).unwrap_err();
            assert!(error.contains(said) && !error.contains('\n'), "{yaml}: {error}");
        }
    }

    #[test]
    fn rights_have_the_grammar_of_users() {
        assert_eq!(
            opts("reactor_acl: ['test.*', {'web*': [state.apply]}, '@runner']").unwrap().permissions.unwrap().len(),
            3
        );
        assert_eq!(opts("reactor_acl: []").unwrap().permissions.unwrap().len(), 0);
    }
}
