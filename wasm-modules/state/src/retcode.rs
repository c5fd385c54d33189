//! The code that a run of states ends with.

use brine_render::{Dict, Value};

/// What does not compile, or may not run now.
pub(crate) const COMPILER_ERROR: i32 = 1;
/// The pillar has errors.
pub(crate) const PILLAR_FAILURE: i32 = 5;
/// A state failed.
const FAILURE: i32 = 2;

/// The code for a run's results.
pub(crate) fn of(results: &Dict) -> i32 {
    let failed = |result: &Value| match result {
        Value::Dict(result) => matches!(result.get("result"), Some(Value::Bool(false))),
        _ => true,
    };
    let results = results.borrow();
    if results.is_empty() || results.iter().any(|(_, result)| failed(result)) { FAILURE } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_state_fails_the_run() {
        let results = |result: Value| -> Dict {
            let state = Dict::default();
            state.set("result", result);
            let results = Dict::default();
            results.set("a", state.into());
            results
        };
        assert_eq!(of(&results(true.into())), 0);
        assert_eq!(of(&results(Value::None)), 0);
        assert_eq!(of(&results(false.into())), FAILURE);
        assert_eq!(of(&Dict::default()), FAILURE);
        let odd = Dict::default();
        odd.set("a", "x".into());
        assert_eq!(of(&odd), FAILURE);
    }
}
