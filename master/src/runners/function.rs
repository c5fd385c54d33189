//! A function of a runner or of the wheel, and a call of it.

use std::sync::Arc;

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt as _, map};
use futures_util::future::BoxFuture;

use super::signature::{Given, Signature};
use super::{Call, Parts, Runners};
use crate::access::Principal;

/// A function's result, or what it returns when it fails.
pub(crate) type Outcome = Result<Value, Failure>;

/// The value that a failed function returns instead of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure(pub(crate) Value);

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self(Value::from(text))
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self(Value::from(text))
    }
}

/// Declares the functions of a module: documentation in one sentence, [`Signature`], implementation.
macro_rules! functions {
    ($($(#[doc = $doc:literal])+ $signature:literal => $implementation:expr,)+) => {
        &[$($crate::runners::function::Function {
            signature: $crate::runners::signature::Signature($signature),
            doc: concat!($($doc),+),
            run: |run| $crate::runners::function::start($implementation, run),
        }),+]
    };
}
pub(super) use functions;

/// A function that callers can run by its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    pub(super) signature: Signature,
    /// The documentation.
    pub(super) doc: &'static str,
    /// The implementation.
    pub(super) run: fn(Run) -> BoxFuture<'static, Outcome>,
}

/// Starts an implementation; gives closures in [`functions!`] the type of their argument.
pub(super) fn start<F>(implementation: impl FnOnce(Run) -> F, run: Run) -> BoxFuture<'static, Outcome>
where
    F: Future<Output = Outcome> + Send + 'static,
{
    Box::pin(implementation(run))
}

impl Function {
    /// Returns `module.function`.
    pub(super) fn name(&self) -> &'static str {
        self.signature.name()
    }

    /// Returns its documentation in Salt's layout.
    pub(super) fn documentation(&self, command: &str) -> String {
        let words: Vec<String> = self
            .signature
            .parameters()
            .map(|parameter| match parameter.contains('=') || parameter.starts_with('*') {
                true => format!("[{parameter}]"),
                false => parameter.to_owned(),
            })
            .collect();
        let usage = format!("{command}{} {}", self.name(), words.join(" "));
        format!("\n    {}\n\n    Usage:\n\n        {}\n    ", self.doc.trim_start(), usage.trim_end())
    }

    /// Calls it.
    pub(super) async fn call(&self, runners: &Runners, job: &Arc<RunJob>, call: &Call) -> Outcome {
        let given = self.signature.bind(call).map_err(|why| self.misused(&why))?;
        let (parts, runners) = (Arc::clone(&runners.parts), runners.clone());
        (self.run)(Run { parts, runners, job: Arc::clone(job), given, function: *self }).await
    }

    /// Returns Salt's text for a Python `TypeError`.
    fn misused(&self, why: &str) -> String {
        format!("\nPassed invalid arguments: {why}\n\nUsage:\n{}", self.documentation(""))
    }
}

/// The jid, tag and user of a run.
#[derive(Debug)]
pub(super) struct RunJob {
    /// Its jid.
    pub(super) jid: Jid,
    /// The prefix of its events' tags: `salt/run/<jid>`, `salt/wheel/<jid>`.
    pub(super) tag: String,
    /// The caller's name.
    pub(super) user: String,
    /// The caller, whose rights count for what the run starts in turn.
    pub(super) by: Principal,
    /// The orchestration that started it.
    pub(super) within: Option<Within>,
}

/// The orchestration that started a run.
#[derive(Debug, Clone)]
pub(super) struct Within {
    /// The jid under which the outermost orchestration tells of itself.
    pub(super) jid: Jid,
    /// How many orchestrations are around the run.
    pub(super) depth: usize,
}

impl RunJob {
    /// Makes one with a new jid.
    pub(super) fn new(tag: &str, by: &Principal, within: Option<Within>) -> Arc<Self> {
        let jid = Jid::now();
        Arc::new(Self { tag: format!("salt/{tag}/{jid}"), jid, user: by.to_string(), by: by.clone(), within })
    }
}

/// One call of a function.
pub(super) struct Run {
    pub(super) parts: Arc<Parts>,
    /// For runs that it starts in turn.
    pub(super) runners: Runners,
    pub(super) job: Arc<RunJob>,
    pub(super) given: Given,
    function: Function,
}

impl Run {
    /// Returns an argument or the parameter's default; `None` if that is None.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.given.get(name)
    }

    /// Returns a copy of an argument or the parameter's default.
    pub(super) fn value(&self, name: &str) -> Value {
        self.get(name).cloned().unwrap_or(Value::Nil)
    }

    /// Returns whether an argument is true in Python's sense.
    pub(super) fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(Value::truthy)
    }

    /// Returns an argument as text, empty for None. Numbers that the command line parsed become text again.
    pub(super) fn text(&self, name: &str) -> String {
        self.find_text(name).unwrap_or_default()
    }

    /// Returns an argument as [`Run::text`] does, if it is not None.
    pub(super) fn find_text(&self, name: &str) -> Option<String> {
        self.get(name).map(Value::python_str)
    }

    /// Returns an argument in seconds, up to `most`.
    pub(super) fn seconds(&self, name: &str, most: f64) -> Result<Option<std::time::Duration>, Failure> {
        let Some(given) = self.get(name).filter(|given| given.truthy()) else { return Ok(None) };
        let seconds = match given.as_f64().or_else(|| given.text()?.parse().ok()) {
            Some(seconds) if (0.0..=most).contains(&seconds) => seconds,
            _ => return Err(self.wrong(&format!("{name} must be a number of seconds up to {most}"))),
        };
        Ok(Some(std::time::Duration::from_secs_f64(seconds)))
    }

    /// Returns `module.function`.
    pub(super) fn fun(&self) -> &'static str {
        self.function.name()
    }

    /// Makes the failure for a wrong argument.
    pub(super) fn wrong(&self, why: &str) -> Failure {
        Failure::from(self.function.misused(why))
    }

    /// Fires an event with the run's progress.
    pub(super) fn progress(&self, message: impl Into<String>) {
        self.event("progress", map([("message", message.into())]));
    }

    /// Fires an event with text to print. Salt's runners print it in the process of the command.
    pub(super) fn print(&self, text: impl Into<String>) {
        self.event("print", map([("data", text.into())]));
    }

    pub(super) fn event(&self, suffix: &str, data: Value) {
        self.parts.bus.fire(format!("{}/{suffix}", self.job.tag), data);
    }
}
