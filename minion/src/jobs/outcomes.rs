//! What a job led to, and the fields of its return.

use std::sync::Arc;

use brine_protocol::job::JobLoad;
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_sandbox::{JobOutcome, Provenance};

use super::proc::Why;
use crate::states::{Runs, STATE_FAILURE, outputter};

/// How one function of a job ended.
#[derive(Debug)]
pub struct Called {
    /// The function.
    pub fun: String,
    /// Its return, and the code that it ends with.
    pub outcome: JobOutcome,
    /// Whether the function returned; otherwise the value says why it did not.
    pub ran: bool,
    /// Where the function came from, as it was when the call began.
    pub(crate) provenance: Option<Arc<Provenance>>,
    /// Whether it ended too early, and the value is what its states came to.
    cut_off: bool,
}

impl Called {
    /// Judges what the sandbox says of a call.
    pub(super) fn new(fun: &str, mut outcome: JobOutcome) -> Self {
        let ran = outcome.success;
        judge(&mut outcome);
        Self { fun: fun.to_owned(), outcome, ran, provenance: None, cut_off: false }
    }

    /// The outputter that the return asks for. None: whoever shows it decides.
    pub fn outputter(&self) -> Option<&'static str> {
        self.own_outputter().or_else(|| (!self.ran).then_some("nested"))
    }

    /// The function's own outputter. As in Salt: a function that returned has its own or none, whatever its retcode.
    pub fn own_outputter(&self) -> Option<&'static str> {
        if self.ran || self.cut_off { outputter(&self.fun) } else { None }
    }

    /// In a job with `test=True`: what the function would have done. Brine's own field of a return, like `usage`.
    pub fn plan(&self) -> Option<Value> {
        self.outcome.plan.clone().map(Value::Array)
    }

    /// The function's use of resources and its module: Brine's own field of a return, which masters pass on unchanged.
    pub fn usage(&self) -> Value {
        usage(&self.outcome)
    }
}

/// What a job led to: one outcome for each of its functions.
pub(super) struct Outcomes {
    /// Whether the job named its functions in a list.
    pub(super) multi: bool,
    /// Whether a job of several functions returns lists and not dicts (`multifunc_ordered`).
    pub(super) ordered: bool,
    pub(super) each: Vec<Called>,
}

/// Salt's verdict: a dict whose `result` or `success` is false is a failure, and a job succeeded when its retcode is 0
/// (PROTOCOL §6.2).
fn judge(outcome: &mut JobOutcome) {
    if outcome.retcode == 0 && outcome.value.entries().is_some() {
        let denied = |key: &str| outcome.value.get(key).is_some_and(|v| !v.truthy());
        if denied("result") || denied("success") {
            outcome.retcode = 1;
        }
    }
    outcome.success &= outcome.retcode == 0;
}

impl Outcomes {
    /// The outcomes of a job that did not run, one for each of its functions.
    pub(super) fn refused(job: &JobLoad, ordered: bool, why: &str) -> Self {
        let each = job.calls.iter().map(|call| Called::new(&call.fun, failed(why))).collect();
        Self { multi: job.multi, ordered, each }
    }

    /// Replaces the outcome of the last function by what the states of the job came to, if it left any.
    pub(super) fn with_states(&mut self, runs: &Runs, jid: &str, why: &str) {
        if let Some(called) = self.each.last_mut()
            && let Some(value) = runs.left(jid, &called.fun, why)
        {
            (called.outcome.value, called.outcome.retcode) = (value, STATE_FAILURE);
            called.cut_off = true;
        }
    }

    /// `return`, `retcode`, `success`, `usage` and, for a failure or a run of states, `out` of the return's load.
    pub(super) fn fields(self) -> Vec<(&'static str, Value)> {
        let usage: Vec<Value> = self.each.iter().map(Called::usage).collect();
        let plans: Vec<Value> = self.each.iter().filter_map(Called::plan).collect();
        let out = if self.multi { None } else { self.each.first().and_then(Called::outputter) };
        let mut fields: Vec<(&str, Value)> = if self.multi {
            let all = |pick: &dyn Fn(&JobOutcome) -> Value| {
                let values = self.each.iter().map(|called| (called.fun.as_str(), pick(&called.outcome)));
                if self.ordered { Value::Array(values.map(|(_, v)| v).collect()) } else { unique(values) }
            };
            vec![
                ("return", all(&|o| o.value.clone())),
                ("retcode", all(&|o| Value::from(o.retcode))),
                ("success", all(&|o| Value::from(o.success))),
                ("usage", Value::Array(usage)),
            ]
            .into_iter()
            .chain((!plans.is_empty()).then_some(("plan", Value::Array(plans))))
            .collect()
        } else {
            let Some(Called { outcome, .. }) = self.each.into_iter().next() else { return Vec::new() };
            // As in Salt, for the error of a function. One of several functions has only its words.
            let value = match outcome.value.text() {
                Some(text) if outcome.raised => Value::from(format!("ERROR: {text}")),
                _ => outcome.value,
            };
            vec![
                ("return", value),
                ("retcode", Value::from(outcome.retcode)),
                ("success", Value::from(outcome.success)),
                ("usage", usage.into_iter().next().unwrap_or(Value::Nil)),
            ]
            .into_iter()
            .chain(plans.into_iter().next().map(|plan| ("plan", plan)))
            .collect()
        };
        if let Some(out) = out {
            fields.push(("out", Value::from(out)));
        }
        fields
    }
}

/// A dict from function to value. If a function was called twice, the later value stays, as in Salt.
fn unique<'a>(values: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let mut out = empty_map();
    values.for_each(|(fun, value)| out.insert(fun, value));
    out
}

/// The outcome of a function whose job was ordered to end before the function ran.
pub(super) fn stopped_before(fun: &str, why: Why) -> JobOutcome {
    let why = match why {
        Why::Killed => "it was killed",
        Why::MinionEnds => "the minion ended",
    };
    failed(&format!("{fun} was stopped before it began: {why}"))
}

/// The outcome of a function that did not run.
pub(super) fn failed(why: &str) -> JobOutcome {
    JobOutcome {
        value: Value::from(why),
        retcode: 1,
        success: false,
        usage: None,
        sha256: None,
        plan: None,
        stopped: false,
        raised: false,
    }
}

fn usage(outcome: &JobOutcome) -> Value {
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
        // Most functions have none of these.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(value: Value) -> JobOutcome {
        JobOutcome { value, retcode: 0, success: true, ..failed("") }
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
        let each = |names: &[&str]| names.iter().map(|n| Called::new(n, outcome(Value::from(*n)))).collect();
        let single = Outcomes { multi: false, ordered: false, each: each(&["a.b"]) }.fields();
        assert_eq!(single[0], ("return", Value::from("a.b")));
        let multi = Outcomes { multi: true, ordered: false, each: each(&["a.b", "c.d", "a.b"]) }.fields();
        assert_eq!(multi[0].1.entries().unwrap().len(), 2);
        let ordered = Outcomes { multi: true, ordered: true, each: each(&["a.b", "c.d"]) }.fields();
        assert_eq!(ordered[1].1, Value::Array(vec![Value::from(0), Value::from(0)]));
        let refused = failed("no");
        let fields = Outcomes { multi: false, ordered: false, each: vec![Called::new("a.b", refused)] }.fields();
        assert!(fields.contains(&("out", Value::from("nested"))) && fields.contains(&("return", Value::from("no"))));
        let raised = JobOutcome { raised: true, ..failed("no") };
        let fields = Outcomes { multi: false, ordered: false, each: vec![Called::new("a.b", raised)] }.fields();
        assert!(fields.contains(&("return", Value::from("ERROR: no"))));
        // A run of states asks for its own outputter, also when a state failed; one that could not begin does not.
        let out = |fun: &str, outcome| {
            let fields = Outcomes { multi: false, ordered: false, each: vec![Called::new(fun, outcome)] }.fields();
            fields.into_iter().find(|(name, _)| *name == "out").map(|(_, out)| out)
        };
        let states = || outcome(empty_map());
        assert_eq!(out("state.apply", states()), Some(Value::from("highstate")));
        assert_eq!(out("state.apply", JobOutcome { retcode: 2, ..states() }), Some(Value::from("highstate")));
        assert_eq!(out("state.apply", failed("no")), Some(Value::from("nested")));
        assert_eq!(out("state.show_sls", states()), None);
        // The return of salt-call has a function's own outputter only.
        assert_eq!(Called::new("state.apply", states()).own_outputter(), Some("highstate"));
        assert_eq!(Called::new("state.apply", failed("no")).own_outputter(), None);
    }
}
