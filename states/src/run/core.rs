//! What is known of a run.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use brine_render::{Dict, Value};
use indexmap::IndexMap;

use super::mailbox::Mailbox;
use super::parallel::Parallel;
use super::step::{Answer, Finished, Step};
use crate::fault::Res;
use crate::graph::Graph;
use crate::host::Host;
use crate::limits::{Budget, Limits};
use crate::options::Options;

/// What is known of a run.
pub(super) struct Core<'a> {
    pub(super) host: &'a dyn Host,
    pub(super) options: &'a Options,
    pub(super) budget: Budget,
    pub(super) chunks: Vec<Dict>,
    pub(super) graph: RefCell<Graph>,
    pub(super) mailbox: Mailbox,
    /// The results so far, for those who look from outside.
    pub(super) results: RefCell<Dict>,
    /// The results of trials that `prereq` asks for.
    pub(super) trials: Dict,
    /// Parallel states that have not finished, by tag.
    pub(super) parallel: RefCell<IndexMap<String, Parallel>>,
    /// What was told of parallel states.
    pub(super) finished: RefCell<Vec<Finished>>,
    /// Modules that are prepared.
    pub(super) initialized: RefCell<HashSet<String>>,
    pub(super) now: RefCell<String>,
    pub(super) asks_pause: Cell<bool>,
    number: Cell<u64>,
}

impl<'a> Core<'a> {
    pub(super) fn new(
        chunks: Vec<Dict>,
        graph: Graph,
        number: u64,
        host: &'a dyn Host,
        options: &'a Options,
        limits: Limits,
    ) -> Self {
        Self {
            host,
            options,
            budget: Budget::new(limits),
            chunks,
            graph: RefCell::new(graph),
            mailbox: Mailbox::default(),
            results: RefCell::default(),
            trials: Dict::default(),
            parallel: RefCell::default(),
            finished: RefCell::default(),
            initialized: RefCell::default(),
            now: RefCell::default(),
            asks_pause: Cell::new(false),
            number: Cell::new(number),
        }
    }

    /// The next `__run_num__`.
    pub(super) fn next_number(&self) -> Value {
        let number = self.number.get();
        self.number.set(number + 1);
        number.into()
    }

    /// The `__run_num__` that was not given yet, without taking it.
    pub(super) fn skip_number(&self) -> Value {
        self.number.set(self.number.get() + 1);
        self.number.get().into()
    }

    pub(super) async fn ask(&self, step: Step) -> Answer {
        self.mailbox.ask(step).await
    }

    /// Asks for something that has no answer.
    pub(super) async fn request(&self, step: Step) -> Res<()> {
        match self.ask(step).await {
            Answer::Done => Ok(()),
            other => Err(other.unexpected()),
        }
    }
}
