//! Requests to run a function in the master (§7.3), and each run from its first event to its last.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, ValueExt, map};
use futures_util::FutureExt;

use super::function::{Failure, Outcome, RunJob, Within};
use super::state::Interrupted;
use super::{Call, Parts, RUNNERS, find, wheel};
use crate::access::{Denied, Principal};
use crate::audit::{Audit, AuditLine};
use crate::cause;
use crate::refusals::{Refusals, Who};
use crate::returns::ReturnIntake;

/// Runs runners and wheel functions.
#[derive(Clone)]
pub(crate) struct Runners {
    pub(crate) parts: Arc<Parts>,
    pub(crate) returns: Arc<ReturnIntake>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) refusals: Arc<Refusals>,
}

/// A permitted call with its line in the audit log.
struct Admitted {
    fun: String,
    call: Call,
    job: Arc<RunJob>,
    /// The audit line for a successful call.
    succeeded: AuditLine,
    failed: AuditLine,
}

/// Returns the answer to a refused caller.
pub(crate) fn refusal(denied: &Denied) -> Value {
    map([("error", denied.value())])
}

impl Runners {
    /// Starts a runner and returns at once. The result comes as the event `salt/run/<jid>/ret`.
    pub(crate) fn answer_runner(&self, load: &Value, caller: &Principal) -> Value {
        let Admitted { fun, call, job, succeeded, failed } = match self.admit("runner", "run", load, caller) {
            Ok(admitted) => admitted,
            Err(denied) => return refusal(&denied),
        };
        let started = map([("tag", Value::from(job.tag.as_str())), ("jid", Value::from(&job.jid))]);
        self.parts.bus.settle();
        let this = self.clone();
        tokio::spawn(async move {
            let (outcome, _) = this.run(&fun, &call, &job).await;
            this.audit.note(if outcome.is_ok() { succeeded } else { failed });
        });
        started
    }

    /// Runs a runner for a caller that is permitted to, with the events of a run; `load` has its `arg`.
    pub(crate) async fn run_for(&self, by: &Principal, fun: &str, load: &Value) -> Outcome {
        self.run(fun, &Call::from_load(load), &RunJob::new("run", by, None)).await.0
    }

    /// Runs a runner that an orchestration asks for, as if its caller had asked. Returns the data of its last event.
    pub(super) async fn run_within(
        &self,
        fun: &str,
        call: Call,
        by: &Principal,
        within: Within,
    ) -> Result<Value, Denied> {
        let Admitted { fun, call, job, succeeded, failed } =
            self.admit_call("runner", "run", (fun, call), by, Some(within))?;
        let (outcome, data) = self.run(&fun, &call, &job).await;
        self.audit.note(if outcome.is_ok() { succeeded } else { failed });
        Ok(data)
    }

    /// Runs a wheel function that an orchestration asks for, as if its caller had asked. Returns the data of its last
    /// event.
    pub(super) async fn wheel_within(
        &self,
        fun: &str,
        call: Call,
        by: &Principal,
        within: Within,
    ) -> Result<Value, Denied> {
        let admitted = self.admit_call("wheel", "wheel", (fun, call), by, Some(within))?;
        Ok(self.run_wheel(admitted).await.remove("data").unwrap_or(Value::Nil))
    }

    /// Runs a runner or wheel function (`form`) that the reactor starts, with its check, its line in the audit log and
    /// its events.
    ///
    /// # Errors
    /// The reactor may not call it.
    pub(crate) async fn react(&self, form: &'static str, fun: &str, call: Call, by: &Principal) -> Result<(), Denied> {
        let tag = if form == "wheel" { "wheel" } else { "run" };
        let admitted = self.admit_call(form, tag, (fun, call), by, None)?;
        let chain = match by {
            Principal::Reactor(reaction) => Arc::clone(reaction.chain()),
            _ => Arc::default(),
        };
        cause::within(chain, async {
            if form == "wheel" {
                self.run_wheel(admitted).await;
                return;
            }
            let Admitted { fun, call, job, succeeded, failed } = admitted;
            let (outcome, _) = self.run(&fun, &call, &job).await;
            self.audit.note(if outcome.is_ok() { succeeded } else { failed });
        })
        .await;
        Ok(())
    }

    /// Binds what the low chunk of a reaction has beside `fun` to the parameters of a runner or wheel function (`form`),
    /// as Salt does it for chunks without `args`.
    ///
    /// # Errors
    /// There is no such function, or its arguments are others: a sentence.
    pub(crate) fn call_of_chunk(form: &str, fun: &str, chunk: &Value) -> Result<Call, String> {
        let functions = if form == "wheel" { wheel::FUNCTIONS } else { RUNNERS };
        let function = find(functions, fun).map_err(|_| "function not available".to_owned())?;
        function.signature.of_chunk(chunk)
    }

    /// Returns whether there is a runner or wheel function (`form`) of this name.
    pub(super) fn has(form: &str, fun: &str) -> bool {
        super::names(form).any(|name| name == fun)
    }

    /// Returns whether a runner or wheel function (`form`) has a parameter of this name.
    pub(super) fn has_parameter(form: &str, fun: &str, name: &str) -> bool {
        let functions = if form == "wheel" { wheel::FUNCTIONS } else { RUNNERS };
        let mut parameters = find(functions, fun).into_iter().flat_map(|function| function.signature.parameters());
        parameters.any(|parameter| parameter.split('=').next() == Some(name))
    }

    /// Tells of orchestrations that ended with the master before this one.
    pub(crate) async fn tell_interrupted(&self) {
        for Interrupted { jid, fun, user } in Interrupted::take(&self.parts.opts.cachedir).await {
            tracing::warn!("{fun} of {user}, {jid}: {}", Interrupted::SAID);
            let tag = format!("salt/run/{jid}");
            let job = RunJob { jid, tag, user, by: Principal::Master, within: None };
            let mut data = announcement("runner", &fun, &job, &Call::default());
            conclude(&mut data, &Err(Interrupted::SAID.into()));
            self.keep(&job, &data).await;
            self.parts.bus.fire_result(format!("{}/ret", job.tag), data);
        }
    }

    /// Runs a wheel function. Returns its result; with `wait: False` only its tag and jid, at once.
    pub(crate) async fn answer_wheel(&self, load: &Value, caller: &Principal) -> Value {
        let admitted = match self.admit("wheel", "wheel", load, caller) {
            Ok(admitted) => admitted,
            Err(denied) => return refusal(&denied),
        };
        if load.get_bool("wait") != Some(false) {
            return self.run_wheel(admitted).await;
        }
        let job = &admitted.job;
        let started = map([("tag", Value::from(job.tag.as_str())), ("jid", Value::from(&job.jid))]);
        let this = self.clone();
        tokio::spawn(async move { this.run_wheel(admitted).await });
        started
    }

    /// Runs a wheel function, with its events.
    async fn run_wheel(&self, Admitted { fun, call, job, succeeded, failed }: Admitted) -> Value {
        let mut data = announcement("wheel", &fun, &job, &call);
        if wheel::hides_arguments(&fun) {
            data.insert("fun_args", crate::bus::TRIMMED);
        }
        data.insert("tag", job.tag.as_str());
        self.parts.bus.settle();
        self.parts.bus.fire(format!("{}/new", job.tag), data.clone());
        let outcome = match find(wheel::FUNCTIONS, &fun) {
            Ok(function) => function.call(self, &job, &call).await,
            Err(unknown) => Err(unknown),
        };
        self.audit.note(if outcome.is_ok() { succeeded } else { failed });
        conclude(&mut data, &outcome);
        let mut event = data.clone();
        event.insert("return", wheel::told(&fun, data.get("return").unwrap_or(&Value::Nil)));
        self.parts.bus.fire_result(format!("{}/ret", job.tag), event);
        map([("tag", Value::from(job.tag.as_str())), ("data", data)])
    }

    /// Checks that the caller may make a call, and writes the audit line before the call starts. Refuses the call if a
    /// required line cannot be written.
    fn admit(
        &self,
        form: &'static str,
        tag: &'static str,
        load: &Value,
        caller: &Principal,
    ) -> Result<Admitted, Denied> {
        let invalid = || Denied::invocation(format!("no {form} function was named"));
        let fun = load.get_text("fun").ok_or_else(invalid)?.to_owned();
        let mut call = Call::from_load(load);
        // Python's salt-api leaves out of a runner's chunk what the function does not take, before it asks the master. Ours knows no
        // functions, and asks for it. `match` is a word that Salt's wheel knows by itself: clients send it to each function.
        let (functions, ignores_all) = match form {
            "wheel" => (wheel::FUNCTIONS, false),
            _ => (RUNNERS, load.get_bool("ignore_invalid") == Some(true)),
        };
        if let Ok(function) = find(functions, &fun) {
            let is_ignored = |name: &str| ignores_all || form == "wheel" && name == "match";
            call.retain_kwargs(|name| !is_ignored(name) || function.signature.takes_keyword(name));
        }
        self.admit_call(form, tag, (&fun, call), caller, None)
    }

    /// As [`Self::admit`], of a call by itself.
    fn admit_call(
        &self,
        form: &'static str,
        tag: &'static str,
        (fun, call): (&str, Call),
        caller: &Principal,
        within: Option<Within>,
    ) -> Result<Admitted, Denied> {
        let fun = fun.to_owned();
        let record = |outcome| AuditLine::new(form, outcome).by(caller).call(fun.as_str(), &call.shown());
        caller.may_call(form, &fun, call.args(), call.kwargs()).inspect_err(|denied| {
            let said = format!("a {form} request for {fun} was refused: {}", denied.message);
            self.refusals.log(Who::User(caller.name()), &said);
            self.audit.note(record("refused").put("why", denied.message.as_str()));
        })?;
        let job = RunJob::new(tag, caller, within);
        self.parts.chains.note(&job.jid, caller);
        let record = |outcome| record(outcome).put("jid", job.jid.as_str());
        self.audit.write(record("allowed")).map_err(|why| Denied::invocation(why.to_owned()))?;
        let (succeeded, failed) = (record("succeeded"), record("failed"));
        Ok(Admitted { fun, call, job, succeeded, failed })
    }

    /// Runs a runner, with its events. Stores its return if `runner_returns` is set.
    /// Returns the outcome and the data of the last event.
    async fn run(&self, fun: &str, call: &Call, job: &Arc<RunJob>) -> (Outcome, Value) {
        let parts = &self.parts;
        let mut data = announcement("runner", fun, job, call);
        parts.bus.fire(format!("{}/new", job.tag), data.clone());
        let work = async {
            let _running = parts.runs.begin(&job.jid, &data).ok_or("too many runners are running: try again later")?;
            find(RUNNERS, fun)?.call(self, job, call).await
        };
        // Clients wait for the result without a limit, so a panic becomes a result too.
        let outcome = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_panic| {
            Err(format!("{fun} failed: this is a bug in salt-master, please report it").into())
        });
        conclude(&mut data, &outcome);
        self.keep(job, &data).await;
        parts.bus.fire_result(format!("{}/ret", job.tag), data.clone());
        (outcome, data)
    }

    /// Stores the return of a run, if `runner_returns` is set.
    async fn keep(&self, job: &RunJob, data: &Value) {
        let Parts { opts, jobs, .. } = &*self.parts;
        if !(opts.keeps_returns && jobs.keeps()) {
            return;
        }
        let Ok(id) = MinionId::try_from(opts.id.as_str()) else { return };
        if let Err(error) = self.returns.keep_run(&id, &job.jid, &job.user, data).await {
            tracing::warn!("what {} returned is not kept: {error}", job.tag);
        }
    }
}

/// Returns the data of a run's first event. The result is added to it later.
fn announcement(form: &str, fun: &str, job: &RunJob, call: &Call) -> Value {
    map([
        ("fun", Value::from(format!("{form}.{fun}"))),
        ("jid", Value::from(&job.jid)),
        ("user", Value::from(job.user.as_str())),
        ("fun_args", Value::Array(call.shown())),
    ])
}

fn conclude(data: &mut Value, outcome: &Outcome) {
    let (Ok(value) | Err(Failure(value))) = outcome;
    data.insert("return", value.clone());
    // An orchestration whose states failed has a result all the same, with a code.
    let failed =
        value.get_text("outputter") == Some("highstate") && value.get_i64("retcode").is_some_and(|code| code != 0);
    data.insert("success", outcome.is_ok() && !failed);
    if outcome.is_err() {
        data.insert("retcode", 1);
    }
}
