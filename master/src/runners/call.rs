//! The arguments of a runner or wheel function, as the caller sent them.

use brine_protocol::value::{Value, ValueExt, map};

/// Fields of a flat request that are not arguments of the function.
const NOT_ARGUMENTS: [&str; 12] =
    ["cmd", "fun", "arg", "kwarg", "key", "token", "eauth", "username", "password", "user", "client", "print_event"];

/// The arguments of a call, by position and by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    args: Vec<Value>,
    kwargs: Vec<(String, Value)>,
}

impl Call {
    /// Reads the arguments of a request (§7.3).
    pub(super) fn from_load(load: &Value) -> Self {
        // `arg` and `kwarg` of the load. Python's RunnerClient packs both into another `kwarg`,
        let packed = load.get("kwarg").filter(|kwarg| {
            kwarg.entries().is_some_and(|entries| entries.len() == 2)
                && kwarg.get_list("arg").is_some()
                && kwarg.get("kwarg").is_some_and(|inner| inner.entries().is_some())
        });
        // and its WheelClient sends each argument beside `cmd` and `fun`, like callers of salt-api.
        let flat = !load.has("arg") && !load.has("kwarg");
        let load = packed.unwrap_or(load);
        let args = load.get_list("arg").unwrap_or_default();
        let (args, mut kwargs) = brine_protocol::job::split_kwargs(args);
        let named = if flat { load.entries() } else { load.get("kwarg").and_then(ValueExt::entries) };
        for (name, value) in named.unwrap_or_default() {
            let name = name.text().filter(|name| !name.starts_with("__"));
            if let Some(name) = name.filter(|name| !flat || !NOT_ARGUMENTS.contains(name)) {
                kwargs.push((name.to_owned(), value.clone()));
            }
        }
        Self { args, kwargs }
    }

    /// Makes a call.
    pub(crate) const fn new(args: Vec<Value>, kwargs: Vec<(String, Value)>) -> Self {
        Self { args, kwargs }
    }

    /// Returns the arguments by position.
    pub(crate) fn args(&self) -> &[Value] {
        &self.args
    }

    /// Returns the arguments by name.
    pub(crate) fn kwargs(&self) -> &[(String, Value)] {
        &self.kwargs
    }

    /// Leaves out the arguments by name that are not to be kept.
    pub(super) fn retain_kwargs(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.kwargs.retain(|(name, _)| is_kept(name));
    }

    pub(super) fn shown(&self) -> Vec<Value> {
        let mut shown = self.args.clone();
        if !self.kwargs.is_empty() {
            shown.push(map(self.kwargs.iter().map(|(name, value)| (name.as_str(), value.clone()))));
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::list;

    #[test]
    fn three_ways_to_send_arguments() {
        let plain = map([("fun", Value::from("x.y")), ("arg", list(["a", "n=1"])), ("kwarg", map([("m", 2)]))]);
        let inner = map([("arg", list(["a"])), ("kwarg", map([("n", 1), ("m", 2)]))]);
        let packed = map([("fun", Value::from("x.y")), ("kwarg", inner)]);
        for load in [plain, packed] {
            let call = Call::from_load(&load);
            assert_eq!(call.args(), [Value::from("a")]);
            assert_eq!(call.kwargs(), [("n".to_owned(), Value::from(1)), ("m".to_owned(), Value::from(2))]);
        }
        let flat = map([("cmd", "wheel"), ("fun", "key.accept"), ("match", "m1"), ("token", "t"), ("__jid__", "1")]);
        let call = Call::from_load(&flat);
        assert_eq!(call.kwargs(), [("match".to_owned(), Value::from("m1"))]);
        assert!(call.args().is_empty());
    }
}
