//! One entry of the schedule: what it runs, when, and where its return goes.

use std::time::Duration;

use brine_values::{Value, ValueExt};
use jiff::ToSpan;
use jiff::civil::{Date, DateTime};

use crate::cron::Cron;
use crate::dates::{Moment, by_format};
use crate::gates::{Gates, explicit};
use crate::trigger::Trigger;

/// The keys of a schedule that are no entries.
pub const GLOBAL: [&str; 4] = ["enabled", "skip_function", "skip_during_range", "splay"];
/// The longest interval: what is longer is a mistake of units.
const MAX_INTERVAL: i64 = 10 * 366 * 86_400;
/// The longest splay.
const MAX_SPLAY: i64 = 366 * 86_400;
/// Upper bound on the dates of `when`.
const MAX_WHENS: usize = 1_000;
/// Upper bound on the bytes of an entry's name.
pub const MAX_NAME: usize = 256;
/// Upper bound on the bytes of a function's name.
const MAX_FUNCTION: usize = 256;

/// What a schedule says for all of its entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Globals {
    /// `enabled`, which is true where it is not said.
    pub disabled: bool,
    /// `skip_function`
    pub skip_function: Option<String>,
    /// `skip_during_range`
    pub skip_during_range: Option<Value>,
    /// `splay`
    pub splay: Option<Value>,
}

impl Globals {
    /// Reads them from a schedule.
    pub fn read(schedule: &Value) -> Self {
        let some = |key: &str| schedule.get(key).filter(|value| value.truthy());
        Self {
            disabled: schedule.get("enabled").is_some_and(|enabled| !enabled.truthy()),
            skip_function: some("skip_function").and_then(ValueExt::text).map(str::to_owned),
            skip_during_range: some("skip_during_range").cloned(),
            splay: some("splay").cloned(),
        }
    }
}

/// `return_job`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnJob {
    /// The master gets the return and keeps it.
    Kept,
    /// The master gets the return and tells its bus only.
    NotKept,
    /// Nobody gets it.
    No,
}

/// One entry.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The function.
    pub function: String,
    /// Its arguments.
    pub args: Vec<Value>,
    /// Its keyword arguments.
    pub kwargs: Option<Value>,
    /// When it is due.
    pub trigger: Trigger,
    /// When else it is due, once each.
    pub extra: Vec<DateTime>,
    /// From and to, in seconds, of the random time that is added.
    pub splay: Option<(i64, i64)>,
    /// Whether it runs when it is due.
    pub gates: Gates,
    /// Whether it runs at all.
    pub enabled: bool,
    /// Whether it runs when the minion starts: an interval does where nothing else is said.
    pub run_on_start: bool,
    /// How many of it run at once; none is no bound (`jid_include: False`).
    pub maxrunning: Option<u64>,
    /// Who gets the return.
    pub return_job: ReturnJob,
    /// What is returned with it.
    pub metadata: Option<Value>,
    /// `returner`
    pub returners: Vec<String>,
    /// `return_config`
    pub return_config: Option<Value>,
    /// `return_kwargs`
    pub return_kwargs: Option<Value>,
    /// It is only said that it would run.
    pub dry_run: bool,
}

impl Entry {
    /// Reads and checks an entry. `named` looks up a name of `when` among the `whens` of pillar and grains.
    ///
    /// # Errors
    /// A sentence, Salt's where Salt has one.
    pub fn read(
        name: &str,
        data: &Value,
        globals: &Globals,
        today: Date,
        named: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(format!("The name of a job is one line of at most {MAX_NAME} bytes. Ignoring job {name:?}."));
        }
        if data.entries().is_none() {
            return Err(format!("Scheduled job \"{name}\" should have a dict value."));
        }
        let function = ["function", "func", "fun"].iter().find_map(|key| data.get_text(key)).unwrap_or_default();
        if function.is_empty() || function.len() > MAX_FUNCTION || function.chars().any(char::is_control) {
            return Err(format!("Invalid function in scheduled job {name}."));
        }
        let (trigger, is_interval) = trigger(name, data, today, named)?;
        let truth = |key: &str, default: bool| data.get(key).map_or(default, is_true);
        let skip_function = globals.skip_function.clone();
        let gates = Gates::read(data, name, today, globals.skip_during_range.as_ref(), skip_function)?;
        let mut extra = explicit(data, "run_explicit", name)?;
        if truth("run_after_skip_range", false)
            && let Some(end) = gates.skip_range().and_then(|range| range.end().seen_on(today))
        {
            extra.extend(end.checked_add(1.second()));
        }
        let args = match data.get("args") {
            None | Some(Value::Nil) => Vec::new(),
            Some(value) => value.list().ok_or_else(|| format!("args must be a list. Ignoring job {name}."))?.to_vec(),
        };
        let kwargs = match data.get("kwargs") {
            None | Some(Value::Nil) => None,
            Some(value) if value.entries().is_some() => Some(value.clone()),
            Some(_) => return Err(format!("kwargs must be a dictionary. Ignoring job {name}.")),
        };
        let maxrunning = match data.get("maxrunning") {
            None | Some(Value::Nil) => 1,
            Some(value) => {
                value.as_u64().ok_or_else(|| format!("maxrunning must be a whole number. Ignoring job {name}."))?
            }
        };
        let returners = match data.get("returner") {
            Some(Value::Array(items)) => items.iter().filter_map(|item| item.text().map(str::to_owned)).collect(),
            Some(value) => value.text().map(str::to_owned).into_iter().collect(),
            None => Vec::new(),
        };
        let return_job = match data.get("return_job") {
            Some(value) if value.text() == Some("nocache") => ReturnJob::NotKept,
            Some(value) if !is_true(value) => ReturnJob::No,
            _ => ReturnJob::Kept,
        };
        Ok(Self {
            name: name.to_owned(),
            function: function.to_owned(),
            args,
            kwargs,
            trigger,
            extra,
            splay: splay(name, data.get("splay").filter(|splay| splay.truthy()).or(globals.splay.as_ref()))?,
            gates,
            enabled: truth("enabled", true) && !globals.disabled,
            run_on_start: truth("run_on_start", is_interval),
            maxrunning: truth("jid_include", true).then_some(maxrunning),
            return_job,
            metadata: data.get("metadata").filter(|metadata| metadata.entries().is_some()).cloned(),
            returners,
            return_config: data.get("return_config").cloned(),
            return_kwargs: data.get("return_kwargs").cloned(),
            dry_run: truth("dry_run", false),
        })
    }
}

/// Salt lists `"true"` and `"false"` as what they say.
fn is_true(value: &Value) -> bool {
    match value.text() {
        Some("false" | "False") => false,
        _ => value.truthy(),
    }
}

fn trigger(
    name: &str,
    data: &Value,
    today: Date,
    named: impl Fn(&str) -> Option<String>,
) -> Result<(Trigger, bool), String> {
    const UNITS: [(&str, i64); 4] = [("seconds", 1), ("minutes", 60), ("hours", 3_600), ("days", 86_400)];
    let has_units = UNITS.iter().any(|(unit, _)| data.get(unit).is_some());
    let others: Vec<&str> = ["when", "cron", "once"].into_iter().filter(|key| data.get(key).is_some()).collect();
    match (has_units, others.as_slice()) {
        (true, []) => {
            let mut seconds = 0_i64;
            for (unit, factor) in UNITS {
                let Some(value) = data.get(unit) else { continue };
                let count = whole(value).ok_or_else(|| format!("{unit} must be a number. Ignoring job {name}."))?;
                seconds = seconds.saturating_add(count.saturating_mul(factor));
            }
            if !(1..=MAX_INTERVAL).contains(&seconds) {
                return Err(format!(
                    "An interval is from 1 second to ten years, not {seconds} seconds. Ignoring job {name}."
                ));
            }
            Ok((Trigger::Every(Duration::from_secs(seconds.unsigned_abs())), true))
        }
        (false, ["once"]) => {
            let format = data.get_text("once_fmt").unwrap_or("%Y-%m-%dT%H:%M:%S");
            let text = data.get_text("once").unwrap_or_default();
            let at = by_format(text, format)
                .ok_or_else(|| format!("Date string could not be parsed: {text}, {format}. Ignoring job {name}."))?;
            Ok((Trigger::Once(at), false))
        }
        (false, ["when"]) => {
            let when = data.get("when").unwrap_or(&Value::Nil);
            let items = when.list().unwrap_or(std::slice::from_ref(when));
            if items.len() > MAX_WHENS {
                return Err(format!("when has more than {MAX_WHENS} dates. Ignoring job {name}."));
            }
            let moments = items.iter().map(|item| {
                let text = item.text().unwrap_or_default();
                let meant = named(text).unwrap_or_else(|| text.to_owned());
                Moment::parse(&meant, today).map_err(|_| format!("Invalid date string {text}. Ignoring job {name}."))
            });
            Ok((Trigger::When(moments.collect::<Result<_, String>>()?), false))
        }
        (false, ["cron"]) => {
            let cron = Cron::parse(data.get_text("cron").unwrap_or_default())
                .map_err(|_| format!("Invalid cron string. Ignoring job {name}."))?;
            Ok((Trigger::Cron(cron), false))
        }
        (false, []) => Err(format!("It says nothing of when. Ignoring job {name}.")),
        (false, _) => Err("Unable to use \"when\", \"cron\", \"once\" options together. Ignoring.".to_owned()),
        (true, _) => {
            Err("Unable to use \"seconds\", \"minutes\", \"hours\", \"days\" with \"when\", \"cron\", \"once\" \
                          options. Ignoring"
                .to_owned())
        }
    }
}

/// A whole number, as Python's `int` reads numbers and texts.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.text()?.trim().parse().ok()).or_else(|| {
        #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
        value.as_f64().filter(|number| number.is_finite()).map(|number| number as i64)
    })
}

fn splay(name: &str, value: Option<&Value>) -> Result<Option<(i64, i64)>, String> {
    let Some(value) = value else { return Ok(None) };
    let range = match value.entries() {
        Some(_) => value.get_i64("start").zip(value.get_i64("end")),
        None => whole(value).map(|most| (1, most)),
    };
    match range {
        Some((from, to)) if 0 <= from && from <= to && to <= MAX_SPLAY => Ok(Some((from, to))),
        _ => Err(format!("Invalid Splay, end must be larger than start. Ignoring job {name}.")),
    }
}
