//! `config`: settings, then grains, then the pillar, then what the pillar has of the master's settings.

use brine_patterns::Glob;

use super::call::{Call, Row};
use super::{Answer, Level};
use crate::data::merge::merge as merge_by;
use crate::data::{CallError, argument, traverse};
use crate::value::{Dict, Key, Value};
use crate::yaml::{self, Limits};

/// What Salt answers if nobody says otherwise.
const DEFAULTS: &str = "{mongo.db: salt, mongo.password: '', mongo.port: 27017, mongo.user: '', redis.db: '0', \
    redis.host: salt, redis.port: 6379, test.foo: unconfigured, ca.cert_base_path: /etc/pki, solr.cores: [], \
    solr.host: localhost, solr.port: '8983', solr.baseurl: /solr, solr.type: master, solr.request_timeout: null, \
    solr.init_script: /etc/rc.d/solr, solr.dih.import_options: {clean: false, optimize: true, commit: true, verbose: \
    false}, solr.backup_path: null, solr.num_backups: 1, poudriere.config: /usr/local/etc/poudriere.conf, \
    poudriere.config_dir: /usr/local/etc/poudriere.d, ldap.uri: '', ldap.server: localhost, ldap.port: '389', ldap.tls: \
    false, ldap.no_verify: false, ldap.anonymous: true, ldap.scope: 2, ldap.attrs: null, ldap.binddn: '', ldap.bindpw: \
    '', hosts.file: /etc/hosts, aliases.file: /etc/aliases, virt: {tunnel: false, images: /srv/salt-images}, \
    docker.exec_driver: docker-exec, docker.compare_container_networks: {static: [Aliases, Links, IPAMConfig], \
    automatic: [IPAddress, Gateway, GlobalIPv6Address, IPv6Gateway]}}";

pub(super) const ROWS: &[Row] = &[
    Row::new("get", "key default? delimiter? merge? omit_opts? omit_pillar? omit_master? omit_grains?", get),
    Row::new("option", "value default? omit_opts? omit_grains? omit_pillar? omit_master? omit_all? wildcard?", option),
    Row::new("merge", "value default? omit_opts? omit_master? omit_pillar?", merge),
    Row::new("dot_vals", "value", dot_vals),
    Row::new("items", "", |call| Ok(Value::Dict(call.surroundings.opts.clone()))),
    Row::new("backup_mode", "backup?", backup_mode),
    Row::new("valid_fileproto", "uri", valid_fileproto),
    Row::new("manage_mode", "mode", manage_mode),
];

fn defaults() -> Value {
    yaml::load(DEFAULTS, &Limits::default()).unwrap_or_default()
}

fn get(call: &Call<'_>) -> Answer {
    let surroundings = call.surroundings;
    let (key, delimiter) = (call.need("key"), call.text("delimiter", ":"));
    let dicts = [
        ("omit_opts", Value::Dict(surroundings.opts.clone())),
        ("omit_grains", Value::Dict(surroundings.grains.clone())),
        ("omit_pillar", Value::Dict(surroundings.pillar.clone())),
        ("omit_master", surroundings.master()),
    ];
    let default = || call.get("default").cloned().unwrap_or_else(|| "".into());
    if let Some(strategy) = call.given("merge") {
        let strategy = match strategy.as_str() {
            Some(name @ ("recurse" | "overwrite")) => name,
            _ => {
                surroundings.say(Level::Warning, "config.get: an unknown strategy to merge, taken for recurse");
                "recurse"
            }
        };
        // only what is under the first part of the key decides
        let mut data = only(&defaults(), &key, &delimiter);
        for (_, dict) in [&dicts[3], &dicts[2], &dicts[1], &dicts[0]] {
            data = merge_by(&data, &only(dict, &key, &delimiter), strategy, false, &surroundings.budget)?;
        }
        return Ok(traverse(&data, &key, &delimiter)?.unwrap_or_else(default));
    }
    for (omit, dict) in &dicts {
        if !call.flag(omit, false)
            && let Some(found) = traverse(dict, &key, &delimiter)?.filter(|found| found.as_str() != Some("_|-"))
        {
            return Ok(found);
        }
    }
    Ok(traverse(&defaults(), &key, &delimiter)?.unwrap_or_else(default))
}

/// The part of a dict that a key leads to.
fn only(dict: &Value, key: &Value, delimiter: &str) -> Value {
    let (Value::Dict(dict), Value::Str(key)) = (dict, key) else { return dict.clone() };
    let first = key.split(delimiter).next().unwrap_or_default();
    let names = [Value::str(first), argument(first)];
    let keys = names.into_iter().filter_map(|name| Key::new(name).ok());
    let entries = keys.filter_map(|key| dict.borrow().get(&key).cloned().map(|value| (key, value)));
    entries.collect::<Dict>().into()
}

fn entry(dict: &Value, key: &Value) -> Result<Option<Value>, CallError> {
    let Value::Dict(dict) = dict else { return Ok(None) };
    let key = Key::new(key.clone()).map_err(|why| CallError::python(why.to_string()))?;
    Ok(dict.borrow().get(&key).cloned())
}

fn option(call: &Call<'_>) -> Answer {
    let surroundings = call.surroundings;
    let value = call.need("value");
    let all = call.flag("omit_all", false);
    let omits = |name: &str| all || call.flag(name, false);
    let opts = Value::Dict(surroundings.opts.clone());
    let grains = Value::Dict(surroundings.grains.clone());
    let pillar = Value::Dict(surroundings.pillar.clone());
    let sources = [
        (omits("omit_opts"), opts),
        (omits("omit_grains"), grains),
        (omits("omit_pillar"), pillar),
        (omits("omit_master"), surroundings.master()),
    ];
    if call.flag("wildcard", false) {
        let Value::Str(pattern) = &value else {
            return Err(CallError::python(format!(
                "expected str, bytes or os.PathLike object, not {}",
                value.type_name()
            )));
        };
        let (glob, made) = (Glob::new(pattern), Dict::default());
        let add = |dict: &Value, replaces: bool| {
            let Value::Dict(dict) = dict else { return };
            for (key, value) in dict.borrow().iter() {
                if key.as_str().is_some_and(|name| glob.matches(name)) && (replaces || !made.borrow().contains_key(key))
                {
                    made.borrow_mut().insert(key.clone(), value.clone());
                }
            }
        };
        sources.iter().rev().filter(|(omit, _)| !omit).for_each(|(_, dict)| add(dict, true));
        add(&defaults(), false);
        let is_empty = made.borrow().is_empty();
        return Ok(if is_empty {
            call.given("default").cloned().unwrap_or_else(|| Value::dict([]))
        } else {
            made.into()
        });
    }
    for (_, dict) in sources.iter().filter(|(omit, _)| !omit) {
        if let Some(found) = entry(dict, &value)? {
            return Ok(found);
        }
    }
    let found = entry(&defaults(), &value)?;
    Ok(found.unwrap_or_else(|| call.given("default").cloned().unwrap_or_else(|| "".into())))
}

fn merge(call: &Call<'_>) -> Answer {
    let surroundings = call.surroundings;
    let value = call.need("value");
    let pillar = Value::Dict(surroundings.pillar.clone());
    let sources = [
        ("omit_opts", Value::Dict(surroundings.opts.clone())),
        ("omit_master", surroundings.master()),
        ("omit_pillar", pillar),
    ];
    let mut made: Option<Value> = None;
    for (omit, dict) in &sources {
        if call.flag(omit, false) {
            continue;
        }
        let Some(found) = entry(dict, &value)? else { continue };
        made = match (made, &found) {
            (None | Some(Value::None), _) if found.as_str().is_some() => return Ok(found),
            (None | Some(Value::None), _) => Some(found),
            (Some(Value::Dict(before)), Value::Dict(own)) => {
                // a new dict: Salt would change the pillar
                let mut entries = own.borrow().clone();
                entries.extend(before.borrow().iter().map(|(key, value)| (key.clone(), value.clone())));
                surroundings.budget.take_values(entries.len() * 2)?;
                Some(Dict::from_entries(entries, false).into())
            }
            (Some(before), _) => match (items(&before), items(&found)) {
                (Some(before), Some(more)) => {
                    surroundings.budget.take_values(before.len() + more.len())?;
                    Some(Value::list(before.into_iter().chain(more)))
                }
                _ => Some(before),
            },
        };
    }
    match made {
        Some(made) if !matches!(made, Value::None) => Ok(made),
        _ => {
            Ok(entry(&defaults(), &value)?.unwrap_or_else(|| call.get("default").cloned().unwrap_or_else(|| "".into())))
        }
    }
}

fn items(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(list) => Some(list.borrow().clone()),
        Value::Tuple(items) => Some(items.to_vec()),
        _ => None,
    }
}

fn dot_vals(call: &Call<'_>) -> Answer {
    let start = format!("{}.", crate::data::text(&call.need("value"))?);
    let made = Dict::default();
    for dict in [call.surroundings.master(), Value::Dict(call.surroundings.opts.clone())] {
        let Value::Dict(dict) = dict else { continue };
        for (key, value) in dict.borrow().iter() {
            if key.as_str().is_some_and(|name| name.starts_with(&start)) {
                made.borrow_mut().insert(key.clone(), value.clone());
            }
        }
    }
    Ok(made.into())
}

fn backup_mode(call: &Call<'_>) -> Answer {
    if let Some(given) = call.get("backup").filter(|given| given.truthy()) {
        return Ok(given.clone());
    }
    let name = Value::from("backup_mode");
    for dict in [&call.surroundings.opts, &call.surroundings.grains, &call.surroundings.pillar] {
        if let Some(found) = entry(&Value::Dict(dict.clone()), &name)? {
            return Ok(found);
        }
    }
    Ok(entry(&call.surroundings.master(), &name)?.unwrap_or_else(|| "".into()))
}

fn valid_fileproto(call: &Call<'_>) -> Answer {
    let uri = call.need("uri");
    let scheme = uri.as_str().and_then(|uri| uri.split_once(':')).map(|(scheme, _)| scheme.to_lowercase());
    let known = ["salt", "http", "https", "ftp", "s3", "swift", "file"];
    Ok(scheme.is_some_and(|scheme| known.contains(&scheme.as_str())).into())
}

/// Four digits, as Salt's `normalize_mode`.
fn manage_mode(call: &Call<'_>) -> Answer {
    let mode = call.need("mode");
    if matches!(mode, Value::None) {
        return Ok(mode);
    }
    let text = crate::data::text(&mode)?.replace("0o", "0");
    let digits = text.trim_matches('"').trim_matches('\'').trim_start_matches('0');
    Ok(format!("{digits:0>4}").into())
}
