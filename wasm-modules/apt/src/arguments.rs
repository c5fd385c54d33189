//! Arguments with Python's looseness: truth values, lists of packages.

use brine_guest::{Data, Result, Value};

/// What is true to Salt: a number above 0, the word `true`, another value that is not empty.
pub fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::Int(value) => *value > 0,
        Value::Float(value) => *value > 0.0,
        Value::Text(text) => match text.trim().parse::<f64>() {
            Ok(number) => number > 0.0,
            Err(_) => text.eq_ignore_ascii_case("true"),
        },
        other => other.truthy(),
    }
}

/// Keywords of a function or state, by name.
#[derive(Debug, Clone, Default)]
pub struct Keywords(pub Value);

impl Keywords {
    /// # Errors
    /// When the data is no Salt value.
    pub fn read(data: &Data) -> Result<Self> {
        Ok(Self(data.value()?))
    }

    /// The value of a keyword; none if it was not given. `None` counts as given.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// As text; none if it was not given or is None.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| **value != Value::None).map(Value::to_text)
    }

    /// Python's truth value of the keyword.
    pub fn truthy(&self, name: &str) -> bool {
        self.get(name).is_some_and(Value::truthy)
    }

    /// Salt's truth value of the keyword.
    pub fn is_true(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, is_true)
    }

    /// Sets a keyword.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.take(name);
        if let Value::Dict(entries) = &mut self.0 {
            entries.push((name.into(), value.into()));
        }
    }

    /// Removes a keyword.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let Value::Dict(entries) = &mut self.0 else { return None };
        let at = entries.iter().position(|(key, _)| key.text() == Some(name))?;
        Some(entries.remove(at).1)
    }
}

/// An argument; None if it was not given.
///
/// # Errors
/// When the data is no Salt value.
pub fn value(data: Option<Data>) -> Result<Value> {
    data.map_or(Ok(Value::None), |data| data.value())
}

/// An argument as text; none if it was not given or is None.
///
/// # Errors
/// When the data is no Salt value.
pub fn text(data: Option<Data>) -> Result<Option<String>> {
    Ok(match value(data)? {
        Value::None => None,
        value => Some(value.to_text()),
    })
}

/// Positional arguments as texts.
///
/// # Errors
/// When one is no Salt value.
pub fn texts(args: &[Data]) -> Result<Vec<String>> {
    args.iter().map(|data| data.value().map(|value| value.to_text())).collect()
}

/// Packages with the versions that are asked for, in their order.
pub type Packages = Vec<(String, Option<String>)>;

/// Reads `pkgs`: a list of names and of dicts with one name and its version. Empty if it is anything else.
///
/// # Errors
/// When a package is there twice.
pub fn packages(pkgs: &Value, normalize: impl Fn(&str) -> String) -> Result<Packages> {
    let Value::List(items) = pkgs else { return Ok(Packages::new()) };
    let mut result = Packages::new();
    for item in items {
        let (name, version) = match item {
            Value::Dict(entries) => match &entries[..] {
                [(name, Value::None)] => (name.to_text(), None),
                [(name, version)] => (name.to_text(), Some(version.to_text())),
                _ => return Ok(Packages::new()),
            },
            Value::Text(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) | Value::Bool(_) => (item.to_text(), None),
            _ => return Ok(Packages::new()),
        };
        let name = normalize(&name);
        if result.iter().any(|(known, _)| *known == name) {
            return Err(format!(
                "You are passing a list of packages that contains duplicated packages names: {}. This cannot be processed. In case you \
                 are targeting different versions of the same package, please target them individually",
                pkgs.to_text()
            ));
        }
        result.push((name, version));
    }
    Ok(result)
}

/// Reads `sources`: a list of dicts, each with a name and where the package is. Empty if it is anything else.
pub fn sources(sources: &Value, normalize: impl Fn(&str) -> String) -> Vec<(String, String)> {
    let Value::List(items) = sources else { return Vec::new() };
    let mut result: Vec<(String, String)> = Vec::new();
    for item in items {
        let Value::Dict(entries) = item else { return Vec::new() };
        let [(name, at)] = &entries[..] else { return Vec::new() };
        let name = normalize(&name.to_text());
        result.retain(|(known, _)| *known != name);
        result.push((name, at.to_text()));
    }
    result
}

/// The first key of a dict, or the value as text.
pub fn first_key(item: &Value) -> String {
    match item {
        Value::Dict(entries) => entries.first().map(|(key, _)| key.to_text()).unwrap_or_default(),
        other => other.to_text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(name: &str) -> String {
        name.into()
    }

    #[test]
    fn truth_is_salts() {
        for (value, expected) in [
            (Value::from("true"), true),
            ("True".into(), true),
            ("yes".into(), false),
            ("1".into(), true),
            ("0".into(), false),
            (Value::Int(-1), false),
            (Value::None, false),
            (vec!["x"].into(), true),
        ] {
            assert_eq!(is_true(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn packages_are_names_with_or_without_a_version() {
        let two = Value::List(vec!["a".into(), Value::dict([("b", Value::Float(1.5))])]);
        assert_eq!(packages(&two, same), Ok(vec![("a".into(), None), ("b".into(), Some("1.5".into()))]));
        let twice: Value = vec!["a", "a"].into();
        assert!(
            packages(&twice, same).unwrap_err().starts_with("You are passing a list of packages that contains dup")
        );
        for bad in [Value::from("a"), Value::List(vec![Value::None]), Value::List(vec![Value::dict([])])] {
            assert_eq!(packages(&bad, same), Ok(Vec::new()), "{bad:?}");
        }
    }

    #[test]
    fn sources_are_dicts_of_one() {
        let one = Value::List(vec![Value::dict([("a", "salt://a.deb".into())])]);
        assert_eq!(sources(&one, same), [("a".to_owned(), "salt://a.deb".to_owned())]);
        assert!(sources(&vec!["a"].into(), same).is_empty());
    }
}
