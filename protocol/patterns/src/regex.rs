//! Rewrites the syntax of Python's `re` for Rust's engines. The engines silently read some expressions differently:
//! `[[a]]`, `a&&b` in brackets, `\<`, `\Z`, `a++`, a `{` that is not a count. An expression without an equivalent is an
//! error.

use std::fmt::Write as _;

/// An expression in the syntax of an engine.
#[derive(Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The expression. It relies on no flags of the engine except those for case and for the meaning of a dot.
    pub pattern: String,
    /// Whether the expression has look-around or back-references, which no engine matches in linear time.
    pub backtracks: bool,
}

/// The engine to write for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `regex` and `fancy-regex`: with Unicode classes, as in Python.
    Unicode,
    /// `regex-lite`: its `\d`, `\s` and `\w` are ASCII.
    Ascii,
}

/// Upper bound on nested groups, because the engines recurse into them.
const MAX_DEPTH: usize = 100;

/// Rewrites an expression in the syntax of Python 3.11, with the given flags in force from its start.
///
/// # Errors
/// One line about the error in the pattern, or about the part without an equivalent.
pub fn rewrite(pattern: &str, flags: Flags, dialect: Dialect) -> Result<Rewritten, String> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut reader = Reader {
        chars: &chars,
        at: 0,
        out: String::new(),
        backtracks: false,
        groups: vec![flags],
        names: Vec::new(),
        dialect,
    };
    if flags.multiline {
        reader.out.push_str("(?m:");
    }
    reader.read_all()?;
    if flags.multiline {
        reader.out.push(')');
    }
    Ok(Rewritten { pattern: reader.out, backtracks: reader.backtracks })
}

/// The kind of the last piece, for a quantifier after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Item,
    Quantified,
}

/// The flags that affect the rewriting; the engines implement `i` and `s`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `m`: `^` and `$` match at each line.
    pub multiline: bool,
    /// `x`: spaces and comments after `#` are ignored.
    pub verbose: bool,
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    out: String,
    backtracks: bool,
    /// The flags in force in each open group.
    groups: Vec<Flags>,
    names: Vec<String>,
    dialect: Dialect,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn take(&mut self, expected: char) -> bool {
        let is = self.peek() == Some(expected);
        self.at += usize::from(is);
        is
    }

    fn flags(&self) -> Flags {
        self.groups.last().copied().unwrap_or_default()
    }

    fn read_all(&mut self) -> Result<(), String> {
        let mut last = Last::Nothing;
        let mut closing = 0;
        while let Some(c) = self.next() {
            last = match c {
                ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' if self.flags().verbose => last,
                '#' if self.flags().verbose => {
                    while self.next().is_some_and(|c| c != '\n') {}
                    last
                }
                '(' if self.chars[self.at..].starts_with(&['?', '#']) => {
                    while self.next().ok_or("missing ), unterminated comment")? != ')' {}
                    last
                }
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.open(&mut closing)?,
                ')' => {
                    if self.groups.len() < 2 {
                        return Err("unbalanced parenthesis".to_owned());
                    }
                    self.groups.pop();
                    self.out.push(')');
                    Last::Item
                }
                '|' => {
                    self.out.push('|');
                    Last::Nothing
                }
                '^' => {
                    self.out.push('^');
                    Last::Nothing
                }
                '$' => {
                    // Python's `$` also matches before a line end at the end of the text.
                    self.out.push_str(if self.flags().multiline { "$" } else { r"(?:\n?\z)" });
                    Last::Nothing
                }
                '.' => {
                    self.out.push('.');
                    Last::Item
                }
                '*' | '+' | '?' => self.quantifier(&c.to_string(), last)?,
                '{' => match self.counted() {
                    Some(count) => self.quantifier(&count?, last)?,
                    None => self.literal('{'),
                },
                c => self.literal(c),
            };
        }
        if self.groups.len() > 1 {
            return Err("missing ), unterminated subpattern".to_owned());
        }
        self.out.extend(std::iter::repeat_n(')', closing));
        Ok(())
    }

    fn literal(&mut self, c: char) -> Last {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            self.out.push('\\');
        }
        self.out.push(c);
        Last::Item
    }

    fn quantifier(&mut self, text: &str, last: Last) -> Result<Last, String> {
        match last {
            Last::Nothing => return Err("nothing to repeat".to_owned()),
            Last::Quantified => return Err("multiple repeat".to_owned()),
            Last::Item => {}
        }
        self.out.push_str(text);
        if self.take('?') {
            self.out.push('?');
        } else if self.take('+') {
            self.out.push('+');
            self.backtracks = true;
        }
        Ok(Last::Quantified)
    }

    /// Reads `m}`, `m,}`, `,n}` or `m,n}` after a brace; none if the brace is an ordinary character.
    fn counted(&mut self) -> Option<Result<String, String>> {
        let start = self.at;
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while reader.peek().is_some_and(|c| c.is_ascii_digit()) {
                reader.at += 1;
            }
            reader.chars[from..reader.at].iter().collect::<String>()
        };
        let low = digits(self);
        let has_comma = self.take(',');
        let high = if has_comma { digits(self) } else { low.clone() };
        if !self.take('}') || (!has_comma && low.is_empty()) {
            self.at = start;
            return None;
        }
        let number = |text: &str| text.parse::<u32>().map_err(|_| "the repetition number is too large".to_owned());
        Some((|| {
            let low = if low.is_empty() { 0 } else { number(&low)? };
            if high.is_empty() {
                return Ok(format!("{{{low},}}"));
            }
            let high = number(&high)?;
            if high < low {
                return Err("min repeat greater than max repeat".to_owned());
            }
            Ok(format!("{{{low},{high}}}"))
        })())
    }

    /// Reads the rest of an opening parenthesis. Flags for the whole expression open a group that ends with the
    /// expression.
    fn open(&mut self, closing: &mut usize) -> Result<Last, String> {
        let is_start = self.at == 1;
        if self.groups.len() > MAX_DEPTH {
            return Err("it nests too deep".to_owned());
        }
        let outer = self.flags();
        if !self.take('?') {
            self.out.push('(');
            self.groups.push(outer);
            return Ok(Last::Nothing);
        }
        let c = self.next().ok_or("unexpected end of pattern")?;
        match c {
            ':' => self.out.push_str("(?:"),
            '=' | '!' | '>' => {
                self.backtracks = true;
                let _ = write!(self.out, "(?{c}");
            }
            '<' => {
                let direction = self.next().filter(|c| matches!(c, '=' | '!')).ok_or("unknown extension")?;
                self.backtracks = true;
                let _ = write!(self.out, "(?<{direction}");
            }
            'P' => match self.next() {
                Some('<') => {
                    let name = self.read_name('>')?;
                    if self.names.contains(&name) {
                        return Err(format!("redefinition of group name {name:?}"));
                    }
                    let _ = write!(self.out, "(?P<{name}>");
                    self.names.push(name);
                }
                Some('=') => {
                    let name = self.read_name(')')?;
                    let _ = write!(self.out, "(?P={name})");
                    self.backtracks = true;
                    return Ok(Last::Item);
                }
                _ => return Err("unknown extension".to_owned()),
            },
            '(' => return Err("conditional groups are not supported".to_owned()),
            _ => {
                self.at -= 1;
                return self.set_flags(is_start, outer, closing);
            }
        }
        self.groups.push(outer);
        Ok(Last::Nothing)
    }

    fn read_name(&mut self, end: char) -> Result<String, String> {
        let length = self.chars[self.at..].iter().position(|c| *c == end).ok_or("missing end of a group's name")?;
        let name: String = self.chars[self.at..self.at + length].iter().collect();
        let is_name = !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            return Err(format!("bad character in group name {name:?}"));
        }
        self.at += length + 1;
        Ok(name)
    }

    /// `(?i)` at the start, or `(?i:…)` anywhere.
    fn set_flags(&mut self, is_start: bool, outer: Flags, closing: &mut usize) -> Result<Last, String> {
        let (mut on, mut off, mut negated) = (String::new(), String::new(), false);
        loop {
            match self.next().ok_or("missing -, : or )")? {
                c @ ('i' | 'm' | 's' | 'x') if negated => off.push(c),
                c @ ('i' | 'm' | 's' | 'x') => on.push(c),
                'u' if !negated => {}
                c @ ('a' | 'L' | 'u') => return Err(format!("the flag {c} is not supported")),
                '-' if !negated => negated = true,
                ':' => break,
                ')' if negated => return Err("missing :".to_owned()),
                // As if a group with these flags contained all that follows.
                ')' if is_start => {
                    *closing += 1;
                    let _ = write!(self.out, "(?{}:", on.replace('x', ""));
                    let given = self.groups[0];
                    self.groups[0] = Flags {
                        multiline: given.multiline || on.contains('m'),
                        verbose: given.verbose || on.contains('x'),
                    };
                    return Ok(Last::Nothing);
                }
                ')' => return Err("global flags not at the start of the expression".to_owned()),
                _ => return Err("unknown flag".to_owned()),
            }
        }
        if negated && off.is_empty() {
            return Err("missing flag".to_owned());
        }
        if on.chars().any(|c| off.contains(c)) {
            return Err("bad inline flags: flag turned on and off".to_owned());
        }
        let holds = |outer: bool, flag: char| (outer || on.contains(flag)) && !off.contains(flag);
        self.groups.push(Flags { multiline: holds(outer.multiline, 'm'), verbose: holds(outer.verbose, 'x') });
        // The flag `x` has been handled here.
        let (on, off) = (on.replace('x', ""), off.replace('x', ""));
        let _ = if off.is_empty() { write!(self.out, "(?{on}:") } else { write!(self.out, "(?{on}-{off}:") };
        Ok(Last::Nothing)
    }

    /// Reads the rest of an escape outside of brackets.
    fn escape(&mut self) -> Result<Last, String> {
        let c = self.next().ok_or("bad escape (end of pattern)")?;
        match c {
            'A' | 'b' | 'B' => {
                let _ = write!(self.out, "\\{c}");
                return Ok(Last::Nothing);
            }
            'Z' => {
                self.out.push_str(r"\z");
                return Ok(Last::Nothing);
            }
            '1'..='9' => {
                let mut number = c.to_string();
                if let Some(second) = self.peek().filter(char::is_ascii_digit) {
                    self.at += 1;
                    number.push(second);
                    let third = self.peek().filter(|third| matches!(third, '0'..='7'));
                    if let (Some(third), true) = (third, !number.contains(['8', '9'])) {
                        self.at += 1;
                        number.push(third);
                        return Ok(self.literal(octal(&number)?));
                    }
                }
                // The group keeps a following digit apart from the number.
                let _ = write!(self.out, "(?:\\{number})");
                self.backtracks = true;
            }
            _ => match self.character(c, false)? {
                Member::Char(c) => return Ok(self.literal(c)),
                Member::Set(set) => self.out.push_str(set),
            },
        }
        Ok(Last::Item)
    }

    /// The meaning of an escape inside or outside of brackets.
    fn character(&mut self, c: char, in_class: bool) -> Result<Member, String> {
        let set = |unicode, ascii| match self.dialect {
            Dialect::Unicode => Ok(Member::Set(unicode)),
            Dialect::Ascii => Ok(Member::Set(ascii)),
        };
        Ok(Member::Char(match c {
            'd' => return Ok(Member::Set(r"\d")),
            'D' => return Ok(Member::Set(r"\D")),
            // Python counts the four ASCII separators as spaces, and only letters, digits and `_` as word characters.
            's' => return set(r"[\s\x1c-\x1f]", r"\s"),
            'S' => return set(r"[^\s\x1c-\x1f]", r"\S"),
            'w' => return set(r"[\p{L}\p{N}_]", r"\w"),
            'W' => return set(r"[^\p{L}\p{N}_]", r"\W"),
            'a' => '\x07',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'b' if in_class => '\x08',
            'x' => self.hex(2)?,
            'u' => self.hex(4)?,
            'U' => self.hex(8)?,
            '0'..='7' if in_class || c == '0' => {
                let mut digits = c.to_string();
                while digits.len() < 3 && self.peek().is_some_and(|c| matches!(c, '0'..='7')) {
                    digits.extend(self.next());
                }
                octal(&digits)?
            }
            c if c.is_ascii_alphanumeric() => return Err(format!("bad escape \\{c}")),
            c => c,
        }))
    }

    fn hex(&mut self, length: usize) -> Result<char, String> {
        let digits = self.chars.get(self.at..self.at + length).unwrap_or_default();
        let digits: String = digits.iter().collect();
        self.at += length;
        let is_hex = digits.len() == length && digits.chars().all(|c| c.is_ascii_hexdigit());
        let number = u32::from_str_radix(&digits, 16).ok().filter(|_| is_hex);
        number.and_then(char::from_u32).ok_or_else(|| "incomplete or bad escape".to_owned())
    }

    /// Reads the rest of a class after its opening bracket.
    fn class(&mut self) -> Result<Last, String> {
        const OPEN: &str = "unterminated character set";
        self.out.push('[');
        if self.take('^') {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            let c = self.next().ok_or(OPEN)?;
            if c == ']' && !is_first {
                break;
            }
            is_first = false;
            let low = self.member(c)?;
            if !self.take('-') {
                self.add(&low);
                continue;
            }
            let c = self.next().ok_or(OPEN)?;
            if c == ']' {
                self.add(&low);
                self.add(&Member::Char('-'));
                break;
            }
            match (low, self.member(c)?) {
                (Member::Char(low), Member::Char(high)) if low <= high => {
                    let _ = write!(self.out, r"\x{{{:x}}}-\x{{{:x}}}", u32::from(low), u32::from(high));
                }
                _ => return Err("bad character range".to_owned()),
            }
        }
        self.out.push(']');
        Ok(Last::Item)
    }

    fn member(&mut self, c: char) -> Result<Member, String> {
        if c != '\\' {
            return Ok(Member::Char(c));
        }
        let escaped = self.next().ok_or("bad escape (end of pattern)")?;
        self.character(escaped, true)
    }

    fn add(&mut self, member: &Member) {
        let _ = match member {
            Member::Char(c) => write!(self.out, r"\x{{{:x}}}", u32::from(*c)),
            Member::Set(set) => write!(self.out, "{set}"),
        };
    }
}

/// A member of a class.
enum Member {
    Char(char),
    Set(&'static str),
}

fn octal(digits: &str) -> Result<char, String> {
    let number = u32::from_str_radix(digits, 8).ok().filter(|number| *number <= 0o377);
    number.and_then(char::from_u32).ok_or_else(|| "octal escape value outside of range 0-0o377".to_owned())
}
