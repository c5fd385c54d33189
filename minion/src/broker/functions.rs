//! `brine:host/functions`: calls of other modules' functions. Each call runs in an instance of its own, with the grants
//! of the called module.

use std::collections::HashSet;

use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{Caller, FunctionsOp, HostError};

use super::{MinionBroker, Perform};
use crate::jobs::module_of;

/// Bounds on the arguments and on the result of a call between modules: the default bound on a function's output, which
/// is a few MiB of values in the minion's memory.
const ARGUMENTS: Limits = Limits { max_bytes: 4 << 20, max_depth: 64, max_items: 64 << 10 };
/// Upper bound on the bytes of a function's name.
const MAX_NAME: usize = 256;

impl Perform<FunctionsOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: FunctionsOp) -> Result<Value, HostError> {
        let FunctionsOp::Call { function, args, kwargs, written_left, new_files_left } = op;
        caller.has_left(written_left, new_files_left);
        if function.len() > MAX_NAME {
            return Err(HostError::Failed(format!("a function's name of {} bytes names nothing", function.len())));
        }
        let (args, kwargs) =
            arguments(&args, &kwargs).map_err(|why| HostError::Failed(format!("{function}: {why}")))?;
        let trouble = self.modules.ensure(module_of(&function)).await.err();
        let outcome = self.sandbox()?.call(caller, &function, args, kwargs).await;
        let value = match (trouble, outcome.value.text()) {
            (Some(why), Some(said)) if !outcome.success => Value::from(format!("{said} {why}")),
            _ => outcome.value,
        };
        let used = outcome.usage.unwrap_or_default();
        Ok(map([
            ("value", value),
            ("retcode", Value::from(outcome.retcode)),
            ("success", Value::from(outcome.success)),
            ("written", Value::from(used.written)),
            ("new_files", Value::from(used.new_files)),
        ]))
    }
}

type Arguments = (Vec<Value>, Vec<(String, Value)>);

fn arguments(args: &[u8], kwargs: &[u8]) -> Result<Arguments, String> {
    let decode =
        |bytes, what| msgpack::decode(bytes, &ARGUMENTS).map_err(|e| format!("the {what} cannot be read: {e}"));
    let Value::Array(args) = decode(args, "positional arguments")? else {
        return Err("the positional arguments are not a list".to_owned());
    };
    let Value::Map(entries) = decode(kwargs, "keyword arguments")? else {
        return Err("the keyword arguments are not a dict".to_owned());
    };
    let mut kwargs: Vec<(String, Value)> = Vec::with_capacity(entries.len());
    let mut known = HashSet::with_capacity(entries.len());
    for (name, value) in entries {
        let Some(name) = name.text().map(str::to_owned) else {
            return Err("the name of a keyword argument is not text".to_owned());
        };
        if !known.insert(name.clone()) {
            return Err(format!("the keyword argument {name:?} is there twice"));
        }
        kwargs.push((name, value));
    }
    Ok((args, kwargs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::msgpack::encode_network;
    use brine_protocol::value::{list, text};

    #[test]
    fn arguments_are_a_list_and_a_dict() {
        let good_args = encode_network(&list([Value::from(1)]));
        let good_kwargs = encode_network(&map([("a", text("b"))]));
        let (args, kwargs) = arguments(&good_args, &good_kwargs).unwrap();
        assert_eq!((args, kwargs), (vec![Value::from(1)], vec![("a".to_owned(), text("b"))]));
        let long = encode_network(&list([text("x".repeat(4 << 20))]));
        let deep = [vec![0x91; 100], vec![0x90]].concat();
        let lies: &[u8] = &[0xdd, 0xff, 0xff, 0xff, 0xff];
        for bad in [&[], &good_kwargs[..], &[0x90, 0x90], lies, &deep, &long] {
            assert!(arguments(bad, &good_kwargs).is_err(), "{bad:?}");
        }
        let twice = encode_network(&Value::Map(vec![(text("a"), Value::Nil), (text("a"), Value::Nil)]));
        let numbered = encode_network(&Value::Map(vec![(Value::from(1), Value::Nil)]));
        for bad in [&[0x90][..], &twice, &numbered, &[]] {
            assert!(arguments(&good_args, bad).is_err(), "{bad:?}");
        }
    }
}
