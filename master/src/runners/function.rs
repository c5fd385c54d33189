//! One function of a runner or of the wheel: its name, its parameters, what it does.

use std::sync::Arc;

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt as _, map};
use futures_util::future::BoxFuture;

use super::signature::{Given, Signature};
use super::{Call, Parts};
use crate::access::Principal;

/// What a function returns, or what it says instead when it failed.
pub(crate) type Outcome = Result<Value, Failure>;

/// What is said in place of a result.
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

/// A function that can be called by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    /// `module.function`.
    pub(super) name: &'static str,
    /// See [`Signature`].
    pub(super) parameters: &'static [&'static str],
    /// What it does, in one sentence.
    pub(super) doc: &'static str,
    /// Does it.
    pub(super) run: fn(Run) -> BoxFuture<'static, Outcome>,
}

impl Function {
    /// Its documentation, laid out as Salt's is.
    pub(super) fn documentation(&self, command: &str) -> String {
        let words: Vec<String> = self
            .parameters
            .iter()
            .map(|parameter| match parameter.contains('=') || parameter.starts_with('*') {
                true => format!("[{parameter}]"),
                false => (*parameter).to_owned(),
            })
            .collect();
        let usage = format!("{command}{} {}", self.name, words.join(" "));
        format!("\n    {}\n\n    Usage:\n\n        {}\n    ", self.doc, usage.trim_end())
    }

    /// Calls it.
    pub(super) async fn call(&self, parts: &Arc<Parts>, job: &Arc<RunJob>, call: &Call) -> Outcome {
        let own = self.name.rsplit('.').next().unwrap_or(self.name);
        let given = Signature(self.parameters).bind(own, call).map_err(|why| self.misused(&why))?;
        (self.run)(Run { parts: Arc::clone(parts), job: Arc::clone(job), given, function: *self }).await
    }

    /// As Salt answers a Python `TypeError`.
    fn misused(&self, why: &str) -> String {
        format!("\nPassed invalid arguments: {why}\n\nUsage:\n{}", self.documentation(""))
    }
}

/// Which run it is, for its events.
#[derive(Debug)]
pub(super) struct RunJob {
    /// Its jid.
    pub(super) jid: Jid,
    /// Where its events are: `salt/run/<jid>`, `salt/wheel/<jid>`.
    pub(super) tag: String,
    /// Who asked.
    pub(super) user: String,
}

impl RunJob {
    /// A new one.
    pub(super) fn new(tag: &str, by: &Principal) -> Arc<Self> {
        let jid = Jid::now();
        Arc::new(Self { tag: format!("salt/{tag}/{jid}"), jid, user: by.to_string() })
    }
}

/// One call of a function.
pub(super) struct Run {
    pub(super) parts: Arc<Parts>,
    pub(super) job: Arc<RunJob>,
    pub(super) given: Given,
    function: Function,
}

impl Run {
    /// An argument; none if it was left out, or is `None`.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.given.get(name)
    }

    /// Whether an argument counts as true.
    pub(super) fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(Value::truthy)
    }

    /// An argument as text; numbers that a command line made of words are words again.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(Value::python_str)
    }

    /// An argument in seconds.
    pub(super) fn seconds(&self, name: &str, most: f64) -> Result<Option<std::time::Duration>, Failure> {
        let Some(given) = self.get(name).filter(|given| given.truthy()) else { return Ok(None) };
        let seconds = match given.as_f64().or_else(|| given.text()?.parse().ok()) {
            Some(seconds) if (0.0..=most).contains(&seconds) => seconds,
            _ => return Err(self.wrong(&format!("{name} must be a number of seconds up to {most}"))),
        };
        Ok(Some(std::time::Duration::from_secs_f64(seconds)))
    }

    /// What is said of an argument that is not what it must be.
    pub(super) fn wrong(&self, why: &str) -> Failure {
        Failure::from(self.function.misused(why))
    }

    /// Tells whoever follows this run how far it is.
    pub(super) fn progress(&self, message: impl Into<String>) {
        self.event("progress", map([("message", message.into())]));
    }

    /// Lines for the one who called: Salt's runners print them, in the process of the command.
    pub(super) fn print(&self, text: impl Into<String>) {
        self.event("print", map([("data", text.into())]));
    }

    fn event(&self, suffix: &str, data: Value) {
        self.parts.bus.fire(format!("{}/{suffix}", self.job.tag), data);
    }
}
