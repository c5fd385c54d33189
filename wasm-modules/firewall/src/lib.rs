//! The module `firewall`: a state of what this host can reach, made of the function `network.connect`, which has the grants of
//! its own module. Its documentation is in `wit/world.wit`. Comments and results are Salt's.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "firewall",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

use brine_guest::host::functions;
use brine_guest::keywords::Keywords;
use brine_guest::states::{StateResult, is_dry_run, no_changes};
use brine_guest::{Data, Value};

use exports::states::Guest;

struct Module;

fn told(answer: &Value) -> StateResult {
    let comment = answer.get("comment").map(Value::to_text).unwrap_or_default();
    StateResult::new(Some(answer.get("result").is_some_and(Value::truthy)), comment, no_changes())
}

impl Guest for Module {
    fn check(name: Data, port: Option<Data>, kwargs: Data) -> Result<StateResult, String> {
        let keywords = Keywords::new(&kwargs, [])?;
        // As in Salt, the argument goes before the job's own.
        if keywords.get("test").map_or_else(is_dry_run, Value::truthy) {
            return Ok(StateResult::good("The connection will be tested"));
        }
        let more = keywords.iter().filter(|(name, _)| *name != "test");
        let more = Value::Dict(more.map(|(name, value)| (name.into(), value.clone())).collect());
        let args = [name, port.unwrap_or_else(|| Value::None.into())];
        Ok(told(&functions::call("network.connect", &args, &more.into())?.value()?))
    }
}

#[cfg(target_family = "wasm")]
export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_results() {
        let answer = |result: bool| Value::dict([("result", result.into()), ("comment", "why".into())]);
        assert_eq!(told(&answer(true)).result, Some(true));
        let bad = told(&answer(false));
        assert_eq!((bad.result, bad.comment.as_str()), (Some(false), "why"));
    }
}
