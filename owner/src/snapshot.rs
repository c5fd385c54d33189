//! What is shown: read from the answers of this host's functions. Texts of jobs and modules are foreign, and are escaped here, once.

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

/// A call that runs, or a job of which no call is known: it waits for its turn, or its process does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) jid: String,
    pub(crate) function: String,
    /// Who asked: a user, and how the request came.
    pub(crate) by: String,
    /// The function that made this call, if it is not the job's own.
    pub(crate) called_by: Option<String>,
    /// The state that it is.
    pub(crate) state: Option<String>,
    /// Milliseconds since it began. Without a limit: since the job was published.
    pub(crate) time: Share,
    /// Bytes.
    pub(crate) memory: Option<Share>,
    /// Milliseconds of CPU time.
    pub(crate) cpu: Option<Share>,
}

/// What is used of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) used: u64,
    /// None if there is no limit, or if it is not known.
    pub(crate) most: Option<u64>,
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
    executors: Executors,
}

impl Known {
    /// Asks the host.
    ///
    /// # Errors
    /// One line: an answer did not come.
    pub(crate) fn look(&mut self, host: &dyn Host) -> Result<Snapshot, String> {
        let jobs = host.call("sandbox.running", &[])?;
        let running: Vec<Running> = each(&jobs).flat_map(running).take(LIST_MAX).collect();
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
}

/// A row for each call of a job.
fn running(job: &Value) -> Vec<Running> {
    let jid = text(job, "jid");
    let by = if text(job, "from") == "salt-call" { "this host" } else { "a master" };
    let by = format!("{}, {by}", text(job, "user"));
    let calls: Vec<&Value> = job.get("calls").map_or_else(Vec::new, |calls| each(calls).collect());
    if calls.is_empty() {
        let time = Share { used: since(&jid).saturating_mul(1_000), most: None };
        let function = text(job, "function");
        return vec![Running { jid, function, by, called_by: None, state: None, time, memory: None, cpu: None }];
    }
    let number = |call: &Value, key: &str| call.get(key).and_then(Value::as_u64);
    let share =
        |call: &Value, used: &str, most: &str| Some(Share { used: number(call, used)?, most: number(call, most) });
    let some = |call: &Value, key: &str| Some(text(call, key)).filter(|text| !text.is_empty());
    let row = |call: &Value| Running {
        jid: jid.clone(),
        function: text(call, "function"),
        by: by.clone(),
        called_by: some(call, "called_by"),
        state: some(call, "state"),
        time: share(call, "ms", "ms_max").unwrap_or(Share { used: 0, most: None }),
        memory: share(call, "memory", "memory_max"),
        cpu: share(call, "cpu_ms", "cpu_ms_max"),
    };
    calls.into_iter().map(row).collect()
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
