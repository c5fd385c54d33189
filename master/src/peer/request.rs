//! Parses a minion's request to publish a job.

use brine_protocol::args::yamlify;
use brine_protocol::job::{join_kwargs, split_kwargs};
use brine_protocol::value::{Value, ValueExt, list};

/// Longest name of a returner in bytes.
const RET_MAX: usize = 256;

/// A parsed request to publish a job.
pub(super) struct PeerRequest {
    /// Functions with their arguments as minions get them.
    funs: Vec<(String, Vec<Value>)>,
    several: bool,
    pub(super) tgt: Value,
    pub(super) tgt_type: String,
    pub(super) ret: String,
}

impl PeerRequest {
    pub(super) fn read(load: &Value) -> Result<Self, String> {
        let text = |name: &str| load.get_text(name);
        let fun = text("fun").filter(|fun| !fun.is_empty()).ok_or("it names no function")?;
        let arg = load.get_list("arg").ok_or("it has no list of arguments")?;
        let ret = text("ret").filter(|ret| ret.len() <= RET_MAX).ok_or("it has no ret")?.to_owned();
        let tgt = load.get("tgt").filter(|tgt| !tgt.is_nil()).ok_or("it has no target")?.clone();
        let tgt_type = match load.get("tgt_type") {
            Some(kind) => kind.text().ok_or("its tgt_type is not text")?.to_lowercase(),
            None => "glob".to_owned(),
        };
        let several = fun.contains(',');
        let funs: Vec<(String, Vec<Value>)> = if several {
            // With several functions, the arguments of each are one text (§5.2).
            let words = |at: usize| {
                let text = arg.get(at).and_then(ValueExt::text).unwrap_or_default();
                parse_args(&text.split_whitespace().map(Value::from).collect::<Vec<_>>())
            };
            fun.split(',').enumerate().map(|(at, fun)| (fun.to_owned(), words(at))).collect()
        } else {
            vec![(fun.to_owned(), parse_args(arg))]
        };
        if funs.iter().any(|(fun, _)| fun.is_empty() || fun.starts_with("publish.")) {
            return Err("a publication that publishes would have no end".to_owned());
        }
        Ok(Self { funs, several, tgt, tgt_type, ret })
    }

    pub(super) fn fun(&self) -> Value {
        if self.several {
            list(self.funs.iter().map(|(fun, _)| fun.as_str()))
        } else {
            Value::from(self.funs[0].0.as_str())
        }
    }

    pub(super) fn arg(&self) -> Vec<Value> {
        if self.several {
            self.funs.iter().map(|(_, arg)| Value::Array(arg.clone())).collect()
        } else {
            self.funs[0].1.clone()
        }
    }
}

/// Parses arguments like the command line of `salt`: texts are YAML, `name=value` is a keyword argument.
pub(super) fn parse_args(arg: &[Value]) -> Vec<Value> {
    let (args, kwargs) = split_kwargs(arg);
    let args = args.into_iter().map(|arg| arg.text().map_or_else(|| arg.clone(), yamlify)).collect();
    join_kwargs(args, kwargs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{map, text};

    fn asked(fun: &str, arg: Value) -> Result<PeerRequest, String> {
        PeerRequest::read(&map([("fun", text(fun)), ("arg", arg), ("tgt", text("*")), ("ret", text(""))]))
    }

    #[test]
    fn arguments_are_those_of_a_command_line() {
        let one = asked("test.arg", list([text("1"), text("a=b"), text("[x]"), Value::from(true)])).unwrap();
        let kwargs = |name: &str, value: Value| map([("__kwarg__", Value::from(true)), (name, value)]);
        assert_eq!(Value::Array(one.arg()), list([1.into(), list(["x"]), true.into(), kwargs("a", text("b"))]));
        let marked = asked("f.g", list([kwargs("x", 1.into()), text("y")]));
        assert_eq!(Value::Array(marked.unwrap().arg()), list([text("y"), kwargs("x", 1.into())]));
    }

    #[test]
    fn several_functions_are_several_calls() {
        let several = asked("test.ping,test.arg", list([text(""), text("1 a=b")])).unwrap();
        assert_eq!(several.fun(), list(["test.ping", "test.arg"]));
        let kwargs = map([("__kwarg__", Value::from(true)), ("a", text("b"))]);
        assert_eq!(Value::Array(several.arg()), list([Value::Array(Vec::new()), list([1.into(), kwargs])]));
        assert_eq!(asked("test.ping,test.arg", Value::Array(Vec::new())).unwrap().arg().len(), 2);
    }

    #[test]
    fn what_publishes_is_not_published() {
        for fun in ["publish.publish", "test.ping,publish.runner", "publish.", "a,,b", ""] {
            assert!(asked(fun, Value::Array(Vec::new())).is_err(), "{fun}");
        }
        assert!(asked("publisher.x", Value::Array(Vec::new())).is_ok());
        assert!(PeerRequest::read(&map([("fun", "test.ping")])).is_err());
    }
}
