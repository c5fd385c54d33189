//! The module `cron`: crontabs. The functions, the states and their documentation are in `wit/world.wit`.
//!
//! - [`tab`]: the text of a crontab
//! - [`change`]: reads and changes one
//! - [`states`]: the states of jobs and variables · [`whole`]: a crontab that is a file of the master

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "cron",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod change;
mod states;
mod tab;
mod whole;

use brine_guest::Value;

use change::Wanted;
use tab::When;

struct Module;

/// An argument that is None where it is not said.
fn value(argument: Option<Data>) -> Result<Value, String> {
    argument.map_or(Ok(Value::None), |argument| argument.value())
}

/// An argument as text; none where it is None.
fn text(argument: Option<Data>) -> Result<Option<String>, String> {
    let value = value(argument)?;
    Ok((value != Value::None).then(|| value.to_text()))
}

fn is_true(argument: Option<Data>) -> Result<bool, String> {
    Ok(value(argument)? == Value::Bool(true))
}

#[rustfmt::skip]
impl Guest for Module {
    fn raw_cron(user: String) -> Result<String, String> {
        change::raw(&user)
    }

    fn list_tab(user: String) -> Result<Data, String> {
        Ok(change::read(&user)?.value().into())
    }

    fn ls(user: String) -> Result<Data, String> {
        Self::list_tab(user)
    }

    fn get_entry(user: String, identifier: Option<Data>, cmd: Option<String>) -> Result<Data, String> {
        let identifier = text(identifier)?.filter(|identifier| !identifier.is_empty());
        let found = change::entry(&user, identifier.as_deref(), cmd.as_deref())?;
        Ok(found.unwrap_or(Value::Bool(false)).into())
    }

    fn set_job(
        user: String, minute: Data, hour: Data, daymonth: Data, month: Data, dayweek: Data, cmd: String, commented: Option<Data>,
        comment: Option<Data>, identifier: Option<Data>,
    ) -> Result<String, String> {
        let mut times = [const { String::new() }; 5];
        for (time, said) in times.iter_mut().zip([minute, hour, daymonth, month, dayweek]) {
            *time = said.value()?.to_text().to_lowercase();
        }
        set(&user, When::Times(times), cmd, commented, comment, identifier)
    }

    fn set_special(
        user: String, special: String, cmd: String, commented: Option<Data>, comment: Option<Data>, identifier: Option<Data>,
    ) -> Result<String, String> {
        set(&user, When::Special(special), cmd, commented, comment, identifier)
    }

    fn rm_job(
        user: String, cmd: String, minute: Option<Data>, hour: Option<Data>, daymonth: Option<Data>, month: Option<Data>,
        dayweek: Option<Data>, identifier: Option<Data>,
    ) -> Result<String, String> {
        let mut times = [const { None }; 5];
        for (time, said) in times.iter_mut().zip([minute, hour, daymonth, month, dayweek]) {
            *time = text(said)?;
        }
        change::remove_job(&user, &cmd, &value(identifier)?, &times)
    }

    fn rm(
        user: String, cmd: String, minute: Option<Data>, hour: Option<Data>, daymonth: Option<Data>, month: Option<Data>,
        dayweek: Option<Data>, identifier: Option<Data>,
    ) -> Result<String, String> {
        Self::rm_job(user, cmd, minute, hour, daymonth, month, dayweek, identifier)
    }

    fn rm_special(
        user: String, cmd: String, special: Option<String>, identifier: Option<Data>,
    ) -> Result<String, String> {
        change::remove_special(&user, &cmd, &value(identifier)?, special.as_deref())
    }

    fn set_env(user: String, name: String, env: Option<Data>) -> Result<String, String> {
        change::set_variable(&user, &name, &value(env)?)
    }

    fn rm_env(user: String, name: String) -> Result<String, String> {
        change::remove_variable(&user, &name)
    }

    fn write_cron_file(user: String, path: String) -> Result<bool, String> {
        Ok(change::write_file(&user, &path)?.code == 0)
    }

    fn write_cron_file_verbose(user: String, path: String) -> Result<Data, String> {
        let done = change::write_file(&user, &path)?;
        let left = [
            ("pid", Value::Int(done.pid.into())),
            ("retcode", Value::Int(done.code)),
            ("stdout", done.stdout.into()),
            ("stderr", done.stderr.into()),
        ];
        Ok(Value::dict(left).into())
    }
}

fn set(
    user: &str,
    when: When,
    cmd: String,
    commented: Option<Data>,
    comment: Option<Data>,
    identifier: Option<Data>,
) -> Result<String, String> {
    let (comment, commented) = (text(comment)?, is_true(commented)?);
    change::set(user, Wanted { when, cmd, comment, commented, identifier: value(identifier)? })
}

#[cfg(target_family = "wasm")]
export!(Module);
