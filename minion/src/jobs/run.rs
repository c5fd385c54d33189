//! One job from its load to its return, through the sandbox.

use std::time::{Duration, Instant};

use brine_protocol::ids::MinionId;
use brine_protocol::job::{FunCall, JobLoad, split_kwargs};
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_sandbox::{JobContext, JobOutcome, Rest};

use super::docs;
use super::proc::End;
use super::timeout;
use crate::modules::Modules;
use crate::runtime::Runtime;

/// Functions of one job; one after the other they are soon as long as a day.
const MAX_FUNCTIONS: usize = 256;
/// What the functions of one job may return together, in memory: each alone is bounded by the sandbox's `output`.
const MAX_RETURN_BYTES: usize = 64 * 1024 * 1024;

/// What runs jobs: the sandbox, and where it gets modules that it does not have.
pub(crate) struct Runner {
    pub(crate) id: MinionId,
    pub(crate) runtime: std::sync::Arc<dyn Runtime>,
    pub(crate) modules: std::sync::Arc<Modules>,
    /// `test: True` in the configuration.
    pub(crate) test: bool,
    pub(crate) multifunc_ordered: bool,
}

/// Where a call comes from.
pub(crate) struct Origin<'a> {
    pub(crate) jid: &'a str,
    pub(crate) user: &'a str,
    /// The fingerprint of the master that sent it; none for `salt-call`.
    pub(crate) master: Option<&'a str>,
    /// The job's own time and when it is over.
    pub(crate) ends: Option<(Duration, Instant)>,
    /// Where it is told to end.
    pub(crate) end: Option<End>,
}

impl Origin<'_> {
    async fn told_to_end(&self) {
        match self.end.clone() {
            Some(mut end) => end.told().await,
            None => std::future::pending().await,
        }
    }
}

/// What a job led to, one for each function.
pub(crate) struct Outcomes {
    pub(crate) multi: bool,
    ordered: bool,
    each: Vec<(String, JobOutcome)>,
}

impl Runner {
    /// Runs the functions of a job, one after the other. Never fails: what goes wrong is an outcome.
    pub(crate) async fn run(&self, job: &JobLoad, master: &str, end: Option<End>) -> Outcomes {
        let own = match timeout::of(&job.raw) {
            Ok(own) => own,
            Err(why) => return Outcomes::refused(job, self.multifunc_ordered, &why),
        };
        let from = Origin {
            jid: job.jid.as_str(),
            user: &job.user,
            master: Some(master),
            ends: own.map(|own| (own, Instant::now() + own)),
            end,
        };
        if job.calls.len() > MAX_FUNCTIONS {
            let why = format!("A job may have at most {MAX_FUNCTIONS} functions, this one has {}.", job.calls.len());
            return Outcomes { multi: false, ordered: false, each: vec![(job.fun(), failed(&why))] };
        }
        let mut each = Vec::with_capacity(job.calls.len());
        let mut bytes = 0;
        for call in &job.calls {
            let mut outcome = match bytes > MAX_RETURN_BYTES {
                false => self.call(&from, call).await,
                true => {
                    failed(&format!("It was not run: those before it returned more than {MAX_RETURN_BYTES} bytes."))
                }
            };
            judge(&mut outcome);
            bytes += weight(&outcome.value);
            each.push((call.fun.clone(), outcome));
        }
        Outcomes { multi: job.multi, ordered: self.multifunc_ordered, each }
    }

    /// Runs one function; its outcome is as the sandbox says, see [`judge`].
    pub(crate) async fn call(&self, from: &Origin<'_>, call: &FunCall) -> JobOutcome {
        // Fetching a module takes its time, and so did the functions before this one.
        let trouble = tokio::select! {
            biased;
            () = from.told_to_end() => return killed_before(&call.fun),
            ensured = self.modules.ensure(module_of(&call.fun)) => ensured.err(),
        };
        let (args, mut kwargs) = split_kwargs(&call.arg);
        let asked = kwargs.iter().rev().find(|(name, _)| name == "test").map(|(_, v)| v.truthy());
        let test = asked.unwrap_or(self.test);
        if asked.is_some() && !self.takes_keyword(&call.fun, "test") {
            // `test=True` is for the job; a function that wants to see it asks for its job's context.
            kwargs.retain(|(name, _)| name != "test");
        }
        let timeout_ms = match from.ends {
            None => None,
            Some((own, ends)) => {
                let left = ends.saturating_duration_since(Instant::now()).as_millis();
                if left == 0 {
                    return failed(&format!("It was not run: the job's own time, {own:?}, was over before."));
                }
                Some(u64::try_from(left).unwrap_or(u64::MAX))
            }
        };
        let context = JobContext {
            jid: from.jid.to_owned(),
            function: call.fun.clone(),
            user: from.user.to_owned(),
            minion_id: self.id.to_string(),
            test,
            master: from.master.map(str::to_owned),
            timeout_ms,
            called_by: None,
        };
        let mut run = self.runtime.run(context, &call.fun, args, kwargs);
        let mut outcome = tokio::select! {
            // The first look at it has it known to the sandbox: a word that comes now reaches it, and one that came in the
            // moment before is passed on.
            biased;
            outcome = &mut run => outcome,
            () = from.told_to_end() => {
                self.runtime.kill(from.jid);
                run.await
            }
        };
        if let Some(why) = trouble
            && !outcome.success
            && let Some(said) = outcome.value.text()
        {
            outcome.value = Value::from(format!("{said} {why}"));
        } else if !outcome.success
            && let Some(docs) = docs::instead(&*self.runtime, &call.fun)
        {
            outcome.value = docs;
        }
        outcome
    }

    fn takes_keyword(&self, fun: &str, keyword: &str) -> bool {
        let Some((module, function)) = fun.split_once('.') else { return true };
        let Some(module) = self.runtime.describe(module) else { return true };
        let Some(function) = module.info.functions.iter().find(|f| f.name == function) else { return true };
        function.params.iter().any(|p| *p.name == *keyword || matches!(p.rest, Rest::Kwargs))
    }
}

/// The module of a function's name: all before the first dot.
pub(crate) fn module_of(fun: &str) -> &str {
    fun.split_once('.').map_or(fun, |(module, _)| module)
}

/// Salt's verdict: a dict whose `result` or `success` is false is a failure, and a job succeeded when its retcode is 0
/// (PROTOCOL §6.2).
pub(crate) fn judge(outcome: &mut JobOutcome) {
    if outcome.retcode == 0 && outcome.value.entries().is_some() {
        let denied = |key: &str| outcome.value.get(key).is_some_and(|v| !v.truthy());
        if denied("result") || denied("success") {
            outcome.retcode = 1;
        }
    }
    outcome.success &= outcome.retcode == 0;
}

impl Outcomes {
    /// One outcome that stands for all functions of a job, which did not run.
    pub(crate) fn refused(job: &JobLoad, ordered: bool, why: &str) -> Self {
        let each = job.calls.iter().map(|call| (call.fun.clone(), failed(why))).collect();
        Self { multi: job.multi, ordered, each }
    }

    /// `return`, `retcode`, `success`, `usage` and, for a failure, `out` of the return's load.
    pub(crate) fn fields(self) -> Vec<(&'static str, Value)> {
        let usage: Vec<Value> = self.each.iter().map(|(_, o)| usage(o)).collect();
        let failed = self.each.iter().any(|(_, o)| !o.success);
        let mut fields = if self.multi {
            let all = |pick: &dyn Fn(&JobOutcome) -> Value| {
                let values = self.each.iter().map(|(fun, o)| (fun.as_str(), pick(o)));
                if self.ordered { Value::Array(values.map(|(_, v)| v).collect()) } else { unique(values) }
            };
            vec![
                ("return", all(&|o| o.value.clone())),
                ("retcode", all(&|o| Value::from(o.retcode))),
                ("success", all(&|o| Value::from(o.success))),
                ("usage", Value::Array(usage)),
            ]
        } else {
            let Some((_, outcome)) = self.each.into_iter().next() else { return Vec::new() };
            vec![
                ("return", outcome.value),
                ("retcode", Value::from(outcome.retcode)),
                ("success", Value::from(outcome.success)),
                ("usage", usage.into_iter().next().unwrap_or(Value::Nil)),
            ]
        };
        if failed && !self.multi {
            fields.push(("out", Value::from("nested")));
        }
        fields
    }
}

/// A dict of function to value; of a function that was called twice the later one stays, as in Salt.
fn unique<'a>(values: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let mut out = empty_map();
    values.for_each(|(fun, value)| out.insert(fun, value));
    out
}

/// The outcome of a function whose job was told to end before it ran.
pub(crate) fn killed_before(fun: &str) -> JobOutcome {
    failed(&format!("{fun} was stopped before it began: it was killed"))
}

/// The outcome of something that did not run.
pub(crate) fn failed(why: &str) -> JobOutcome {
    JobOutcome { value: Value::from(why), retcode: 1, success: false, usage: None, sha256: None }
}

/// What the function used and which module it was: Brine's own field of a return; masters hand it on as it is.
pub(crate) fn usage(outcome: &JobOutcome) -> Value {
    let mut entries: Vec<(&str, Value)> = Vec::with_capacity(8);
    if let Some(used) = &outcome.usage {
        entries.extend([
            ("wall_us", used.wall_us.into()),
            ("cpu_us", used.cpu_us.into()),
            ("memory_peak", used.memory_peak.into()),
            ("host_calls", Value::from(used.host_calls)),
            ("bytes_in", used.bytes_in.into()),
            ("bytes_out", used.bytes_out.into()),
        ]);
        // Of most functions there is none.
        for (key, count) in
            [("log_dropped", used.log_dropped), ("written", used.written), ("new_files", used.new_files)]
        {
            if count > 0 {
                entries.push((key, count.into()));
            }
        }
    }
    if let Some(sha256) = &outcome.sha256 {
        entries.push(("sha256", Value::from(sha256.to_string())));
    }
    map(entries)
}

/// About how many bytes a value takes in memory.
pub(super) fn weight(value: &Value) -> usize {
    const OWN: usize = size_of::<Value>();
    OWN + match value {
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Map(entries) => entries.iter().map(|(k, v)| weight(k) + weight(v)).sum(),
        other => other.bytes().map_or(0, <[u8]>::len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(value: Value) -> JobOutcome {
        JobOutcome { value, retcode: 0, success: true, usage: None, sha256: None }
    }

    #[test]
    fn a_dict_that_says_it_failed_is_a_failure() {
        for (value, code) in [
            (map([("result", false)]), 1),
            (map([("success", Value::Nil)]), 1),
            (map([("result", true)]), 0),
            (Value::from(false), 0),
            (map([("other", false)]), 0),
        ] {
            let mut outcome = outcome(value.clone());
            judge(&mut outcome);
            assert_eq!((outcome.retcode, outcome.success), (code, code == 0), "{value}");
        }
    }

    #[test]
    fn fields_of_single_and_multi_function_jobs() {
        let each = |names: &[&str]| names.iter().map(|n| ((*n).to_owned(), outcome(Value::from(*n)))).collect();
        let single = Outcomes { multi: false, ordered: false, each: each(&["a.b"]) }.fields();
        assert_eq!(single[0], ("return", Value::from("a.b")));
        let multi = Outcomes { multi: true, ordered: false, each: each(&["a.b", "c.d", "a.b"]) }.fields();
        assert_eq!(multi[0].1.entries().unwrap().len(), 2);
        let ordered = Outcomes { multi: true, ordered: true, each: each(&["a.b", "c.d"]) }.fields();
        assert_eq!(ordered[1].1, Value::Array(vec![Value::from(0), Value::from(0)]));
        let refused = failed("no");
        let fields = Outcomes { multi: false, ordered: false, each: vec![("a.b".into(), refused)] }.fields();
        assert!(fields.contains(&("out", Value::from("nested"))));
    }
}
