//! The arguments of a call: by position, and by name in a map with `__kwarg__` (§5.2).

use crate::args::{condition_input, parse_kwarg, set, yamlify};
use crate::value::{Value, ValueExt};

/// Separates keyword arguments (§5.2): maps with `__kwarg__: True` and texts `name=value`. Later ones override earlier
/// ones.
pub fn split_kwargs(arg: &[Value]) -> (Vec<Value>, Vec<(String, Value)>) {
    let (mut args, mut kwargs) = (Vec::new(), Vec::new());
    for item in arg {
        if let Value::Map(entries) = item
            && item.get("__kwarg__") == Some(&Value::Boolean(true))
        {
            for (key, value) in entries {
                if let Some(key) = key.text().filter(|key| *key != "__kwarg__") {
                    set(&mut kwargs, key, value.clone());
                }
            }
        } else if let Some((key, value)) = item.text().and_then(parse_kwarg) {
            set(&mut kwargs, key, yamlify(value));
        } else {
            args.push(item.clone());
        }
    }
    (args, kwargs)
}

/// The `arg` list of a call: positional arguments and, if there are any, the keyword map at the end.
pub fn join_kwargs(args: Vec<Value>, kwargs: Vec<(String, Value)>) -> Vec<Value> {
    condition_input(args, kwargs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{map, text};

    #[test]
    fn keywords_are_taken_out_of_the_arguments() {
        let arg = [
            text("pos"),
            text("a=1"),
            text("x==y"),
            map([("__kwarg__", Value::from(true)), ("b", text("c=d")), ("a", Value::from(2))]),
            map([("b", 1)]),
            map([("__kwarg__", 1), ("c", 1)]),
        ];
        let (args, kwargs) = split_kwargs(&arg);
        assert_eq!(args, [text("pos"), text("x==y"), map([("b", 1)]), map([("__kwarg__", 1), ("c", 1)])]);
        assert_eq!(kwargs, [("a".to_owned(), Value::from(2)), ("b".to_owned(), text("c=d"))]);
        assert_eq!(split_kwargs(&join_kwargs(args.clone(), kwargs.clone())), (args, kwargs));
    }
}
