//! The code that a run of states ends with.

use brine_guest::Value;

/// What does not compile, or may not run now.
pub(crate) const COMPILER_ERROR: i32 = 1;
/// A state failed.
const FAILURE: i32 = 2;

/// The code for a run's results.
pub(crate) fn of(results: &Value) -> i32 {
    let Value::Dict(results) = results else { return FAILURE };
    let failed = |result: &Value| match result {
        Value::Dict(_) => result.get("result") == Some(&Value::Bool(false)),
        _ => true,
    };
    if results.is_empty() || results.iter().any(|(_, result)| failed(result)) { FAILURE } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_state_fails_the_run() {
        let results = |result: Value| Value::dict([("a", Value::dict([("result", result)]))]);
        assert_eq!(of(&results(true.into())), 0);
        assert_eq!(of(&results(Value::None)), 0);
        assert_eq!(of(&results(false.into())), FAILURE);
        assert_eq!(of(&Value::dict([])), FAILURE);
        assert_eq!(of(&Value::dict([("a", "x".into())])), FAILURE);
    }
}
