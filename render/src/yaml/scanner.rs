//! From text to tokens: libyaml 0.2.5's scanner, which is what stock Salt reads YAML with.
//!
//! Ported from libyaml (MIT, © 2017-2020 Ingy döt Net, © 2006-2016 Kirill Simonov), because what counts is to take and
//! refuse the same texts with the same words. No crate did: those for YAML 1.2 differ, and the port libyaml-safer 0.3
//! panics on texts as short as `[!a,]`. Indexes into text are safe ones, and nesting is bounded here.

use std::collections::VecDeque;

use super::error::{Mark, YamlError, YamlErrorKind};

type Result<T> = std::result::Result<T, Box<YamlError>>;

/// The distance in characters between a key's begin and its `:`.
const MAX_SIMPLE_KEY: u32 = 1024;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    StreamStart,
    StreamEnd,
    VersionDirective { major: u32, minor: u32 },
    TagDirective { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar { value: String, plain: bool },
}

#[derive(Clone, Debug)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) start: Mark,
    pub(super) end: Mark,
}

#[derive(Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    required: bool,
    token: usize,
    mark: Mark,
}

pub(super) struct Scanner<'a> {
    rest: &'a str,
    mark: Mark,
    tokens: VecDeque<Spanned>,
    /// Tokens that were taken.
    parsed: usize,
    started: bool,
    /// Whether the first token is known to be no key.
    available: bool,
    flow_level: usize,
    indent: i64,
    indents: Vec<i64>,
    simple_key_allowed: bool,
    simple_keys: Vec<SimpleKey>,
    max_depth: usize,
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// The end of the text is `\0`, which no text contains.
fn is_breakz(c: char) -> bool {
    c == '\0' || is_break(c)
}

fn is_blankz(c: char) -> bool {
    is_blank(c) || is_breakz(c)
}

fn is_alpha(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

impl<'a> Scanner<'a> {
    /// The text must not contain `\0`.
    pub(super) fn new(text: &'a str, max_depth: usize) -> Self {
        Self {
            rest: text,
            mark: Mark::default(),
            tokens: VecDeque::new(),
            parsed: 0,
            started: false,
            available: false,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            simple_key_allowed: true,
            simple_keys: vec![SimpleKey::default()],
            max_depth,
        }
    }

    /// The next token, which stays.
    pub(super) fn peek(&mut self) -> Result<&mut Spanned> {
        if !self.available {
            self.fetch_more_tokens()?;
        }
        let mark = self.mark;
        self.tokens.front_mut().ok_or_else(|| YamlError::new(YamlErrorKind::Scanner, "there are no more tokens", mark))
    }

    /// Drops the next token.
    pub(super) fn skip(&mut self) {
        self.available = false;
        self.parsed += 1;
        self.tokens.pop_front();
    }

    fn error<T>(&self, context: &str, start: Mark, problem: &str) -> Result<T> {
        Err(YamlError::new(YamlErrorKind::Scanner, problem, self.mark).within(context, start))
    }

    fn error_here<T>(&self, problem: &str) -> Result<T> {
        Err(YamlError::new(YamlErrorKind::Scanner, problem, self.mark))
    }

    // Characters.

    fn c(&self) -> char {
        self.rest.chars().next().unwrap_or('\0')
    }

    fn at(&self, n: usize) -> char {
        self.rest.chars().nth(n).unwrap_or('\0')
    }

    fn next(&mut self) {
        let mut chars = self.rest.chars();
        if chars.next().is_some() {
            self.rest = chars.as_str();
            self.mark.index += 1;
            self.mark.column += 1;
        }
    }

    fn read(&mut self, into: &mut String) {
        into.push(self.c());
        self.next();
    }

    fn skip_break(&mut self) {
        let chars = if self.rest.starts_with("\r\n") { 2 } else { 1 };
        if is_break(self.c()) {
            for _ in 0..chars {
                self.next();
            }
            self.mark.column = 0;
            self.mark.line += 1;
        }
    }

    /// Reads a line break: all are `\n`, but for Unicode's separators, which stay.
    fn read_break(&mut self, into: &mut String) {
        match self.c() {
            c @ ('\u{2028}' | '\u{2029}') => into.push(c),
            c if is_break(c) => into.push('\n'),
            _ => return,
        }
        self.skip_break();
    }

    fn skip_blanks(&mut self) {
        while is_blank(self.c()) {
            self.next();
        }
    }

    fn skip_comment(&mut self) {
        if self.c() == '#' {
            while !is_breakz(self.c()) {
                self.next();
            }
        }
    }

    fn at_document_indicator(&self) -> bool {
        self.mark.column == 0 && (self.rest.starts_with("---") || self.rest.starts_with("...")) && is_blankz(self.at(3))
    }

    // What can begin here.

    fn fetch_more_tokens(&mut self) -> Result<()> {
        loop {
            if !self.tokens.is_empty() {
                self.stale_simple_keys()?;
                let parsed = self.parsed;
                if !self.simple_keys.iter().any(|key| key.possible && key.token == parsed) {
                    break;
                }
            }
            self.fetch_next_token()?;
        }
        self.available = true;
        Ok(())
    }

    fn fetch_next_token(&mut self) -> Result<()> {
        if !self.started {
            self.started = true;
            self.push(Token::StreamStart, self.mark);
            return Ok(());
        }
        self.scan_to_next_token();
        self.stale_simple_keys()?;
        self.unroll_indent(i64::from(self.mark.column));
        let (c, in_flow) = (self.c(), self.flow_level > 0);
        let blank_follows = is_blankz(self.at(1));
        match c {
            '\0' => self.fetch_stream_end(),
            '%' if self.mark.column == 0 => self.fetch_directive(),
            '-' | '.' if self.at_document_indicator() => {
                self.fetch_document_indicator(if c == '-' { Token::DocumentStart } else { Token::DocumentEnd })
            }
            '[' => self.fetch_flow_start(Token::FlowSequenceStart),
            '{' => self.fetch_flow_start(Token::FlowMappingStart),
            ']' => self.fetch_flow_end(Token::FlowSequenceEnd),
            '}' => self.fetch_flow_end(Token::FlowMappingEnd),
            ',' => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                self.push_character(Token::FlowEntry)
            }
            '-' if blank_follows => self.fetch_block_entry(),
            '?' if in_flow || blank_follows => self.fetch_key(),
            ':' if in_flow || blank_follows => self.fetch_value(),
            '*' | '&' => {
                self.begin_simple_key()?;
                self.scan_anchor(c == '*')
            }
            '!' => {
                self.begin_simple_key()?;
                self.scan_tag()
            }
            '|' | '>' if !in_flow => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                self.scan_block_scalar(c == '|')
            }
            '\'' | '"' => {
                self.begin_simple_key()?;
                self.scan_flow_scalar(c == '\'')
            }
            '-' if !is_blank(self.at(1)) => self.fetch_plain(),
            '?' | ':' if !in_flow && !blank_follows => self.fetch_plain(),
            '-' | '?' | ':' | '#' | '|' | '>' | '%' | '@' | '`' => self.no_token(),
            c if is_blankz(c) => self.no_token(),
            _ => self.fetch_plain(),
        }
    }

    fn no_token(&self) -> Result<()> {
        self.error("while scanning for the next token", self.mark, "found character that cannot start any token")
    }

    fn fetch_plain(&mut self) -> Result<()> {
        self.begin_simple_key()?;
        self.scan_plain_scalar()
    }

    fn push(&mut self, token: Token, start: Mark) {
        self.tokens.push_back(Spanned { token, start, end: self.mark });
    }

    fn push_character(&mut self, token: Token) -> Result<()> {
        let start = self.mark;
        self.next();
        self.push(token, start);
        Ok(())
    }

    // Keys that are only known as such when their `:` comes.

    fn stale_simple_keys(&mut self) -> Result<()> {
        let at = self.mark;
        for n in 0..self.simple_keys.len() {
            let key = self.simple_keys[n];
            if key.possible && (key.mark.line < at.line || key.mark.index + MAX_SIMPLE_KEY < at.index) {
                if key.required {
                    return self.error("while scanning a simple key", key.mark, "could not find expected ':'");
                }
                self.simple_keys[n].possible = false;
            }
        }
        Ok(())
    }

    fn begin_simple_key(&mut self) -> Result<()> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        Ok(())
    }

    fn save_simple_key(&mut self) -> Result<()> {
        if self.simple_key_allowed {
            let required = self.flow_level == 0 && self.indent == i64::from(self.mark.column);
            self.remove_simple_key()?;
            if let Some(key) = self.simple_keys.last_mut() {
                let token = self.parsed + self.tokens.len();
                *key = SimpleKey { possible: true, required, token, mark: self.mark };
            }
        }
        Ok(())
    }

    fn remove_simple_key(&mut self) -> Result<()> {
        let Some(key) = self.simple_keys.last_mut() else { return Ok(()) };
        if std::mem::take(&mut key.possible) && key.required {
            let mark = key.mark;
            return self.error("while scanning a simple key", mark, "could not find expected ':'");
        }
        Ok(())
    }

    // Indentation.

    fn check_depth(&self) -> Result<()> {
        if self.flow_level + self.indents.len() > self.max_depth {
            return Err(YamlError::limit(format!("more than {} levels", self.max_depth), self.mark));
        }
        Ok(())
    }

    /// Begins a block collection if the column is beyond the last one's. `at` is the place of its token.
    fn roll_indent(&mut self, column: u32, at: Option<usize>, token: Token, mark: Mark) -> Result<()> {
        if self.flow_level > 0 || self.indent >= i64::from(column) {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = i64::from(column);
        self.check_depth()?;
        let token = Spanned { token, start: mark, end: mark };
        match at {
            Some(at) => self.tokens.insert(at.min(self.tokens.len()), token),
            None => self.tokens.push_back(token),
        }
        Ok(())
    }

    fn unroll_indent(&mut self, column: i64) {
        while self.flow_level == 0 && self.indent > column {
            self.push(Token::BlockEnd, self.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    // Tokens.

    fn end_block(&mut self) -> Result<()> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        Ok(())
    }

    fn fetch_stream_end(&mut self) -> Result<()> {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.end_block()?;
        self.push(Token::StreamEnd, self.mark);
        Ok(())
    }

    fn fetch_document_indicator(&mut self, token: Token) -> Result<()> {
        self.end_block()?;
        let start = self.mark;
        for _ in 0..3 {
            self.next();
        }
        self.push(token, start);
        Ok(())
    }

    fn fetch_flow_start(&mut self, token: Token) -> Result<()> {
        self.save_simple_key()?;
        self.simple_keys.push(SimpleKey::default());
        self.flow_level += 1;
        self.check_depth()?;
        self.simple_key_allowed = true;
        self.push_character(token)
    }

    fn fetch_flow_end(&mut self, token: Token) -> Result<()> {
        self.remove_simple_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            self.simple_keys.pop();
        }
        self.simple_key_allowed = false;
        self.push_character(token)
    }

    fn fetch_block_entry(&mut self) -> Result<()> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.error_here("block sequence entries are not allowed in this context");
            }
            self.roll_indent(self.mark.column, None, Token::BlockSequenceStart, self.mark)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.push_character(Token::BlockEntry)
    }

    fn fetch_key(&mut self) -> Result<()> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.error_here("mapping keys are not allowed in this context");
            }
            self.roll_indent(self.mark.column, None, Token::BlockMappingStart, self.mark)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.push_character(Token::Key)
    }

    fn fetch_value(&mut self) -> Result<()> {
        let key = self.simple_keys.last().copied().unwrap_or_default();
        if key.possible {
            if let Some(key) = self.simple_keys.last_mut() {
                key.possible = false;
            }
            let at = key.token.saturating_sub(self.parsed).min(self.tokens.len());
            self.tokens.insert(at, Spanned { token: Token::Key, start: key.mark, end: key.mark });
            self.roll_indent(key.mark.column, Some(at), Token::BlockMappingStart, key.mark)?;
            self.simple_key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.simple_key_allowed {
                    return self.error_here("mapping values are not allowed in this context");
                }
                self.roll_indent(self.mark.column, None, Token::BlockMappingStart, self.mark)?;
            }
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.push_character(Token::Value)
    }

    fn scan_to_next_token(&mut self) {
        loop {
            if self.mark.column == 0 && self.c() == '\u{feff}' {
                self.next();
            }
            // a tab may not be where indentation counts
            let tabs = self.flow_level > 0 || !self.simple_key_allowed;
            while self.c() == ' ' || tabs && self.c() == '\t' {
                self.next();
            }
            self.skip_comment();
            if !is_break(self.c()) {
                break;
            }
            self.skip_break();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }

    fn fetch_directive(&mut self) -> Result<()> {
        const DIRECTIVE: &str = "while scanning a directive";
        self.end_block()?;
        let start = self.mark;
        self.next();
        let name = self.scan_word();
        if name.is_empty() {
            return self.error(DIRECTIVE, start, "could not find expected directive name");
        }
        if !is_blankz(self.c()) {
            return self.error(DIRECTIVE, start, "found unexpected non-alphabetical character");
        }
        let token = match name.as_str() {
            "YAML" => self.scan_version(start)?,
            "TAG" => self.scan_tag_directive(start)?,
            _ => return self.error(DIRECTIVE, start, "found unknown directive name"),
        };
        self.push(token, start);
        self.skip_blanks();
        self.skip_comment();
        if !is_breakz(self.c()) {
            return self.error(DIRECTIVE, start, "did not find expected comment or line break");
        }
        self.skip_break();
        Ok(())
    }

    fn scan_word(&mut self) -> String {
        let mut word = String::new();
        while is_alpha(self.c()) {
            self.read(&mut word);
        }
        word
    }

    fn scan_version(&mut self, start: Mark) -> Result<Token> {
        self.skip_blanks();
        let major = self.scan_version_number(start)?;
        if self.c() != '.' {
            return self.error(
                "while scanning a %YAML directive",
                start,
                "did not find expected digit or '.' character",
            );
        }
        self.next();
        let minor = self.scan_version_number(start)?;
        Ok(Token::VersionDirective { major, minor })
    }

    fn scan_version_number(&mut self, start: Mark) -> Result<u32> {
        const VERSION: &str = "while scanning a %YAML directive";
        let (mut number, mut length) = (0, 0);
        while let Some(digit) = self.c().to_digit(10) {
            length += 1;
            if length > 9 {
                return self.error(VERSION, start, "found extremely long version number");
            }
            number = number * 10 + digit;
            self.next();
        }
        if length == 0 {
            return self.error(VERSION, start, "did not find expected version number");
        }
        Ok(number)
    }

    fn scan_tag_directive(&mut self, start: Mark) -> Result<Token> {
        const TAG: &str = "while scanning a %TAG directive";
        self.skip_blanks();
        let handle = self.scan_tag_handle(true, start)?;
        if !is_blank(self.c()) {
            return self.error(TAG, start, "did not find expected whitespace");
        }
        self.skip_blanks();
        let prefix = self.scan_tag_uri(true, true, "", start)?;
        if !is_blankz(self.c()) {
            return self.error(TAG, start, "did not find expected whitespace or line break");
        }
        Ok(Token::TagDirective { handle, prefix })
    }

    fn scan_anchor(&mut self, alias: bool) -> Result<()> {
        let start = self.mark;
        self.next();
        let name = self.scan_word();
        if name.is_empty() || !(is_blankz(self.c()) || "?:,]}%@`".contains(self.c())) {
            let context = if alias { "while scanning an alias" } else { "while scanning an anchor" };
            return self.error(context, start, "did not find expected alphabetic or numeric character");
        }
        self.push(if alias { Token::Alias(name) } else { Token::Anchor(name) }, start);
        Ok(())
    }

    fn scan_tag(&mut self) -> Result<()> {
        const TAG: &str = "while scanning a tag";
        let start = self.mark;
        let (handle, suffix);
        if self.at(1) == '<' {
            self.next();
            self.next();
            handle = String::new();
            suffix = self.scan_tag_uri(true, false, "", start)?;
            if self.c() != '>' {
                return self.error(TAG, start, "did not find the expected '>'");
            }
            self.next();
        } else {
            let read = self.scan_tag_handle(false, start)?;
            if read.len() > 1 && read.ends_with('!') {
                suffix = self.scan_tag_uri(false, false, "", start)?;
                handle = read;
            } else {
                let rest = self.scan_tag_uri(false, false, &read, start)?;
                // `!` alone is a tag, not a handle
                (handle, suffix) =
                    if rest.is_empty() { (String::new(), "!".to_owned()) } else { ("!".to_owned(), rest) };
            }
        }
        if !is_blankz(self.c()) && (self.flow_level == 0 || self.c() != ',') {
            return self.error(TAG, start, "did not find expected whitespace or line break");
        }
        self.push(Token::Tag { handle, suffix }, start);
        Ok(())
    }

    fn scan_tag_handle(&mut self, directive: bool, start: Mark) -> Result<String> {
        if self.c() != '!' {
            let context = if directive { "while scanning a tag directive" } else { "while scanning a tag" };
            return self.error(context, start, "did not find expected '!'");
        }
        let mut handle = String::new();
        self.read(&mut handle);
        handle.push_str(&self.scan_word());
        if self.c() == '!' {
            self.read(&mut handle);
        } else if directive && handle != "!" {
            return self.error("while parsing a tag directive", start, "did not find expected '!'");
        }
        Ok(handle)
    }

    /// What of a tag follows its handle. `head` is text that turned out to be no handle.
    fn scan_tag_uri(&mut self, verbatim: bool, directive: bool, head: &str, start: Mark) -> Result<String> {
        let mut uri = head.get(1..).unwrap_or_default().to_owned();
        let mut length = head.len();
        loop {
            match self.c() {
                '%' => self.scan_uri_escape(directive, start, &mut uri)?,
                c if is_alpha(c) || ";/?:@&=+$.!~*'()".contains(c) || verbatim && ",[]".contains(c) => {
                    self.read(&mut uri);
                }
                _ => break,
            }
            length += 1;
        }
        if length == 0 {
            let context = if directive { "while parsing a %TAG directive" } else { "while parsing a tag" };
            return self.error(context, start, "did not find expected tag URI");
        }
        Ok(uri)
    }

    fn scan_uri_escape(&mut self, directive: bool, start: Mark, into: &mut String) -> Result<()> {
        let context = if directive { "while parsing a %TAG directive" } else { "while parsing a tag" };
        let mut octets = Vec::new();
        let mut width = 1;
        while octets.len() < width {
            let digits = (self.at(1).to_digit(16), self.at(2).to_digit(16));
            let ('%', (Some(high), Some(low))) = (self.c(), digits) else {
                return self.error(context, start, "did not find URI escaped octet");
            };
            let octet = (high << 4 | low) as u8;
            if octets.is_empty() {
                width = match octet.leading_ones() {
                    0 => 1,
                    n @ 2..=4 => n as usize,
                    _ => return self.error(context, start, "found an incorrect leading UTF-8 octet"),
                };
            } else if octet & 0xc0 != 0x80 {
                return self.error(context, start, "found an incorrect trailing UTF-8 octet");
            }
            octets.push(octet);
            for _ in 0..3 {
                self.next();
            }
        }
        match std::str::from_utf8(&octets) {
            Ok(text) => into.push_str(text),
            Err(_) => return self.error(context, start, "found an incorrect trailing UTF-8 octet"),
        }
        Ok(())
    }

    fn scan_block_scalar(&mut self, literal: bool) -> Result<()> {
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

    fn scan_flow_scalar(&mut self, single: bool) -> Result<()> {
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

    fn scan_plain_scalar(&mut self) -> Result<()> {
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
