//! Runs the functions of one job in the sandbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_protocol::ids::MinionId;
use brine_protocol::job::{FunCall, JobLoad, split_kwargs};
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{Function, JobContext, JobOutcome, Param, Provenance, Rest, Sandbox};

use super::functions::Functions;
use super::outcomes::{Called, Outcomes, failed, stopped_before};
use super::own_timeout;
use super::proc::{End, Why};
use super::record;
use super::{ENDED_WITHIN, docs};
use crate::modules::Modules;
use crate::states::Runs;
use crate::weight::weight;

/// Upper bound on the functions of one job, which run one after the other.
const MAX_FUNCTIONS: usize = 256;
/// Upper bound on the values of one job's functions together, in memory. The sandbox's `output` bounds each of them.
const MAX_RETURN_BYTES: usize = 64 * 1024 * 1024;

/// Runs jobs in the sandbox and fetches the modules that they lack.
pub(crate) struct JobRunner {
    pub(crate) id: MinionId,
    pub(crate) sandbox: std::sync::Arc<Sandbox>,
    pub(crate) functions: std::sync::Arc<dyn Functions>,
    pub(crate) modules: std::sync::Arc<Modules>,
    pub(crate) runs: std::sync::Arc<Runs>,
    /// `test: True` in the configuration.
    pub(crate) test: bool,
    pub(crate) multifunc_ordered: bool,
}

/// What the functions of one job have in common.
struct Origin<'a> {
    jid: &'a str,
    user: &'a str,
    /// The fingerprint of the master that asked; none for a job of this host.
    master: Option<&'a str>,
    /// The job's own timeout and when it expires.
    ends: Option<(Duration, Instant)>,
    /// Whether the job asks for recordings of its calls.
    record: bool,
    /// Whether it was typed on this host.
    typed: bool,
    /// The order to end.
    end: &'a End,
}

impl JobRunner {
    /// Runs the functions of a job, one after the other. Whatever goes wrong is an outcome.
    pub(super) async fn run(&self, job: &JobLoad, (master, typed): (Option<&str>, bool), end: &End) -> Outcomes {
        let (own, record) = match own_timeout::parse(&job.raw).and_then(|own| Ok((own, record::parse(&job.raw)?))) {
            Ok(own) => own,
            Err(why) => return Outcomes::refused(job, self.multifunc_ordered, &why),
        };
        let ends = own.map(|own| (own, Instant::now() + own));
        let from = Origin { jid: job.jid.as_str(), user: &job.user, master, ends, record, typed, end };
        if job.calls.len() > MAX_FUNCTIONS {
            let why = format!("A job may have at most {MAX_FUNCTIONS} functions, this one has {}.", job.calls.len());
            return Outcomes { multi: false, ordered: false, each: vec![Called::new(&job.fun(), failed(&why))] };
        }
        let mut each = Vec::with_capacity(job.calls.len());
        let mut bytes = 0;
        for call in &job.calls {
            let mut provenance = None;
            let outcome = match bytes > MAX_RETURN_BYTES {
                false => self.call(&from, call, &mut provenance).await,
                true => {
                    failed(&format!("It was not run: those before it returned more than {MAX_RETURN_BYTES} bytes."))
                }
            };
            bytes += weight(&outcome.value);
            let mut called = Called::new(&call.fun, outcome);
            called.provenance = provenance;
            each.push(called);
        }
        Outcomes { multi: job.multi, ordered: self.multifunc_ordered, each }
    }

    /// Runs one function. Where it comes from is looked up before it runs, since module and policy may change meanwhile.
    async fn call(&self, from: &Origin<'_>, call: &FunCall, provenance: &mut Option<Arc<Provenance>>) -> JobOutcome {
        // Fetching a module may take long, and so may the functions before this one.
        let trouble = tokio::select! {
            biased;
            why = from.end.clone().ordered() => return stopped_before(&call.fun, why),
            ensured = self.modules.ensure(module_of(&call.fun)) => ensured.err(),
        };
        *provenance = self.sandbox.provenance(&call.fun, from.master);
        let (args, mut kwargs) = split_kwargs(&call.arg);
        let names = self.positional(&call.fun, args.len());
        let test = asks_for_test(&args, &kwargs, &names).unwrap_or(self.test);
        if kwargs.iter().any(|(name, _)| name == "test") && !self.takes_keyword(&call.fun, "test") {
            // `test=True` is for the job; a function reads it from its job's context.
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
            state: None,
            run: None,
            record: from.record,
            typed: from.typed,
        };
        let mut run = self.functions.run(context, &call.fun, args, kwargs);
        let mut outcome = tokio::select! {
            // Polled first, so that the sandbox knows the call before an order to end it arrives.
            biased;
            outcome = &mut run => outcome,
            why = from.end.clone().ordered() => {
                self.functions.kill(from.jid);
                let mut outcome = run.await;
                if why == Why::MinionEnds && !outcome.success {
                    // The sandbox only knows that the call was ended.
                    outcome.value = Value::from(ENDED_WITHIN);
                }
                outcome
            }
        };
        if outcome.sha256.is_some() && outcome.sha256 != provenance.as_ref().map(|known| known.sha256) {
            // Another version of the module was switched in before the call began.
            *provenance = self.sandbox.provenance(&call.fun, from.master);
        }
        self.runs.end(from.jid, &call.fun, &mut outcome).await;
        if let Some(why) = trouble
            && !outcome.success
            && let Some(said) = outcome.value.text()
        {
            outcome.value = Value::from(format!("{said} {why}"));
        } else if !outcome.success
            && let Some(docs) = docs::list_functions(&self.sandbox, &call.fun).await
        {
            outcome.value = docs;
        }
        outcome
    }

    /// The names of the parameters that take the first arguments.
    fn positional(&self, fun: &str, count: usize) -> Vec<String> {
        let names = |function: &Function| {
            let named = function.params.iter().take_while(|param| param.rest == Rest::No);
            named.take(count).map(|param| param.name.to_string()).collect()
        };
        read_function(&self.sandbox, fun, names).unwrap_or_default()
    }

    fn takes_keyword(&self, fun: &str, keyword: &str) -> bool {
        let takes = |p: &Param| *p.name == *keyword || matches!(p.rest, Rest::Kwargs);
        read_function(&self.sandbox, fun, |function| function.params.iter().any(takes)).unwrap_or(true)
    }
}

/// Whether a call asks for test mode, or asks for none; none if it says nothing. `test=None` says nothing, as in Salt, and
/// so does what is neither true nor `False`, such as an empty text: what the owner turned on is turned off by a clear word. A
/// parameter of the function that is named `test` counts like the keyword, by its place too: it cannot mean the contrary.
fn asks_for_test(args: &[Value], kwargs: &[(String, Value)], names: &[String]) -> Option<bool> {
    let by_place = names.iter().zip(args).filter(|(name, _)| *name == "test").map(|(_, value)| value);
    let by_name = kwargs.iter().filter(|(name, _)| name.eq_ignore_ascii_case("test")).map(|(_, value)| value);
    let said: Vec<&Value> = by_place.chain(by_name).collect();
    if said.iter().any(|value| value.truthy()) {
        return Some(true);
    }
    said.contains(&&Value::from(false)).then_some(false)
}

/// Reads something from the description of a function; none where no module here has the function.
pub(crate) fn read_function<T>(sandbox: &Sandbox, fun: &str, read: impl FnOnce(&Function) -> T) -> Option<T> {
    let (module, function) = fun.split_once('.')?;
    let module = sandbox.describe(module)?;
    module.info.functions.iter().find(|known| known.name == function).map(read)
}

/// The module in a function's name: the part before the first dot.
pub(crate) fn module_of(fun: &str) -> &str {
    fun.split_once('.').map_or(fun, |(module, _)| module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_mode_is_asked_for_by_name_or_place() {
        let kwargs = |pairs: &[(&str, Value)]| -> Vec<(String, Value)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
        };
        let (yes, no) = (Value::from(true), Value::from(false));
        let names = ["mods".to_owned(), "test".to_owned()];
        for (args, named, expect) in [
            (vec![], kwargs(&[]), None),
            (vec![], kwargs(&[("test", yes.clone())]), Some(true)),
            (vec![], kwargs(&[("test", Value::from("yes"))]), Some(true)),
            (vec![], kwargs(&[("test", no.clone())]), Some(false)),
            (vec![], kwargs(&[("test", Value::Nil)]), None),
            (vec![], kwargs(&[("test", Value::from(""))]), None),
            (vec![], kwargs(&[("test", Value::from(0))]), None),
            (vec![], kwargs(&[("test", Value::from("False"))]), Some(true)),
            (vec![], kwargs(&[("test", Value::Nil), ("test", no.clone())]), Some(false)),
            (vec![], kwargs(&[("Test", yes.clone())]), Some(true)),
            (vec![], kwargs(&[("test", no.clone()), ("test", yes.clone())]), Some(true)),
            (vec![Value::from("a"), yes.clone()], kwargs(&[]), Some(true)),
            (vec![Value::from("a"), yes.clone()], kwargs(&[("test", no)]), Some(true)),
            (vec![yes], kwargs(&[]), None),
        ] {
            assert_eq!(asks_for_test(&args, &named, &names), expect, "{args:?} {named:?}");
        }
    }
}
