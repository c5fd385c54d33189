//! Keyword arguments by name, as states and functions with `kwargs` get them.

use crate::{Data, Result, Value};

/// Keywords that are not None.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Keywords {
    entries: Vec<(String, Value)>,
}

impl Keywords {
    /// Reads the dict `kwargs`, and puts parameters that have a name of their own before it.
    ///
    /// # Errors
    /// When a value cannot be decoded.
    pub fn new<const N: usize>(kwargs: &Data, named: [(&str, Option<Data>); N]) -> Result<Self> {
        let mut entries = Vec::new();
        for (name, value) in named {
            if let Some(value) = value.map(|value| value.value()).transpose()? {
                entries.push((name.to_owned(), value));
            }
        }
        if let Value::Dict(more) = kwargs.value()? {
            entries.extend(more.into_iter().map(|(name, value)| (name.to_text(), value)));
        }
        entries.retain(|(_, value)| *value != Value::None);
        Ok(Self { entries })
    }

    /// The value; none if it is missing or None.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Removes a value and returns it.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.entries.iter().position(|(known, _)| known == name)?;
        Some(self.entries.remove(at).1)
    }

    /// The value as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(Value::to_text)
    }

    /// Whether the value is there and Python's truth.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(Value::truthy)
    }

    /// All keywords in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_have_names() {
        let kwargs = Value::dict([("b", Value::Int(0)), ("c", Value::None), ("a", "other".into())]).into();
        let mut keywords = Keywords::new(&kwargs, [("a", Some("x".into())), ("d", None)]).unwrap();
        assert_eq!(keywords.text("a"), Some("x".into()));
        assert!(keywords.get("b").is_some() && !keywords.is_set("b"));
        assert!(keywords.get("c").is_none() && keywords.get("d").is_none());
        assert_eq!(keywords.take("b"), Some(Value::Int(0)));
        assert_eq!(keywords.get("b"), None);
        assert!(Keywords::new(&Data { msgpack: vec![0xc1] }, []).is_err());
    }
}
