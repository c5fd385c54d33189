//! The module `mount`: file systems and where they are. The functions, the states and their documentation are in
//! `wit/world.wit`.
//!
//! - [`fstab`]: the file of mounts · [`active`]: what is mounted · [`system`]: mounts and unmounts
//! - [`cache`]: what states mounted · [`file`]: reads and writes the file of mounts
//! - [`states`]: the states

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "mount",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod active;
mod cache;
mod file;
mod fstab;
mod states;
mod system;

use brine_guest::Value;
use system::Wanted;

struct Module;

fn value(argument: Option<Data>) -> Result<Value, String> {
    argument.map_or(Ok(Value::None), |argument| argument.value())
}

/// Options: a list, or a text with commas; `defaults` where none are said.
fn options(argument: Option<Data>) -> Result<Vec<String>, String> {
    Ok(match value(argument)? {
        Value::None => vec!["defaults".into()],
        Value::List(options) => options.iter().map(Value::to_text).collect(),
        other => other.to_text().split(',').map(str::to_owned).collect(),
    })
}

/// True, or why it failed: as in Salt.
fn true_or_why(done: Result<(), String>) -> Data {
    done.map_or_else(Data::from, |()| true.into())
}

#[rustfmt::skip]
impl Guest for Module {
    fn active(extended: Option<bool>) -> Result<Data, String> {
        let extended = extended == Some(true);
        let mounts = active::all()?;
        Ok(Value::Dict(mounts.iter().map(|mount| (mount.at.as_str().into(), mount.value(extended))).collect()).into())
    }

    fn is_mounted(name: String) -> Result<bool, String> {
        active::is_at(&name)
    }

    fn fstab(config: Option<String>) -> Result<Data, String> {
        Ok(fstab::value(&file::read(config.as_deref())?.unwrap_or_default()).into())
    }

    fn set_fstab(
        name: String, device: String, fstype: String, opts: Option<Data>, dump: Option<Data>, pass_num: Option<Data>,
        config: Option<String>, test: Option<bool>, match_on: Option<Data>, not_change: Option<bool>,
    ) -> Result<String, String> {
        let entry = file::Line {
            name: &name,
            device: &device,
            fstype: &fstype,
            opts: &options(opts)?.join(","),
            dump: value(dump)?,
            pass_num: value(pass_num)?,
            match_on: value(match_on)?,
            keeps: not_change == Some(true),
        };
        Ok(file::set(&entry, config.as_deref(), test == Some(true))?.into())
    }

    fn rm_fstab(name: String, device: Option<String>, config: Option<String>) -> Result<bool, String> {
        file::remove(&name, device.as_deref(), config.as_deref()).map(|()| true)
    }

    fn mount(
        name: String, device: Option<Data>, mkmnt: Option<bool>, fstype: Option<String>, opts: Option<Data>, user: Option<String>,
    ) -> Result<Data, String> {
        let device = value(device)?;
        let (device, fstype) = (device.truthy().then(|| device.to_text()), fstype.unwrap_or_default());
        let wanted = Wanted {
            at: &name,
            device: device.as_deref(),
            makes: mkmnt == Some(true),
            fstype: &fstype,
            opts: &options(opts)?,
            user: user.as_deref(),
        };
        system::mount(&wanted).map(true_or_why)
    }

    fn remount(
        name: String, device: String, mkmnt: Option<bool>, fstype: Option<String>, opts: Option<Data>, user: Option<String>,
    ) -> Result<Data, String> {
        let fstype = fstype.unwrap_or_default();
        let wanted = Wanted {
            at: &name,
            device: Some(&device),
            makes: mkmnt == Some(true),
            fstype: &fstype,
            opts: &options(opts)?,
            user: user.as_deref(),
        };
        system::remount(&wanted).map(true_or_why)
    }

    fn umount(
        name: String, device: Option<String>, user: Option<String>, lazy: Option<bool>,
    ) -> Result<Data, String> {
        system::umount(&name, device.as_deref(), user.as_deref(), lazy == Some(true)).map(true_or_why)
    }

    fn swaps() -> Result<Data, String> {
        let swaps = active::swaps()?.into_iter().map(|(name, fields)| (name.into(), fields));
        Ok(Value::Dict(swaps.collect()).into())
    }

    fn swapon(name: String, priority: Option<Data>) -> Result<Data, String> {
        let stats = |fields: Value, new: bool| Value::dict([("stats", fields), ("new", new.into())]);
        if let Some(fields) = system::swap(&name)? {
            return Ok(stats(fields, false).into());
        }
        let priority = value(priority)?;
        system::swapon(&name, priority.truthy().then(|| priority.to_text()).as_deref())?;
        Ok(system::swap(&name)?.map_or_else(|| Value::dict([]), |fields| stats(fields, true)).into())
    }

    fn swapoff(name: String) -> Result<Data, String> {
        if system::swap(&name)?.is_none() {
            return Ok(Value::None.into());
        }
        system::swapoff(&name)?;
        Ok(system::swap(&name)?.is_none().into())
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
