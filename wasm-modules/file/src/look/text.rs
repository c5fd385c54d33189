//! Searches the content of a file.

use brine_guest::{Value, fnmatch};

use crate::look::pattern::{self, Flags};
use crate::look::{fs, lines};

/// Upper bound on the bytes of a file that is searched as a whole.
const MAX_WHOLE: usize = 16 * 1024 * 1024;
/// Bytes of one read, as in Salt.
const CHUNK: usize = 32 * 1024;

/// Parses a number without a sign, a unit or an exponent.
pub(crate) fn number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.') && text != ".";
    plain.then(|| text.parse().ok()).flatten()
}

/// Opens a file; none if it does not exist, and then the result is False. A missing grant is an error.
fn readable(path: &str) -> Result<Option<fs::File>, String> {
    match fs::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error @ fs::Error::NotGranted(_)) => Err(error.at(path)),
        Err(_) => Ok(None),
    }
}

/// `file.contains`
pub(crate) fn contains(path: &str, text: &str) -> Result<bool, String> {
    let wanted = text.trim().as_bytes();
    let Some(file) = readable(path)? else { return Ok(false) };
    if wanted.is_empty() {
        return Ok(true);
    }
    let mut found = false;
    // The end of the previous part, in which a match may begin.
    let mut window: Vec<u8> = Vec::new();
    let read = file.each(|part| {
        window.extend_from_slice(part);
        found = window.windows(wanted.len()).any(|at| at == wanted);
        window.drain(..window.len().saturating_sub(wanted.len() - 1));
        !found
    });
    Ok(read.is_ok() && found)
}

/// `file.contains_regex`
pub(crate) fn contains_regex(path: &str, regex: &str, lchar: &str) -> Result<bool, String> {
    let regex = pattern::compile(&pattern::python(regex, Flags::default())?, Flags::default())?;
    let Some(file) = readable(path)? else { return Ok(false) };
    let mut found = false;
    let read = lines::lines(&file, |line| {
        let line = String::from_utf8_lossy(line);
        found = regex.is_match(line.trim_start_matches(|c| lchar.contains(c)));
        !found
    });
    Ok(read.is_ok() && found)
}

/// `file.contains_glob`
pub(crate) fn contains_glob(path: &str, glob: &str) -> Result<bool, String> {
    let Some(file) = readable(path)? else { return Ok(false) };
    let mut found = false;
    let mut chunk: Vec<u8> = Vec::new();
    let read = file.each(|part| {
        for piece in part.chunks(CHUNK) {
            chunk.extend_from_slice(piece);
            if chunk.len() >= CHUNK {
                found |= fnmatch(glob, &String::from_utf8_lossy(&chunk));
                chunk.clear();
            }
        }
        !found
    });
    if !found && !chunk.is_empty() {
        found = fnmatch(glob, &String::from_utf8_lossy(&chunk));
    }
    Ok(read.is_ok() && found)
}

/// `file.search`
pub(crate) fn search(path: &str, pattern: &str, flags: Flags, ignore_if_missing: bool) -> Result<bool, String> {
    match fs::stat(path, true) {
        Ok(_) => {}
        Err(fs::Error::NotFound) if ignore_if_missing => return Ok(false),
        Err(fs::Error::NotFound) => return Err(format!("File not found: {path}")),
        Err(error) => return Err(error.at(path)),
    }
    let regex = pattern::compile(&pattern::python(pattern, flags)?, flags)?;
    let content = fs::read(path, MAX_WHOLE)?;
    if content.iter().take(512).any(|byte| *byte == 0) {
        return Err(format!("Cannot perform string replacements on a binary file: {path}"));
    }
    Ok(pattern::found(&regex, &content))
}

/// Flags of Python's `re`: a name, a list of names, or their numeric value.
pub(crate) fn flags(value: &Value) -> Result<Flags, String> {
    let mut flags = Flags::default();
    let mut name = |name: &str| {
        match name.to_ascii_uppercase().as_str() {
            "IGNORECASE" | "I" => flags.ignore_case = true,
            "MULTILINE" | "M" => flags.multi_line = true,
            "DOTALL" | "S" => flags.dot_all = true,
            "VERBOSE" | "X" => flags.verbose = true,
            // These have no effect, because bytes are searched.
            "ASCII" | "A" | "UNICODE" | "U" | "NOFLAG" => {}
            _ => return Err(format!("Invalid re flag given: {name}")),
        }
        Ok(())
    };
    match value {
        Value::Int(bits @ 0..512) => {
            for (bit, one) in [(2, "I"), (8, "M"), (16, "S"), (64, "X")] {
                if bits & bit != 0 {
                    name(one)?;
                }
            }
        }
        Value::Text(one) => name(one)?,
        Value::List(names) => names.iter().try_for_each(|one| name(&one.to_text()))?,
        other => {
            return Err(format!(
                "Invalid re flags: \"{}\", must be given either as a single flag string, a list of strings, as an integer, or \
                 as an re flag",
                other.to_text()
            ));
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_pythons() {
        assert_eq!(flags(&Value::Int(8)), Ok(Flags { multi_line: true, ..Flags::default() }));
        assert_eq!(flags(&"ignorecase".into()), Ok(Flags { ignore_case: true, ..Flags::default() }));
        let both = Flags { dot_all: true, verbose: true, ..Flags::default() };
        assert_eq!(flags(&vec!["DOTALL", "X"].into()), Ok(both));
        assert_eq!(flags(&"nope".into()), Err("Invalid re flag given: nope".into()));
        assert!(flags(&Value::None).is_err());
    }

    #[test]
    fn numbers_have_no_sign_and_no_unit() {
        assert_eq!((number("10"), number("1.5"), number("1.")), (Some(10.0), Some(1.5), Some(1.0)));
        for bad in ["", ".", "-1", "1e5", "inf", "1.2.3", "x"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }
}
