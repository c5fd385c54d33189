//! From text to tokens: libyaml 0.2.5's scanner, which is what stock Salt reads YAML with.
//!
//! Ported from libyaml (MIT, © 2017-2020 Ingy döt Net, © 2006-2016 Kirill Simonov), because what counts is to take and
//! refuse the same texts with the same words. No crate did: those for YAML 1.2 differ, and the port libyaml-safer 0.3
//! panics on texts as short as `[!a,]`. Indexes into text are safe ones, and nesting is bounded here.

mod cursor;
mod scalar;
mod tag;

use std::collections::VecDeque;

use cursor::{is_blank, is_blankz, is_break};

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
}
