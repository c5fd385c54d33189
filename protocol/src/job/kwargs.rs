//! The arguments of a call: by position, and by name in a map with `__kwarg__` (§5.2).

use crate::args::{Keywords, condition_input, parse_kwarg, yamlify};
use crate::value::{Value, ValueExt};

/// Separates keyword arguments (§5.2): maps with `__kwarg__: True` and texts `name=value`. Later ones override earlier
/// ones.
pub fn split_kwargs(arg: &[Value]) -> (Vec<Value>, Vec<(String, Value)>) {
    let (mut args, mut kwargs) = (Vec::new(), Keywords::new());
    for item in arg {
        if let Value::Map(entries) = item
            && are_keywords(item)
        {
            for (key, value) in entries {
                if let Some(key) = key.text().filter(|key| *key != "__kwarg__") {
                    kwargs.insert(key.to_owned(), value.clone());
                }
            }
        } else if let Some((key, value)) = item.text().and_then(parse_kwarg) {
            kwargs.insert(key.to_owned(), yamlify(value));
        } else {
            args.push(item.clone());
        }
    }
    (args, kwargs.into_iter().collect())
}

/// Whether an argument is a map of keywords: its mark is `True`, and nothing else. Who decides about arguments has to take for keywords what the
/// minion takes for them.
#[must_use]
pub fn are_keywords(item: &Value) -> bool {
    let mut marks =
        item.entries().unwrap_or_default().iter().filter(|(key, _)| key.text() == Some("__kwarg__")).peekable();
    marks.peek().is_some() && marks.all(|(_, mark)| *mark == Value::Boolean(true))
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

    #[test]
    fn only_what_is_marked_true_are_keywords() {
        let marked = |marks: &[Value]| {
            let marks = marks.iter().map(|mark| (text("__kwarg__"), mark.clone()));
            Value::Map(marks.chain([(text("a"), Value::from(1))]).collect())
        };
        let (yes, no) = (Value::from(true), Value::from(false));
        assert!(are_keywords(&marked(std::slice::from_ref(&yes))));
        for other in [
            vec![],
            vec![no.clone()],
            vec![Value::from(1)],
            vec![Value::Nil],
            vec![yes.clone(), no.clone()],
            vec![no, yes],
        ] {
            let item = marked(&other);
            assert!(!are_keywords(&item), "{other:?}");
            assert_eq!(split_kwargs(std::slice::from_ref(&item)), (vec![item.clone()], vec![]), "{other:?}");
        }
    }

    #[test]
    fn many_keywords_are_found_at_once() {
        let many =
            map((0..100_000).map(|n| (format!("k{n}"), n)).collect::<Vec<_>>().iter().map(|(k, n)| (k.as_str(), *n)));
        let Value::Map(mut entries) = many else { panic!("a map") };
        entries.push((text("__kwarg__"), Value::from(true)));
        let began = std::time::Instant::now();
        assert_eq!(split_kwargs(&[Value::Map(entries)]).1.len(), 100_000);
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }
}
