//! The states of jobs of the schedule. Comments and changes are Salt's; so is a result of True in a dry run.

use brine_guest::Value;
use brine_guest::keywords::Keywords;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use crate::change::{self, Asked};
use crate::items;
use crate::shown::{Listed, equal};

/// The job is there as described.
pub fn present(name: &str, kwargs: Keywords) -> Result<StateResult, String> {
    let listed = Listed::all(None, kwargs.is_set("offline"))?;
    let Some(current) = listed.get(name) else {
        let added = change::add(&Asked::new(name, kwargs))?;
        let mut result = after(&added, &format!("Adding new job {name} to schedule"), true)?;
        if is_dry_run() && result.result == Some(true) {
            result.changes = Value::dict([(name, "added".into())]).into();
        }
        return Ok(result);
    };
    let mut new = match items::build(name, &kwargs)? {
        Ok(item) => item,
        Err(refused) => return Ok(failed(&refused)),
    };
    // As it is listed: a job says whether it is enabled.
    if new.get("enabled").is_none()
        && let Value::Dict(entries) = &mut new
    {
        entries.push(("enabled".into(), Value::Bool(true)));
    }
    if equal(&new, current) {
        return Ok(StateResult::good(format!("Job {name} in correct state")));
    }
    after(&change::modify(&Asked::new(name, kwargs))?, &format!("Modifying job {name} in schedule"), true)
}

/// The job is not there.
pub fn absent(name: &str, kwargs: Keywords) -> Result<StateResult, String> {
    if !Listed::all(None, kwargs.is_set("offline"))?.has(name) {
        return Ok(not_present(name));
    }
    after(&change::delete(&Asked::new(name, kwargs))?, &format!("Removed job {name} from schedule"), true)
}

/// The job is enabled, or disabled.
pub fn enabled(name: &str, kwargs: Keywords, enable: bool) -> Result<StateResult, String> {
    if !Listed::all(None, kwargs.is_set("offline"))?.has(name) {
        return Ok(not_present(name));
    }
    let done = if enable { "Enabled" } else { "Disabled" };
    after(&change::enable_job(&Asked::new(name, kwargs), enable)?, &format!("{done} job {name} from schedule"), false)
}

fn not_present(name: &str) -> StateResult {
    StateResult::good(format!("Job {name} not present in schedule"))
}

/// The result after a change, or what would be one.
fn after(said: &Value, done: &str, tells: bool) -> Result<StateResult, String> {
    if !said.get("result").is_some_and(Value::truthy) {
        return Ok(failed(said));
    }
    let changes = said.get("changes").filter(|_| tells).cloned().unwrap_or_else(no_changes);
    let comment = if is_dry_run() { comment(said) } else { done.to_owned() };
    Ok(StateResult::new(Some(true), comment, changes))
}

fn failed(said: &Value) -> StateResult {
    StateResult::bad(comment(said))
}

fn comment(said: &Value) -> String {
    said.get("comment").map(Value::to_text).unwrap_or_default()
}
