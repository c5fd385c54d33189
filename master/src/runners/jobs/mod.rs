//! `jobs.*`: jobs in the store, and running jobs.

mod search;

use std::collections::HashSet;
use std::sync::Arc;

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use indexmap::IndexMap;

use super::Parts;
use super::ask::{self, Question};
use super::function::{Failure, Function, Outcome, Run, functions};
use crate::jobs::{JobFilter, StoredJob};
use search::Search;

/// The job store's name where Salt has the name of a returner.
const STORE: &str = "brine";
/// Longest text in characters that is looked up as a jid.
const JID_TEXT_MAX: usize = 64;
/// The text for an unknown jid.
const UNKNOWN: &str = "Cannot contact returner or no job with this jid";

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Asks all minions which jobs they run now, and returns these jobs by jid.
    "jobs.active(display_progress=False)" => active,
    /// Returns for each minion of a job whether it returned something that counts as true.
    "jobs.exit_success(jid, ext_source=None)" => exit_success,
    /// Returns the newest job that fits, with its returns; False if there is none.
    "jobs.last_run(ext_source=None, outputter=None, metadata=None, function=None, target=None, display_progress=False)"
        => last_run,
    /// Returns all about one job: what was asked of whom, and what came back.
    "jobs.list_job(jid, ext_source=None, display_progress=False)" => list_job,
    /// Lists the jobs that are kept and fit all of the filters: globs of functions and of targets, or lists of them;
    /// metadata of which one entry fits; the time of the start; a minion that returned.
    "jobs.list_jobs(ext_source=None, outputter=None, search_metadata=None, search_function=None, search_target=None, \
     start_time=None, end_time=None, display_progress=False, search_minion=None, limit=None)"
        => list_jobs,
    /// Lists the newest jobs, without saltutil.find_job.
    "jobs.list_jobs_filter(count, filter_find_job=True, ext_source=None, outputter=None, display_progress=False)"
        => list_jobs_filter,
    /// Returns what the minions returned to a job; with missing=True also who did not.
    "jobs.lookup_jid(jid, ext_source=None, returned=True, missing=False, display_progress=False, minion=None)"
        => lookup_jid,
    /// Lists the runners that run in the master now.
    "jobs.master()" => |run| async move { Ok(Value::Array(run.parts.runs.list())) },
    /// Returns one job with its returns, under its jid.
    "jobs.print_job(jid, ext_source=None)" => print_job,
};

/// The requested jid; or the original value if it is invalid, so that no job matches.
enum Asked {
    Jid(Jid),
    Other(Value),
}

impl Asked {
    fn of(run: &Run) -> Result<Self, Failure> {
        let given = run.get("jid").ok_or_else(|| run.wrong("jid must be the id of a job"))?;
        // A jid has only digits, so the command line may have parsed it as a number.
        let text = given.python_str();
        if text.chars().count() > JID_TEXT_MAX {
            return Err(run.wrong("jid must be the id of a job"));
        }
        Ok(Jid::try_from(text.as_str()).map_or_else(|_| Self::Other(given.clone()), Self::Jid))
    }

    fn value(&self) -> Value {
        match self {
            Self::Jid(jid) => Value::from(jid),
            Self::Other(given) => given.clone(),
        }
    }
}

/// Checks that `ext_source`, if given, names the master's own store.
fn source(run: &Run) -> Result<(), Failure> {
    match run.find_text("ext_source") {
        None => Ok(()),
        Some(name) if matches!(name.as_str(), STORE | "local_cache") => Ok(()),
        Some(name) => Err(format!("'{name}' is not a job cache of this master: leave ext_source out").into()),
    }
}

/// A job as it is shown: `Function` and the like, `StartTime`, `Result`.
struct Shown {
    entries: Vec<(Value, Value)>,
    minions: Vec<String>,
    results: Vec<(String, Value)>,
    /// With `job_cache_store_endtime`: the time of the last return.
    ended: Option<String>,
}

impl Shown {
    fn value(self, before: Option<Value>) -> Value {
        let jid = before.map(|jid| (Value::from("jid"), jid));
        let results = map(self.results.iter().map(|(id, result)| (id.as_str(), result.clone())));
        let ended = self.ended.map(|time| (Value::from("EndTime"), Value::from(time)));
        Value::Map(jid.into_iter().chain(self.entries).chain([(Value::from("Result"), results)]).chain(ended).collect())
    }
}

async fn show(parts: &Arc<Parts>, asked: &Asked) -> Result<Shown, Failure> {
    let job = match asked {
        Asked::Jid(jid) => parts.jobs.job(jid).await.map_err(|e| e.to_string())?,
        Asked::Other(_) => None,
    };
    let mut shown = match &job {
        Some(job) => summary(job),
        None => map([("Error", UNKNOWN)]),
    };
    let minions: Vec<String> = job.iter().flat_map(|job| &job.minions).map(ToString::to_string).collect();
    // The run of a runner is nobody's.
    if !minions.is_empty() {
        shown.insert("Minions", Value::Array(minions.iter().map(|id| Value::from(id.as_str())).collect()));
    }
    // Moved to the end, as in Salt.
    shown.remove("StartTime");
    let mut results = Vec::new();
    let mut last_ms = None;
    if let Asked::Jid(jid) = asked {
        shown.insert("StartTime", jid.start_time());
        for ret in parts.jobs.returns(jid).await.map_err(|e| e.to_string())? {
            let load = ret.load();
            last_ms = last_ms.max(Some(ret.at_ms));
            let mut result = empty_map();
            for field in ["return", "retcode", "success", "out", "usage"] {
                if let Some(value) = load.get(field) {
                    result.insert(field, value.clone());
                }
            }
            results.push((ret.minion.to_string(), result));
        }
    } else {
        shown.insert("StartTime", "");
    }
    let Value::Map(entries) = shown else { return Err("a job is a map".into()) };
    let ended = last_ms.filter(|_| parts.opts.shows_end).and_then(Jid::at).map(|jid| jid.start_time());
    Ok(Shown { entries, minions, results, ended })
}

fn querying(run: &Run) {
    if run.is("display_progress") {
        run.progress(format!("Querying returner: {STORE}"));
    }
}

async fn list_job(run: Run) -> Outcome {
    source(&run)?;
    querying(&run);
    let asked = Asked::of(&run)?;
    Ok(show(&run.parts, &asked).await?.value(Some(asked.value())))
}

async fn print_job(run: Run) -> Outcome {
    source(&run)?;
    let asked = Asked::of(&run)?;
    let shown = show(&run.parts, &asked).await?.value(None);
    Ok(Value::Map(vec![(asked.value(), shown)]))
}

async fn lookup_jid(run: Run) -> Outcome {
    source(&run)?;
    querying(&run);
    let Shown { minions, results, .. } = show(&run.parts, &Asked::of(&run)?).await?;
    // For callers that want one large return and not all of them.
    let only = run.find_text("minion");
    let mut found: Vec<(Value, Value)> = Vec::new();
    let returned = run.is("returned");
    for (id, result) in &results {
        if only.as_ref().is_some_and(|only| only != id) {
            continue;
        }
        if run.is("display_progress") {
            run.progress(id.as_str());
        }
        if returned {
            found.push((Value::from(id.as_str()), result.get("return").cloned().unwrap_or(Value::Nil)));
        }
    }
    if run.is("missing") {
        let known: HashSet<&str> = results.iter().map(|(known, _)| known.as_str()).collect();
        for id in minions.iter().filter(|id| !known.contains(id.as_str())) {
            found.push((Value::from(id.as_str()), "Minion did not return".into()));
        }
    }
    // As in Salt, the first return decides the outputter.
    let out = results.first().and_then(|(_, result)| result.get("out")).filter(|out| out.truthy());
    Ok(outputter(out.cloned(), Value::Map(found)))
}

fn outputter(out: Option<Value>, data: Value) -> Value {
    match out {
        Some(out) => map([("outputter", out), ("data", data)]),
        None => data,
    }
}

async fn exit_success(run: Run) -> Outcome {
    source(&run)?;
    let shown = show(&run.parts, &Asked::of(&run)?).await?;
    let mut found: IndexMap<&str, bool> = shown.minions.iter().map(|id| (id.as_str(), false)).collect();
    for (id, result) in &shown.results {
        let yes = result.get("return").is_some_and(Value::truthy);
        if yes || found.contains_key(id.as_str()) {
            found.insert(id.as_str(), yes);
        }
    }
    Ok(map(found))
}

async fn last_run(run: Run) -> Outcome {
    source(&run)?;
    if run.is("metadata") && run.get("metadata").and_then(ValueExt::entries).is_none() {
        return Ok(Value::from(false));
    }
    listing(&run);
    let search = Search {
        metadata: run.get("metadata").cloned(),
        functions: search::words(run.get("function")),
        targets: search::words(run.get("target")),
        ..Search::default()
    };
    match found(&run.parts, JobFilter::default(), &search).await?.pop() {
        Some(job) => {
            let shown = show(&run.parts, &Asked::Jid(job.jid.clone())).await?.value(None);
            Ok(map([(job.jid.as_str(), shown)]))
        }
        None => Ok(Value::from(false)),
    }
}

fn listing(run: &Run) {
    if run.is("display_progress") {
        run.progress(format!("Querying returner {STORE} for jobs."));
    }
}

async fn list_jobs(run: Run) -> Outcome {
    source(&run)?;
    listing(&run);
    let search = Search {
        metadata: run.get("search_metadata").filter(|wanted| wanted.truthy()).cloned(),
        functions: search::words(run.get("search_function")),
        targets: search::words(run.get("search_target")),
        from: run.find_text("start_time").map(|time| search::time(&time).ok_or_else(|| bad_time(&run))).transpose()?,
        to: run.find_text("end_time").map(|time| search::time(&time).ok_or_else(|| bad_time(&run))).transpose()?,
    };
    let minion = run.find_text("search_minion");
    let filter = JobFilter {
        minion: minion
            .map(|id| id.parse().map_err(|_| run.wrong("search_minion must be the id of a minion")))
            .transpose()?,
        limit: run.get("limit").and_then(Value::as_u64).and_then(|limit| u32::try_from(limit).ok()),
        ..JobFilter::default()
    };
    let jobs = found(&run.parts, filter, &search).await?;
    let listed = map(jobs.iter().map(|job| (job.jid.as_str(), summary(job))));
    Ok(outputter(run.get("outputter").cloned(), listed))
}

fn bad_time(run: &Run) -> Failure {
    run.wrong("a time is written 2026-11-20, 2026-11-20 13:05:09 or '2026, Nov 20 13:05'")
}

async fn list_jobs_filter(run: Run) -> Outcome {
    source(&run)?;
    listing(&run);
    let count = run.get("count").and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
    let count = count.ok_or_else(|| run.wrong("count must be a number of jobs"))?;
    let without_find = run.is("filter_find_job");
    let mut jobs = found(&run.parts, JobFilter::default(), &Search::default()).await?;
    jobs.retain(|job| !(without_find && job.fun == "saltutil.find_job"));
    let skip = jobs.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
    let listed = jobs.iter().skip(skip).map(|job| {
        let mut shown = summary(job);
        let start = shown.remove("StartTime");
        shown.insert("JID", job.jid.as_str());
        shown.insert("StartTime", start.unwrap_or(Value::Nil));
        shown
    });
    Ok(outputter(run.get("outputter").cloned(), Value::Array(listed.collect())))
}

/// Returns the matching jobs, the oldest first.
async fn found(parts: &Arc<Parts>, mut filter: JobFilter, search: &Search) -> Result<Vec<StoredJob>, Failure> {
    // The store searches by function, if there is only one.
    filter.fun = search.one_function();
    let limit = filter.limit.take_if(|_| !search.is_empty());
    let mut jobs = parts.jobs.find(filter).await.map_err(|e| e.to_string())?;
    jobs.retain(|job| search.fits(job, &summary(job)));
    if let Some(limit) = limit {
        jobs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    jobs.reverse();
    Ok(jobs)
}

async fn active(run: Run) -> Outcome {
    let answers = ask::minions(&run.parts, Question::all("saltutil.running")).await?;
    if run.is("display_progress") {
        let ids: Vec<Value> = answers.returns.keys().map(|id| Value::from(id.as_str())).collect();
        run.progress(format!("Attempting to contact minions: {}", Value::Array(ids).python_repr()));
    }
    let mut jobs: Vec<(String, Value)> = Vec::new();
    for (id, running) in answers.results() {
        if run.is("display_progress") {
            run.progress(format!("Received reply from minion {id}"));
        }
        for job in running.list().unwrap_or_default() {
            let Some(jid) = job.get("jid").map(ValueExt::python_str) else { continue };
            let runs = map([(id, job.get("pid").cloned().unwrap_or(Value::Nil))]);
            if let Some((_, known)) = jobs.iter_mut().find(|(known, _)| *known == jid) {
                if let Some(Value::Array(running)) = known.get_mut("Running") {
                    running.push(runs);
                }
                continue;
            }
            let mut shown = format_job(job);
            shown.insert("StartTime", Jid::try_from(jid.as_str()).map(|jid| jid.start_time()).unwrap_or_default());
            shown.insert("Running", Value::Array(vec![runs]));
            shown.insert("Returned", Value::Array(Vec::new()));
            jobs.push((jid, shown));
        }
    }
    for (jid, shown) in &mut jobs {
        let Ok(jid) = Jid::try_from(jid.as_str()) else { continue };
        let returns = run.parts.jobs.returns(&jid).await.map_err(|e| e.to_string())?;
        shown.insert("Returned", Value::Array(returns.iter().map(|ret| Value::from(&ret.minion)).collect()));
    }
    Ok(map(jobs.iter().map(|(jid, shown)| (jid.as_str(), shown.clone()))))
}

fn summary(job: &StoredJob) -> Value {
    let mut shown = format_job(&job.load());
    shown.insert("StartTime", job.jid.start_time());
    shown
}

/// Formats a job like Salt's `format_job_instance`.
fn format_job(load: &Value) -> Value {
    let field = |name: &str, default: &str| load.get(name).cloned().unwrap_or_else(|| Value::from(default));
    let args = load.get_list("arg").unwrap_or_default();
    let mut shown = map([
        ("Function", field("fun", "unknown-function")),
        ("Arguments", Value::Array(args.to_vec())),
        ("Target", field("tgt", "unknown-target")),
        ("Target-type", field("tgt_type", "list")),
        ("User", field("user", "root")),
    ]);
    // A command line sends it among the arguments.
    let marked =
        || args.iter().filter(|arg| arg.get_bool("__kwarg__") == Some(true)).find_map(|arg| arg.get("metadata"));
    let metadata = load.get("metadata").or_else(|| load.get("kwargs")?.get("metadata")).or_else(marked);
    if let Some(metadata) = metadata {
        shown.insert("Metadata", metadata.clone());
    }
    shown
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::list;

    use super::*;

    #[test]
    fn jobs_are_shown_as_salt_shows_them() {
        let keys = |value: &Value| -> Vec<String> {
            value.entries().unwrap().iter().map(|(key, _)| key.python_str()).collect()
        };
        assert_eq!(keys(&format_job(&empty_map())), ["Function", "Arguments", "Target", "Target-type", "User"]);
        let marked = map([("__kwarg__", Value::from(true)), ("metadata", map([("a", 1)]))]);
        for load in [
            map([("metadata", map([("a", 1)]))]),
            map([("kwargs", map([("metadata", map([("a", 1)]))]))]),
            map([("arg", list([marked]))]),
        ] {
            assert_eq!(format_job(&load).get("Metadata"), Some(&map([("a", 1)])), "{load}");
        }
    }
}
