//! Processes of this host by a pattern: Salt's `sig`.

use brine_guest::program::Program;
use regex_lite::Regex;

/// Whether a line of `ps -efHww` matches.
pub(crate) fn has(pattern: &str) -> Result<bool, String> {
    let regex = Regex::new(pattern).map_err(|error| format!("sig: {pattern:?} is no regular expression: {error}"))?;
    let list = Program::new(["ps", "-efHww"]).run()?;
    Ok(list.stdout.lines().any(|line| regex.is_match(line)))
}
