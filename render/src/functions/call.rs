//! The arguments of a call, bound to a signature as Python does.

use std::fmt::Write as _;
use std::rc::Rc;

use super::{Answer, Surroundings};
use crate::data::CallError;
use crate::value::{Dict, Key, Value};

/// A function.
pub(super) struct Row {
    /// Its name in its module.
    pub(super) name: &'static str,
    /// The name that Python's messages say, where it differs.
    python: Option<&'static str>,
    /// Its parameters: a `?` marks one with a default, `*` the rest of the positional ones, after which parameters have to
    /// be named, and `**` all other keywords.
    params: &'static str,
    pub(super) run: fn(&Call<'_>) -> Answer,
    /// Parameters that only a host can serve.
    pub(super) host_if: &'static [&'static str],
}

impl Row {
    pub(super) const fn new(name: &'static str, params: &'static str, run: fn(&Call<'_>) -> Answer) -> Self {
        Self { name, python: None, params, run, host_if: &[] }
    }

    /// With the name of the function in Python.
    pub(super) const fn python(self, name: &'static str) -> Self {
        Self { python: Some(name), ..self }
    }

    /// With parameters that only a host can serve.
    pub(super) const fn host_if(self, names: &'static [&'static str]) -> Self {
        Self { host_if: names, ..self }
    }
}

/// A call with its arguments.
pub(super) struct Call<'a> {
    pub(super) surroundings: &'a Surroundings,
    given: Vec<(&'static str, Value)>,
    /// More positional arguments.
    pub(super) star: Vec<Value>,
    /// More keyword arguments.
    pub(super) stars: Vec<(Rc<str>, Value)>,
}

impl<'a> Call<'a> {
    pub(super) fn bind(
        row: &Row,
        surroundings: &'a Surroundings,
        positional: Vec<Value>,
        keyword: Vec<(Rc<str>, Value)>,
    ) -> Result<Self, CallError> {
        let function = row.python.unwrap_or(row.name);
        let error = |message: String| CallError::python(format!("{function}() {message}"));
        let mut call = Self { surroundings, given: Vec::new(), star: Vec::new(), stars: Vec::new() };
        let count = positional.len();
        let mut values = positional.into_iter();
        let (mut positions, mut required, mut star, mut stars) = (0, Vec::new(), false, false);
        let mut names = Vec::new();
        for word in row.params.split_whitespace() {
            match word {
                "*" => star = true,
                "**" => stars = true,
                _ => {
                    let name = word.trim_end_matches('?');
                    names.push(name);
                    if star {
                        continue;
                    }
                    positions += 1;
                    if word == name {
                        required.push(name);
                    }
                    if let Some(value) = values.next() {
                        call.given.push((name, value));
                    }
                }
            }
        }
        let rest: Vec<Value> = values.collect();
        let too_many = !star && !rest.is_empty();
        call.star = rest;
        for (name, value) in keyword {
            match names.iter().find(|known| **known == &*name) {
                Some(known) if call.given(known).is_some() || call.has(known) => {
                    return Err(error(format!("got multiple values for argument '{name}'")));
                }
                Some(known) => call.given.push((known, value)),
                None if stars => call.stars.push((name, value)),
                None => return Err(error(format!("got an unexpected keyword argument '{name}'"))),
            }
        }
        if too_many {
            let takes = match (required.len(), positions) {
                (least, most) if least == most => format!("takes {most} positional argument{}", plural(most)),
                (least, most) => format!("takes from {least} to {most} positional arguments"),
            };
            return Err(error(format!("{takes} but {count} {} given", if count == 1 { "was" } else { "were" })));
        }
        let missing: Vec<&str> = required.into_iter().filter(|name| !call.has(name)).collect();
        if !missing.is_empty() {
            let mut list = String::new();
            for (at, name) in missing.iter().enumerate() {
                list.push_str(match at {
                    0 => "",
                    at if at + 1 == missing.len() && at == 1 => " and ",
                    at if at + 1 == missing.len() => ", and ",
                    _ => ", ",
                });
                let _ = write!(list, "'{name}'");
            }
            let count = missing.len();
            return Err(error(format!("missing {count} required positional argument{}: {list}", plural(count))));
        }
        Ok(call)
    }

    fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(known, _)| *known == name)
    }

    /// An argument that is given and not None.
    pub(super) fn given(&self, name: &str) -> Option<&Value> {
        self.get(name).filter(|value| !matches!(value, Value::None))
    }

    /// An argument that is given.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.given.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// An argument without which there is no call.
    pub(super) fn need(&self, name: &str) -> Value {
        self.get(name).cloned().unwrap_or_default()
    }

    /// The truth of an argument.
    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, Value::truthy)
    }

    /// The text of an argument.
    pub(super) fn text(&self, name: &str, default: &str) -> Rc<str> {
        match self.get(name) {
            Some(Value::Str(text)) => text.clone(),
            _ => default.into(),
        }
    }

    /// The keywords that the signature does not name, as dict.
    pub(super) fn keywords(&self) -> Value {
        let entries = self.stars.iter().map(|(name, value)| (Key::from(&**name), value.clone()));
        entries.collect::<Dict>().into()
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
