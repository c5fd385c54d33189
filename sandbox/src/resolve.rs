//! Runs jobs by name: finds the function in the table of modules, decides its grants and limits, and has the kernel run
//! the call.

use std::collections::BTreeSet;
use std::sync::Arc;

use brine_component::state_function;
use brine_sandbox_wire::{JobContext, Limits, Sha256Hex, StateContext};
use rmpv::Value;

use crate::JobOutcome;
use crate::kernel::admission::{Concurrency, Jobs, Pace};
use crate::kernel::broker::{Broker, Caller, Plan, RefusedCall};
use crate::kernel::name::quoted;
use crate::kernel::record::Record;
use crate::kernel::run::{Call, Runner, time_left};
use crate::policy::{Granted, RecordWhen};
use crate::store::{Entry, Store, Table};

/// Upper bound on the names in an error.
const MAX_NAMES: usize = 40;
/// Upper bound on the letters of a name that is compared with others: the time grows with them.
const MAX_LETTERS: usize = 64;

/// The parts of the sandbox that a job needs.
pub(crate) struct Resolver<'a> {
    pub(crate) store: &'a Store,
    pub(crate) jobs: &'a Jobs,
    pub(crate) limits: Arc<Limits>,
    pub(crate) runner: Runner<'a>,
    pub(crate) record: &'a Record,
    pub(crate) broker: &'a dyn Broker,
}

/// A function that may be called, with its grants and limits. Keeps the module loaded.
struct Resolved<'a> {
    entry: Arc<Entry>,
    /// Index of the function in the module.
    number: usize,
    /// `test.ping`
    fun: &'a str,
    job: Arc<JobContext>,
    granted: Granted,
    limits: Limits,
    concurrency: Concurrency,
    /// As [`crate::Policy::runs_states`] has it.
    runs_states: bool,
    chain: Arc<[String]>,
    plan: Option<Arc<Plan>>,
    record: Option<&'a Record>,
    repeats: bool,
}

impl Resolved<'_> {
    fn call(&self) -> Call<'_> {
        let name = self.entry.name().as_str();
        Call {
            module: &self.entry.loadable,
            number: self.number,
            fun: self.fun,
            function: self.entry.module.info.all().nth(self.number).expect("found before"),
            job: &self.job,
            grants: &self.granted.grants,
            remedy: self.granted.remedy(),
            limits: &self.limits,
            concurrency: self.concurrency,
            reserved: self.entry.is_standard() && matches!(name, "sys" | "saltutil"),
            runs_states: self.runs_states,
            chain: &self.chain,
            plan: &self.plan,
            record: self.record,
            repeats: self.repeats,
        }
    }
}

impl<'r> Resolver<'r> {
    /// Runs a job to its end.
    pub(crate) async fn run(
        &self,
        job: JobContext,
        fun: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> JobOutcome {
        let most_ms = job.timeout_ms.unwrap_or(u64::MAX);
        let chain = Arc::from([fun.to_owned()]);
        let plan = job.test.then(Arc::<Plan>::default);
        let mut outcome = match self.resolve(Arc::new(job), fun, Kind::Function, chain, plan.clone(), most_ms) {
            Ok(resolved) => self.runner.run(&resolved.call(), (args, kwargs)).await,
            Err((text, sha256)) => JobOutcome::failed(text, sha256),
        };
        outcome.plan = plan.map(|plan| plan.taken());
        outcome
    }

    /// Runs a function of a module's interface `beacons`: `fun` is `load.beacons.validate`.
    pub(crate) async fn beacon(&self, job: JobContext, fun: &str, kwargs: Vec<(String, Value)>) -> JobOutcome {
        let most_ms = job.timeout_ms.unwrap_or(u64::MAX);
        let chain = Arc::from([fun.to_owned()]);
        match self.resolve(Arc::new(job), fun, Kind::Beacon, chain, None, most_ms) {
            Ok(resolved) => self.runner.run(&resolved.call(), (Vec::new(), kwargs)).await,
            Err((text, sha256)) => JobOutcome::failed(text, sha256),
        }
    }

    /// Checks whether a job of this function is expected to be short.
    pub(crate) fn is_short(&self, fun: &str) -> bool {
        let Ok((entry, _, number)) = find(self.store, fun, Kind::Function) else { return false };
        entry.loadable.history.expect(number).pace == Pace::Short
    }

    /// Runs a function for a running call: in a separate instance, with the grants of its own module, within the
    /// caller's remaining time.
    pub(crate) async fn nested(
        &self,
        caller: &Caller,
        fun: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> JobOutcome {
        self.within(caller, fun, None, (args, kwargs)).await
    }

    /// Runs a state for a running call, as a function is: in a separate instance, with the grants of the state's own
    /// module. `test` makes it report only; in a job with `test=True` each state does.
    pub(crate) async fn state(
        &self,
        caller: &Caller,
        state: (&str, StateContext),
        test: bool,
        kwargs: Vec<(String, Value)>,
    ) -> JobOutcome {
        let (name, context) = state;
        let fun = match name.split_once('.') {
            Some((module, state)) => format!("{module}.{}", state_function(state)),
            None => name.to_owned(),
        };
        self.within(caller, &fun, Some((context, test)), (Vec::new(), kwargs)).await
    }

    /// Runs a function or a state for a running call.
    async fn within(
        &self,
        caller: &Caller,
        fun: &str,
        state: Option<(StateContext, bool)>,
        (args, kwargs): (Vec<Value>, Vec<(String, Value)>),
    ) -> JobOutcome {
        let left = match time_left(caller, fun, state.is_some()) {
            Ok(left) => left,
            Err(text) => return JobOutcome::failed(text, None),
        };
        let called_by = caller.chain.last().cloned();
        let mut job = JobContext::clone(&caller.job);
        (job.function, job.called_by, job.timeout_ms, job.state) = (fun.to_owned(), called_by, None, None);
        let kind = if state.is_some() { Kind::State } else { Kind::Function };
        if caller.grants.allows("brine:host/states") {
            job.run = Some(caller.number);
        }
        if let Some((context, test)) = state {
            job.test |= test;
            job.state = Some(context);
        }
        let chain = caller.chain.iter().cloned().chain([fun.to_owned()]).collect();
        // A state has a plan of its own, in the job's. It may be in test mode by its own words, in a run that is not.
        let plan = match kind {
            Kind::State => job.test.then(|| Plan::of_state(caller.plan.clone())),
            Kind::Function | Kind::Beacon => caller.plan.clone().or_else(|| job.test.then(Arc::<Plan>::default)),
        };
        let own = plan.clone().filter(|_| kind == Kind::State);
        let mut outcome = match self.resolve(Arc::new(job), fun, kind, chain, plan, left) {
            Ok(mut resolved) => {
                // A run has as many states as it likes, and each of them its own module's limits.
                if kind == Kind::Function {
                    caller.bound(&mut resolved.limits);
                }
                self.runner.nested(caller, &resolved.call(), (args, kwargs)).await
            }
            Err((text, sha256)) => JobOutcome::failed(text, sha256),
        };
        outcome.plan = own.map(|plan| plan.taken());
        outcome
    }

    /// Finds the function, its grants and its limits, with at most `most_ms` of time. The error has one line and the
    /// content's hash, if it is known.
    fn resolve<'a>(
        &self,
        job: Arc<JobContext>,
        fun: &'a str,
        kind: Kind,
        chain: Arc<[String]>,
        plan: Option<Arc<Plan>>,
        most_ms: u64,
    ) -> Result<Resolved<'a>, (String, Option<Sha256Hex>)>
    where
        'r: 'a,
    {
        let found = find(self.store, fun, kind).inspect_err(|_| self.tell_left_out(&job, fun));
        let (entry, function, number) = found.map_err(|text| (text, None))?;
        let master = job.master.as_deref();
        let granted = entry.grants.of(function, master);
        let mut granted = granted.map_err(|text| {
            let module = entry.name().as_str();
            self.broker.refused(&RefusedCall { job: &job, module, what: &text, line: &|| None });
            (text, Some(entry.module.sha256))
        })?;
        if plan.is_some() {
            granted.grants = Arc::new(granted.grants.planned());
        }
        let policy = self.store.policy();
        let mut limits = policy.limits(&self.limits, entry.name(), entry.is_standard(), function, master);
        limits.wall_ms = limits.wall_ms.min(most_ms);
        // A single call cannot get more memory than all instances together have.
        limits.memory = limits.memory.min(self.jobs.memory());
        let concurrency = policy.concurrency(entry.name());
        let runs_states = policy.runs_states(entry.name(), entry.is_standard());
        let record = match policy.record(entry.name(), function, master) {
            RecordWhen::On => Some(self.record),
            RecordWhen::Asked => job.record.then_some(self.record),
            // A call of the job's function is not made without the recording that the job asks for.
            RecordWhen::Off if job.record && job.called_by.is_none() => {
                let why = format!(
                    "{fun} was not run: the job asks for a recording of it, which the owner of this host permits in the \
                     minion's configuration, as in sandbox: {{modules: {{{}: {{record: asked}}}}}}",
                    entry.name()
                );
                return Err((why, Some(entry.module.sha256)));
            }
            RecordWhen::Off => None,
        };
        let repeats = kind == Kind::Beacon;
        Ok(Resolved {
            entry,
            number,
            fun,
            job,
            granted,
            limits,
            concurrency,
            runs_states,
            chain,
            plan,
            record,
            repeats,
        })
    }
}

impl Resolver<'_> {
    /// Has the broker take note that a module was called which the owner did not let in.
    fn tell_left_out(&self, job: &JobContext, fun: &str) {
        let module = fun.split('.').next().unwrap_or(fun);
        let (what, lines) = match (self.store.refusal_of(module), self.store.held(module)) {
            (Some(refused), _) => (refused.wanted(), refused.each_line()),
            (None, Some(held)) => (held.reasons(), held.each_line()),
            (None, None) => return,
        };
        if lines.is_empty() {
            self.broker.refused(&RefusedCall { job, module, what: &what, line: &|| None });
        }
        for one in &lines {
            self.broker.refused(&RefusedCall { job, module, what: &what, line: &|| Some(one.clone()) });
        }
    }
}

/// What is called: a job's functions are never states or beacons, whatever their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Function,
    State,
    Beacon,
}

/// Returns the module and the function behind `module.function`, or Salt's message that there is none.
fn find<'a>(store: &Store, fun: &'a str, kind: Kind) -> Result<(Arc<Entry>, &'a str, usize), String> {
    let (module, function) = fun.split_once('.').unwrap_or((fun, ""));
    let Some(entry) = store.get(module) else {
        let table = store.table();
        let pending = store.pending();
        let names: BTreeSet<&str> = table.keys().chain(&pending).map(|name| name.as_str()).collect();
        let names = few(names.into_iter());
        let why = match store.left_out(module) {
            Some(why) => why,
            None => {
                let meant = meant_in(&table, module, function, kind);
                format!("{meant}There is no module {}; there are: {names}", quoted(module))
            }
        };
        return Err(format!("{} is not available. {why}.", quoted(fun)));
    };
    let info = &entry.module.info;
    let group = match kind {
        Kind::Function => None,
        Kind::State => Some(brine_component::STATES),
        Kind::Beacon => Some(brine_component::BEACONS),
    };
    let of_kind = |known: &brine_component::Function| brine_component::group(&known.name) == group;
    let number = info.all().position(|known| known.name == function && of_kind(known));
    if let Some(number) = number {
        return Ok((entry, function, number));
    }
    if kind == Kind::State {
        let names =
            few(info.states.iter().filter_map(brine_component::Function::state).collect::<Vec<_>>().into_iter());
        let states = info.states.iter().filter_map(brine_component::Function::state);
        let state = function.split_once('.').map_or(function, |(_, state)| state);
        let meant = meant(module, alike(state, states));
        return Err(format!("{} is not available. {meant}States of {module}: {names}.", quoted(fun)));
    }
    let functions = if kind == Kind::Beacon { &info.beacons } else { &info.functions };
    let names = few(functions.iter().map(|known| known.name.as_str()));
    let meant = meant(module, alike(function, functions.iter().map(|known| known.name.as_str())));
    Err(format!("{} is not available. {meant}Functions of {module}: {names}.", quoted(fun)))
}

/// The question that stands before the names of an error. All that it names is among those, so that nobody is told of a
/// function that the error would not tell of.
fn meant(module: &str, function: Option<&str>) -> String {
    function.map(|function| format!("Did you mean {module}.{function}? ")).unwrap_or_default()
}

/// The function of a module that is here which has almost this name.
pub(crate) fn meant_by(store: &Store, fun: &str) -> Option<String> {
    let (module, function) = fun.split_once('.')?;
    let entry = store.get(module)?;
    let functions = entry.module.info.functions.iter().map(|known| known.name.as_str());
    alike(function, functions).map(|function| format!("{module}.{function}"))
}

/// The same where there is no such module: a module of almost this name, with this function or almost.
fn meant_in(table: &Table, module: &str, function: &str, kind: Kind) -> String {
    let Some(entry) = alike(module, table.keys().map(|name| name.as_str())).and_then(|name| table.get(name)) else {
        return String::new();
    };
    let functions = entry.module.info.functions.iter().map(|known| known.name.as_str());
    match alike(function, functions).filter(|_| kind == Kind::Function) {
        Some(function) => meant(entry.name().as_str(), Some(function)),
        None => format!("Did you mean the module {}? ", entry.name()),
    }
}

/// The known name that differs from this one in the fewest letters, if these are few: a letter in three, or one.
pub(crate) fn alike<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = name.chars().count();
    if letters > MAX_LETTERS {
        return None;
    }
    let near = known.filter_map(|known| {
        let distance = strsim::osa_distance(name, known);
        let most = (letters.min(known.chars().count()) / 3).max(1);
        (distance <= most && distance < letters).then_some((distance, known))
    });
    near.min().map(|(_, known)| known)
}

fn few<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let shown: Vec<&str> = names.take(MAX_NAMES).collect();
    let more = if count > shown.len() { format!(" and {} more", count - shown.len()) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_like_another() {
        let known = ["echo", "ping", "pong", "get", "list_pkgs", "module", "sleep"];
        for (name, expect) in [
            ("pin", Some("ping")),
            ("pign", Some("ping")),
            ("pang", Some("ping")),
            ("list_pkg", Some("list_pkgs")),
            ("lst_pkg", Some("list_pkgs")),
            ("Sleep", Some("sleep")),
            ("x", None),
            ("", None),
            ("got", Some("get")),
            ("version", None),
            ("restart", None),
        ] {
            assert_eq!(alike(name, known.into_iter()), expect, "{name}");
        }
        assert_eq!(alike(&"a".repeat(1 << 20), known.into_iter()), None);
    }

    #[test]
    fn names_in_errors_are_bounded() {
        let many: Vec<String> = (0..50).map(|n| n.to_string()).collect();
        assert!(few(many.iter().map(String::as_str)).ends_with(", 38, 39 and 10 more"));
    }
}
