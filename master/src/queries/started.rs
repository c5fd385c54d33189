//! Which jobs a caller may see: those that it could have started itself, each function with its arguments on all of the
//! job's minions. Jobs under other names need the right to list jobs besides.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::job::PublishRequest;
use brine_protocol::value::Value;

use super::{Asked, Queries};
use crate::access::{Allowed, Principal};

/// Decides about jobs, without reading anything more.
pub(super) struct MaySee {
    parts: Arc<Queries>,
    caller: Principal,
    /// Whether it may see jobs under other names.
    others: bool,
    /// The minions of each target that a permission names.
    targets: HashMap<String, HashSet<MinionId>>,
}

impl MaySee {
    /// For a caller, who sees others' jobs if it may call this runner.
    pub(super) async fn of(asked: &Asked, right: &str) -> Self {
        let mut targets = HashMap::new();
        for target in asked.caller.job_targets() {
            let minions = asked.parts.targets.permitted(target.clone()).await;
            targets.insert(target, minions.into_iter().collect());
        }
        let (parts, caller) = (Arc::clone(&asked.parts), asked.caller.clone());
        Self { parts, others: asked.may_call("runner", right), caller, targets }
    }

    /// Whether the caller may see a job of this user.
    pub(super) fn job(&self, user: &str, load: impl FnOnce() -> Value, minions: impl Fn() -> Vec<MinionId>) -> bool {
        if self.caller.is_root() {
            return true;
        }
        (self.others || user == self.caller.name()) && self.could_start(load(), &minions)
    }

    fn could_start(&self, load: Value, minions: &dyn Fn() -> Vec<MinionId>) -> bool {
        let Ok(request) = PublishRequest::parse(load) else { return false };
        let calls = request.calls();
        !self.parts.access.is_blocked(&self.caller, None, &calls)
            && calls.iter().all(|(fun, arg)| self.reaches(fun, arg, minions))
    }

    fn reaches(&self, fun: &str, arg: &[Value], minions: &dyn Fn() -> Vec<MinionId>) -> bool {
        match self.caller.reach_of(fun, arg) {
            Allowed::Everywhere => true,
            // Read only here: most callers' permissions have no target, and a job may have been for ten thousand.
            Allowed::On(targets) => {
                let minions = minions();
                let covers = |reached: &HashSet<MinionId>| minions.iter().all(|id| reached.contains(id));
                targets.iter().any(|target| self.targets.get(target).is_some_and(covers))
            }
        }
    }
}
