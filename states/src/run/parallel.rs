//! States with `parallel: True`: started, and waited for when somebody depends on them, or at the end.

use brine_render::{Dict, Value};

use super::core::Core;
use super::result;
use super::retry::Retry;
use super::step::{Call, Finished, Step};
use crate::fault::Res;
use crate::python;

/// A parallel state that has not finished.
pub(super) struct Parallel {
    call: Call,
    is_started: bool,
    retry: Option<Retry>,
    attempts: u64,
    /// What the attempts before have left.
    before: Option<Dict>,
}

impl Core<'_> {
    /// Starts a call, or puts it behind others; the result that it has meanwhile.
    pub(super) async fn start_parallel(&self, call: Call, name: Value) -> Res<Dict> {
        let retry = call.low.get("retry").map(|retry| Retry::new(&retry, &self.budget.limits));
        let is_started = self.may_start();
        let entry = Parallel { call: call.clone(), is_started, retry, attempts: 1, before: None };
        self.parallel.borrow_mut().insert(call.tag.clone(), entry);
        let comment = if is_started {
            self.request(Step::Start { call, after: 0 }).await?;
            "Started in a separate process"
        } else {
            "Waiting to be started in a separate process, max_parallel hit"
        };
        Ok(result::new(name, Value::None, comment))
    }

    fn may_start(&self) -> bool {
        let allowed = self.options.state_max_parallel;
        allowed == 0 || self.parallel.borrow().values().filter(|entry| entry.is_started).count() < allowed
    }

    /// Waits until a parallel state has finished.
    pub(super) async fn wait(&self) -> Res<()> {
        self.request(Step::Wait).await
    }

    /// Takes over what has finished, and starts what can be. Says whether all (of `only`) have finished.
    pub(super) async fn reconcile(&self, running: &Dict, only: Option<&[&String]>) -> Res<bool> {
        self.take_finished().await?;
        let tags: Vec<String> = self.parallel.borrow().keys().cloned().collect();
        let mut all_done = true;
        for tag in tags {
            let is_meant = only.map_or_else(|| python::has(running, &tag), |only| only.contains(&&tag));
            if !is_meant {
                continue;
            }
            all_done = false;
            let waiting = self.parallel.borrow().get(&tag).filter(|entry| !entry.is_started).map(|e| e.call.clone());
            if let Some(call) = waiting
                && self.may_start()
            {
                if let Some(entry) = self.parallel.borrow_mut().get_mut(&tag) {
                    entry.is_started = true;
                }
                if let Some(Value::Dict(result)) = running.get(&tag) {
                    result.set("comment", "Started in a separate process".into());
                }
                self.request(Step::Start { call, after: 0 }).await?;
            }
        }
        Ok(all_done)
    }

    async fn take_finished(&self) -> Res<()> {
        let finished = self.finished.take();
        for finished in finished {
            let Some(mut entry) = self.parallel.borrow_mut().shift_remove(&finished.tag) else { continue };
            let tag = finished.tag.clone();
            let result = own_result(&entry, finished);
            if let Some(call) = self.again(&mut entry, &result) {
                let after = entry.retry.as_ref().map_or(0, Retry::interval);
                self.parallel.borrow_mut().insert(tag, entry);
                self.request(Step::Start { call, after }).await?;
                continue;
            }
            if let Some(Value::Dict(there)) = self.results.borrow().get(&tag) {
                for (name, value) in python::entries(&result) {
                    python::set_item(&Value::Dict(there.clone()), &name, value)?;
                }
            }
        }
        Ok(())
    }

    /// The call once more, if the result is not the one that `retry` waits for.
    fn again(&self, entry: &mut Parallel, result: &Dict) -> Option<Call> {
        let retry = entry.retry.as_ref()?;
        if self.options.test {
            let comment = result::comment(result);
            result.set("comment", format!("{comment}  {}", retry.would_be()).into());
            return None;
        }
        if let Some(before) = entry.before.take() {
            python::pop(result, "__parallel__");
            let own = result::comment(result);
            let attempt = entry.attempts - 1;
            let own = if own.is_empty() { own } else { Retry::attempt(attempt, result) };
            result.set("comment", format!("{}\n{own}", result::comment(&before)).into());
            let (mine, theirs) = (milliseconds(result), milliseconds(&before));
            result.set("duration", (mine + theirs + retry.interval_milliseconds()).into());
            if attempt == 1 {
                result.set("start_time", before.get("start_time").unwrap_or_default());
            }
        }
        if retry.is_met(result) || entry.attempts > retry.attempts {
            return None;
        }
        let patience = self.budget.limits.patience;
        if retry.wait(milliseconds(result)) > patience {
            let comment = result::comment(result);
            result.set("comment", format!("{comment}\n{}", Retry::given_up(patience)).into());
            return None;
        }
        entry.attempts += 1;
        entry.before = Some(result.clone());
        Some(entry.call.clone())
    }
}

fn milliseconds(result: &Dict) -> f64 {
    if let Some(Value::Float(n)) = result.get("duration") { n } else { 0.0 }
}

fn own_result(entry: &Parallel, finished: Finished) -> Dict {
    let name = entry.call.low.get("name").unwrap_or_default();
    let result = match finished.result {
        Ok(Value::Dict(result)) => result,
        Ok(other) => result::unified(other),
        Err(raised) => result::new(name, false.into(), &format!("An exception occurred in this state: {raised}")),
    };
    result.set("start_time", finished.start_time.into());
    result.set("duration", finished.duration.into());
    result.set("__parallel__", true.into());
    result
}
