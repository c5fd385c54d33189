//! What states mounted, and with which options: so that an option that a state no longer has is seen to be gone. The kernel
//! shows options that nobody asked for, too.

use brine_guest::changes::{self, Put};

/// A line for each place: the place, a tab, its options.
const FILE: &str = "/var/cache/brine-mounts";

/// The options that a state last mounted a place with; none if no state did.
pub(crate) fn options(at: &str) -> Result<Option<Vec<String>>, String> {
    let text = changes::read_text(FILE)?.unwrap_or_default();
    let found = text.lines().filter_map(|line| line.split_once('\t')).find(|(place, _)| *place == at);
    Ok(found.map(|(_, opts)| opts.split(',').map(str::to_owned).collect()))
}

/// Keeps the options of a place; none forgets it.
pub(crate) fn keep(at: &str, opts: Option<&[String]>) -> Result<(), String> {
    let old = changes::read_text(FILE)?;
    let text = old.as_deref().unwrap_or_default();
    let is_other = |line: &&str| line.split_once('\t').is_some_and(|(place, _)| place != at);
    let mut new: String = text.split_inclusive('\n').filter(is_other).collect();
    if let Some(opts) = opts {
        new.push_str(&format!("{at}\t{}\n", opts.join(",")));
    }
    if new != text {
        Put::new(FILE).mode(Some(0o600)).instead_of(old.as_deref().map(str::as_bytes)).text(&new)?;
    }
    Ok(())
}
