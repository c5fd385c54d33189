//! What changes the schedule. Results and comments are Salt's.

use brine_guest::host::schedule::{self, Change};
use brine_guest::host::{functions, modules};
use brine_guest::keywords::Keywords;
use brine_guest::states::is_dry_run;
use brine_guest::{Data, Value};

use crate::items::{self, refused};
use crate::shown::{Listed, equal};

const TIME: &str = "%Y-%m-%dT%H:%M:%S";

/// What a function was asked for.
pub struct Asked {
    name: String,
    kwargs: Keywords,
}

/// A result of Salt's: `comment`, `result` and, where Salt has them, `changes`.
struct Said {
    comment: Value,
    result: bool,
    changes: Option<Vec<(Value, Value)>>,
}

impl Said {
    fn new(comment: impl Into<Value>, result: bool) -> Self {
        Self { comment: comment.into(), result, changes: None }
    }

    fn with_changes(mut self) -> Self {
        self.changes = Some(Vec::new());
        self
    }

    fn changed(mut self, name: &str, change: impl Into<Value>) -> Self {
        self.changes.get_or_insert_default().push((name.into(), change.into()));
        self
    }

    fn value(self) -> Value {
        let mut entries = vec![("comment", self.comment), ("result", Value::Bool(self.result))];
        if let Some(changes) = self.changes {
            entries.push(("changes", Value::Dict(changes)));
        }
        Value::dict(entries)
    }
}

impl Asked {
    pub fn new(name: &str, kwargs: Keywords) -> Self {
        Self { name: name.to_owned(), kwargs }
    }

    fn is_test(&self) -> bool {
        self.kwargs.is_set("test") || is_dry_run()
    }

    fn offline(&self) -> bool {
        self.kwargs.is_set("offline")
    }

    fn persist(&self) -> bool {
        self.kwargs.get("persist").is_none_or(Value::truthy)
    }

    fn update(&self, change: Change, persist: bool) -> Result<Value, String> {
        schedule::update(&change, persist)?.value()
    }
}

pub fn purge(asked: &Asked) -> Result<Value, String> {
    let mut listed = Listed::all(None, asked.offline())?;
    let mut said = Said::new(Value::None, true).with_changes();
    let mut comments: Vec<Value> = Vec::new();
    for name in listed.names().into_iter().filter(|name| name != "enabled" && !name.starts_with("__")) {
        if asked.is_test() {
            comments.push(format!("Job: {name} would be deleted from schedule.").into());
            continue;
        }
        let gone = match asked.offline() {
            true => listed.take(&name),
            false => asked.update(Change::Delete(name.clone()), asked.persist())?.get(&name).is_none(),
        };
        if gone {
            comments.push(format!("Deleted job: {name} from schedule.").into());
            said = said.changed(&name, "removed");
        } else {
            comments.push(format!("Failed to delete job {name} from schedule.").into());
        }
    }
    if asked.offline() && !asked.is_test() {
        asked.update(Change::ReplaceSaved(listed.into_value().into()), true)?;
    }
    said.comment = Value::List(comments);
    Ok(said.value())
}

pub fn delete(asked: &Asked) -> Result<Value, String> {
    let name = &asked.name;
    if asked.is_test() {
        return Ok(Said::new(format!("Job: {name} would be deleted from schedule."), true).with_changes().value());
    }
    let done = || Said::new(format!("Deleted Job {name} from schedule."), true).changed(name, "removed").value();
    if asked.offline() {
        let mut listed = Listed::all(None, true)?;
        if !listed.take(name) {
            return Ok(Said::new(format!("Job {name} does not exist."), false).with_changes().value());
        }
        asked.update(Change::ReplaceSaved(listed.into_value().into()), true)?;
        return Ok(done());
    }
    let in_opts = Listed::all(Some("opts"), false)?.has(name);
    if !in_opts && !Listed::all(Some("pillar"), false)?.has(name) {
        return Ok(Said::new(format!("Job {name} does not exist."), false).with_changes().value());
    }
    let left = asked.update(Change::Delete(name.clone()), in_opts && asked.persist())?;
    Ok(match left.get(name) {
        None => done(),
        Some(_) => Said::new(format!("Failed to delete job {name} from schedule."), false).with_changes().value(),
    })
}

pub fn add(asked: &Asked) -> Result<Value, String> {
    let name = &asked.name;
    let mut listed = Listed::all(None, asked.offline())?;
    if listed.has(name) {
        return Ok(Said::new(format!("Job {name} already exists in schedule."), false).with_changes().value());
    }
    if items::times_exclude(&asked.kwargs) {
        let comment =
            "Error: Unable to use \"seconds\", \"minutes\", \"hours\", or \"days\" with \"when\" or \"cron\" options.";
        return Ok(Said::new(comment, false).with_changes().value());
    }
    if asked.kwargs.get("when").is_some() && asked.kwargs.get("cron").is_some() {
        let comment = "Unable to use \"when\" and \"cron\" options together.  Ignoring.";
        return Ok(Said::new(comment, false).with_changes().value());
    }
    let item = match items::build(name, &asked.kwargs)? {
        Ok(item) => item,
        Err(refused) => return Ok(refused),
    };
    if asked.is_test() {
        return Ok(Said::new(format!("Job: {name} would be added to schedule."), true).with_changes().value());
    }
    let added = if asked.offline() {
        listed.put(name, item);
        asked.update(Change::ReplaceSaved(listed.into_value().into()), true)?;
        true
    } else {
        let new = Value::dict([(name.as_str(), item)]);
        asked.update(Change::Add(new.into()), asked.persist())?.get(name).is_some()
    };
    Ok(match added {
        true => Said::new(format!("Added job: {name} to schedule."), true).changed(name, "added").value(),
        false => Said::new(format!("Failed to add job {name} to schedule."), false).with_changes().value(),
    })
}

pub fn modify(asked: &Asked) -> Result<Value, String> {
    let name = &asked.name;
    let no = |comment: &str| Ok(Said::new(comment, false).with_changes().value());
    if items::times_exclude(&asked.kwargs) {
        return no("Error: Unable to use \"seconds\", \"minutes\", \"hours\", or \"days\" with \"when\" option.");
    }
    if asked.kwargs.get("when").is_some() && asked.kwargs.get("cron").is_some() {
        return no("Unable to use \"when\" and \"cron\" options together.  Ignoring.");
    }
    let mut listed = Listed::all(None, asked.offline())?;
    let Some(current) = listed.get(name).cloned() else {
        return no(&format!("Job {name} does not exist in schedule."));
    };
    let known = current.get("function").cloned().map(Data::from);
    let given = Value::Dict(asked.kwargs.iter().map(|(key, value)| (key.into(), value.clone())).collect());
    let function = asked.kwargs.get("function").is_none().then_some(known).flatten();
    let kwargs = Keywords::new(&given.into(), [("function", function)])?;
    let new = match items::build(name, &kwargs)? {
        Ok(item) => item,
        Err(refused) => return Ok(refused),
    };
    if equal(&new, &current) {
        return Ok(Said::new(format!("Job {name} in correct state"), true).with_changes().value());
    }
    let change = Value::dict([("old", current), ("new", new.clone())]);
    let comment = if asked.is_test() {
        format!("Job: {name} would be modified in schedule.")
    } else {
        if asked.offline() {
            listed.put(name, new);
            asked.update(Change::ReplaceSaved(listed.into_value().into()), true)?;
        } else {
            let persist = Listed::all(Some("opts"), false)?.has(name) && asked.persist();
            asked.update(Change::Modify((name.clone(), new.into())), persist)?;
        }
        format!("Modified job: {name} in schedule.")
    };
    Ok(Said::new(comment, true).changed(name, change).value())
}

pub fn run(name: &str, force: bool) -> Result<Value, String> {
    let listed = Listed::all(None, false)?;
    let Some(job) = listed.get(name) else { return Ok(refused(&format!("Job {name} does not exist."))) };
    if !force && job.get("enabled").is_some_and(|enabled| !enabled.truthy()) {
        return Ok(Said::new(format!("Job {name} is disabled."), true).value());
    }
    schedule::update(&Change::Run(name.to_owned()), false)?;
    Ok(Said::new(format!("Scheduling Job {name} on minion."), true).value())
}

pub fn enable_job(asked: &Asked, enable: bool) -> Result<Value, String> {
    let name = &asked.name;
    let (word, done, way) = if enable { ("enabled", "Enabled", "enable") } else { ("disabled", "Disabled", "disable") };
    if asked.is_test() {
        return Ok(Said::new(format!("Job: {name} would be {word} in schedule."), true).with_changes().value());
    }
    let in_opts = Listed::all(Some("opts"), false)?.has(name);
    if !in_opts && !Listed::all(Some("pillar"), false)?.has(name) {
        return Ok(Said::new(format!("Job {name} does not exist."), false).with_changes().value());
    }
    let after = asked.update(Change::EnableJob((name.clone(), enable)), in_opts && asked.persist())?;
    let is = after.get(name).and_then(|job| job.get("enabled")).map(Value::truthy);
    Ok(match is {
        Some(is) if is == enable => Said::new(format!("{done} Job {name} in schedule."), true).changed(name, word),
        _ => Said::new(format!("Failed to {way} job {name} in schedule."), false).with_changes(),
    }
    .value())
}

pub fn save(asked: &Asked) -> Result<Value, String> {
    if asked.is_test() {
        return Ok(Said::new("Schedule would be saved.", true).value());
    }
    asked.update(Change::Save, true)?;
    Ok(Said::new("Schedule (non-pillar items) saved.", true).value())
}

pub fn enable(asked: &Asked, enable: bool) -> Result<Value, String> {
    let (word, done) = if enable { ("enabled", "Enabled") } else { ("disabled", "Disabled") };
    if asked.is_test() {
        return Ok(Said::new(format!("Schedule would be {word}."), true).with_changes().value());
    }
    asked.update(Change::Enable(enable), asked.persist())?;
    Ok(Said::new(format!("{done} schedule on minion."), true).changed("schedule", word).value())
}

pub fn reload() -> Result<Value, String> {
    let mut comments: Vec<Value> = Vec::new();
    let mut result = true;
    if !Listed::at(Some("pillar"))?.names().is_empty() {
        modules::refresh_pillar(false, None)?;
        comments.push("Reloaded schedule from pillar on minion.".into());
    }
    let saved = schedule::saved()?;
    if Listed::saved()?.names().is_empty() {
        comments.push("Failed to reload schedule on minion.  Saved file is empty or invalid.".into());
        result = false;
    } else {
        schedule::update(&Change::Reload(saved), false)?;
        comments.push("Reloaded schedule on minion from schedule.conf.".into());
    }
    Ok(Said::new(Value::List(comments), result).value())
}

/// Moves or copies a job to other minions.
pub fn send(asked: &Asked, target: &str, and_delete: bool) -> Result<Value, String> {
    let name = &asked.name;
    let (would, done) = match and_delete {
        true => ("moved", format!("Moved Job {name} from schedule.")),
        false => ("copied", format!("Copied Job {name} from schedule to minion(s).")),
    };
    if asked.is_test() {
        return Ok(Said::new(format!("Job: {name} would be {would} from schedule."), true).value());
    }
    let job = match Listed::all(Some("opts"), false)?.get(name).cloned() {
        Some(job) => job,
        None => match Listed::all(Some("pillar"), false)?.get(name).cloned() {
            Some(job) => job,
            None => return Ok(refused(&format!("Job {name} does not exist."))),
        },
    };
    let Value::Dict(items) = job else { return Ok(refused(&format!("Job {name} does not exist."))) };
    let words = items.iter().map(|(key, value)| Value::Text(format!("{}={}", key.to_text(), value.to_text())));
    let args = [target.into(), Value::from("schedule.add"), Value::List(words.collect())].map(Data::from);
    let answer = functions::call("publish.publish", &args, &Value::Dict(Vec::new()).into())?.value()?;
    let answered = if let Value::Dict(entries) = answer { entries } else { Vec::new() };
    if answered.is_empty() {
        return Ok(Said::new("no servers answered the published schedule.add command", true).value());
    }
    let failed: Vec<Value> =
        answered.iter().filter(|(_, answer)| !answer.truthy()).map(|(minion, _)| minion.clone()).collect();
    let with = |said: Said, minions: Vec<Value>| {
        let Value::Dict(mut entries) = said.value() else { return Value::None };
        entries.push(("minions".into(), Value::List(minions)));
        Value::Dict(entries)
    };
    if !failed.is_empty() {
        return Ok(with(Said::new("the following minions return False", true), failed));
    }
    if and_delete {
        delete(&Asked::new(name, Keywords::default()))?;
    }
    Ok(with(Said::new(done, true), answered.into_iter().map(|(minion, _)| minion).collect()))
}

/// Skips a job at a time, and with `new` runs it then.
pub fn postpone(asked: &Asked, current: &str, new: Option<&str>) -> Result<Value, String> {
    let name = &asked.name;
    let format = asked.kwargs.text("time_fmt").unwrap_or_else(|| TIME.to_owned());
    if name.is_empty() {
        return Ok(refused("Job name is required."));
    }
    let missing = if new.is_some() { "Job current time is required." } else { "Job time is required." };
    for (time, missing) in [(Some(current), missing), (new, "Job new_time is required.")] {
        let Some(time) = time else { continue };
        if time.is_empty() {
            return Ok(refused(missing));
        }
        if !schedule::is_date(time, Some(&format))? {
            return Ok(refused("Date string could not be parsed."));
        }
    }
    let (would, done, failed) = match new {
        Some(_) => ("postponed", format!("Postponed Job {name} in schedule."), "postpone"),
        None => ("skipped", format!("Added Skip Job {name} in schedule."), "skip"),
    };
    if asked.is_test() {
        return Ok(Said::new(format!("Job: {name} would be {would} in schedule."), true).value());
    }
    if !Listed::all(Some("opts"), false)?.has(name) && !Listed::all(Some("pillar"), false)?.has(name) {
        return Ok(refused(&format!("Job {name} does not exist.")));
    }
    let mut times = vec![("time", Value::from(current)), ("time_fmt", format.into())];
    if let Some(new) = new {
        times.push(("new_time", new.into()));
    }
    let after = asked.update(Change::Postpone((name.clone(), Value::dict(times).into())), false)?;
    let is_on = after.get(name).and_then(|job| job.get("enabled")).is_some_and(Value::truthy);
    Ok(match is_on {
        true => Said::new(done, true).value(),
        false => refused(&format!("Failed to {failed} job {name} in schedule.")),
    })
}
