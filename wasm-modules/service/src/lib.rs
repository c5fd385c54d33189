//! The module `service`: services of systemd, and of init scripts where systemd does not run. The functions, the states
//! and their documentation are in `wit/world.wit`.
//!
//! - [`backend`]: which of both counts on this host, and what it does
//! - [`units`]: systemd, by `systemctl` · [`shown`]: what `systemctl show` prints
//! - [`init`]: init scripts of Debian
//! - [`host`]: what this host has
//! - [`processes`]: processes by a pattern
//! - [`states`]: the states · [`beacon`]: the beacon

wit_bindgen::generate!({
    world: "service",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod backend;
mod beacon;
mod host;
mod init;
mod processes;
mod shown;
mod states;
mod units;

use brine_guest::Value;
use brine_guest::program::Program;

use backend::Backend;
use units::How;

struct Module;

fn how(no_block: Option<bool>, unmask: Option<bool>, unmask_runtime: Option<bool>, root: Option<String>) -> How {
    How { no_block, unmask: unmask == Some(true), unmask_runtime: unmask_runtime == Some(true), root }
}

fn listed(names: impl IntoIterator<Item = String>) -> Vec<String> {
    names.into_iter().collect()
}

impl Guest for Module {
    fn start(
        name: String,
        no_block: Option<bool>,
        unmask: Option<bool>,
        unmask_runtime: Option<bool>,
    ) -> Result<bool, String> {
        Backend::of_host()?.start(&name, &how(no_block, unmask, unmask_runtime, None))
    }

    fn stop(name: String, no_block: Option<bool>) -> Result<bool, String> {
        Backend::of_host()?.stop(&name, &how(no_block, None, None, None))
    }

    fn restart(
        name: String,
        no_block: Option<bool>,
        unmask: Option<bool>,
        unmask_runtime: Option<bool>,
    ) -> Result<bool, String> {
        Backend::of_host()?.act("restart", &name, &how(no_block, unmask, unmask_runtime, None))
    }

    fn reload(
        name: String,
        no_block: Option<bool>,
        unmask: Option<bool>,
        unmask_runtime: Option<bool>,
    ) -> Result<bool, String> {
        Backend::of_host()?.act("reload", &name, &how(no_block, unmask, unmask_runtime, None))
    }

    fn force_reload(
        name: String,
        no_block: Option<bool>,
        unmask: Option<bool>,
        unmask_runtime: Option<bool>,
    ) -> Result<bool, String> {
        Backend::of_host()?.act("force-reload", &name, &how(no_block, unmask, unmask_runtime, None))
    }

    fn status(name: String, sig: Option<Data>) -> Result<Data, String> {
        let sig = sig.map(|sig| sig.value()).transpose()?;
        Ok(Backend::of_host()?.status(&name, sig.as_ref())?.into())
    }

    fn enable(
        name: String,
        no_block: Option<bool>,
        unmask: Option<bool>,
        unmask_runtime: Option<bool>,
        root: Option<String>,
        _: Data,
    ) -> Result<bool, String> {
        Backend::of_host()?.set_enabled(&name, true, &how(no_block, unmask, unmask_runtime, root))
    }

    fn disable(name: String, no_block: Option<bool>, root: Option<String>, _: Data) -> Result<bool, String> {
        Backend::of_host()?.set_enabled(&name, false, &how(no_block, None, None, root))
    }

    fn enabled(name: String, root: Option<String>, _: Data) -> Result<bool, String> {
        Backend::of_host()?.is_enabled(&name, root.as_deref())
    }

    fn disabled(name: String, root: Option<String>) -> Result<bool, String> {
        Backend::of_host()?.is_disabled(&name, root.as_deref())
    }

    fn available(name: String) -> Result<bool, String> {
        Backend::of_host()?.is_available(&name)
    }

    fn missing(name: String) -> Result<bool, String> {
        Ok(!Backend::of_host()?.is_available(&name)?)
    }

    fn get_all(root: Option<String>) -> Result<Vec<String>, String> {
        Ok(listed(Backend::of_host()?.all(root.as_deref())?))
    }

    fn get_enabled(root: Option<String>) -> Result<Vec<String>, String> {
        Ok(listed(match Backend::of_host()? {
            Backend::Init => init::enabled()?,
            Backend::Systemd => units::with_state("enabled", root.as_deref())?,
        }))
    }

    fn get_disabled(root: Option<String>) -> Result<Vec<String>, String> {
        Ok(listed(match Backend::of_host()? {
            Backend::Init => init::disabled()?,
            Backend::Systemd => units::with_state("disabled", root.as_deref())?,
        }))
    }

    fn get_static(root: Option<String>) -> Result<Vec<String>, String> {
        Ok(listed(units::with_state("static", root.as_deref())?))
    }

    fn get_running() -> Result<Vec<String>, String> {
        Ok(listed(units::running()?))
    }

    fn mask(name: String, runtime: Option<bool>, root: Option<String>) -> Result<bool, String> {
        backend::checked(&name)?;
        units::mask(&name, runtime == Some(true), root.as_deref())
    }

    fn unmask(name: String, runtime: Option<bool>, root: Option<String>) -> Result<bool, String> {
        backend::checked(&name)?;
        units::unmask(&name, runtime == Some(true), root.as_deref())
    }

    fn masked(name: String, runtime: Option<bool>, root: Option<String>) -> Result<bool, String> {
        backend::checked(&name)?;
        units::is_masked(&name, runtime == Some(true), root.as_deref())
    }

    fn show(name: String, root: Option<String>) -> Result<Data, String> {
        backend::checked(&name)?;
        Ok(shown::read(&units::show(&name, root.as_deref())?).into())
    }

    fn execs(root: Option<String>) -> Result<Data, String> {
        let mut found = Vec::new();
        for name in Backend::of_host()?.all(root.as_deref())? {
            let shown = shown::read(&units::show(&name, root.as_deref())?);
            if let Some(path) = shown.get("ExecStart").and_then(|start| start.get("path")) {
                found.push((name.into(), path.clone()));
            }
        }
        Ok(Value::Dict(found).into())
    }

    fn systemctl_reload() -> Result<bool, String> {
        units::reload_units()
    }

    fn offline() -> Result<bool, String> {
        host::is_offline()
    }

    fn firstboot(
        locale: Option<String>,
        locale_message: Option<String>,
        keymap: Option<String>,
        timezone: Option<String>,
        hostname: Option<String>,
        machine_id: Option<String>,
        root: Option<String>,
    ) -> Result<bool, String> {
        let words = [
            ("locale", locale),
            ("locale-message", locale_message),
            ("keymap", keymap),
            ("timezone", timezone),
            ("hostname", hostname),
            ("machine-ID", machine_id),
            ("root", root),
        ];
        let mut program = Program::new(["systemd-firstboot"]);
        for (name, value) in words {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                program = program.args([format!("--{name}"), value]);
            }
        }
        let done = program.run()?;
        match done.succeeded() {
            true => Ok(true),
            false => Err(format!("systemd-firstboot error: {}", done.stderr)),
        }
    }
}

export!(Module);
