//! The module `module`: states that call functions. They and their documentation are in `wit/world.wit`.
//!
//! - [`listed`]: functions as keywords · [`named`]: the older form, one function as `name`
//! - [`function`]: what a function takes, and its call
//! - [`outcome`]: what a return says of success

wit_bindgen::generate!({
    world: "module",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/modules@1.0.0": brine_guest::host::modules,
    },
    generate_all,
});

mod function;
mod listed;
mod named;
mod outcome;

use brine_guest::Value;
use brine_guest::states::StateResult;

use exports::states::Guest;

struct Module;

/// A result with a name of its own.
pub(crate) fn result(name: Value, result: Option<bool>, comment: impl Into<String>, changes: Value) -> Data {
    Value::dict([("name", name), ("changes", changes), ("result", result.into()), ("comment", comment.into().into())])
        .into()
}

impl Guest for Module {
    fn run(kwargs: Data) -> Result<Data, String> {
        let Value::Dict(keywords) = kwargs.value()? else { return Err("the arguments are no dict".into()) };
        let keywords: Vec<(String, Value)> =
            keywords.into_iter().map(|(name, value)| (name.to_text(), value)).collect();
        let mut asked =
            keywords.iter().filter(|(name, _)| !matches!(name.as_str(), "name" | "__reqs__" | "sfun")).peekable();
        let is_old = asked.peek().is_none() || asked.any(|(name, _)| !name.contains('.'));
        match is_old {
            true => named::run(keywords),
            false => listed::run(keywords),
        }
    }

    fn wait(_: String, _: Data) -> StateResult {
        StateResult::good("")
    }

    fn watch(_: String, _: Data) -> StateResult {
        StateResult::good("")
    }

    fn mod_watch(kwargs: Data) -> Result<Data, String> {
        Self::run(kwargs)
    }
}

export!(Module);
