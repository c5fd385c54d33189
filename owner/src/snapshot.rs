//! What is shown: read from the answers of this host's functions. Texts of jobs and modules are foreign, and are escaped here, once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::host::Host;
use crate::load::{Executors, Load};

/// Characters of one text.
const TEXT_MAX: usize = 4_000;
/// Entries of one list.
const LIST_MAX: usize = 1_000;
/// Held updates whose changes are asked for.
const HELD_MAX: usize = 32;

/// A job that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) jid: String,
    pub(crate) function: String,
    /// Who asked: a user, and how the request came.
    pub(crate) by: String,
    /// Seconds since it began.
    pub(crate) seconds: u64,
    /// Seconds that it may take. None if the module does not say.
    pub(crate) budget: Option<u64>,
}

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) at: String,
    pub(crate) function: String,
    pub(crate) jid: String,
    pub(crate) by: String,
    pub(crate) what: String,
    /// How often.
    pub(crate) times: u64,
    /// The line that would grant it, as `sandbox.grant` takes it.
    pub(crate) line: Option<String>,
}

/// A version of a module that waits for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldUpdate {
    pub(crate) module: String,
    pub(crate) sha256: String,
    pub(crate) version: String,
    pub(crate) why: String,
    /// The versions, functions and permissions that change, a line each. A line begins with `+`, `-` or a blank.
    pub(crate) changes: Vec<String>,
}

/// All that is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) running: Vec<Running>,
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) held: Vec<HeldUpdate>,
    /// What the owner should look at.
    pub(crate) findings: Vec<String>,
    /// Of the executors.
    pub(crate) load: Load,
}

/// What stays the same between two looks.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The seconds that calls of a module may take.
    budgets: BTreeMap<String, Option<u64>>,
    executors: Executors,
}

impl Known {
    /// Asks the host.
    ///
    /// # Errors
    /// One line: an answer did not come.
    pub(crate) fn look(&mut self, host: &dyn Host) -> Result<Snapshot, String> {
        let running = host.call("saltutil.running", &[])?;
        let running: Vec<Running> = each(&running).filter_map(|job| self.running(host, job)).collect();
        let refusals = host.call("sandbox.refusals", &[])?;
        let check = host.call("sandbox.check", &[])?;
        Ok(Snapshot {
            running,
            refusals: each(&refusals).map(refusal).collect(),
            held: held(host)?,
            findings: check.get("findings").map_or_else(Vec::new, |all| each(all).map(words).collect()),
            load: self.executors.look(),
        })
    }

    fn running(&mut self, host: &dyn Host, job: &Value) -> Option<Running> {
        let jid = text(job, "jid");
        let function = match job.get("fun") {
            Some(Value::Array(all)) => all.iter().map(words).collect::<Vec<_>>().join(", "),
            one => one.map(words).unwrap_or_default(),
        };
        // This program's own question.
        if function == "saltutil.running" {
            return None;
        }
        let module = function.split('.').next().unwrap_or_default().to_owned();
        let budget = *self.budgets.entry(module.clone()).or_insert_with(|| {
            let shown = host.call("sandbox.show", &[&module]).ok()?;
            Some(shown.get("limits")?.get("wall_ms")?.as_u64()?.div_ceil(1000))
        });
        let by = if job.get("tgt").and_then(Value::as_str) == Some("salt-call") { "this host" } else { "a master" };
        Some(Running { seconds: since(&jid), by: format!("{}, {by}", text(job, "user")), budget, jid, function })
    }
}

/// The seconds since a jid was given, which is the UTC time.
fn since(jid: &str) -> u64 {
    let at = || DateTime::strptime("%Y%m%d%H%M%S", jid.get(..14)?).ok()?.to_zoned(TimeZone::UTC).ok();
    at().and_then(|at| u64::try_from(Timestamp::now().duration_since(at.timestamp()).as_secs()).ok())
        .unwrap_or_default()
}

fn refusal(one: &Value) -> Refusal {
    Refusal {
        at: text(one, "time"),
        function: text(one, "function"),
        jid: text(one, "jid"),
        by: text(one, "master"),
        what: text(one, "what"),
        times: one.get("times").and_then(Value::as_u64).unwrap_or(1),
        // Not escaped: it is the argument of a call. It is escaped where it is drawn.
        line: one.get("line").and_then(Value::as_str).map(str::to_owned),
    }
}

fn held(host: &dyn Host) -> Result<Vec<HeldUpdate>, String> {
    let modules = host.call("sandbox.list", &[])?;
    let held = modules.as_object().into_iter().flatten().filter(|(_, it)| it.get("held") == Some(&Value::Bool(true)));
    let held = held.take(HELD_MAX).filter_map(|(name, _)| Some((name, host.call("sandbox.diff", &[name]).ok()?)));
    Ok(held.map(|(name, diff)| update(name, &diff)).collect())
}

fn update(module: &str, diff: &Value) -> HeldUpdate {
    let version = |which: &str| diff.get(which).filter(|it| !it.is_null());
    let short =
        |it: &Value| format!("{} ({})", text(it, "version"), text(it, "sha256").chars().take(12).collect::<String>());
    let mut changes = Vec::new();
    changes.extend(version("in_use").map(|it| format!("- version {}", short(it))));
    changes.extend(version("held").map(|it| format!("+ version {}", short(it))));
    for (key, what) in [("permissions", "may "), ("functions", "")] {
        let Some(of) = diff.get(key) else { continue };
        for (part, sign) in [("removed", '-'), ("added", '+'), ("changed", ' ')] {
            match of.get(part) {
                Some(Value::Object(all)) => {
                    changes
                        .extend(all.iter().map(|(name, why)| format!("{sign} {what}{} ({})", words(why), line(name))));
                }
                Some(list) => changes.extend(each(list).map(|one| format!("{sign} {}", words(one)))),
                None => {}
            }
        }
    }
    HeldUpdate {
        module: line(module),
        sha256: version("held").map(|it| text(it, "sha256")).unwrap_or_default(),
        version: version("held").map(|it| text(it, "version")).unwrap_or_default(),
        why: text(diff, "why"),
        changes,
    }
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten().take(LIST_MAX)
}

fn text(of: &Value, key: &str) -> String {
    of.get(key).map(words).unwrap_or_default()
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => line(text),
        other => line(&other.to_string()),
    }
}

/// A foreign text on one line.
pub(crate) fn line(text: &str) -> String {
    brine_text::short(text, TEXT_MAX)
}
