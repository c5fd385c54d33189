//! The module `iptables`: rules of the kernel's packet filter. The functions, the states and their documentation are in
//! `wit/world.wit`.
//!
//! - [`command`]: the programs · [`rule`]: the text of a rule · [`saved`]: what `iptables-save` prints
//! - [`rules`]: chains, rules, policies and the file · [`states`]: the states

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "iptables",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod command;
mod rule;
mod rules;
mod saved;
mod states;

use brine_guest::Value;
use command::Family;
use rules::{Place, answer};

struct Module;

/// What is done at a chain, or Salt's answer to a missing one.
macro_rules! place {
    ($table:expr, $chain:expr, $family:expr) => {
        match Place::new($table.as_deref(), $chain.as_deref(), Family::new($family.as_deref()))? {
            Ok(place) => place,
            Err(why) => return Ok(why.into()),
        }
    };
}

/// An argument of a rule's text.
fn text(value: Option<Data>) -> Result<Option<String>, String> {
    let value = value.map(|value| value.value()).transpose()?;
    Ok(value.filter(|value| *value != Value::None).map(|value| value.to_text()))
}

/// True, or what the program said.
fn done(done: Result<(), String>) -> Data {
    done.map_or_else(Data::from, |()| true.into())
}

impl Guest for Module {
    fn version(family: Option<String>) -> Result<String, String> {
        let said = Family::new(family.as_deref()).run(&["--version"])?.stdout;
        said.split_whitespace().nth(1).map(str::to_owned).ok_or_else(|| "list index out of range".into())
    }

    fn build_rule(
        table: Option<Data>,
        chain: Option<Data>,
        command: Option<Data>,
        position: Option<Data>,
        full: Option<Data>,
        family: Option<String>,
        kwargs: Data,
    ) -> Result<String, String> {
        let Value::Dict(parts) = kwargs.value()? else { return Err("a rule has its parts by name".into()) };
        let rule = match rule::build(&parts)? {
            Ok(rule) => rule,
            Err(why) => return Ok(why.into()),
        };
        if !full.map(|full| full.value()).transpose()?.is_some_and(|full| full.truthy()) {
            return Ok(rule);
        }
        let given = |value: Option<Data>| Ok::<_, String>(text(value)?.filter(|value| !value.is_empty()));
        let table = if table.is_none() { Some("filter".into()) } else { given(table)? };
        let Some(table) = table else { return Ok("Error: Table needs to be specified".into()) };
        let Some(chain) = given(chain)? else { return Ok("Error: Chain needs to be specified".into()) };
        let Some(command) = given(command)? else { return Ok("Error: Command needs to be specified".into()) };
        let position = text(position)?.unwrap_or_default();
        states::line(Family::new(family.as_deref()), &table, &command, &chain, &position, &rule)
    }

    fn get_saved_rules(conf_file: Option<String>, family: Option<String>) -> Result<Data, String> {
        Ok(rules::saved(conf_file.as_deref(), Family::new(family.as_deref()))?.value().into())
    }

    fn get_rules(family: Option<String>) -> Result<Data, String> {
        Ok(rules::current(Family::new(family.as_deref()))?.value().into())
    }

    fn get_saved_policy(
        table: Option<String>,
        chain: Option<String>,
        conf_file: Option<String>,
        family: Option<String>,
    ) -> Result<Data, String> {
        let place = place!(table, chain, family);
        Ok(place.policy(&rules::saved(conf_file.as_deref(), place.family)?).into())
    }

    fn get_policy(table: Option<String>, chain: Option<String>, family: Option<String>) -> Result<Data, String> {
        let place = place!(table, chain, family);
        Ok(place.policy(&rules::current(place.family)?).into())
    }

    fn set_policy(
        table: Option<String>,
        chain: Option<String>,
        policy: Option<String>,
        family: Option<String>,
    ) -> Result<String, String> {
        place!(table, chain, family).set_policy(policy.as_deref())
    }

    fn save(filename: Option<String>, family: Option<String>) -> Result<String, String> {
        rules::save(filename.as_deref(), Family::new(family.as_deref()))
    }

    fn check(
        table: Option<String>,
        chain: Option<String>,
        rule: Option<String>,
        family: Option<String>,
    ) -> Result<Data, String> {
        Ok(answer(place!(table, chain, family).check(rule.as_deref())?))
    }

    fn check_chain(table: Option<String>, chain: Option<String>, family: Option<String>) -> Result<Data, String> {
        Ok(place!(table, chain, family).exists()?.into())
    }

    fn new_chain(table: Option<String>, chain: Option<String>, family: Option<String>) -> Result<Data, String> {
        Ok(done(place!(table, chain, family).make()?))
    }

    fn delete_chain(table: Option<String>, chain: Option<String>, family: Option<String>) -> Result<Data, String> {
        Ok(done(place!(table, chain, family).remove()?))
    }

    fn append(
        table: Option<String>,
        chain: Option<String>,
        rule: Option<String>,
        family: Option<String>,
    ) -> Result<Data, String> {
        Ok(answer(place!(table, chain, family).append(rule.as_deref())?))
    }

    fn insert(
        table: Option<String>,
        chain: Option<String>,
        position: Option<Data>,
        rule: Option<String>,
        family: Option<String>,
    ) -> Result<Data, String> {
        let position = position.map(|position| position.value()).transpose()?;
        let said = place!(table, chain, family).insert(position.as_ref(), rule.as_deref())?;
        Ok(said.map_or_else(|| false.into(), Data::from))
    }

    fn delete(
        table: String,
        chain: Option<String>,
        position: Option<Data>,
        rule: Option<String>,
        family: Option<String>,
    ) -> Result<String, String> {
        let position = position.map(|position| position.value()).transpose()?;
        place!(Some(table), chain, family).delete(position.as_ref(), rule.as_deref())
    }

    fn flush(table: Option<String>, chain: Option<String>, family: Option<String>) -> Result<String, String> {
        rules::flush(table.as_deref(), chain.as_deref(), Family::new(family.as_deref()))
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
