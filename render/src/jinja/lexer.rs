//! From a text to tokens, as Jinja's lexer does: delimiters, whitespace control, raw blocks, line statements.

use super::Settings;
use super::error::{JinjaError, Res};
use super::token::{OPERATORS, Tok, Token};

/// Upper bound on the tokens of a template: with what is made of them, each takes some 200 bytes.
const MAX_TOKENS: usize = 100_000;

/// The tokens of a text. What is wrong is a token too, since Jinja says it only when its parser gets there.
pub(super) fn tokenize(source: &str, settings: &Settings) -> Res<Vec<Token>> {
    let place = |text: &str| source.find(text).unwrap_or(usize::MAX);
    let mut delimiters = [
        (Begin::Comment, settings.comment_start_string.as_str()),
        (Begin::Block, &settings.block_start_string),
        (Begin::Variable, &settings.variable_start_string),
    ]
    .map(|(kind, text)| (kind, text, place(text)));
    delimiters.sort_by_key(|(_, text, _)| std::cmp::Reverse(text.len()));
    let mut lexer = Lexer { source, at: 0, line: 1, settings, tokens: Vec::new(), too_many: false, delimiters };
    if let Err(message) = lexer.root() {
        lexer.push(Tok::Wrong(message));
    }
    if lexer.too_many {
        return Err(JinjaError::limit(format!("the template has more than {MAX_TOKENS} words and signs")));
    }
    // The end has the line on which the last token began, as in Jinja: there is what was not closed.
    lexer.line = lexer.tokens.last().map_or(1, |token| token.line);
    lexer.push(Tok::Eof);
    Ok(lexer.tokens)
}

/// Line ends become `\n`; one at the end is dropped.
pub(super) fn normalize(source: &str, settings: &Settings) -> String {
    let mut text = source.replace("\r\n", "\n").replace('\r', "\n");
    if !settings.keep_trailing_newline && text.ends_with('\n') {
        text.pop();
    }
    text
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
    settings: &'a Settings,
    tokens: Vec<Token>,
    too_many: bool,
    /// The delimiters, the longest first, and where each is next.
    delimiters: [(Begin, &'a str, usize); 3],
}

#[derive(Clone, Copy, PartialEq)]
enum Begin {
    Variable,
    Block,
    Comment,
    LineStatement,
    LineComment,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn push(&mut self, kind: Tok) {
        self.too_many |= self.tokens.len() >= MAX_TOKENS;
        if self.too_many {
            // nothing more is read
            self.at = self.source.len();
            return;
        }
        self.tokens.push(Token { line: self.line, kind });
    }

    fn advance(&mut self, bytes: usize) {
        // the end, if too many tokens ended the reading
        let end = (self.at + bytes).min(self.source.len());
        let passed = &self.source[self.at..end];
        self.line += passed.bytes().filter(|b| *b == b'\n').count() as u32;
        self.at = end;
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.advance(rest.len() - rest.trim_start().len());
    }

    /// The next delimiter: its kind, its place, its length.
    fn find_begin(&mut self) -> Option<(Begin, usize, usize)> {
        let rest = self.rest();
        let s = self.settings;
        let mut best: Option<(Begin, usize, usize)> = None;
        for (kind, text, known) in &mut self.delimiters {
            // each text is looked through once for each delimiter, not once for each tag
            if *known < self.at {
                *known = rest.find(*text).map_or(usize::MAX, |at| self.at + at);
            }
            let at = known.saturating_sub(self.at);
            if *known < usize::MAX && best.is_none_or(|(_, other, _)| at < other) {
                best = Some((*kind, at, text.len()));
            }
        }
        for (kind, prefix) in
            [(Begin::LineStatement, &s.line_statement_prefix), (Begin::LineComment, &s.line_comment_prefix)]
        {
            let Some(prefix) = prefix.as_deref().filter(|p| !p.is_empty()) else { continue };
            let mut from = 0;
            while let Some(found) = rest[from..].find(prefix) {
                let at = from + found;
                let whole = self.at + at;
                let line_start = self.source[..whole].rfind('\n').map_or(0, |n| n + 1);
                let before = &self.source[line_start..whole];
                let blank = before.chars().all(|c| matches!(c, ' ' | '\t' | '\x0b'));
                if blank && line_start >= self.at || kind == Begin::LineComment {
                    let start = if blank { line_start.max(self.at) - self.at } else { at };
                    if best.is_none_or(|(_, other, _)| start < other) {
                        best = Some((kind, start, at + prefix.len() - start));
                    }
                    break;
                }
                from = at + prefix.len();
            }
        }
        best
    }

    fn root(&mut self) -> Result<(), String> {
        while self.at < self.source.len() {
            let Some((kind, offset, length)) = self.find_begin() else {
                let data = self.rest().to_owned();
                self.push(Tok::Data(data));
                self.advance(self.rest().len());
                break;
            };
            let data = &self.rest()[..offset];
            let starts_line = self.at == 0 || self.source[..self.at].ends_with('\n');
            let sign = self.rest()[offset + length..].chars().next().filter(|c| matches!(c, '-' | '+'));
            let sign = sign.filter(|_| !matches!(kind, Begin::LineStatement | Begin::LineComment));
            let mut kept = data;
            if sign == Some('-') {
                kept = data.trim_end();
            } else if sign.is_none() && self.settings.lstrip_blocks && matches!(kind, Begin::Block | Begin::Comment) {
                let line = data.rfind('\n').map_or(0, |n| n + 1);
                if (line > 0 || starts_line) && data[line..].chars().all(char::is_whitespace) {
                    kept = &data[..line];
                }
            }
            if !kept.is_empty() {
                self.push(Tok::Data(kept.to_owned()));
            }
            self.advance(offset + length + usize::from(sign.is_some()));
            match kind {
                Begin::Comment => self.comment()?,
                Begin::Variable => {
                    self.push(Tok::VariableBegin);
                    self.code(Begin::Variable)?;
                }
                Begin::Block => {
                    if !self.raw()? {
                        self.push(Tok::BlockBegin);
                        self.code(Begin::Block)?;
                    }
                }
                Begin::LineStatement => {
                    self.push(Tok::BlockBegin);
                    self.code(Begin::LineStatement)?;
                }
                Begin::LineComment => {
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.advance(end);
                }
            }
        }
        Ok(())
    }

    /// Passes the end of a block or comment with its sign and the space that belongs to it.
    fn pass_end(&mut self, end: &str, trim: bool) -> bool {
        let rest = self.rest();
        if rest.starts_with('-') && rest[1..].starts_with(end) {
            self.advance(1 + end.len());
            self.skip_space();
        } else if rest.starts_with('+') && rest[1..].starts_with(end) && trim {
            self.advance(1 + end.len());
        } else if rest.starts_with(end) {
            self.advance(end.len());
            if trim && self.settings.trim_blocks && self.rest().starts_with('\n') {
                self.advance(1);
            }
        } else {
            return false;
        }
        true
    }

    fn comment(&mut self) -> Result<(), String> {
        let end = self.settings.comment_end_string.clone();
        if self.rest().is_empty() {
            return Ok(());
        }
        let Some(found) = self.rest().find(&end) else {
            return Err("Missing end of comment tag".to_owned());
        };
        let signed = found > 0 && matches!(self.rest().as_bytes()[found - 1], b'-' | b'+');
        self.advance(found - usize::from(signed));
        self.pass_end(&end, true);
        Ok(())
    }

    /// Reads a raw block, if this is one.
    fn raw(&mut self) -> Result<bool, String> {
        let (begin, end) = (self.settings.block_start_string.clone(), self.settings.block_end_string.clone());
        let rest = self.rest();
        let Some(after) = rest.trim_start().strip_prefix("raw") else { return Ok(false) };
        let after = after.trim_start();
        let signed = after.strip_prefix('-').is_some_and(|a| a.starts_with(&end));
        if !signed && !after.starts_with(&end) {
            return Ok(false);
        }
        self.advance(rest.len() - after.len() + usize::from(signed) + end.len());
        if signed {
            self.skip_space();
        }
        let rest = self.rest();
        if rest.is_empty() {
            return Ok(true);
        }
        let mut from = 0;
        while let Some(found) = rest[from..].find(&begin) {
            let at = from + found;
            let tag = &rest[at + begin.len()..];
            let sign = tag.chars().next().filter(|c| matches!(c, '-' | '+'));
            let name = tag[usize::from(sign.is_some())..].trim_start();
            let tail = name.strip_prefix("endraw").map(str::trim_start);
            let ends = |t: &str| t.starts_with(&end) || t.strip_prefix(['-', '+']).is_some_and(|t| t.starts_with(&end));
            if let Some(tail) = tail.filter(|t| ends(t)) {
                let mut data = &rest[..at];
                if sign == Some('-') {
                    data = data.trim_end();
                } else if sign.is_none() && self.settings.lstrip_blocks {
                    let line = data.rfind('\n').map_or(0, |n| n + 1);
                    if line > 0 && data[line..].chars().all(char::is_whitespace) {
                        data = &data[..line];
                    }
                }
                if !data.is_empty() {
                    self.push(Tok::Data(data.to_owned()));
                }
                self.advance(rest.len() - tail.len());
                self.pass_end(&end, true);
                return Ok(true);
            }
            from = at + begin.len();
        }
        Err("Missing end of raw directive".to_owned())
    }

    /// Reads the inside of a block or print statement, and its end.
    fn code(&mut self, kind: Begin) -> Result<(), String> {
        let s = self.settings;
        let end = if kind == Begin::Variable { &s.variable_end_string } else { &s.block_end_string };
        let mut open: Vec<char> = Vec::new();
        loop {
            if kind == Begin::LineStatement {
                let rest = self.rest();
                let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\x0b', '\r']).len();
                if open.is_empty() && (rest[blank..].starts_with('\n') || rest[blank..].is_empty()) {
                    self.push(Tok::BlockEnd);
                    self.advance(blank + usize::from(!rest[blank..].is_empty()));
                    return Ok(());
                }
                self.advance(blank);
            }
            if kind != Begin::LineStatement || !open.is_empty() {
                self.skip_space();
            }
            let line = self.line;
            if kind != Begin::LineStatement && open.is_empty() && self.pass_end(end, kind == Begin::Block) {
                let kind = if kind == Begin::Variable { Tok::VariableEnd } else { Tok::BlockEnd };
                self.tokens.push(Token { line, kind });
                return Ok(());
            }
            let Some(c) = self.rest().chars().next() else { return Ok(()) };
            if c.is_ascii_digit() {
                let token = self.number()?;
                self.push(token);
            } else if c == '_' || c.is_alphabetic() {
                let rest = self.rest();
                let length = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
                self.push(Tok::Name(rest[..length].to_owned()));
                self.advance(length);
            } else if c == '\'' || c == '"' {
                self.text(c)?;
            } else if let Some(op) = OPERATORS.iter().find(|op| self.rest().starts_with(**op)) {
                balance(op, &mut open)?;
                self.push(Tok::Op(op));
                self.advance(op.len());
            } else {
                let at = self.source[..self.at].chars().count();
                return Err(format!("unexpected char {:?} at {at}", c).replace('"', "'"));
            }
        }
    }

    fn number(&mut self) -> Result<Tok, String> {
        let rest = self.rest();
        let (length, number) = super::number::read_literal(rest, self.source[..self.at].ends_with('.'))?;
        self.advance(length);
        Ok(number)
    }

    fn text(&mut self, quote: char) -> Result<(), String> {
        let rest = self.rest();
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == quote => {
                    let text = super::number::unescape(&rest[1..at])?;
                    self.push(Tok::Text(text));
                    self.advance(at + 1);
                    return Ok(());
                }
                _ => {}
            }
        }
        let at = self.source[..self.at].chars().count();
        Err(format!("unexpected char {} at {at}", if quote == '\'' { "\"'\"" } else { "'\"'" }))
    }
}

fn balance(op: &str, open: &mut Vec<char>) -> Result<(), String> {
    match op {
        "(" => open.push(')'),
        "[" => open.push(']'),
        "{" => open.push('}'),
        ")" | "]" | "}" => match open.pop() {
            None => return Err(format!("unexpected '{op}'")),
            Some(expected) if !op.starts_with(expected) => {
                return Err(format!("unexpected '{op}', expected '{expected}'"));
            }
            Some(_) => {}
        },
        _ => {}
    }
    Ok(())
}
