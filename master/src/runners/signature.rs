//! Binds arguments to a function's parameters by Python's rules. Errors have Python's texts, because Salt shows them.

use brine_protocol::value::Value;

use super::Call;

/// Parameters in Python's notation: `jid`, `missing=False`, `*args`, `**kwargs`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signature(pub(super) &'static [&'static str]);

/// The bound arguments of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    named: Vec<(&'static str, Value)>,
    /// The arguments in `*args`.
    pub(super) args: Vec<Value>,
    /// The arguments in `**kwargs`.
    pub(super) kwargs: Vec<(String, Value)>,
}

impl Given {
    /// Returns an argument; `None` if it is missing or None.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.named.iter().find(|(known, _)| *known == name).map(|(_, value)| value).filter(|value| !value.is_nil())
    }
}

impl Signature {
    /// Binds a call's arguments. `function` is the name after the dot.
    ///
    /// # Errors
    /// The text of Python's `TypeError`.
    pub(super) fn bind(self, function: &str, call: &Call) -> Result<Given, String> {
        let plain = || self.0.iter().copied().filter(|parameter| !parameter.starts_with('*'));
        let names: Vec<&'static str> = plain().map(name_of).collect();
        let takes = |mark: &str| {
            self.0.iter().any(|parameter| parameter.starts_with(mark) && !parameter[mark.len()..].starts_with('*'))
        };
        let (rest, keywords) = (takes("*"), takes("**"));
        let mut given = Given::default();
        for (place, value) in call.args().iter().enumerate() {
            match names.get(place) {
                Some(name) => given.named.push((name, value.clone())),
                None if rest => given.args.push(value.clone()),
                None => return Err(self.too_many(function, call.args().len())),
            }
        }
        for (name, value) in call.kwargs() {
            match names.iter().find(|known| *known == name) {
                Some(known) if given.named.iter().any(|(taken, _)| taken == known) => {
                    return Err(format!("{function}() got multiple values for argument '{name}'"));
                }
                Some(known) => given.named.push((known, value.clone())),
                None if keywords => given.kwargs.push((name.clone(), value.clone())),
                None => return Err(format!("{function}() got an unexpected keyword argument '{name}'")),
            }
        }
        let required = plain().filter(|parameter| !parameter.contains('='));
        let missing: Vec<String> = required
            .filter(|name| !given.named.iter().any(|(known, _)| known == name))
            .map(|name| format!("'{name}'"))
            .collect();
        let listed = match missing.as_slice() {
            [] => return Ok(given),
            [one] => one.clone(),
            [one, two] => format!("{one} and {two}"),
            [before @ .., last] => format!("{}, and {last}", before.join(", ")),
        };
        let s = if missing.len() == 1 { "" } else { "s" };
        Err(format!("{function}() missing {} required positional argument{s}: {listed}", missing.len()))
    }

    fn too_many(self, function: &str, given: usize) -> String {
        let most = self.0.iter().filter(|parameter| !parameter.starts_with('*')).count();
        let least = self.0.iter().filter(|parameter| !parameter.starts_with('*') && !parameter.contains('=')).count();
        let takes = if least == most { most.to_string() } else { format!("from {least} to {most}") };
        let s = if least == 1 && most == 1 { "" } else { "s" };
        let were = if given == 1 { "was" } else { "were" };
        format!("{function}() takes {takes} positional argument{s} but {given} {were} given")
    }
}

fn name_of(parameter: &'static str) -> &'static str {
    parameter.split_once('=').map_or(parameter, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::{list, map};

    use super::*;

    fn call(args: &[i64], kwargs: &[(&str, i64)]) -> Call {
        let kwargs = map(kwargs.iter().map(|(name, value)| (*name, *value)));
        Call::from_load(&map([("arg", list(args.iter().copied())), ("kwarg", kwargs)]))
    }

    /// The texts are those of Python 3.11.
    #[test]
    fn errors_are_pythons() {
        let bind = |parameters: &'static [&'static str], args: &[i64], kwargs: &[(&str, i64)]| {
            Signature(parameters).bind("f", &call(args, kwargs)).unwrap_err()
        };
        assert_eq!(bind(&["a"], &[], &[]), "f() missing 1 required positional argument: 'a'");
        assert_eq!(bind(&["a", "b"], &[], &[]), "f() missing 2 required positional arguments: 'a' and 'b'");
        assert_eq!(
            bind(&["a", "b", "c", "d=1"], &[], &[]),
            "f() missing 3 required positional arguments: 'a', 'b', and 'c'"
        );
        assert_eq!(bind(&[], &[1], &[]), "f() takes 0 positional arguments but 1 was given");
        assert_eq!(bind(&["a"], &[1, 2], &[]), "f() takes 1 positional argument but 2 were given");
        assert_eq!(bind(&["a=1"], &[1, 2], &[]), "f() takes from 0 to 1 positional arguments but 2 were given");
        assert_eq!(bind(&["a", "b=1"], &[1, 2, 3], &[]), "f() takes from 1 to 2 positional arguments but 3 were given");
        assert_eq!(bind(&["a"], &[1], &[("b", 2)]), "f() got an unexpected keyword argument 'b'");
        assert_eq!(bind(&["a"], &[1], &[("a", 2)]), "f() got multiple values for argument 'a'");
    }

    #[test]
    fn arguments_find_their_places() {
        let given = Signature(&["a", "b=1", "*args", "**kwargs"]).bind("f", &call(&[1, 2, 3], &[("x", 4)])).unwrap();
        assert_eq!((given.get("a"), given.get("b"), given.get("c")), (Some(&1.into()), Some(&2.into()), None));
        assert_eq!((given.args, given.kwargs), (vec![3.into()], vec![("x".to_owned(), 4.into())]));
        let given = Signature(&["a=1", "b=1"]).bind("f", &call(&[], &[("b", 4)])).unwrap();
        assert_eq!((given.get("a"), given.get("b")), (None, Some(&4.into())));
        let only = Signature(&["**kwargs"]).bind("f", &call(&[1], &[])).unwrap_err();
        assert_eq!(only, "f() takes 0 positional arguments but 1 was given");
    }
}
