//! The arguments of a function or a state by their names, and the macro that collects them.

use brine_guest::{Data, Result, Value};

/// Arguments by name; those that were not said are None.
#[derive(Debug, Clone, Default)]
pub struct Given {
    entries: Vec<(&'static str, Value)>,
}

impl Given {
    /// Reads arguments.
    ///
    /// # Errors
    /// When one is no value.
    pub fn new(arguments: impl IntoIterator<Item = (&'static str, Option<Data>)>) -> Result<Self> {
        let read = |(name, argument): (_, Option<Data>)| {
            Ok((name, argument.map_or(Ok(Value::None), |argument| argument.value())?))
        };
        Ok(Self { entries: arguments.into_iter().map(read).collect::<Result<_>>()? })
    }

    /// The value; None if it was not said.
    pub fn value(&self, name: &str) -> &Value {
        self.entries.iter().find(|(known, _)| *known == name).map_or(&Value::None, |(_, value)| value)
    }

    /// As text; none if it is None.
    pub fn text(&self, name: &str) -> Option<String> {
        Some(self.value(name)).filter(|value| **value != Value::None).map(Value::to_text)
    }

    /// As text; none if it is empty or None.
    pub fn full(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// A required argument as text.
    pub fn name(&self, name: &str) -> String {
        self.value(name).to_text()
    }

    /// Whether it is Python's truth.
    pub fn is_set(&self, name: &str) -> bool {
        self.value(name).truthy()
    }

    /// Whether it is Python's truth, or `default` if it is None.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        match self.value(name) {
            Value::None => default,
            value => value.truthy(),
        }
    }

    /// Names: a list, or a text with commas; none if it is None.
    pub fn names(&self, name: &str) -> Option<Vec<String>> {
        match self.value(name) {
            Value::None => None,
            Value::List(items) => Some(items.iter().map(Value::to_text).collect()),
            value => Some(value.to_text().split(',').map(str::to_owned).collect()),
        }
    }
}

/// Writes functions of a world: `fn NAME(REQUIRED…; OPTIONAL…) -> RESULT { |given| BODY }`, in Salt's order of arguments.
#[macro_export]
macro_rules! functions {
    ($(fn $name:ident($($required:ident)*; $($optional:ident)*) -> $result:ty { |$given:ident| $body:expr })*) => {
        $(fn $name($($required: Data,)* $($optional: Option<Data>),*) -> Result<$result, String> {
            let $given = &$crate::given::Given::new([
                $((stringify!($required), Some($required)),)* $((stringify!($optional), $optional),)*
            ])?;
            $body
        })*
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_names() {
        let given = Given::new([
            ("a", Some("x,y".into())),
            ("b", Some(Value::None.into())),
            ("c", Some(Value::Int(0).into())),
            ("d", Some(Value::List(vec!["x".into(), Value::Int(1)]).into())),
            ("e", Some("".into())),
            ("f", None),
        ])
        .unwrap();
        assert_eq!(given.names("a"), Some(vec!["x".into(), "y".into()]));
        assert_eq!(given.names("d"), Some(vec!["x".into(), "1".into()]));
        assert_eq!((given.text("b"), given.text("f"), given.text("c")), (None, None, Some("0".into())));
        assert_eq!((given.text("e"), given.full("e")), (Some(String::new()), None));
        assert!(given.flag("b", true) && !given.flag("c", true) && !given.is_set("f"));
        assert!(Given::new([("a", Some(Data { msgpack: vec![0xc1] }))]).is_err());
    }
}
