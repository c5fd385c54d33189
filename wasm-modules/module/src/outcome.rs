//! What a function's return says of success.

use brine_guest::Value;

/// False is a failure, and so are a `result` that is False and a `retcode` that is not 0, however deep in a dict.
pub(crate) fn is_good(returned: &Value) -> bool {
    match returned {
        Value::Bool(good) => *good,
        Value::Dict(entries) => entries.iter().all(|(key, value)| match (key.text(), value) {
            (Some("result"), Value::Bool(false)) => false,
            (Some("retcode"), code) if !matches!(code, Value::Int(0) | Value::Bool(false)) => false,
            (_, dict @ Value::Dict(_)) => is_good(dict),
            _ => true,
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_says_whether_it_is_good() {
        let within = |name: &str, value: Value| Value::dict([("x", Value::dict([(name, value)]))]);
        for good in
            [true.into(), Value::None, Value::Int(0), within("result", Value::None), within("retcode", Value::Int(0))]
        {
            assert!(is_good(&good), "{good:?}");
        }
        for bad in [false.into(), within("result", false.into()), within("retcode", Value::Int(2))] {
            assert!(!is_good(&bad), "{bad:?}");
        }
    }
}
