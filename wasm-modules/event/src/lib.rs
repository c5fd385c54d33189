//! The module `event`: events on the bus of the master that asked. The functions and their documentation are in
//! `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "event",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/events@1.0.0": brine_guest::host::events,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
    },
    generate_all,
});

use brine_guest::Value;
use brine_guest::host::{config, events, grains, pillar};
use brine_guest::states::{StateResult, is_dry_run, no_changes};

const PRELOAD: &str =
    "preload is not offered: an event is sent with this minion's session, and only its data is the caller's";
const NO_BUS: &str = "this minion has no bus of its own: event.send tells its master";

struct Module;

type Entries = Vec<(Value, Value)>;

/// What an event has beside its data: as Salt's parameters have it, true for all or a list of names.
#[derive(Default)]
struct Wanted {
    env: Option<Data>,
    grains: Option<Data>,
    pillar: Option<Data>,
    env_opts: bool,
}

impl Wanted {
    /// The entries that are wanted, each read only where it is.
    fn entries(&self) -> Result<Entries, String> {
        let mut entries = Entries::new();
        let mut add = |name: &str, wanted: &Option<Data>, all: &dyn Fn() -> Result<Data, String>| {
            if let Some(wanted) = chosen(wanted)? {
                entries.push((name.into(), wanted.of(all()?.value()?)));
            }
            Ok::<_, String>(())
        };
        // A job has no environment.
        add("environ", &self.env, &|| Ok(no_changes().into()))?;
        add("grains", &self.grains, &|| Ok(grains::items()))?;
        add("pillar", &self.pillar, &pillar::items)?;
        if self.env_opts {
            let setting = |name: &str| config::get(name).map_or(Ok(Value::None), |value| value.value());
            entries.push(("saltenv".into(), setting("saltenv")?));
            entries.push(("pillarenv".into(), setting("pillarenv")?));
        }
        Ok(entries)
    }
}

/// Which entries of a dict are wanted.
enum Chosen {
    All,
    Names(Vec<Value>),
}

/// Reads `with_grains` and its like; none where nothing is wanted.
fn chosen(wanted: &Option<Data>) -> Result<Option<Chosen>, String> {
    let Some(wanted) = wanted else { return Ok(None) };
    let wanted = wanted.value()?;
    Ok(match wanted {
        Value::List(names) => (!names.is_empty()).then_some(Chosen::Names(names)),
        other => other.truthy().then_some(Chosen::All),
    })
}

impl Chosen {
    fn of(&self, all: Value) -> Value {
        match (self, all) {
            (Self::Names(names), Value::Dict(mut entries)) => {
                entries.retain(|(name, _)| names.contains(name));
                Value::Dict(entries)
            }
            (_, all) => all,
        }
    }
}

/// The data of an event. What comes later wins, and keeps the place of what it replaces.
fn merged(parts: impl IntoIterator<Item = Entries>) -> Value {
    let mut all = Entries::new();
    for (name, value) in parts.into_iter().flatten() {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => all.push((name, value)),
        }
    }
    Value::Dict(all)
}

fn dict(value: Option<&Data>) -> Result<Entries, String> {
    Ok(match value.map(Data::value).transpose()? {
        Some(Value::Dict(entries)) => entries,
        // As in Salt, data that is no dict is left out.
        _ => Entries::new(),
    })
}

fn refuse_preload(preload: Option<&Data>) -> Result<(), String> {
    match preload.map(Data::value).transpose()? {
        Some(preload) if preload.truthy() => Err(PRELOAD.to_owned()),
        _ => Ok(()),
    }
}

fn fire(tag: &str, data: Value) -> Result<(), String> {
    events::fire(tag, &data.into())
}

fn send(tag: &str, data: Option<&Data>, wanted: &Wanted, kwargs: &Data) -> Result<(), String> {
    fire(tag, merged([wanted.entries()?, dict(Some(kwargs))?, dict(data)?]))
}

impl Guest for Module {
    fn send(
        tag: String,
        data: Option<Data>,
        preload: Option<Data>,
        with_env: Option<Data>,
        with_grains: Option<Data>,
        with_pillar: Option<Data>,
        with_env_opts: Option<bool>,
        kwargs: Data,
    ) -> Result<bool, String> {
        refuse_preload(preload.as_ref())?;
        let wanted =
            Wanted { env: with_env, grains: with_grains, pillar: with_pillar, env_opts: with_env_opts == Some(true) };
        send(&tag, data.as_ref(), &wanted, &kwargs)?;
        Ok(true)
    }

    fn fire_master(data: Data, tag: String, preload: Option<Data>) -> Result<bool, String> {
        refuse_preload(preload.as_ref())?;
        fire(&tag, data.value()?)?;
        Ok(true)
    }

    fn fire(_data: Data, _tag: String) -> Result<bool, String> {
        Err(NO_BUS.to_owned())
    }
}

type State = (Option<Data>, Option<Data>, Option<Data>, Option<Data>, Option<Data>, Option<Data>);

/// The state of one event: data, preload, with_env, with_grains, with_pillar, show_changed.
fn sent(name: &str, (data, preload, env, grains, pillar, show): State, kwargs: &Data) -> Result<StateResult, String> {
    refuse_preload(preload.as_ref())?;
    let shown = show.map(|show| show.value()).transpose()?.is_none_or(|show| show.truthy());
    let changes = match shown {
        true => {
            let data = data.as_ref().map_or(Ok(Value::None), Data::value)?;
            Value::dict([("tag", name.into()), ("data", data)])
        }
        false => no_changes(),
    };
    if is_dry_run() {
        return Ok(StateResult::would("Event would have been fired", changes));
    }
    send(name, data.as_ref(), &Wanted { env, grains, pillar, env_opts: false }, kwargs)?;
    Ok(StateResult::changed("Event fired", changes))
}

impl exports::states::Guest for Module {
    fn send(
        name: String,
        data: Option<Data>,
        preload: Option<Data>,
        with_env: Option<Data>,
        with_grains: Option<Data>,
        with_pillar: Option<Data>,
        show_changed: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult, String> {
        sent(&name, (data, preload, with_env, with_grains, with_pillar, show_changed), &kwargs)
    }

    fn fire_master(
        name: String,
        data: Option<Data>,
        preload: Option<Data>,
        with_env: Option<Data>,
        with_grains: Option<Data>,
        with_pillar: Option<Data>,
        show_changed: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult, String> {
        sent(&name, (data, preload, with_env, with_grains, with_pillar, show_changed), &kwargs)
    }

    fn wait(_name: String, _sfun: Option<Data>, _data: Option<Data>) -> Result<StateResult, String> {
        Ok(StateResult::good(""))
    }

    fn mod_watch(
        name: String,
        data: Option<Data>,
        preload: Option<Data>,
        with_env: Option<Data>,
        with_grains: Option<Data>,
        with_pillar: Option<Data>,
        show_changed: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult, String> {
        sent(&name, (data, preload, with_env, with_grains, with_pillar, show_changed), &kwargs)
    }
}

#[cfg(target_family = "wasm")]
export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_data_comes_last_and_wins() {
        let entry = |name: &str, value: i64| (Value::from(name), Value::from(value));
        let all =
            merged([vec![entry("grains", 1), entry("x", 1)], vec![entry("x", 2), entry("y", 2)], vec![entry("y", 3)]]);
        assert_eq!(all, Value::Dict(vec![entry("grains", 1), entry("x", 2), entry("y", 3)]));
    }

    #[test]
    fn all_or_some_names_are_chosen() {
        let all = Value::dict([("os", "Debian".into()), ("id", "web1".into())]);
        let of = |wanted: Value| chosen(&Some(wanted.into())).unwrap().map(|chosen| chosen.of(all.clone()));
        assert_eq!(of(true.into()), Some(all.clone()));
        assert_eq!(of(Value::List(vec!["os".into(), "none".into()])), Some(Value::dict([("os", "Debian".into())])));
        assert_eq!(of(false.into()), None);
        assert_eq!(of(Value::List(Vec::new())), None);
        assert!(chosen(&None).unwrap().is_none());
    }
}
