//! The module `sysctl`: the kernel's parameters. The functions, the state and their documentation are in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "sysctl",
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

mod config;

use brine_guest::Value;
use brine_guest::changes::{self, Kind, Owner, Put};
use brine_guest::host::grains;
use brine_guest::program::Program;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use config::{Found, HEADER, plain};

struct Module;

impl Guest for Module {
    fn default_config() -> Result<String, String> {
        default_config()
    }

    fn show(config_file: Option<Data>) -> Result<Data, String> {
        let file = config_file.map(|file| file.value()).transpose()?.filter(Value::truthy);
        let entries = |pairs: &mut dyn Iterator<Item = (&str, &str)>| {
            let mut known: Vec<(Value, Value)> = Vec::new();
            for (name, value) in pairs {
                known.retain(|(known, _)| known.text() != Some(name));
                known.push((name.into(), value.into()));
            }
            Value::Dict(known)
        };
        let Some(file) = file else {
            let all = Program::new(["sysctl", "-a"]).run()?.stdout;
            return Ok(entries(&mut all.lines().filter_map(|line| line.split_once(" = "))).into());
        };
        match changes::read_text(&file.to_text())? {
            // As in Salt.
            None => Ok(Value::List(Vec::new()).into()),
            Some(text) => Ok(entries(&mut config::parameters(&text)).into()),
        }
    }

    fn get(name: String) -> Result<String, String> {
        get(&name)
    }

    fn assign(name: String, value: Data) -> Result<Data, String> {
        let value = value.value()?.to_text();
        let (name, value) = assign(&name, &value)?;
        Ok(Value::Dict(vec![(name.into(), value.into())]).into())
    }

    fn persist(name: String, value: Data, config: Option<String>) -> Result<String, String> {
        let file = config.map_or_else(default_config, Ok)?;
        Ok(persist(&name, &value.value()?.to_text(), &file)?.into())
    }
}

impl exports::states::Guest for Module {
    fn present(name: String, value: Data, config: Option<String>) -> Result<StateResult, String> {
        let given = value.value()?;
        let value = given.to_text();
        let file = config.map_or_else(default_config, Ok)?;
        if is_dry_run() {
            return would(&name, &value, &file);
        }
        Ok(match persist(&name, &value, &file) {
            Err(why) => StateResult::bad(format!("Failed to set {name} to {value}: {why}")),
            Ok("Updated") => {
                let comment = format!("Updated sysctl value {name} = {value}");
                StateResult::changed(comment, Value::Dict(vec![(name.into(), given)]))
            }
            Ok(_) => StateResult::good(format!("Sysctl value {name} = {value} is already set")),
        })
    }
}

/// What a dry run says.
fn would(name: &str, value: &str, file: &str) -> Result<StateResult, String> {
    let text = changes::read_text(file)?.unwrap_or_default();
    let is_in_file = config::parameters(&text).any(|(known, _)| known == name);
    let current = get(name)?;
    let comment = match (current.is_empty(), is_in_file) {
        (false, true) if value.split_whitespace().eq(current.split_whitespace()) => {
            return Ok(StateResult::good(format!("Sysctl value {name} = {value} is already set")));
        }
        (false, false) if spaces(&current) == spaces(value) => format!(
            "Sysctl value is currently set on the running system but not in a config file. Sysctl option {name} set to \
             be changed to {value} in config file."
        ),
        (false, false) => format!("Sysctl option {name} set to be changed to {value}"),
        (true, true) => format!(
            "Sysctl value {name} is present in configuration file but is not present in the running config. The value \
             {name} is set to be changed to {value}"
        ),
        _ => format!("Sysctl option {name} would be changed to {value}"),
    };
    Ok(StateResult::would(comment, no_changes()))
}

/// A text in which white space within a line is one space.
fn spaces(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ' ' | '\t' if out.ends_with(' ') => {}
            ' ' | '\t' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn default_config() -> Result<String, String> {
    // systemd reads no /etc/sysctl.conf.
    let booted = grains::items().value()?.get("init").and_then(Value::text) == Some("systemd");
    Ok(if booted { "/etc/sysctl.d/99-salt.conf" } else { "/etc/sysctl.conf" }.into())
}

/// A name that is one argument of the program, and no option of it.
fn checked(name: &str) -> Result<&str, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-/*@:".contains(c);
    match name.chars().all(is_name) && !name.is_empty() && !name.starts_with('-') {
        true => Ok(name),
        false => Err(format!("sysctl {name} does not exist")),
    }
}

fn get(name: &str) -> Result<String, String> {
    Ok(Program::new(["sysctl", "-n", checked(name)?]).merged().run()?.stdout)
}

/// Sets a parameter of the kernel; returns its name and value as the program says them.
fn assign(name: &str, value: &str) -> Result<(String, String), String> {
    let known = Program::new(["sysctl", "-n", checked(name)?]).run()?;
    if !known.succeeded() && known.stderr.contains("No such file or directory") {
        return Err(format!("sysctl {name} does not exist"));
    }
    let done = Program::new(["sysctl".to_owned(), "-w".to_owned(), format!("{name}={value}")]).run()?;
    let is = done.stdout.split_once(" = ").filter(|(known, new)| known.trim() == name && new.trim() == value);
    match is {
        Some((name, value)) if !done.stderr.contains("Invalid argument") => Ok((name.into(), value.into())),
        _ => {
            let why = if done.code != 0 && !done.stderr.is_empty() { done.stderr } else { done.stdout };
            Err(format!("sysctl -w failed: {why}"))
        }
    }
}

fn persist(name: &str, value: &str, file: &str) -> Result<&'static str, String> {
    checked(name)?;
    if value.contains(['\n', '\r', '\0']) {
        return Err("the value has more than one line".into());
    }
    let old = changes::read_text(file)?;
    let text = old.clone().unwrap_or_else(|| HEADER.into());
    match config::set(&text, name, value) {
        Found::Same if plain(&get(name)?) == plain(value) => return Ok("Already set"),
        Found::Same => {}
        Found::Other(new) => {
            let around = brine_guest::path::dirname(file);
            if old.is_none() && !changes::is(around, Kind::Directory)? {
                changes::make_directory(around, true, &Owner { user: None, group: None }, None)?;
            }
            Put::new(file).instead_of(old.as_deref().map(str::as_bytes)).text(&new)?;
        }
    }
    assign(name, value)?;
    Ok("Updated")
}

#[cfg(target_family = "wasm")]
export!(Module);
