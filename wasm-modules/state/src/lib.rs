//! The module `state`: runs states by `brine:host/states`. The functions and their documentation are in
//! `wit/world.wit`.
//!
//! - `queue.rs`    one run at a time
//! - `chunk.rs`    a low chunk, as the host runs it
//! - `retcode.rs`  the code that a run ends with

wit_bindgen::generate!({
    world: "state",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/jobs@1.0.0": brine_guest::host::jobs,
        "brine:host/states@1.0.0": brine_guest::host::states,
    },
});

mod chunk;
mod queue;
mod retcode;

use brine_guest::Value;
use brine_guest::host::{job, states};

use chunk::Low;
use queue::Turn;

struct Module;

impl Guest for Module {
    fn single(
        fun: String,
        name: String,
        test: Option<bool>,
        queue: Option<Data>,
        kwargs: Data,
    ) -> Result<Data, String> {
        let kwargs = entries(kwargs.value()?)?;
        if let Turn::Taken(others) = queue::take(queue.as_ref(), &kwargs)? {
            return Ok(refused(others));
        }
        let Some((state, function)) = fun.split_once('.') else {
            job::set_retcode(retcode::COMPILER_ERROR);
            return Ok("Invalid function passed".into());
        };
        let mut entries = kwargs;
        for (key, value) in [("state", state), ("fun", function), ("__id__", &*name), ("name", &*name)] {
            entries.retain(|(known, _)| known.text() != Some(key));
            entries.push((key.into(), value.into()));
        }
        let low = Low::new(entries);
        let errors = low.errors();
        if !errors.is_empty() {
            return Ok(refused(errors));
        }
        let result = states::run(&low.chunk(0, test == Some(true))).value()?;
        let all = Value::Dict(vec![(low.tag().into(), result)]);
        job::set_retcode(retcode::of(&all));
        Ok(all.into())
    }

    fn low(data: Data, queue: Option<Data>, kwargs: Data) -> Result<Data, String> {
        let kwargs = entries(kwargs.value()?)?;
        if let Turn::Taken(others) = queue::take(queue.as_ref(), &kwargs)? {
            return Ok(refused(others));
        }
        let low = Low::new(entries(data.value()?)?);
        let errors = low.errors();
        if !errors.is_empty() {
            return Ok(refused(errors));
        }
        let result = states::run(&low.chunk(0, false)).value()?;
        let all = Value::Dict(vec![(low.tag().into(), result.clone())]);
        job::set_retcode(retcode::of(&all));
        Ok(result.into())
    }

    fn running(concurrent: Option<bool>) -> Vec<String> {
        if concurrent == Some(true) { Vec::new() } else { queue::running() }
    }
}

/// A list of errors as the return, with Salt's code for what does not compile.
fn refused(errors: Vec<String>) -> Data {
    job::set_retcode(retcode::COMPILER_ERROR);
    Value::from(errors).into()
}

fn entries(value: Value) -> Result<Vec<(Value, Value)>, String> {
    match value {
        Value::Dict(entries) => Ok(entries),
        other => Err(format!("a dict is expected, not {}", other.kind())),
    }
}

export!(Module);
