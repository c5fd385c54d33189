//! The module `beacons`: what this minion watches by itself. The functions and their documentation are in
//! `wit/world.wit`; what they return are Salt's sentences, which programs read.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "beacons",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacons@1.0.0": brine_guest::host::beacons,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

use brine_guest::host::beacons::{self, Edit};
use brine_guest::{Value, diff, states::is_dry_run};
use brine_render::yaml::{DumpOptions, dump};

struct Module;

impl Guest for Module {
    fn list(yaml: Option<bool>, pillar: Option<bool>, own: Option<bool>, _: Data) -> Result<Data, String> {
        let all = beacons::list(pillar != Some(false), own != Some(false))?;
        shown(all, yaml)
    }

    fn list_available(yaml: Option<bool>, _: Data) -> Result<Data, String> {
        let all = beacons::available()?;
        if all.is_empty() {
            return Ok(Value::dict([("beacons", Value::Dict(Vec::new()))]).into());
        }
        shown(all.into_iter().map(Value::from).collect::<Vec<_>>().into(), yaml)
    }

    fn add(name: String, beacon_data: Data, _: Data) -> Result<Data, String> {
        if configured()?.get(&name).is_some() {
            return said(true, format!("Beacon {name} is already configured."));
        }
        let module = module(&name, &beacon_data.value()?);
        if !beacons::available()?.contains(&module) {
            return said(false, format!("Beacon \"{module}\" is not available."));
        }
        if is_dry_run() {
            return said(true, format!("Beacon: {name} would be added."));
        }
        let (valid, words) = beacons::validate(&name, &beacon_data)?;
        if !valid {
            return said(false, format!("Beacon {name} configuration invalid, not adding.\n{words}"));
        }
        done(&Edit::Put((name.clone(), beacon_data)), format!("Added beacon: {name}."))
    }

    fn modify(name: String, beacon_data: Data, _: Data) -> Result<Data, String> {
        let all = configured()?;
        let Some(now) = all.get(&name) else {
            return said(true, format!("Beacon {name} is not configured."));
        };
        if is_dry_run() {
            return said(true, format!("Beacon: {name} would be modified."));
        }
        let (valid, words) = beacons::validate(&name, &beacon_data)?;
        if !valid {
            return said(false, format!("Beacon {name} configuration invalid, not modifying.\n{words}"));
        }
        let wanted = beacon_data.value()?;
        if wanted == *now {
            return said(true, format!("Job {name} in correct state"));
        }
        let changes = Value::dict([("diff", diff::unified(&lines(now), &lines(&wanted), "", "").into())]);
        let edited = beacons::change(&Edit::Put((name.clone(), beacon_data)))?;
        let comment = if edited.complete { format!("Modified beacon: {name}.") } else { edited.comment };
        let result = Value::Bool(edited.complete);
        Ok(Value::dict([("comment", comment.into()), ("result", result), ("changes", changes)]).into())
    }

    fn delete(name: String, _: Data) -> Result<Data, String> {
        if is_dry_run() {
            return said(true, format!("Beacon: {name} would be deleted."));
        }
        done(&Edit::Delete(name.clone()), format!("Deleted beacon: {name}."))
    }

    fn save(_: Data) -> Result<Data, String> {
        let saved = beacons::save()?;
        let path = saved.path;
        match saved.written {
            true => said(true, format!("Beacons saved to {path}.")),
            false => said(false, format!("Unable to write to beacons file at {path}. Check permissions.")),
        }
    }

    fn enable(_: Data) -> Result<Data, String> {
        if is_dry_run() {
            return said(true, "Beacons would be enabled.");
        }
        done(&Edit::Enable(true), "Enabled beacons on minion.")
    }

    fn disable(_: Data) -> Result<Data, String> {
        if is_dry_run() {
            return said(true, "Beacons would be disabled.");
        }
        done(&Edit::Enable(false), "Disabled beacons on minion.")
    }

    fn enable_beacon(name: String, _: Data) -> Result<Data, String> {
        turn(name, true)
    }

    fn disable_beacon(name: String, _: Data) -> Result<Data, String> {
        turn(name, false)
    }

    fn reset(_: Data) -> Result<Data, String> {
        if is_dry_run() {
            return said(true, "Beacons would be reset.");
        }
        done(&Edit::Reset, "Beacon configuration reset.")
    }
}

fn configured() -> Result<Value, String> {
    beacons::list(true, true)?.value()
}

/// The module that looks: `beacon_module`, if the configuration names one.
fn module(name: &str, data: &Value) -> String {
    let Value::List(items) = data else { return name.to_owned() };
    let other = items.iter().find_map(|item| item.get("beacon_module"));
    other.map_or_else(|| name.to_owned(), Value::to_text)
}

fn turn(name: String, on: bool) -> Result<Data, String> {
    if name.is_empty() {
        return said(false, "Beacon name is required.");
    }
    if is_dry_run() {
        // Salt has these two sentences.
        return said(
            true,
            if on { format!("Beacon {name} would be enabled.") } else { "Beacons would be disabled.".into() },
        );
    }
    if configured()?.get(&name).is_none() {
        return said(false, format!("Beacon {name} is not currently configured."));
    }
    let word = if on { "Enabled" } else { "Disabled" };
    done(&Edit::EnableBeacon((name.clone(), on)), format!("{word} beacon {name} on minion."))
}

fn done(edit: &Edit, comment: impl Into<String>) -> Result<Data, String> {
    let edited = beacons::change(edit)?;
    match edited.complete {
        true => said(true, comment),
        false => said(false, edited.comment),
    }
}

fn said(result: bool, comment: impl Into<String>) -> Result<Data, String> {
    Ok(Value::dict([("comment", comment.into().into()), ("result", Value::Bool(result))]).into())
}

fn shown(all: Data, yaml: Option<bool>) -> Result<Data, String> {
    if yaml == Some(false) {
        return Ok(all);
    }
    let all = brine_guest::wire::value(&Data::dict([("beacons", all)]))?;
    let options = DumpOptions { default_flow_style: Some(false), ..DumpOptions::default() };
    Ok(dump(&all, &options).map_err(|why| why.to_string())?.into())
}

/// A line for each setting.
fn lines(config: &Value) -> Vec<String> {
    let items = if let Value::List(items) = config { items.as_slice() } else { std::slice::from_ref(config) };
    let entries = items.iter().filter_map(|item| if let Value::Dict(entries) = item { Some(entries) } else { None });
    entries.flatten().map(|(key, value)| format!("{}:{}\n", key.to_text(), value.to_text())).collect()
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_names_its_module() {
        let items = |name: &'static str| Value::List(vec![Value::dict([(name, "memusage".into())])]);
        assert_eq!(module("watch", &items("beacon_module")), "memusage");
        assert_eq!(module("watch", &items("percent")), "watch");
        assert_eq!(module("watch", &Value::None), "watch");
    }

    #[test]
    fn settings_are_compared_by_lines() {
        let items = Value::List(vec![Value::dict([("a", Value::Bool(true))]), Value::dict([("b", "x".into())])]);
        assert_eq!(lines(&items), ["a:True\n", "b:x\n"]);
    }
}
