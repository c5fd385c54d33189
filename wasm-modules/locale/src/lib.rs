//! The module `locale`: the locales of this host. The functions, the states and their documentation are in `wit/world.wit`.
//!
//! - [`name`]: names of locales · [`edit`]: lines of configuration files
//! - [`system`]: the system's locale · [`generate`]: locales that are made

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "locale",
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

mod edit;
mod generate;
mod name;
mod system;

use brine_guest::Value;
use brine_guest::host::grains;
use brine_guest::keywords::Keywords;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

struct Module;

/// What the grains say of this host.
struct Host(Value);

impl Host {
    fn new() -> Result<Self, String> {
        grains::items().value().map(Self)
    }

    fn text(&self, grain: &str) -> &str {
        self.0.get(grain).and_then(Value::text).unwrap_or_default()
    }

    fn is_family(&self, family: &str) -> bool {
        self.text("os_family") == family
    }

    /// The first number of the system's version.
    fn release(&self) -> i64 {
        match self.0.get("osmajorrelease") {
            Some(Value::Int(release)) => *release,
            Some(other) => other.to_text().parse().unwrap_or_default(),
            None => 0,
        }
    }

    fn has_systemd(&self) -> bool {
        self.text("init") == "systemd"
    }
}

impl Guest for Module {
    fn list_avail() -> Result<Vec<String>, String> {
        generate::all()
    }

    fn get_locale() -> Result<String, String> {
        system::get(&Host::new()?)
    }

    fn set_locale(locale: String) -> Result<bool, String> {
        system::set(&Host::new()?, &locale).map(|()| true)
    }

    fn avail(locale: String) -> Result<bool, String> {
        generate::is_there(&locale)
    }

    fn gen_locale(locale: String, kwargs: Data) -> Result<Data, String> {
        let verbose = Keywords::new(&kwargs, [])?.is_set("verbose");
        let Some(done) = generate::generate(&Host::new()?, &locale, verbose)? else { return Ok(false.into()) };
        if !verbose {
            return Ok((done.code == 0).into());
        }
        let left = [
            ("pid", Value::Int(done.pid.into())),
            ("retcode", Value::Int(done.code)),
            ("stdout", done.stdout.into()),
            ("stderr", done.stderr.into()),
        ];
        Ok(Value::dict(left).into())
    }
}

impl exports::states::Guest for Module {
    fn system(name: String) -> Result<StateResult, String> {
        let host = Host::new()?;
        let done = system::get(&host).and_then(|locale| {
            if locale == name {
                return Ok(StateResult::good(format!("System locale {name} already set")));
            }
            if is_dry_run() {
                return Ok(StateResult::would(format!("System locale {name} needs to be set"), no_changes()));
            }
            system::set(&host, &name).map(|()| changed(format!("Set system locale {name}"), &name))
        });
        Ok(done.unwrap_or_else(|why| StateResult::bad(format!("Failed to set system locale: {why}"))))
    }

    fn present(name: String) -> Result<StateResult, String> {
        if generate::is_there(&name)? {
            return Ok(StateResult::good(format!("Locale {name} is already present")));
        }
        if is_dry_run() {
            return Ok(StateResult::would(format!("Locale {name} needs to be generated"), no_changes()));
        }
        Ok(match generate::generate(&Host::new()?, &name, false)? {
            Some(done) if done.code == 0 => changed(format!("Generated locale {name}"), &name),
            _ => StateResult::bad(format!("Failed to generate locale {name}")),
        })
    }
}

fn changed(comment: String, name: &str) -> StateResult {
    StateResult::changed(comment, Value::dict([("locale", name.into())]))
}

/// A locale that is one line of a file and one argument of a program, and no option of it.
fn checked(locale: &str) -> Result<&str, String> {
    match locale.is_empty()
        || locale.starts_with('-')
        || locale.contains(['/', '"', '\\'])
        || locale.contains(char::is_control)
    {
        true => Err(format!("{locale:?} is no name of a locale")),
        false => Ok(locale),
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
