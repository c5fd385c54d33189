//! The states, in Salt's sentences: what each comes to is decided on the grains that there are, and written afterwards.
//!
//! - [`value`]: grains of any value · [`list`]: items of grains that are lists

mod list;
mod value;

use brine_guest::Value;
use brine_guest::lookup::traverse;
use brine_guest::states::{is_dry_run, no_changes};

use crate::change::Changed;
use crate::exports::states::Guest;
use crate::{DELIMITER, Data, Module, all, write};

/// What a state comes to.
#[derive(Debug, PartialEq)]
struct Came {
    result: Option<bool>,
    comment: String,
    changes: Value,
    /// What is to be written before it is true, and whether a grain that is None is removed.
    write: Option<(Changed, bool)>,
}

impl Came {
    fn new(result: Option<bool>, comment: impl Into<String>, changes: Value) -> Self {
        Self { result, comment: comment.into(), changes, write: None }
    }

    fn good(comment: impl Into<String>) -> Self {
        Self::new(Some(true), comment, no_changes())
    }

    fn bad(comment: impl Into<String>) -> Self {
        Self::new(Some(false), comment, no_changes())
    }

    fn would(comment: impl Into<String>, changes: Value) -> Self {
        Self::new(None, comment, changes)
    }

    fn writing(changed: Changed, comment: impl Into<String>, changes: Value) -> Self {
        Self { write: Some((changed, false)), ..Self::new(Some(true), comment, changes) }
    }

    /// Writes; what cannot be written is why the state failed.
    fn written(mut self) -> Self {
        match self.write.take().map(|(changed, destructive)| write(&[changed], destructive, None)) {
            None | Some(Ok(())) => self,
            Some(Err(why)) => Self::bad(why),
        }
    }

    /// The result, with the name that was looked for: as in Salt.
    fn with(self, name: &str) -> Data {
        let came = [("result", self.result.into()), ("changes", self.changes), ("comment", self.comment.into())];
        Value::dict([("name", name.into())].into_iter().chain(came)).into()
    }
}

/// The name with `:` for the delimiter. Salt takes the delimiter for a regular expression, by which `|` stands between any
/// two characters.
fn with_colons(name: &str, delimiter: Option<String>) -> String {
    delimiter.map_or_else(|| name.to_owned(), |delimiter| name.replace(&delimiter, DELIMITER))
}

fn contains(items: &[Value], value: &Value) -> bool {
    items.iter().any(|item| item.same(value))
}

impl Guest for Module {
    fn exists(name: String, delimiter: Option<String>) -> Result<Data, String> {
        let name = with_colons(&name, delimiter);
        let came = match traverse(&all()?, &name, DELIMITER) {
            Some(_) => Came::good("Grain exists"),
            None => Came::bad("Grain does not exist"),
        };
        Ok(came.written().with(&name))
    }

    fn present(name: String, value: Data, delimiter: Option<String>, force: Option<bool>) -> Result<Data, String> {
        let name = with_colons(&name, delimiter);
        let came = value::present(&all()?, &name, &value.value()?, force == Some(true), is_dry_run());
        Ok(came.written().with(&name))
    }

    fn absent(
        name: String,
        destructive: Option<bool>,
        delimiter: Option<String>,
        force: Option<bool>,
    ) -> Result<Data, String> {
        let name = with_colons(&name, delimiter);
        let came = value::absent(&all()?, &name, destructive == Some(true), force == Some(true), is_dry_run());
        Ok(came.written().with(&name))
    }

    fn append(name: String, value: Data, convert: Option<bool>, delimiter: Option<String>) -> Result<Data, String> {
        let name = with_colons(&name, delimiter);
        let came = list::append(&all()?, &name, &value.value()?, convert == Some(true), is_dry_run());
        Ok(came.written().with(&name))
    }

    fn list_present(
        name: String,
        value: Data,
        delimiter: Option<String>,
        pending: Option<Data>,
    ) -> Result<Data, String> {
        let name = with_colons(&name, delimiter);
        let value = value.value()?;
        let pending = match pending.map(|pending| pending.value()).transpose()? {
            Some(Value::List(pending)) => pending,
            _ => Vec::new(),
        };
        let came = list::present(&all()?, &name, &value, &pending, is_dry_run());
        let writes = came.write.is_some();
        let came = came.written();
        // A grain of the minion's configuration counts more than a static one.
        if writes && came.result == Some(true) && !list::has(&all()?, &name, &value) {
            return Ok(Came::bad(list::failed(&name, &value)).with(&name));
        }
        Ok(came.with(&name))
    }

    fn list_absent(name: String, value: Data, delimiter: Option<String>) -> Result<Data, String> {
        let name = with_colons(&name, delimiter);
        let came = list::absent(&all()?, &name, value.value()?, is_dry_run());
        Ok(came.written().with(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn grains() -> Value {
        let app = Value::dict([("port", 80_i64.into()), ("empty", Value::List(Vec::new()))]);
        Value::dict([("role", "web".into()), ("roles", vec!["a", "b"].into()), ("app", app), ("none", Value::None)])
    }

    /// Result, comment and changes, and what is written.
    pub(super) fn said(came: Came) -> String {
        let result = Value::from(came.result).to_text();
        let written = match came.write {
            None => String::new(),
            Some(((name, Value::None), true)) => format!(" > {name} gone"),
            Some(((name, value), _)) => format!(" > {name}={}", value.to_text()),
        };
        format!("{result} {} {}{written}", came.comment, came.changes.to_text())
    }

    #[test]
    fn a_delimiter_is_taken_as_it_is() {
        let with = |delimiter: &str| with_colons("a|b,c:d", Some(delimiter.to_owned()));
        assert_eq!(
            (with("|"), with(","), with_colons("a:b", None)),
            ("a:b,c:d".into(), "a|b:c:d".into(), "a:b".into())
        );
    }
}
