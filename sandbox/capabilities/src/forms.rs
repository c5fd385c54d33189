//! Forms of arguments from guests and of values in the configuration.

use crate::check::Refusal;

/// Upper bound on the bytes of a path.
pub(crate) const MAX_PATH: usize = 4_095;
/// Upper bound on the bytes of a word: the name of a module, the id of a job.
pub(crate) const MAX_WORD: usize = 64;
/// Upper bound on the bytes of a nested call's arguments, a request's body or a program's input: half of a message.
pub(crate) const MAX_BULK: usize = 16 << 20;
/// Upper bound on the bytes of an event or of a value for the mine. The master accepts events of a megabyte.
pub(crate) const MAX_DATA: usize = 1 << 20;

/// The characters that a text may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Everything that the kernel accepts: no NUL.
    Bytes,
    /// One line without control characters, because it goes to logs, masters and terminals.
    Line,
}

/// Returns the refusal of an argument whose form nothing can grant or use.
pub(crate) fn malformed(what: &str, why: &str) -> Refusal {
    Refusal::Malformed(format!("{what} {why}"))
}

/// Checks a text that must not be empty.
pub(crate) fn text(what: &str, text: &str, max: usize, form: Form) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(malformed(what, "is empty"));
    }
    if text.len() > max {
        return Err(malformed(what, &format!("has {} bytes; the most is {max}", text.len())));
    }
    clean(what, text, form)
}

/// Checks a text of any length that may be empty.
pub(crate) fn clean(what: &str, text: &str, form: Form) -> Result<(), Refusal> {
    match form {
        Form::Bytes if text.contains('\0') => Err(malformed(what, "has a NUL byte")),
        Form::Line if text.contains(control) => Err(malformed(what, "has control characters")),
        _ => Ok(()),
    }
}

/// Checks for characters that a terminal or a log would interpret, or that disguise text.
fn control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(crate) fn size(what: &str, bytes: usize, max: usize) -> Result<(), Refusal> {
    if bytes > max { Err(Refusal::Malformed(format!("{what}: {bytes} bytes; the most is {max}"))) } else { Ok(()) }
}

/// Checks a path on the file server: relative, in its only valid spelling.
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

/// Checks the name of an environment of the file server: one part of a path.
pub(crate) fn environment(name: &str) -> Result<(), Refusal> {
    const MAX: usize = 255;
    text("the environment", name, MAX, Form::Line)?;
    if matches!(name, "." | "..") || name.contains(['/', '\\']) {
        return Err(malformed("the environment", "is not one name"));
    }
    Ok(())
}

/// Checks the length and the characters of a module's name.
pub(crate) fn module(name: &str) -> Result<(), Refusal> {
    text("the name of a module", name, MAX_WORD, Form::Line)
}

/// Checks a key of grains, pillar or configuration, and the delimiter of its parts.
pub(crate) fn key(key: &str, delimiter: Option<&str>) -> Result<(), Refusal> {
    // Nested keys of real hosts are below 200 bytes.
    const MAX_KEY: usize = 1_024;
    const MAX_DELIMITER: usize = 16;
    text("the key", key, MAX_KEY, Form::Line)?;
    delimiter.map_or(Ok(()), |delimiter| text("the delimiter", delimiter, MAX_DELIMITER, Form::Line))
}

/// Returns what is wrong with a key in the configuration.
pub(crate) fn wrong_key(key: &str) -> Option<String> {
    key.split(':').any(str::is_empty).then(|| format!("{key:?} has an empty part"))
}

/// Checks a function's name: `module.function`.
pub(crate) fn function(name: &str) -> Result<(), Refusal> {
    // A module's name, a dot, and the longest name of a component's function.
    const MAX: usize = 300;
    text("the name of a function", name, MAX, Form::Line)?;
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match name.split_once('.') {
        Some((module, function)) if word(module) && word(function) => Ok(()),
        _ => Err(malformed("the name of a function", "is to be as in test.ping")),
    }
}

/// Checks a tag that a module of this minion may fire with a grant: one that begins with a word of its own, or one
/// below the minion's own part of Salt's tags. Tags of the minion itself, such as the one for its start, are not
/// allowed. This check does not rely on the master.
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
        [first, ..] => !brine_tags::is_reserved(first) && !is_jid(first),
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

/// Returns what is wrong with a path that must be absolute and in its only valid spelling.
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

/// Checks whether the text can be a user's or a group's name or number.
pub fn is_user(text: &str) -> bool {
    const MAX: usize = 256;
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '$' | '\\');
    !text.is_empty()
        && text.len() <= MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(inside)
}

/// Checks whether the text can be a variable's name: `[A-Za-z_][A-Za-z0-9_]*`.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
