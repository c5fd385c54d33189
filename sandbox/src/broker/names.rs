//! Forms of names that guests pass.

use brine_sandbox_wire::HostError;

use super::check::{MAX_PATH, failed};

/// What text may have in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All that the kernel takes: no NUL.
    Bytes,
    /// One line, no control characters: it goes on to logs, masters and terminals.
    Line,
}

/// Text that is not empty.
pub(super) fn text(what: &str, text: &str, max: usize, form: Form) -> Result<(), HostError> {
    if text.is_empty() {
        return Err(failed(what, "is empty"));
    }
    if text.len() > max {
        return Err(failed(what, &format!("has {} bytes; the most is {max}", text.len())));
    }
    clean(what, text, form)
}

/// Text that may be empty, of any length.
pub(super) fn clean(what: &str, text: &str, form: Form) -> Result<(), HostError> {
    match form {
        Form::Bytes if text.contains('\0') => Err(failed(what, "has a NUL byte")),
        Form::Line if text.contains(control) => Err(failed(what, "has control characters")),
        _ => Ok(()),
    }
}

/// What a terminal or a log would obey, or show otherwise than it is.
fn control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(super) fn size(what: &str, bytes: usize, max: usize) -> Result<(), HostError> {
    if bytes > max { Err(HostError::Failed(format!("{what}: {bytes} bytes; the most is {max}"))) } else { Ok(()) }
}

/// A path on the file server: relative, as there is only one way to write it.
pub(super) fn relative(path: &str) -> Result<(), HostError> {
    text("the path", path, MAX_PATH, Form::Line)?;
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(failed("the path", "has parts that are empty, . or .."));
    }
    if path.contains('\\') {
        return Err(failed("the path", "has a backslash"));
    }
    Ok(())
}

/// An environment of the file server: one name of a file.
pub(super) fn environment(name: &str) -> Result<(), HostError> {
    const MAX: usize = 255;
    text("the environment", name, MAX, Form::Line)?;
    if matches!(name, "." | "..") || name.contains(['/', '\\']) {
        return Err(failed("the environment", "is not one name"));
    }
    Ok(())
}

/// `module.function`
pub(super) fn function(name: &str, max: usize) -> Result<(), HostError> {
    text("the name of a function", name, max, Form::Line)?;
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match name.split_once('.') {
        Some((module, function)) if word(module) && word(function) => Ok(()),
        _ => Err(failed("the name of a function", "is to be as in test.ping")),
    }
}

/// First words of tags that masters, their tools and clients act on.
const RESERVED: [&str; 12] = [
    "salt",
    "key",
    "minion",
    "resource",
    "syndic",
    "brine",
    "minion_start",
    "minion_ping",
    "new_job",
    "auth",
    "_salt_error",
    "fire_master",
];

/// A tag that a module of this minion may fire where it was granted: one of words of its own, or below the minion's own part of
/// Salt's tags. What the minion itself says with, as that it started, is not a module's. A master that is not ours takes any
/// tag from a minion and its reactor believes it (CVE-2025-22239), so this does not leave it to the master.
pub(super) fn tag(tag: &str, minion_id: &str) -> Result<(), HostError> {
    const MAX: usize = 2_048;
    text("the tag", tag, MAX, Form::Line)?;
    if tag.starts_with('/') {
        return Err(failed("the tag", "starts with a slash"));
    }
    let parts: Vec<&str> = tag.split('/').collect();
    let own = match parts.as_slice() {
        ["salt", "beacon", id, _, ..] => *id == minion_id,
        ["salt", "minion", id, what, ..] => *id == minion_id && *what != "start" && !what.is_empty(),
        [first, ..] => !RESERVED.contains(first) && !is_jid(first),
        [] => false,
    };
    if own {
        return Ok(());
    }
    Err(HostError::Denied(format!(
        "the tag {tag} is not one that a module may fire: it begins with a word of the master's own; there are words of one's \
         own, and salt/beacon/{minion_id}/ and salt/minion/{minion_id}/"
    )))
}

fn is_jid(word: &str) -> bool {
    const DIGITS: usize = 20;
    word.len() >= DIGITS && word.as_bytes()[..DIGITS].iter().all(u8::is_ascii_digit)
}
