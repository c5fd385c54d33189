//! One run of states at a time: who else runs states on this minion, and the wait for them.

use brine_guest::host::{job, jobs, states};
use brine_guest::{Data, Value, fnmatch};

/// Milliseconds between two looks at the other runs.
const LOOK: u64 = 200;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Whether this run may begin.
pub(crate) enum Turn {
    /// It may.
    Free,
    /// Others run: a sentence about each.
    Taken(Vec<String>),
}

/// Another run of states.
struct Run {
    fun: String,
    pid: String,
    jid: String,
    /// Whether it waits as long as others run.
    queued: bool,
}

/// Takes the turn to run states. `queue` is the argument.
pub(crate) fn take(queue: Option<&Data>, concurrent: bool) -> Result<Turn, String> {
    let queue = queue.map(Data::value).transpose()?.unwrap_or_default();
    let waits = match queue {
        Value::Bool(queue) => queue,
        Value::Int(most) => most > 0 && others().len() < usize::try_from(most).unwrap_or(0),
        _ => false,
    };
    if waits {
        let own = job::current().jid;
        // Those that came before go first. One that came later and does not wait for us is running already.
        while others().iter().any(|other| !other.queued || other.jid < own) {
            states::wait(LOOK);
        }
        return Ok(Turn::Free);
    }
    if concurrent {
        return Ok(Turn::Free);
    }
    let running = running();
    Ok(if running.is_empty() { Turn::Free } else { Turn::Taken(running) })
}

/// A sentence about each other run, in Salt's words.
pub(crate) fn running() -> Vec<String> {
    let sentence = |run: Run| {
        let Run { fun, pid, jid, .. } = run;
        let started = started(&jid);
        format!("The function \"{fun}\" is running as PID {pid} and was started at {started} with jid {jid}")
    };
    others().into_iter().map(sentence).collect()
}

fn others() -> Vec<Run> {
    let Ok(Value::List(jobs)) = jobs::running().value() else { return Vec::new() };
    let run = |job: &Value| {
        let fun = match job.get("fun")? {
            Value::List(functions) => functions.iter().map(Value::to_text).find(|fun| fnmatch("state.*", fun))?,
            fun => fun.to_text(),
        };
        let is_run = fnmatch("state.*", &fun) && !is_look(&fun);
        let text = |key: &str| job.get(key).map(Value::to_text).unwrap_or_default();
        is_run.then(|| Run { pid: text("pid"), jid: text("jid"), queued: is_queued(job), fun })
    };
    jobs.iter().filter_map(run).collect()
}

/// Whether a function looks at runs without being one: it would find itself in the way of others.
fn is_look(fun: &str) -> bool {
    const LOOKS: [&str; 11] = [
        "state.running",
        "state.list_disabled",
        "state.enable",
        "state.disable",
        "state.pause",
        "state.resume",
        "state.soft_kill",
        "state.get_pauses",
        "state.check_request",
        "state.clear_request",
        "state.sls_exists",
    ];
    LOOKS.contains(&fun)
}

/// Whether a job was called with `queue=True`.
fn is_queued(job: &Value) -> bool {
    let Some(Value::List(arguments)) = job.get("arg") else { return false };
    let queue = |argument: &Value| match argument {
        Value::Text(text) => text == "queue=True",
        other => other.get("queue") == Some(&Value::Bool(true)),
    };
    arguments.iter().any(queue)
}

/// When a job was started, as Salt writes the time of a jid.
fn started(jid: &str) -> String {
    let month =
        jid.get(4..6).and_then(|month| month.parse::<usize>().ok()).and_then(|month| MONTHS.get(month.checked_sub(1)?));
    let Some(month) = month.filter(|_| jid.len() == 20 && jid.is_ascii()) else { return String::new() };
    let part = |from: usize, to: usize| &jid[from..to];
    format!("{}, {month} {} {}:{}:{}.{}", part(0, 4), part(6, 8), part(8, 10), part(10, 12), part(12, 14), part(14, 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_jid_is_written_as_salt_writes_it() {
        assert_eq!(started("20260102030405678901"), "2026, Jan 02 03:04:05.678901");
        for odd in ["", "req", "2026010203040567890", "20261302030405678901", "2026é10203040567890"] {
            assert_eq!(started(odd), "", "{odd}");
        }
    }

    #[test]
    fn a_job_that_waits_is_told_from_one_that_runs() {
        let job = |arg: Value| Value::dict([("fun", "state.apply".into()), ("arg", Value::List(vec![arg]))]);
        let keyword = Value::dict([("queue", true.into()), ("__kwarg__", true.into())]);
        assert!(is_queued(&job(keyword)));
        assert!(is_queued(&job("queue=True".into())));
        assert!(!is_queued(&job(Value::dict([("queue", false.into())]))));
        assert!(!is_queued(&job("core".into())));
    }
}
