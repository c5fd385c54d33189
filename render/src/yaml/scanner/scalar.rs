//! Scalars: block (`|` and `>`), quoted and plain.

use super::cursor::{is_blank, is_blankz, is_break, is_breakz};
use super::{Mark, Result, Scanner, Spanned, Token};

impl Scanner<'_> {
    pub(super) fn scan_block_scalar(&mut self, literal: bool) -> Result<()> {
        const BLOCK: &str = "while scanning a block scalar";
        let start = self.mark;
        self.next();
        // whether the last line breaks are kept (`+`), dropped (`-`) or one of them stays
        let (mut chomping, mut increment) = (None, 0);
        for _ in 0..2 {
            match self.c() {
                c @ ('+' | '-') if chomping.is_none() => chomping = Some(c),
                '0' if increment == 0 => {
                    return self.error(BLOCK, start, "found an indentation indicator equal to 0");
                }
                c @ '1'..='9' if increment == 0 => increment = i64::from(c.to_digit(10).unwrap_or(1)),
                _ => break,
            }
            self.next();
        }
        self.skip_blanks();
        self.skip_comment();
        if !is_breakz(self.c()) {
            return self.error(BLOCK, start, "did not find expected comment or line break");
        }
        self.skip_break();
        let mut end = self.mark;
        let mut indent = if increment > 0 { self.indent.max(0) + increment } else { 0 };
        let (mut text, mut leading, mut trailing) = (String::new(), String::new(), String::new());
        let mut was_blank = false;
        self.scan_block_scalar_breaks(&mut indent, &mut trailing, start, &mut end)?;
        while i64::from(self.mark.column) == indent && self.c() != '\0' {
            let blank = is_blank(self.c());
            if !literal && leading.starts_with('\n') && !was_blank && !blank {
                if trailing.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&leading);
            }
            leading.clear();
            text.push_str(&trailing);
            trailing.clear();
            was_blank = blank;
            while !is_breakz(self.c()) {
                self.read(&mut text);
            }
            self.read_break(&mut leading);
            self.scan_block_scalar_breaks(&mut indent, &mut trailing, start, &mut end)?;
        }
        if chomping != Some('-') {
            text.push_str(&leading);
        }
        if chomping == Some('+') {
            text.push_str(&trailing);
        }
        self.tokens.push_back(Spanned { token: Token::Scalar { value: text, plain: false }, start, end });
        Ok(())
    }

    fn scan_block_scalar_breaks(
        &mut self,
        indent: &mut i64,
        breaks: &mut String,
        start: Mark,
        end: &mut Mark,
    ) -> Result<()> {
        let mut max_indent = 0;
        *end = self.mark;
        loop {
            while (*indent == 0 || i64::from(self.mark.column) < *indent) && self.c() == ' ' {
                self.next();
            }
            max_indent = max_indent.max(i64::from(self.mark.column));
            if (*indent == 0 || i64::from(self.mark.column) < *indent) && self.c() == '\t' {
                return self.error(
                    "while scanning a block scalar",
                    start,
                    "found a tab character where an indentation space is expected",
                );
            }
            if !is_break(self.c()) {
                break;
            }
            self.read_break(breaks);
            *end = self.mark;
        }
        if *indent == 0 {
            *indent = max_indent.max(self.indent + 1).max(1);
        }
        Ok(())
    }

    pub(super) fn scan_flow_scalar(&mut self, single: bool) -> Result<()> {
        const QUOTED: &str = "while scanning a quoted scalar";
        let quote = if single { '\'' } else { '"' };
        let start = self.mark;
        self.next();
        let mut text = String::new();
        loop {
            if self.at_document_indicator() {
                return self.error(QUOTED, start, "found unexpected document indicator");
            }
            if self.c() == '\0' {
                return self.error(QUOTED, start, "found unexpected end of stream");
            }
            let mut folded = false;
            while !is_blankz(self.c()) {
                if single && self.rest.starts_with("''") {
                    text.push('\'');
                    self.next();
                    self.next();
                } else if self.c() == quote {
                    break;
                } else if !single && self.c() == '\\' && is_break(self.at(1)) {
                    self.next();
                    self.skip_break();
                    folded = true;
                    break;
                } else if !single && self.c() == '\\' {
                    self.scan_escape(start, &mut text)?;
                } else {
                    self.read(&mut text);
                }
            }
            if self.c() == quote {
                break;
            }
            self.scan_space(&mut text, folded);
        }
        self.next();
        self.push(Token::Scalar { value: text, plain: false }, start);
        Ok(())
    }

    /// Reads white space in a quoted scalar: a line break is a space, several are as many less one.
    fn scan_space(&mut self, text: &mut String, mut folded: bool) {
        let (mut spaces, mut leading, mut trailing) = (String::new(), String::new(), String::new());
        loop {
            let c = self.c();
            if is_blank(c) {
                if folded {
                    self.next();
                } else {
                    self.read(&mut spaces);
                }
            } else if is_break(c) {
                if folded {
                    self.read_break(&mut trailing);
                } else {
                    self.read_break(&mut leading);
                    folded = true;
                }
            } else {
                break;
            }
        }
        if folded {
            push_folded(text, &leading, &trailing);
        } else {
            text.push_str(&spaces);
        }
    }

    fn scan_escape(&mut self, start: Mark, text: &mut String) -> Result<()> {
        const QUOTED: &str = "while parsing a quoted scalar";
        let length = match self.at(1) {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if length == 0 {
            text.push(match self.at(1) {
                '0' => '\0',
                'a' => '\x07',
                'b' => '\x08',
                't' | '\t' => '\t',
                'n' => '\n',
                'v' => '\x0b',
                'f' => '\x0c',
                'r' => '\r',
                'e' => '\x1b',
                c @ (' ' | '"' | '/' | '\\') => c,
                'N' => '\u{85}',
                '_' => '\u{a0}',
                'L' => '\u{2028}',
                'P' => '\u{2029}',
                _ => return self.error(QUOTED, start, "found unknown escape character"),
            });
        }
        self.next();
        self.next();
        if length > 0 {
            let mut code: u32 = 0;
            for n in 0..length {
                let Some(digit) = self.at(n).to_digit(16) else {
                    return self.error(QUOTED, start, "did not find expected hexdecimal number");
                };
                code = code << 4 | digit;
            }
            match char::from_u32(code) {
                Some(c) => text.push(c),
                None => return self.error(QUOTED, start, "found invalid Unicode character escape code"),
            }
            for _ in 0..length {
                self.next();
            }
        }
        Ok(())
    }

    pub(super) fn scan_plain_scalar(&mut self) -> Result<()> {
        const PLAIN: &str = "while scanning a plain scalar";
        let start = self.mark;
        let mut end = start;
        let indent = self.indent + 1;
        let in_flow = self.flow_level > 0;
        let (mut text, mut spaces, mut leading, mut trailing) =
            (String::new(), String::new(), String::new(), String::new());
        let mut folded = false;
        while !self.at_document_indicator() && self.c() != '#' {
            loop {
                let c = self.c();
                if is_blankz(c) {
                    break;
                }
                if in_flow && c == ':' && ",?[]{}".contains(self.at(1)) {
                    return self.error(PLAIN, start, "found unexpected ':'");
                }
                if c == ':' && is_blankz(self.at(1)) || in_flow && ",[]{}".contains(c) {
                    break;
                }
                if folded {
                    push_folded(&mut text, &leading, &trailing);
                    leading.clear();
                    trailing.clear();
                    folded = false;
                } else {
                    text.push_str(&spaces);
                }
                spaces.clear();
                self.read(&mut text);
                end = self.mark;
            }
            if !is_blank(self.c()) && !is_break(self.c()) {
                break;
            }
            loop {
                let c = self.c();
                if is_blank(c) {
                    if folded && i64::from(self.mark.column) < indent && c == '\t' {
                        return self.error(PLAIN, start, "found a tab character that violates indentation");
                    }
                    if folded {
                        self.next();
                    } else {
                        self.read(&mut spaces);
                    }
                } else if is_break(c) {
                    if folded {
                        self.read_break(&mut trailing);
                    } else {
                        spaces.clear();
                        self.read_break(&mut leading);
                        folded = true;
                    }
                } else {
                    break;
                }
            }
            if !in_flow && i64::from(self.mark.column) < indent {
                break;
            }
        }
        if folded {
            self.simple_key_allowed = true;
        }
        self.tokens.push_back(Spanned { token: Token::Scalar { value: text, plain: true }, start, end });
        Ok(())
    }
}

fn push_folded(text: &mut String, leading: &str, trailing: &str) {
    if !leading.starts_with('\n') {
        text.push_str(leading);
        text.push_str(trailing);
    } else if trailing.is_empty() {
        text.push(' ');
    } else {
        text.push_str(trailing);
    }
}
