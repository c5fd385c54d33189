//! The functions to call for the mine, in Salt's forms of configuration.

use brine_guest::Value;

type Entries = Vec<(Value, Value)>;

/// One entry of the mine's configuration.
#[derive(Debug, PartialEq)]
pub(crate) struct Definition {
    /// The name in the mine.
    pub(crate) name: String,
    pub(crate) function: String,
    pub(crate) args: Vec<Value>,
    pub(crate) kwargs: Entries,
    pub(crate) allowed: Option<Allowed>,
}

/// The minions that may read an entry. The master enforces this (`allow_tgt`, `allow_tgt_type`).
#[derive(Debug, PartialEq)]
pub(crate) struct Allowed {
    tgt: Value,
    tgt_type: Option<Value>,
}

impl Allowed {
    /// Wraps a value with these permissions in the master's format.
    pub(crate) fn wrap(self, value: Value) -> Value {
        let mut entries = vec![("__data__", value), ("__saltmine_acl__", Value::Int(1)), ("allow_tgt", self.tgt)];
        entries.extend(self.tgt_type.map(|tgt_type| ("allow_tgt_type", tgt_type)));
        Value::dict(entries)
    }
}

impl Definition {
    /// What `mine.valid` shows: for an alias the function with its arguments, else the arguments without who may read
    /// the value.
    pub(crate) fn shown(self, written: Value) -> Value {
        let is_alias = self.function != self.name;
        match written {
            _ if is_alias => {
                let kwargs = self.kwargs.into_iter().map(|entry| Value::Dict(vec![entry]));
                let args: Vec<Value> = self.args.into_iter().chain(kwargs).collect();
                Value::dict([(self.function.as_str(), args.into())])
            }
            Value::Dict(_) => Value::Dict(self.kwargs),
            other => other,
        }
    }

    /// Reads a list of arguments that may contain dicts of keyword arguments, a dict of keyword arguments, or nothing.
    pub(crate) fn read(name: String, definition: Value) -> Result<Self, String> {
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        match definition {
            Value::Dict(entries) => kwargs = entries,
            Value::List(items) => {
                for item in items {
                    match item {
                        Value::Dict(entries) => kwargs.extend(entries),
                        other => args.push(other),
                    }
                }
            }
            Value::None => {}
            other => return Err(format!("a function's arguments are a list or a dict, not {}", other.kind())),
        }
        let mut take = |key: &str| {
            let at = kwargs.iter().position(|(name, _)| name.text() == Some(key))?;
            Some(kwargs.remove(at).1).filter(Value::truthy)
        };
        let function = match take("mine_function") {
            None => name.clone(),
            Some(Value::Text(function)) => function,
            Some(other) => return Err(format!("mine_function is to be text, not {}", other.kind())),
        };
        let (tgt, tgt_type) = (take("allow_tgt"), take("allow_tgt_type"));
        Ok(Self { name, function, args, kwargs, allowed: tgt.map(|tgt| Allowed { tgt, tgt_type }) })
    }
}

/// The names in a text with commas, each once, and whether the answer is to be by name.
pub(crate) fn names(text: &str) -> (Vec<String>, bool) {
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',') {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    let by_name = names.len() > 1;
    (names, by_name)
}

/// Reads a dict of names to definitions, or a list of names.
pub(crate) fn all(functions: Value) -> Vec<(String, Value)> {
    let named = |(name, definition): (Value, Value)| Some((name.text()?.to_owned(), definition));
    match functions {
        Value::Dict(entries) => entries.into_iter().filter_map(named).collect(),
        Value::List(names) => names.into_iter().map(|name| (name, Value::None)).filter_map(named).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(definition: Value) -> (String, Vec<Value>, usize, bool) {
        let read = Definition::read("alias".into(), definition).unwrap();
        (read.function, read.args, read.kwargs.len(), read.allowed.is_some())
    }

    #[test]
    fn the_forms_that_people_write() {
        let dict =
            |entries: &[(&'static str, &str)]| Value::dict(entries.iter().map(|(key, value)| (*key, (*value).into())));
        assert_eq!(read(Value::None), ("alias".into(), vec![], 0, false));
        assert_eq!(read(Value::List(vec!["a".into()])), ("alias".into(), vec!["a".into()], 0, false));
        let mixed = vec![dict(&[("mine_function", "grains.get")]), "role".into(), dict(&[("default", "x")])];
        assert_eq!(read(Value::List(mixed)), ("grains.get".into(), vec!["role".into()], 1, false));
        let wrapped = dict(&[("allow_tgt", "web*"), ("allow_tgt_type", "glob"), ("key", "role")]);
        assert_eq!(read(wrapped), ("alias".into(), vec![], 1, true));
        assert_eq!(read(dict(&[("allow_tgt", ""), ("allow_tgt_type", "glob")])), ("alias".into(), vec![], 0, false));
        assert!(Definition::read("alias".into(), "text".into()).is_err());
        assert!(Definition::read("alias".into(), Value::dict([("mine_function", 1_i64.into())])).is_err());
        assert_eq!(all(dict(&[("a", "b")])).len(), 1);
        assert_eq!(all(vec!["a", "b"].into()), [("a".into(), Value::None), ("b".into(), Value::None)]);
    }

    /// As `mine.valid` of 3008.3 answers.
    #[test]
    fn what_is_valid_is_shown_as_salt_shows_it() {
        let shown = |definition: Value| {
            Definition::read("alias".into(), definition.clone()).unwrap().shown(definition).to_text()
        };
        assert_eq!(shown(Value::List(vec!["a".into()])), "['a']");
        assert_eq!(shown(Value::Dict(Vec::new())), "{}");
        let alias = vec![
            Value::dict([("mine_function", "grains.get".into())]),
            "role".into(),
            Value::dict([("default", "x".into())]),
        ];
        assert_eq!(shown(Value::List(alias)), "{'grains.get': ['role', {'default': 'x'}]}");
        let allowed = Value::dict([("allow_tgt", "web*".into()), ("key", "role".into())]);
        assert_eq!(shown(allowed), "{'key': 'role'}");
        assert_eq!(names("a,b,a"), (vec!["a".into(), "b".into()], true));
        assert_eq!(names("a"), (vec!["a".into()], false));
    }

    #[test]
    fn who_may_see_it_goes_with_it() {
        let allowed = Allowed { tgt: "web*".into(), tgt_type: None };
        let expected =
            Value::dict([("__data__", 7_i64.into()), ("__saltmine_acl__", 1_i64.into()), ("allow_tgt", "web*".into())]);
        assert_eq!(allowed.wrap(7_i64.into()), expected);
    }
}
