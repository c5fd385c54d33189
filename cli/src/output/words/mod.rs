//! Answers of functions that people read, as tables and short paragraphs. The function that was called chooses, not the
//! return: a return that named such an outputter would be an error to a client that has none of this name.
//!
//! An answer of another shape is shown as nested.

mod refusals;
mod running;
mod sandbox;
#[cfg(test)]
mod tests;

use brine_protocol::pyrepr;
use brine_protocol::value::Value;

use super::page::Page;
use super::{Style, nested};

/// Writes the answer of one minion. None if the answer has another shape.
type Write = fn(&mut Page, &Value) -> Option<()>;

/// The functions by name.
const WORDS: [(&str, Write); 9] = [
    ("sandbox.check", sandbox::check),
    ("sandbox.diff", sandbox::diff),
    ("sandbox.grant", refusals::changed),
    ("sandbox.list", sandbox::list),
    ("sandbox.refusals", refusals::refusals),
    ("sandbox.revoke", refusals::changed),
    ("sandbox.running", running::running),
    ("sandbox.show", sandbox::show),
    ("sandbox.suggest", refusals::suggest),
];

/// The outputter of a function's answers: the name of [`super::Outputter::Words`]. None: it has none of its own.
pub(super) fn of(fun: &str) -> Option<usize> {
    WORDS.iter().position(|(name, _)| *name == fun)
}

/// Renders the answers of minions, by their ids.
pub(super) fn render(words: usize, value: &Value, style: &Style) -> String {
    let (Some((_, write)), Value::Map(minions)) = (WORDS.get(words), value) else {
        return nested::render(value, style);
    };
    let mut all = Vec::with_capacity(minions.len());
    for (id, answer) in minions {
        let mut page = Page::new(style);
        page.text(&format!("{}:", pyrepr::str(id)));
        page.indent(INDENT);
        all.push(match write(&mut page, answer) {
            Some(()) => page.finish(),
            None => nested::render(&Value::Map(vec![(id.clone(), answer.clone())]), style),
        });
    }
    all.join("\n")
}

/// Columns before what a minion answered.
const INDENT: usize = 4;
