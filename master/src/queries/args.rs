//! The arguments of a query: names that it takes, with short texts, or what the query reads by itself.

use brine_protocol::target::Glob;
use brine_protocol::value::{Value, ValueExt as _, empty_map};

use super::Refusal;

/// Longest text in characters.
const TEXT_MAX: usize = 1_024;

/// The arguments.
pub(super) struct Args(Value);

impl Args {
    /// Takes a map, or nothing.
    ///
    /// # Errors
    /// If an argument is not one of `takes`, or is a text that is too long.
    pub(super) fn new(args: Value, takes: &[&str]) -> Result<Self, Refusal> {
        let args = if args.is_nil() { empty_map() } else { args };
        let entries = args.entries().ok_or_else(|| Refusal::Wrong("args must be a map".to_owned()))?;
        for (key, value) in entries {
            let name = key.text().unwrap_or_default();
            if !takes.contains(&name) {
                let shown = brine_protocol::text::short(name, 64);
                return Err(Refusal::Wrong(format!(
                    "there is no parameter {shown:?}; there are: {}",
                    takes.join(", ")
                )));
            }
            if value.text().is_some_and(|text| text.chars().count() > TEXT_MAX) {
                return Err(wrong(name, "a shorter text"));
            }
        }
        Ok(Self(args))
    }

    /// Returns a value.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_nil())
    }

    /// Returns a text that is not empty.
    ///
    /// # Errors
    /// If it is something else.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.text().ok_or_else(|| wrong(name, "a text"))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// Returns one of these words; the first if there is none.
    ///
    /// # Errors
    /// If it is another one.
    pub(super) fn word(&self, name: &str, words: &'static [&'static str]) -> Result<&'static str, Refusal> {
        let text = self.text(name)?.or(words.first().copied()).unwrap_or_default();
        let known = words.iter().find(|word| **word == text).copied();
        known.ok_or_else(|| wrong(name, &format!("one of {}", words.join(", "))))
    }

    /// Returns a whole number, as text or as a number.
    ///
    /// # Errors
    /// If it is none, or out of bounds.
    pub(super) fn count(&self, name: &str, least: usize, most: usize) -> Result<Option<usize>, Refusal> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number =
            value.as_u64().or_else(|| value.text()?.parse().ok()).and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| (least..=most).contains(number));
        number.map(Some).ok_or_else(|| wrong(name, &format!("a number from {least} to {most}")))
    }

    /// Returns what to look for.
    ///
    /// # Errors
    /// If it is no text.
    pub(super) fn words(&self, name: &str) -> Result<Option<Words>, Refusal> {
        Ok(self.text(name)?.map(Words::new))
    }
}

/// The refusal of a value.
pub(super) fn wrong(name: &str, must_be: &str) -> Refusal {
    Refusal::Wrong(format!("{name} must be {must_be}"))
}

/// A text to look for: a glob for the whole of a name, or a part of any text.
pub(super) enum Words {
    Glob(Glob),
    Part(String),
}

impl Words {
    fn new(text: &str) -> Self {
        match text.contains(['*', '?', '[']) {
            true => Self::Glob(Glob::new(text)),
            false => Self::Part(text.to_lowercase()),
        }
    }

    /// Whether the name fits, or, for a part, one of the other texts.
    pub(super) fn fit<'a>(&self, name: &str, others: impl IntoIterator<Item = &'a str>) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(name),
            Self::Part(part) => has(name, part) || others.into_iter().any(|text| has(text, part)),
        }
    }
}

fn has(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(part)
}
