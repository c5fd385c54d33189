//! `file.accumulated`: text for states that come later. The run of states keeps it and gives it to `file.managed` and
//! `file.blockreplace` of the same file.

use brine_guest::Value;
use brine_guest::host::job;

use super::Ret;
use super::arguments::Arguments;

pub(crate) fn run(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.accumulated"));
    }
    let filename = arguments.text("filename").unwrap_or_default();
    let Some(text) = arguments.get("text") else { return Ok(Ret::bad("No text supplied for accumulator")) };
    let wanted = arguments.list("require_in").into_iter().chain(arguments.list("watch_in"));
    if !wanted.into_iter().any(|requisite| is_of_file(&requisite)) {
        let (id, sls) = job::state().map(|state| (state.id, state.sls)).unwrap_or_default();
        return Ok(Ret::bad(format!("Orphaned accumulator {name} in {sls}:{id}")));
    }
    let known = arguments.list("accumulator");
    let parts = match text {
        Value::List(items) => items.clone(),
        one => vec![one.clone()],
    };
    let is_new = parts.iter().any(|part| !known.iter().any(|known| known.same(part)));
    Ok(Ret::good(match is_new {
        true => format!("Accumulator {name} for file {filename} was charged by text"),
        false => String::new(),
    }))
}

/// Whether a requisite, a dict of module and id, is of a file; of a text, whether it has the word.
fn is_of_file(requisite: &Value) -> bool {
    match requisite {
        Value::Dict(_) => requisite.get("file").is_some(),
        other => other.to_text().contains("file"),
    }
}
