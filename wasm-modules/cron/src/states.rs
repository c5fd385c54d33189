//! The states, in Salt's sentences.

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run, missing, no_changes};

use crate::change::{self, Sought, Wanted};
use crate::exports::states::Guest;
use crate::tab::When;
use crate::{Data, Module, is_true, text, value, whole};

type Done = Result<StateResult, String>;

const ROOT: &str = "root";

/// What a state says on a host without crontabs.
fn without(state: &str) -> Result<Option<StateResult>, String> {
    let here = change::is_here()?;
    let why = "'cron' __virtual__ returned False: cron module could not be loaded";
    Ok((!here).then(|| missing(state, why)))
}

/// The identifier of a job: its name, unless one is said.
fn identified(said: Option<Data>, name: &str) -> Result<Value, String> {
    Ok(match said.map(|said| said.value()).transpose()? {
        None | Some(Value::Bool(false)) => name.into(),
        Some(said) => said,
    })
}

fn changed(comment: String, user: &str, name: &str) -> StateResult {
    StateResult::changed(comment, Value::Dict(vec![(user.into(), name.into())]))
}

/// What a dry run says of something that is to be there.
fn would(what: &str, status: &str) -> StateResult {
    match status {
        "present" => StateResult::good(format!("{what} already present")),
        "update" => StateResult::would(format!("{what} is set to be updated"), no_changes()),
        _ => StateResult::would(format!("{what} is set to be added"), no_changes()),
    }
}

/// What a dry run says of something that is to go.
fn would_go(what: &str, status: &str) -> StateResult {
    match status {
        "absent" => StateResult::good(format!("{what} is absent")),
        _ => StateResult::would(format!("{what} is set to be removed"), no_changes()),
    }
}

/// What setting came to.
fn set(what: &str, user: &str, name: &str, word: &str) -> StateResult {
    match word {
        "present" => StateResult::good(format!("{what} already present")),
        "new" => changed(format!("{what} added to {user}'s crontab"), user, name),
        "updated" => changed(format!("{what} updated"), user, name),
        why => StateResult::bad(format!("{what} for user {user} failed to commit with error \n{why}")),
    }
}

/// What removing came to.
fn removed(what: &str, user: &str, name: &str, word: &str) -> StateResult {
    match word {
        "absent" => StateResult::good(format!("{what} already absent")),
        "removed" => changed(format!("{what} removed from {user}'s crontab"), user, name),
        why => StateResult::bad(format!("{what} for user {user} failed to commit with error {why}")),
    }
}

#[rustfmt::skip]
impl Guest for Module {
    fn present(
        name: String, user: Option<String>, minute: Option<Data>, hour: Option<Data>, daymonth: Option<Data>, month: Option<Data>,
        dayweek: Option<Data>, comment: Option<Data>, commented: Option<Data>, identifier: Option<Data>, special: Option<String>,
    ) -> Done {
        if let Some(missing) = without("cron.present")? {
            return Ok(missing);
        }
        let (name, user) = (name.trim(), user.as_deref().unwrap_or(ROOT));
        let what = format!("Cron {name}");
        let mut times = [const { None }; 5];
        for (time, said) in times.iter_mut().zip([minute, hour, daymonth, month, dayweek]) {
            *time = text(said)?.map(|time| time.to_lowercase()).or_else(|| Some("*".into()));
        }
        let (comment, commented, identifier) = (text(comment)?, is_true(commented)?, identified(identifier, name)?);
        if is_dry_run() {
            let special = special.as_deref();
            let (cmd, commented, identifier) = (name, Some(commented), &identifier);
            let sought = Sought { cmd, identifier, times, special, comment, commented };
            return Ok(would(&what, change::check(&change::read(user)?, &sought)));
        }
        let when = match special {
            Some(special) => When::Special(special),
            None => When::Times(times.map(Option::unwrap_or_default)),
        };
        let word = change::set(user, Wanted { when, cmd: name.into(), comment, commented, identifier })?;
        Ok(set(&what, user, name, &word))
    }

    fn absent(
        name: String, user: Option<String>, identifier: Option<Data>, special: Option<String>, _: Data,
    ) -> Done {
        if let Some(missing) = without("cron.absent")? {
            return Ok(missing);
        }
        let (name, user) = (name.trim(), user.as_deref().unwrap_or(ROOT));
        let what = format!("Cron {name}");
        let identifier = identified(identifier, name)?;
        let times = [const { None }; 5];
        if is_dry_run() {
            // As in Salt, whatever `special` is.
            let sought =
                Sought { cmd: name, identifier: &identifier, times, special: None, comment: None, commented: None };
            return Ok(would_go(&what, change::check(&change::read(user)?, &sought)));
        }
        let word = match special {
            None => change::remove_job(user, name, &identifier, &times)?,
            Some(special) => change::remove_special(user, name, &identifier, Some(&special))?,
        };
        Ok(removed(&what, user, name, &word))
    }

    fn file(
        name: String, _: Option<Data>, _: Option<Data>, user: Option<String>, template: Option<String>,
        context: Option<Data>, replace: Option<bool>, defaults: Option<Data>, _: Option<Data>, _: Data,
    ) -> Done {
        if let Some(missing) = without("cron.file")? {
            return Ok(missing);
        }
        let user = user.unwrap_or_else(|| ROOT.into());
        let source = whole::Source {
            url: &name,
            template,
            context: value(context)?,
            defaults: value(defaults)?,
        };
        whole::file(&source, &user, replace.unwrap_or(true))
    }

    fn env_present(name: String, env: Option<Data>, user: Option<String>) -> Done {
        if let Some(missing) = without("cron.env_present")? {
            return Ok(missing);
        }
        let user = user.as_deref().unwrap_or(ROOT);
        let what = format!("Cron env {name}");
        let env = value(env)?;
        if is_dry_run() {
            return Ok(would(&what, in_tab(user, &name, &env)?));
        }
        let word = change::set_variable(user, &name, &env)?;
        Ok(set(&what, user, &name, &word))
    }

    fn env_absent(name: String, user: Option<String>) -> Done {
        if let Some(missing) = without("cron.env_absent")? {
            return Ok(missing);
        }
        let (name, user) = (name.trim(), user.as_deref().unwrap_or(ROOT));
        let what = format!("Cron env {name}");
        if is_dry_run() {
            return Ok(would_go(&what, in_tab(user, name, &Value::None)?));
        }
        let word = change::remove_variable(user, name)?;
        Ok(removed(&what, user, name, &word))
    }
}

/// How a variable is in a crontab: `absent`, `present` or `update`.
fn in_tab(user: &str, name: &str, value: &Value) -> Result<&'static str, String> {
    let tab = change::read(user)?;
    Ok(match tab.variables.iter().find(|(known, _)| known == name) {
        None => "absent",
        Some((_, old)) if value.text() == Some(old) => "present",
        Some(_) => "update",
    })
}
