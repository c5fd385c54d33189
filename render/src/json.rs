//! JSON as Python's `json.loads` reads it, which is what Salt's JSON renderer and `load_json` do: with `NaN` and
//! `Infinity`, the last of several equal keys, and Python's words for what is wrong.

use crate::jinja::json::Format;
use crate::value::{Dict, Entries, Key, List, Value};
use crate::yaml::Limits;

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: line {line} column {column} (char {char})")]
pub struct JsonError {
    /// What is wrong.
    pub problem: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
    /// The character of the text, counted from 0.
    pub char: usize,
    /// Whether the text is outside our bounds, and not wrong.
    pub limit: bool,
}

/// The options of Python's `json.dumps`.
#[derive(Debug, Clone, Default)]
pub struct DumpOptions {
    /// Whether keys are sorted.
    pub sort_keys: bool,
    /// Whether characters beyond ASCII are escaped.
    pub ascii: bool,
    /// What stands before a value once a level, with a line for each value; none for one line.
    pub indent: Option<String>,
    /// What stands between values, and between a key and its value, if it is not what Python has there by default.
    pub separators: Option<(String, String)>,
}

/// The value as JSON, as Python's `json.dumps` writes it.
///
/// # Errors
/// In Python's words: the value nests too deep, or has no form in JSON.
pub fn dump(value: &Value, options: &DumpOptions) -> Result<String, String> {
    let mut format = Format::new(options.sort_keys, options.ascii, options.indent.as_deref());
    if let Some((comma, colon)) = &options.separators {
        (format.comma, format.colon) = (comma, colon);
    }
    let mut out = String::new();
    crate::jinja::json::write(value, &format, &mut out, 0)?;
    Ok(out)
}

/// Loads one JSON text. Objects are `dict`s.
///
/// # Errors
/// The text is not JSON, or outside the bounds.
pub fn load(text: &str, limits: &Limits) -> Result<Value, JsonError> {
    let mut reader = Reader { text, at: 0, values_left: limits.values, limits };
    if text.len() > limits.text {
        return Err(reader.limit(format!("the text has more than {} bytes", limits.text)));
    }
    if text.starts_with('\u{feff}') {
        return Err(reader.error("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0));
    }
    reader.skip_space();
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.error("Extra data", reader.at));
    }
    Ok(value)
}

struct Reader<'a> {
    text: &'a str,
    /// The byte that comes next.
    at: usize,
    values_left: usize,
    limits: &'a Limits,
}

impl Reader<'_> {
    fn error(&self, problem: impl Into<String>, at: usize) -> JsonError {
        let before = &self.text[..at];
        JsonError {
            problem: problem.into(),
            line: before.matches('\n').count() + 1,
            column: before.rsplit('\n').next().unwrap_or_default().chars().count() + 1,
            char: before.chars().count(),
            limit: false,
        }
    }

    fn limit(&self, problem: impl Into<String>) -> JsonError {
        JsonError { limit: true, ..self.error(problem, self.at) }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        if depth > self.limits.depth {
            return Err(self.limit(format!("more than {} levels", self.limits.depth)));
        }
        self.values_left = self
            .values_left
            .checked_sub(1)
            .ok_or_else(|| self.limit(format!("more than {} values", self.limits.values)))?;
        match self.byte() {
            Some(b'"') => self.string().map(Value::from),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'n') if self.take("null") => Ok(Value::None),
            Some(b't') if self.take("true") => Ok(Value::Bool(true)),
            Some(b'f') if self.take("false") => Ok(Value::Bool(false)),
            Some(b'N') if self.take("NaN") => Ok(Value::Float(f64::NAN)),
            Some(b'I') if self.take("Infinity") => Ok(Value::Float(f64::INFINITY)),
            Some(b'-') if self.take("-Infinity") => Ok(Value::Float(f64::NEG_INFINITY)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.error("Expecting value", self.at)),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        let mut entries = Entries::default();
        self.at += 1;
        self.skip_space();
        if !self.take("}") {
            loop {
                if self.byte() != Some(b'"') {
                    return Err(self.error("Expecting property name enclosed in double quotes", self.at));
                }
                let key = Key::from(self.string()?);
                self.skip_space();
                if !self.take(":") {
                    return Err(self.error("Expecting ':' delimiter", self.at));
                }
                self.skip_space();
                let value = self.value(depth + 1)?;
                entries.insert(key, value);
                self.skip_space();
                if self.take("}") {
                    break;
                }
                if !self.take(",") {
                    return Err(self.error("Expecting ',' delimiter", self.at));
                }
                self.skip_space();
            }
        }
        Ok(Value::Dict(Dict::from_entries(entries, false)))
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_space();
        if !self.take("]") {
            loop {
                items.push(self.value(depth + 1)?);
                self.skip_space();
                if self.take("]") {
                    break;
                }
                if !self.take(",") {
                    return Err(self.error("Expecting ',' delimiter", self.at));
                }
                self.skip_space();
            }
        }
        Ok(Value::List(List::from(items)))
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        self.take("-");
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => {
                self.at = start;
                return Err(self.error("Expecting value", start));
            }
        }
        let whole = self.at;
        if self.byte() == Some(b'.') {
            self.at += 1;
            if !self.require_digits() {
                self.at = whole;
            }
        }
        let fraction = self.at;
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'-' | b'+')) {
                self.at += 1;
            }
            if !self.require_digits() {
                self.at = fraction;
            }
        }
        let text = &self.text[start..self.at];
        if self.at == whole {
            text.parse().map(Value::Int).map_err(|_| self.limit("a number has more than 127 bits"))
        } else {
            text.parse().map(Value::Float).map_err(|_| self.error("Expecting value", start))
        }
    }

    fn skip_digits(&mut self) {
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn require_digits(&mut self) -> bool {
        let start = self.at;
        self.skip_digits();
        self.at > start
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let begin = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let plain = self.text.as_bytes()[self.at..]
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
                .ok_or_else(|| self.error("Unterminated string starting at", begin))?;
            out.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain;
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(begin, &mut out)?,
                _ => return Err(self.error("Invalid control character at", self.at)),
            }
        }
    }

    fn escape(&mut self, begin: usize, out: &mut String) -> Result<(), JsonError> {
        let start = self.at;
        self.at += 1;
        let c = match self.byte() {
            None => return Err(self.error("Unterminated string starting at", begin)),
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(out),
            Some(_) => return Err(self.error("Invalid \\escape", start)),
        };
        self.at += 1;
        out.push(c);
        Ok(())
    }

    /// Four digits, from the `u` on. Python wants another character behind them.
    fn code(&self, at: usize) -> Option<u32> {
        let digits = self.text.as_bytes().get(at + 1..at + 5)?;
        if at + 5 >= self.text.len() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    fn unicode_escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let Some(code) = self.code(self.at) else {
            return Err(self.error("Invalid \\uXXXX escape", self.at));
        };
        let first = self.at;
        self.at += 5;
        if let Some(c) = char::from_u32(code) {
            out.push(c);
            return Ok(());
        }
        if (0xd800..0xdc00).contains(&code) && self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            let Some(low) = self.code(self.at + 1) else {
                return Err(self.error("Invalid \\uXXXX escape", self.at + 1));
            };
            if let Some(c) = char::decode_utf16([code as u16, low as u16]).next().and_then(Result::ok) {
                self.at += 6;
                out.push(c);
                return Ok(());
            }
        }
        // Python has half characters, which no text outside of it can contain
        Err(JsonError { limit: true, ..self.error("half of a surrogate pair", first) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold() {
        let limits = Limits { depth: 10, values: 100, text: 1000 };
        let deep = format!("{}{}", "[".repeat(11), "]".repeat(11));
        assert!(load(&deep[1..21], &limits).is_ok());
        assert!(load(&"[".repeat(400), &limits).unwrap_err().limit);
        assert!(load(&format!("[{}1]", "1,".repeat(100)), &limits).unwrap_err().limit);
        assert!(load(&" ".repeat(1001), &limits).unwrap_err().limit);
        assert!(load(&"9".repeat(50), &limits).unwrap_err().limit);
        assert!(load(r#""\ud800x""#, &limits).unwrap_err().limit);
    }
}
