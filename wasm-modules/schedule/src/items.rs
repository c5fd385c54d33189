//! What a job of the schedule is made of.

use brine_guest::Value;
use brine_guest::host::schedule;
use brine_guest::keywords::Keywords;

const UNITS: [&str; 4] = ["seconds", "minutes", "hours", "days"];
/// Keys that a job takes as they are.
const AS_THEY_ARE: [&str; 12] = [
    "range",
    "when",
    "once",
    "once_fmt",
    "cron",
    "returner",
    "after",
    "return_config",
    "return_kwargs",
    "until",
    "run_on_start",
    "skip_during_range",
];

/// What two keywords that exclude each other make of a change: `comment`, false `result`.
pub fn refused(comment: &str) -> Value {
    Value::dict([("comment", comment.into()), ("result", Value::Bool(false))])
}

/// Whether the times of a job exclude each other: an interval beside `when` or `cron`.
pub fn times_exclude(kwargs: &Keywords) -> bool {
    UNITS.iter().any(|unit| kwargs.get(unit).is_some())
        && (kwargs.get("when").is_some() || kwargs.get("cron").is_some())
}

/// Makes a job of keyword arguments, or says what is wrong with them as Salt does.
pub fn build(name: &str, kwargs: &Keywords) -> Result<Result<Value, Value>, String> {
    if name.is_empty() {
        return Ok(Err(refused("Job name is required.")));
    }
    let function = kwargs.get("function").ok_or("the argument function is missing")?;
    if times_exclude(kwargs) {
        return Ok(Err(refused(
            "Unable to use \"seconds\", \"minutes\", \"hours\", or \"days\" with \"when\" or \"cron\" options.",
        )));
    }
    if kwargs.get("when").is_some() && kwargs.get("cron").is_some() {
        return Ok(Err(refused("Unable to use \"when\" and \"cron\" options together.  Ignoring.")));
    }
    let mut item: Vec<(&str, Value)> = vec![("function", function.clone())];
    let mut take = |key: &'static str, value: Option<Value>| {
        if let Some(value) = value {
            item.push((key, value));
        }
    };
    for key in UNITS.into_iter().chain(["return_job", "metadata"]) {
        take(key, kwargs.get(key).cloned());
    }
    match kwargs.get("job_args") {
        None => {}
        Some(args @ Value::List(_)) => take("args", Some(args.clone())),
        Some(_) => return Ok(Err(refused("job_args is not a list. please correct and try again."))),
    }
    match kwargs.get("job_kwargs") {
        None => {}
        Some(given @ Value::Dict(_)) => take("kwargs", Some(given.clone())),
        Some(_) => return Ok(Err(refused("job_kwargs is not a dict. please correct and try again."))),
    }
    let or = |key: &str, default: Value| Some(kwargs.get(key).cloned().unwrap_or(default));
    take("maxrunning", or("maxrunning", Value::Int(1)));
    take("name", Some(name.into()));
    take("enabled", or("enabled", Value::Bool(true)));
    take("jid_include", or("jid_include", Value::Bool(true)));
    take("splay", kwargs.get("splay").cloned());
    if let Some(when) = kwargs.get("when") {
        let one = std::slice::from_ref(when);
        for date in if let Value::List(dates) = when { dates } else { one } {
            if !schedule::is_date(&date.to_text(), None)? {
                return Ok(Err(refused(&format!("Schedule item {} for \"when\" in invalid.", date.to_text()))));
            }
        }
    }
    for key in AS_THEY_ARE {
        take(key, kwargs.get(key).cloned());
    }
    Ok(Ok(Value::dict(item)))
}
