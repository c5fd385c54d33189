//! The module `schedule`: jobs that the minion starts by itself. The functions and their documentation are in `wit/world.wit`.
//!
//! - `items`: what a job is made of · `shown`: jobs as they are listed · `change`: what changes the schedule · `states`: its states

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "schedule",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/schedule@1.0.0": brine_guest::host::schedule,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/modules@1.0.0": brine_guest::host::modules,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

mod change;
mod items;
mod shown;
mod states;

use brine_guest::Value;
use brine_guest::host::schedule;
use brine_guest::keywords::Keywords;
use brine_guest::states::StateResult;
use change::Asked;
use shown::Listed;

const TIME: &str = "%Y-%m-%dT%H:%M:%S";

struct Module;

fn asked(name: &str, kwargs: &Data) -> Result<Asked, String> {
    Ok(Asked::new(name, Keywords::new(kwargs, [])?))
}

impl Guest for Module {
    fn list(
        show_all: Option<bool>,
        show_disabled: Option<bool>,
        where_: Option<String>,
        return_yaml: Option<bool>,
        offline: Option<bool>,
    ) -> Result<Data, String> {
        let mut listed = match offline {
            Some(true) => Listed::saved()?,
            _ => Listed::at(where_.as_deref())?,
        };
        listed.tidy(show_all == Some(true), show_disabled != Some(false));
        if return_yaml == Some(false) { Ok(listed.into_value().into()) } else { listed.yaml().map(Data::from) }
    }

    fn is_enabled(name: Option<String>) -> Result<Data, String> {
        let listed = Listed::all(None, false)?;
        Ok(match name.filter(|name| !name.is_empty()) {
            None => listed.get("enabled").cloned().unwrap_or(Value::Bool(true)),
            Some(name) => listed.get(&name).cloned().unwrap_or(Value::Dict(Vec::new())),
        }
        .into())
    }

    fn purge(kwargs: Data) -> Result<Data, String> {
        change::purge(&asked("", &kwargs)?).map(Data::from)
    }

    fn delete(name: String, kwargs: Data) -> Result<Data, String> {
        change::delete(&asked(&name, &kwargs)?).map(Data::from)
    }

    fn build_schedule_item(name: String, kwargs: Data) -> Result<Data, String> {
        Ok(items::build(&name, &Keywords::new(&kwargs, [])?)?.unwrap_or_else(|refused| refused).into())
    }

    fn add(name: String, kwargs: Data) -> Result<Data, String> {
        change::add(&asked(&name, &kwargs)?).map(Data::from)
    }

    fn modify(name: String, kwargs: Data) -> Result<Data, String> {
        change::modify(&asked(&name, &kwargs)?).map(Data::from)
    }

    fn run_job(name: String, force: Option<bool>) -> Result<Data, String> {
        change::run(&name, force == Some(true)).map(Data::from)
    }

    fn enable_job(name: String, kwargs: Data) -> Result<Data, String> {
        change::enable_job(&asked(&name, &kwargs)?, true).map(Data::from)
    }

    fn disable_job(name: String, kwargs: Data) -> Result<Data, String> {
        change::enable_job(&asked(&name, &kwargs)?, false).map(Data::from)
    }

    fn save(kwargs: Data) -> Result<Data, String> {
        change::save(&asked("", &kwargs)?).map(Data::from)
    }

    fn enable(kwargs: Data) -> Result<Data, String> {
        change::enable(&asked("", &kwargs)?, true).map(Data::from)
    }

    fn disable(kwargs: Data) -> Result<Data, String> {
        change::enable(&asked("", &kwargs)?, false).map(Data::from)
    }

    fn reload() -> Result<Data, String> {
        change::reload().map(Data::from)
    }

    fn move_(name: String, target: String, kwargs: Data) -> Result<Data, String> {
        change::send(&asked(&name, &kwargs)?, &target, true).map(Data::from)
    }

    fn copy(name: String, target: String, kwargs: Data) -> Result<Data, String> {
        change::send(&asked(&name, &kwargs)?, &target, false).map(Data::from)
    }

    fn postpone_job(name: String, current_time: String, new_time: String, kwargs: Data) -> Result<Data, String> {
        change::postpone(&asked(&name, &kwargs)?, &current_time, Some(&new_time)).map(Data::from)
    }

    fn skip_job(name: String, current_time: String, kwargs: Data) -> Result<Data, String> {
        change::postpone(&asked(&name, &kwargs)?, &current_time, None).map(Data::from)
    }

    fn show_next_fire_time(name: String, _kwargs: Data) -> Result<Data, String> {
        let status = schedule::status(&name, TIME)?.value()?;
        let next = status.get("_next_fire_time").cloned().unwrap_or_default();
        Ok(Value::dict([("result", Value::Bool(true)), ("next_fire_time", next)]).into())
    }

    fn job_status(name: String, time_fmt: Option<String>) -> Result<Data, String> {
        schedule::status(&name, time_fmt.as_deref().unwrap_or(TIME))
    }
}

impl exports::states::Guest for Module {
    fn present(name: String, kwargs: Data) -> Result<StateResult, String> {
        states::present(&name, Keywords::new(&kwargs, [])?)
    }

    fn absent(name: String, kwargs: Data) -> Result<StateResult, String> {
        states::absent(&name, Keywords::new(&kwargs, [])?)
    }

    fn enabled(name: String, kwargs: Data) -> Result<StateResult, String> {
        states::enabled(&name, Keywords::new(&kwargs, [])?, true)
    }

    fn disabled(name: String, kwargs: Data) -> Result<StateResult, String> {
        states::enabled(&name, Keywords::new(&kwargs, [])?, false)
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
