//! Forms of what guests pass and owners write.

use crate::check::Refusal;

/// Bytes of a path.
pub(crate) const MAX_PATH: usize = 4_095;
/// Bytes of a word: the name of a module, the id of a job.
pub(crate) const MAX_WORD: usize = 64;
/// Bytes of arguments of a nested call, of a request's body, of what a program reads: half of what one message may have.
pub(crate) const MAX_BULK: usize = 16 << 20;
/// Bytes of an event or of a value for the mine. The master takes events of a megabyte.
pub(crate) const MAX_DATA: usize = 1 << 20;

/// What text may have in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All that the kernel takes: no NUL.
    Bytes,
    /// One line, no control characters: it goes on to logs, masters and terminals.
    Line,
}

/// What has no form that could be granted, or that anything could be done with.
pub(crate) fn malformed(what: &str, why: &str) -> Refusal {
    Refusal::Malformed(format!("{what} {why}"))
}

/// Text that is not empty.
pub(crate) fn text(what: &str, text: &str, max: usize, form: Form) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(malformed(what, "is empty"));
    }
    if text.len() > max {
        return Err(malformed(what, &format!("has {} bytes; the most is {max}", text.len())));
    }
    clean(what, text, form)
}

/// Text that may be empty, of any length.
pub(crate) fn clean(what: &str, text: &str, form: Form) -> Result<(), Refusal> {
    match form {
        Form::Bytes if text.contains('\0') => Err(malformed(what, "has a NUL byte")),
        Form::Line if text.contains(control) => Err(malformed(what, "has control characters")),
        _ => Ok(()),
    }
}

/// What a terminal or a log would obey, or show otherwise than it is.
fn control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(crate) fn size(what: &str, bytes: usize, max: usize) -> Result<(), Refusal> {
    if bytes > max { Err(Refusal::Malformed(format!("{what}: {bytes} bytes; the most is {max}"))) } else { Ok(()) }
}

/// A path on the file server: relative, as there is only one way to write it.
pub(crate) fn relative(path: &str) -> Result<(), Refusal> {
    text("the path", path, MAX_PATH, Form::Line)?;
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(malformed("the path", "has parts that are empty, . or .."));
    }
    if path.contains('\\') {
        return Err(malformed("the path", "has a backslash"));
    }
    Ok(())
}

/// An environment of the file server: one name of a file.
pub(crate) fn environment(name: &str) -> Result<(), Refusal> {
    const MAX: usize = 255;
    text("the environment", name, MAX, Form::Line)?;
    if matches!(name, "." | "..") || name.contains(['/', '\\']) {
        return Err(malformed("the environment", "is not one name"));
    }
    Ok(())
}

/// The name of a module.
pub(crate) fn module(name: &str) -> Result<(), Refusal> {
    text("the name of a module", name, MAX_WORD, Form::Line)
}

/// A key of grains, pillar or configuration, and what stands between its parts.
pub(crate) fn key(key: &str, delimiter: Option<&str>) -> Result<(), Refusal> {
    // Nested keys of real hosts are below 200.
    const MAX_KEY: usize = 1_024;
    const MAX_DELIMITER: usize = 16;
    text("the key", key, MAX_KEY, Form::Line)?;
    delimiter.map_or(Ok(()), |delimiter| text("the delimiter", delimiter, MAX_DELIMITER, Form::Line))
}

/// What is wrong with a key in a list of the owner's.
pub(crate) fn wrong_key(key: &str) -> Option<String> {
    key.split(':').any(str::is_empty).then(|| format!("{key:?} has an empty part"))
}

/// `module.function`
pub(crate) fn function(name: &str) -> Result<(), Refusal> {
    // A module's name, a dot, and what a component's function may be called.
    const MAX: usize = 300;
    text("the name of a function", name, MAX, Form::Line)?;
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match name.split_once('.') {
        Some((module, function)) if word(module) && word(function) => Ok(()),
        _ => Err(malformed("the name of a function", "is to be as in test.ping")),
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
pub(crate) fn tag(tag: &str, minion_id: &str) -> Result<(), Refusal> {
    const MAX: usize = 2_048;
    text("the tag", tag, MAX, Form::Line)?;
    if tag.starts_with('/') {
        return Err(malformed("the tag", "starts with a slash"));
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
    Err(Refusal::Never(format!(
        "the tag {tag} is not one that a module may fire: it begins with a word of the master's own; there are words of one's \
         own, and salt/beacon/{minion_id}/ and salt/minion/{minion_id}/"
    )))
}

fn is_jid(word: &str) -> bool {
    const DIGITS: usize = 20;
    word.len() >= DIGITS && word.as_bytes()[..DIGITS].iter().all(u8::is_ascii_digit)
}

/// What is wrong with a path that has to be absolute and plain: as there is only one way to write it.
pub fn why_not_absolute(text: &str) -> Option<&'static str> {
    if !text.starts_with('/') {
        Some("is not an absolute path")
    } else if text.len() > MAX_PATH {
        Some("is longer than a path can be")
    } else if text.contains(char::is_control) {
        Some("has control characters")
    } else if text != "/" && text[1..].split('/').any(|part| matches!(part, "" | "." | "..")) {
        Some("has parts that are empty, . or ..; the path is to be written without them")
    } else {
        None
    }
}

/// Whether it can be a user's or a group's name or number.
pub fn is_user(text: &str) -> bool {
    const MAX: usize = 256;
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '$' | '\\');
    !text.is_empty()
        && text.len() <= MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(inside)
}

/// Whether it can be a variable's name: `[A-Za-z_][A-Za-z0-9_]*`.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
