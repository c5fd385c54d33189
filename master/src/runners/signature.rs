//! Binds arguments to a function's parameters by Python's rules. Errors have Python's texts, because Salt shows them.

use brine_protocol::value::{Value, ValueExt as _};

use super::Call;

/// A function in Python's notation, with constants as defaults: `jobs.f(jid, missing=False, *args, **kwargs)`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signature(pub(super) &'static str);

/// The bound arguments of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// The arguments of parameters, then the defaults of all parameters that have one.
    named: Vec<(&'static str, Value)>,
    /// The arguments in `*args`.
    pub(super) args: Vec<Value>,
    /// The arguments in `**kwargs`.
    pub(super) kwargs: Vec<(String, Value)>,
}

impl Given {
    /// Returns an argument or the parameter's default; `None` if that is None. An argument None selects the default.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.named.iter().find(|(known, value)| *known == name && !value.is_nil()).map(|(_, value)| value)
    }
}

impl Signature {
    /// Returns `module.function`.
    pub(super) fn name(self) -> &'static str {
        self.0.split_once('(').map_or(self.0, |(name, _)| name)
    }

    /// Returns the parameters, with their defaults and marks.
    pub(super) fn parameters(self) -> impl Iterator<Item = &'static str> {
        let inner = self.0.split_once('(').map_or("", |(_, rest)| rest.strip_suffix(')').unwrap_or(rest));
        inner.split(", ").filter(|parameter| !parameter.is_empty())
    }

    /// Returns whether this is `module.function(parameters)` and each parameter has a name.
    #[cfg(test)]
    pub(super) fn is_well_formed(self) -> bool {
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        self.0.ends_with(')')
            && self.name().split('.').map(is_name).eq([true, true])
            && self.parameters().all(|parameter| is_name(name_and_default(parameter).0.trim_start_matches('*')))
    }

    /// Returns whether an argument of this name can be given.
    pub(super) fn takes_keyword(self, name: &str) -> bool {
        self.parameters().any(|parameter| match parameter.strip_prefix('*') {
            Some(rest) => rest.starts_with('*'),
            None => name_and_default(parameter).0 == name,
        })
    }

    /// Binds a call's arguments.
    ///
    /// # Errors
    /// The text of Python's `TypeError`.
    pub(super) fn bind(self, call: &Call) -> Result<Given, String> {
        let function = self.name().rsplit('.').next().unwrap_or_default();
        let plain = || self.parameters().filter(|parameter| !parameter.starts_with('*'));
        let names: Vec<&'static str> = plain().map(|parameter| name_and_default(parameter).0).collect();
        let takes = |mark: &str| {
            self.parameters().any(|parameter| parameter.starts_with(mark) && !parameter[mark.len()..].starts_with('*'))
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
            [] => {
                let defaults = plain().map(name_and_default);
                given.named.extend(defaults.filter_map(|(name, default)| Some((name, constant(default?)))));
                return Ok(given);
            }
            [one] => one.clone(),
            [one, two] => format!("{one} and {two}"),
            [before @ .., last] => format!("{}, and {last}", before.join(", ")),
        };
        let s = if missing.len() == 1 { "" } else { "s" };
        Err(format!("{function}() missing {} required positional argument{s}: {listed}", missing.len()))
    }

    /// Takes the arguments of a call out of the low chunk of a reaction, as Salt's `format_call` does: parameters without
    /// a default by position, the others by name (with their defaults), and any other name of the chunk if the function takes such.
    ///
    /// # Errors
    /// One is missing, or there is one that the function does not take: Salt's text.
    pub(super) fn of_chunk(self, chunk: &Value) -> Result<Call, String> {
        let mut left: Vec<(String, Value)> = chunk
            .entries()
            .unwrap_or_default()
            .iter()
            .filter_map(|(name, value)| Some((name.text()?.to_owned(), value.clone())))
            .collect();
        let mut take = |wanted: &str| {
            let at = left.iter().position(|(name, _)| name == wanted)?;
            Some(left.remove(at).1)
        };
        let (mut args, mut kwargs, mut missing) = (Vec::new(), Vec::new(), 0_usize);
        let mut open = false;
        for (name, default) in self.parameters().map(name_and_default) {
            match default {
                _ if name.starts_with("**") => open = true,
                _ if name.starts_with('*') => {}
                None => match take(name) {
                    Some(value) => args.push(value),
                    None => missing += 1,
                },
                Some(default) => kwargs.push((name.to_owned(), take(name).unwrap_or_else(|| constant(default)))),
            }
        }
        let function = self.name().rsplit('.').next().unwrap_or_default();
        if missing > 0 {
            let (most, s) = (args.len() + missing, if args.len() + missing > 1 { "s" } else { "" });
            return Err(format!("{function} takes at least {most} argument{s} ({} given)", args.len()));
        }
        let own = |name: &str| {
            name.starts_with("__") || ["name", "names", "name_order", "order", "fun", "key", "state"].contains(&name)
        };
        left.retain(|(name, _)| !own(name));
        match left.first() {
            Some((name, _)) if !open => Err(format!("'{name}' is an invalid keyword argument for '{}'", self.name())),
            _ => {
                kwargs.extend(left);
                Ok(Call::new(args, kwargs))
            }
        }
    }

    fn too_many(self, function: &str, given: usize) -> String {
        let plain = || self.parameters().filter(|parameter| !parameter.starts_with('*'));
        let most = plain().count();
        let least = plain().filter(|parameter| !parameter.contains('=')).count();
        let takes = if least == most { most.to_string() } else { format!("from {least} to {most}") };
        let s = if least == 1 && most == 1 { "" } else { "s" };
        let were = if given == 1 { "was" } else { "were" };
        format!("{function}() takes {takes} positional argument{s} but {given} {were} given")
    }
}

fn name_and_default(parameter: &'static str) -> (&'static str, Option<&'static str>) {
    parameter.split_once('=').map_or((parameter, None), |(name, default)| (name, Some(default)))
}

/// Reads a constant of Python: a text, a number, True, False; `()` and all others count as None.
fn constant(literal: &str) -> Value {
    match literal {
        "True" => true.into(),
        "False" => false.into(),
        _ => match literal.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
            Some(text) => text.into(),
            None => literal.parse::<i64>().map_or(Value::Nil, Value::from),
        },
    }
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
        let bind = |signature: &'static str, args: &[i64], kwargs: &[(&str, i64)]| {
            Signature(signature).bind(&call(args, kwargs)).unwrap_err()
        };
        assert_eq!(bind("m.f(a)", &[], &[]), "f() missing 1 required positional argument: 'a'");
        assert_eq!(bind("m.f(a, b)", &[], &[]), "f() missing 2 required positional arguments: 'a' and 'b'");
        assert_eq!(
            bind("m.f(a, b, c, d=1)", &[], &[]),
            "f() missing 3 required positional arguments: 'a', 'b', and 'c'"
        );
        assert_eq!(bind("m.f()", &[1], &[]), "f() takes 0 positional arguments but 1 was given");
        assert_eq!(bind("m.f(a)", &[1, 2], &[]), "f() takes 1 positional argument but 2 were given");
        assert_eq!(bind("m.f(a=1)", &[1, 2], &[]), "f() takes from 0 to 1 positional arguments but 2 were given");
        assert_eq!(bind("m.f(a, b=1)", &[1, 2, 3], &[]), "f() takes from 1 to 2 positional arguments but 3 were given");
        assert_eq!(bind("m.f(a)", &[1], &[("b", 2)]), "f() got an unexpected keyword argument 'b'");
        assert_eq!(bind("m.f(a)", &[1], &[("a", 2)]), "f() got multiple values for argument 'a'");
    }

    #[test]
    fn arguments_find_their_places() {
        let takes = |signature, name| Signature(signature).takes_keyword(name);
        assert!(takes("m.f(a, b=1)", "b") && takes("m.f(a)", "a") && takes("m.f(**kwargs)", "c"));
        assert!(!takes("m.f(a, *args)", "args") && !takes("m.f(a, *args)", "c") && !takes("m.f()", ""));
        let given = Signature("m.f(a, b=1, *args, **kwargs)").bind(&call(&[1, 2, 3], &[("x", 4)])).unwrap();
        assert_eq!((given.get("a"), given.get("b"), given.get("c")), (Some(&1.into()), Some(&2.into()), None));
        assert_eq!((given.args, given.kwargs), (vec![3.into()], vec![("x".to_owned(), 4.into())]));
        let given = Signature("m.f(a=1, b=1)").bind(&call(&[], &[("b", 4)])).unwrap();
        assert_eq!((given.get("a"), given.get("b")), (Some(&1.into()), Some(&4.into())));
        let none = Call::from_load(&map([("arg", Value::Array(vec![Value::Nil; 6]))]));
        let given = Signature("m.f(a, b=None, c='x y', d=True, e=-1, f=())").bind(&none).unwrap();
        let found = ["a", "b", "c", "d", "e", "f"].map(|name| given.get(name).cloned());
        assert_eq!(found, [None, None, Some("x y".into()), Some(true.into()), Some((-1).into()), None]);
        let only = Signature("m.f(**kwargs)").bind(&call(&[1], &[])).unwrap_err();
        assert_eq!(only, "f() takes 0 positional arguments but 1 was given");
    }
}
