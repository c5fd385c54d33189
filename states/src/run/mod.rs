//! The run of chunks: a machine that is told results and says what is next. It has no clock, and calls nothing itself.
//!
//! ```text
//! loop {
//!     match run.next(now)? {
//!         Step::Call(call) => run.tell(Answer::Result(…)),
//!         Step::Check(check) => run.tell(…),
//!         …
//!         Step::Done(results) => break,
//!     }
//! }
//! ```
//!
//! | file | |
//! |---|---|
//! | `step` | what the machine asks, and the answers |
//! | `mailbox` | where a question waits for its answer |
//! | `core` | what is known of the run |
//! | `chunks` | one chunk after the other; parallel ones; `listen` at the end |
//! | `chunk` | one chunk: by the results of its requisites it runs, or has a result without running |
//! | `requisites` | the results of requisites |
//! | `call` | one call of a state function, with what decides whether it is called |
//! | `checks` | `unless`, `onlyif`, `creates`, `check_cmd` |
//! | `arguments` | what the function is called with |
//! | `retry` | `retry` |
//! | `slots` | arguments that functions give when the state runs |
//! | `parallel` | parallel states |
//! | `result` | the form of a result |
//!
//! Inside, the run is an async function: its questions are the points where it waits. That keeps the order of a run
//! readable from top to bottom, while nobody has to wait in it.

mod arguments;
mod call;
mod checks;
mod chunk;
mod chunks;
mod core;
mod mailbox;
mod parallel;
mod requisites;
mod result;
mod retry;
mod slots;
mod step;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use brine_render::{Dict, Value};

use self::core::Core;
pub use step::{Answer, Call, Check, Event, Finished, Refresh, Step};

use crate::fault::{Fault, Res};
use crate::graph::Graph;
use crate::host::Host;
use crate::limits::Limits;
use crate::low::Lowstate;
use crate::options::Options;

/// What is run.
enum Plan {
    /// All chunks, then what listens.
    All,
    /// The chunks of one id, with what they require (`state.sls_id`).
    Id(String),
    /// One call (`state.single`, `state.low`).
    One(Dict),
}

/// A run of chunks.
pub struct Run<'a> {
    core: Rc<Core<'a>>,
    plan: Plan,
    running: Option<Pin<Box<dyn Future<Output = Res<()>> + 'a>>>,
    is_done: bool,
}

impl<'a> Run<'a> {
    pub(crate) fn new(low: Lowstate, host: &'a dyn Host, options: &'a Options, limits: &Limits) -> Self {
        let core = Core::new(low.chunks, low.graph, low.disabled, host, options, limits.clone());
        Self { core: Rc::new(core), plan: Plan::All, running: None, is_done: false }
    }

    /// Only the chunks of an id, with what they require.
    #[must_use]
    pub fn only_id(mut self, id: &str) -> Self {
        self.plan = Plan::Id(id.to_owned());
        self
    }

    /// A run of one low chunk.
    pub fn single(low: &Dict, host: &'a dyn Host, options: &'a Options, limits: &Limits) -> Self {
        let core = Core::new(vec![low.clone()], Graph::new(), 0, host, options, limits.clone());
        Self { core: Rc::new(core), plan: Plan::One(low.clone()), running: None, is_done: false }
    }

    /// The chunks in their order; one that `prereq` names is there twice.
    pub fn chunks(&self) -> &[Dict] {
        &self.core.chunks
    }

    /// Asks before each chunk whether the run is paused there.
    #[must_use]
    pub fn with_pauses(self) -> Self {
        self.core.asks_pause.set(true);
        self
    }

    /// The results so far: a dict for each chunk, by its tag (`pkg_|-vim_|-vim_|-installed`).
    pub fn results(&self) -> Dict {
        self.core.results.borrow().clone()
    }

    /// What is next. `now` is the local time of the day, as `start_time` has it (`14:03:59.000123`).
    ///
    /// # Errors
    /// An exception that ends the run in Salt too, or a bound. The results so far are there.
    pub fn next(&mut self, now: &str) -> Result<Step, Fault> {
        self.core.now.replace(now.to_owned());
        if self.is_done {
            return Ok(Step::Done(self.results()));
        }
        let core = &self.core;
        let plan = &mut self.plan;
        let running = self.running.get_or_insert_with(|| {
            let core = core.clone();
            match std::mem::replace(plan, Plan::All) {
                Plan::All => Box::pin(async move { core.run_all().await }),
                Plan::Id(id) => Box::pin(async move { core.run_id(&id).await }),
                Plan::One(low) => Box::pin(async move { core.run_one(&low).await }),
            }
        });
        match running.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => {
                let step = self.core.mailbox.take_question();
                step.ok_or_else(|| Fault::Limit("the run waits for an answer that it was not given".to_owned()))
            }
            Poll::Ready(done) => {
                self.is_done = true;
                self.running = None;
                done.map(|()| Step::Done(self.results()))
            }
        }
    }

    /// Answers the last step.
    pub fn tell(&mut self, answer: Answer) {
        self.core.mailbox.answer(answer);
    }

    /// Tells that a parallel state has finished. That may come at any time.
    pub fn finished(&mut self, finished: Finished) {
        self.core.finished.borrow_mut().push(finished);
    }
}

/// Whether a value of a low chunk counts as given.
fn given(low: &Dict, name: &str) -> Option<Value> {
    low.get(name).filter(Value::truthy)
}
