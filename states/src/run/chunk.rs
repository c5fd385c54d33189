//! One chunk: by the results of its requisites it is called, or has a result without that.

use std::future::Future;
use std::pin::Pin;

use brine_render::{Dict, Value};

use super::core::Core;
use super::requisites::{Requisites, Status, to_dict};
use super::step::{Event, Step};
use super::{call, given, result};
use crate::fault::{Fault, Res};
use crate::python;

/// Upper bound on requisites of requisites that have not run yet, each of which takes stack. The order of chunks has
/// requisites first, so there are few.
const MAX_CHAIN: usize = 100;

/// A future of its own on the heap: a chunk can run a chunk.
type Boxed<'s, T> = Pin<Box<dyn Future<Output = Res<T>> + 's>>;

/// The key by which a run learns within requisites that a failure ends it.
const FAILED_HARD: &str = "__FAILHARD__";

impl Core<'_> {
    /// Runs a chunk; says whether it has to wait for a parallel state.
    pub(super) async fn chunk(&self, low: &Dict, running: &Dict, depth: usize) -> Res<bool> {
        let low = self.aggregate(low, running).await?;
        self.initialize(&low).await?;
        let tag = python::tag(&low)?;
        let (status, requisites) = self.requisites(&low, running).await?;
        let is_trial = given(&low, "__prereq__").is_some();
        match status {
            Status::Pending => return Ok(true),
            Status::Unmet => {
                let (has_failed_hard, is_pending) = self.boxed_unmet(&low, running, &tag, depth).await?;
                if has_failed_hard || is_pending {
                    return Ok(is_pending);
                }
            }
            Status::SkipReq => {
                self.settle(
                    &low,
                    &tag,
                    true,
                    "State was not run because requisites were skipped by another state",
                    running,
                );
            }
            Status::SkipWatch if !is_trial => {
                let result = self.call(&low, running).await?;
                let comment = result::comment(&result)
                    + " mod_watch was not run because requisites were skipped by another state";
                result.set("comment", comment.into());
                running.set(&tag, result.into());
            }
            Status::Fail => self.failed_requisite(&low, &tag, &requisites, running)?,
            Status::Change if !is_trial => {
                let result = self.changed_requisite(&low, &requisites, running).await?;
                running.set(&tag, result.into());
            }
            Status::Pre => self.settle(&low, &tag, true, "No changes detected", running),
            Status::OnFail => {
                self.settle(&low, &tag, true, "State was not run because onfail req did not change", running);
            }
            Status::OnChanges => {
                let comment = "State was not run because none of the onchanges reqs changed";
                self.settle(&low, &tag, true, comment, running);
            }
            Status::Met | Status::SkipWatch | Status::Change => {
                let result = self.call(&low, running).await?;
                let into = if is_trial { &self.trials } else { running };
                into.set(&tag, result.into());
            }
        }
        if let Some(Value::Dict(result)) = running.get(&tag) {
            self.tell_result(&low, &result).await?;
            self.sub_states(&low, &result, running)?;
        }
        Ok(false)
    }

    /// A chunk with the others that can run together with it.
    async fn aggregate(&self, low: &Dict, running: &Dict) -> Res<Dict> {
        if given(low, "__agg__").is_some() {
            return Ok(low.clone());
        }
        let chunks = self.graph.borrow().together(low)?;
        if chunks.is_empty() {
            return Ok(low.clone());
        }
        low.set("__agg__", true.into());
        match self.ask(Step::Aggregate { low: low.clone(), chunks, running: running.clone() }).await {
            super::Answer::Value { value: Value::Dict(low), .. } => Ok(low),
            _ => Ok(low.clone()),
        }
    }

    /// `mod_init` of a module, before its first state.
    async fn initialize(&self, low: &Dict) -> Res<()> {
        let module = python::name(&low.get("state").unwrap_or_default());
        if self.initialized.borrow().contains(&module)
            || !self.host.has_state(&format!("{module}.mod_init"))
            || !self.host.has_state(&call::function_of(low))
        {
            return Ok(());
        }
        if let super::Answer::Value { value, .. } = self.ask(Step::Init(low.clone())).await
            && value.truthy()
        {
            self.initialized.borrow_mut().insert(module);
        }
        Ok(())
    }

    /// A result without a call.
    fn settle(&self, low: &Dict, tag: &str, result: bool, comment: &str, running: &Dict) {
        let result = self.not_run(low, result, comment);
        running.set(tag, result.clone().into());
        if given(low, "__prereq__").is_some() {
            self.trials.set(tag, result.into());
        }
    }

    /// What is watched has changed: the function is called, and `mod_watch` if it changes nothing itself.
    async fn changed_requisite(&self, low: &Dict, requisites: &Requisites, running: &Dict) -> Res<Dict> {
        let result = self.call(low, running).await?;
        if result::changed(&result) || given(&result, "skip_watch").is_some() {
            return Ok(result);
        }
        let low: Dict = low.borrow().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        low.set("sfun", low.get("fun").unwrap_or_default());
        low.set("fun", "mod_watch".into());
        low.set("__reqs__", to_dict(requisites).into());
        self.call(&low, running).await
    }

    /// A requisite has failed.
    fn failed_requisite(&self, low: &Dict, tag: &str, requisites: &Requisites, running: &Dict) -> Res<()> {
        if let Some(Value::Dict(trial)) = self.trials.get(tag) {
            if result::changed(&trial) {
                trial.set("changes", Value::dict([]));
            }
            trial.set("__run_num__", self.next_number());
            Self::mark(&trial, low);
            running.set(tag, trial.into());
            return Ok(());
        }
        let mut failed: Vec<String> = Vec::new();
        for required in requisites.values().flatten() {
            let tag = python::tag(required)?;
            let Some(Value::Dict(result)) = self.trials.get(&tag).or_else(|| running.get(&tag)) else { continue };
            if result::failed(&result) {
                let of = |name: &str| python::name(&required.get(name).unwrap_or_default());
                let name = format!("{}.{}", of("__sls__"), of("__id__"));
                if !failed.contains(&name) {
                    failed.push(name);
                }
            }
        }
        let comment = format!("One or more requisite failed: {}", failed.join(", "));
        self.settle(low, tag, false, &comment, running);
        Ok(())
    }

    fn boxed_unmet<'s>(
        &'s self,
        low: &'s Dict,
        running: &'s Dict,
        tag: &'s str,
        depth: usize,
    ) -> Boxed<'s, (bool, bool)> {
        Box::pin(self.unmet(low, running, tag, depth))
    }

    /// Runs the requisites that have no result yet, then the chunk. Says whether a failure ends the run, and whether the
    /// chunk has to wait.
    async fn unmet(&self, low: &Dict, running: &Dict, tag: &str, depth: usize) -> Res<(bool, bool)> {
        if depth > MAX_CHAIN {
            return Err(Fault::python("RecursionError", "maximum recursion depth exceeded"));
        }
        let dependencies = self.graph.borrow().dependencies(low)?;
        for (_, chunk) in dependencies {
            let other = python::tag(&chunk)?;
            if python::has(running, &other) {
                continue;
            }
            if self.chunk(&chunk, running, depth + 1).await? {
                return Ok((false, true));
            }
            if self.fails_hard(&chunk, running)? {
                running.set(FAILED_HARD, true.into());
                return Ok((true, false));
            }
        }
        let mut is_pending = false;
        if given(low, "__prereq__").is_some() {
            self.trial(low, running, tag).await?;
        } else {
            is_pending = self.chunk(low, running, depth + 1).await?;
        }
        if self.fails_hard(low, running)? {
            running.set(FAILED_HARD, true.into());
            return Ok((true, is_pending));
        }
        Ok((false, is_pending))
    }

    /// The trial of a chunk that `prereq` names.
    async fn trial(&self, low: &Dict, running: &Dict, tag: &str) -> Res<()> {
        let (status, _) = self.requisites(low, running).await?;
        if status == Status::Pre {
            let result = self.not_run(low, true, "No changes detected");
            self.trials.set(tag, result.into());
            return Ok(());
        }
        let result = self.call(low, running).await?;
        if !result::changed(&result) && status == Status::Change {
            result.set("changes", Value::dict([("watch".into(), "watch".into())]));
            result.set("result", Value::None);
        }
        self.trials.set(tag, result.into());
        Ok(())
    }

    /// Whether the result of a chunk ends the run (`failhard`).
    pub(super) fn fails_hard(&self, low: &Dict, running: &Dict) -> Res<bool> {
        if self.options.test || !low.get("failhard").map_or(self.options.failhard, |value| value.truthy()) {
            return Ok(false);
        }
        Ok(matches!(running.get(&python::tag(low)?), Some(Value::Dict(result)) if result::failed(&result)))
    }

    /// Takes the mark of a failure that ends the run.
    pub(super) fn take_failed_hard(running: &Dict) -> bool {
        python::pop(running, FAILED_HARD).is_some()
    }

    async fn tell_result(&self, low: &Dict, result: &Dict) -> Res<()> {
        let fire = low.get("fire_event").unwrap_or_default();
        if !self.options.state_events && !fire.truthy() {
            return Ok(());
        }
        let name = match &fire {
            Value::Bool(true) => Some(python::name(&result.get("name").unwrap_or_default())),
            Value::Str(name) => Some(name.to_string()),
            _ => None,
        };
        self.request(Step::Event(Event { name, result: result.clone(), length: self.chunks.len() })).await
    }

    /// The results of states within a state.
    fn sub_states(&self, low: &Dict, result: &Dict, running: &Dict) -> Res<()> {
        let Some(parts) = python::pop(result, "sub_state_run") else { return Ok(()) };
        for part in python::iterate(&parts)? {
            let Value::Dict(part) = part else { continue };
            let Some(Value::Dict(own)) = part.get("low") else { continue };
            let number = self.skip_number();
            let result = Dict::default();
            result.set("name", own.get("name").unwrap_or_default());
            for name in ["changes", "result"] {
                result.set(name, part.get(name).unwrap_or_default());
            }
            result.set("duration", part.get("duration").unwrap_or(Value::Float(0.0)));
            result.set("start_time", part.get("start_time").unwrap_or_else(|| self.now.borrow().as_str().into()));
            result.set("comment", part.get("comment").unwrap_or_else(|| "".into()));
            result.set("__state_ran__", true.into());
            result.set("__run_num__", number);
            Self::mark(&result, low);
            running.set(&python::tag(&own)?, result.into());
        }
        Ok(())
    }
}
