//! What was refused on a host, what would have let it be, and what the owner changed.

use std::borrow::Cow;

use brine_protocol::text;
use brine_protocol::value::{Value, ValueExt};

use crate::output::page::{Page, Row};

/// Jobs that are named with a suggestion.
const JOBS: usize = 3;

/// `sandbox.refusals`: a line for each.
pub(super) fn refusals(page: &mut Page, all: &Value) -> Option<()> {
    let all = all.list()?;
    let mut rows = Vec::with_capacity(all.len());
    // The last rows count what the list had no room for, and name no function.
    let listed = all.iter().take_while(|one| one.get_text("function") != Some("")).count();
    for one in all {
        let cells = vec![
            one.get_text("time")?.to_owned(),
            one.get_text("function")?.to_owned(),
            one.get_text("what")?.to_owned(),
            one.get_u64("times")?.to_string(),
        ];
        rows.push(Row { cells, look: false });
    }
    if rows.is_empty() {
        page.text("Nothing was refused.");
        return Some(());
    }
    page.table(&["last, UTC", "function", "wanted", "times"], &rows);
    page.gap();
    let all = if listed == 1 { "One was refused.".to_owned() } else { format!("{listed} were refused.") };
    page.text(&format!(
        "{all} sandbox.suggest says by which lines the owner could grant them, --out=yaml has all of each."
    ));
    Some(())
}

/// `sandbox.suggest`: a paragraph and a line to copy for each.
pub(super) fn suggest(page: &mut Page, all: &Value) -> Option<()> {
    let all = all.list()?;
    if all.is_empty() {
        page.text("Nothing was refused that a line would grant.");
        return Some(());
    }
    for one in all {
        let times = one.get_u64("times")?;
        let texts =
            |key: &str| -> Option<Vec<&str>> { Some(one.get_list(key)?.iter().filter_map(ValueExt::text).collect()) };
        let jobs = texts("jobs")?;
        let more = jobs.len().saturating_sub(JOBS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let jobs = jobs.into_iter().take(JOBS).map(name).collect::<Vec<_>>().join(", ");
        let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        page.verbatim(one.get_text("grant")?);
        page.text(&format!(
            "Wanted {times} by {}: {}; jobs {jobs}{more}.",
            texts("functions")?.into_iter().map(name).collect::<Vec<_>>().join(", "),
            texts("wanted")?.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
        ));
        let risk = one.get_text("risk")?;
        let words = format!("Risk {risk}.");
        if risk.starts_with("high") {
            page.look(&words)
        } else {
            page.text(&words)
        }
        page.gap();
    }
    Some(())
}

/// What a module or a job made up, in quotes: it could be worded like the rest of the sentence.
fn quoted(wanted: &str) -> String {
    text::quoted(wanted, |c| !text::is_active(c))
}

/// The name of a function or a job, in quotes if it is not formed like one.
fn name(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if name.chars().all(plain) { Cow::Borrowed(name) } else { Cow::Owned(quoted(name)) }
}

/// `sandbox.grant` and `sandbox.revoke`: what changed.
pub(super) fn changed(page: &mut Page, change: &Value) -> Option<()> {
    let file = change.get_text("file")?;
    let done = change.get_bool("written")?;
    page.text(&if done { format!("{file} was changed:") } else { format!("In {file} this would change:") });
    for line in change.get_text("diff")?.lines() {
        page.verbatim(line);
    }
    if let Some(risk) = change.get_text("risk") {
        page.gap();
        let words = format!("Risk {risk}.");
        if risk.starts_with("high") { page.look(&words) } else { page.text(&words) }
    }
    if let Some(next) = change.get_text("next") {
        page.gap();
        page.text(&format!("Next: {next}."));
    }
    Some(())
}
