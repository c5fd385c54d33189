//! From tokens to events: libyaml 0.2.5's parser (see `scanner`).

use super::error::{Mark, YamlError, YamlErrorKind};
use super::scanner::{Scanner, Token};

type Result<T> = std::result::Result<T, Box<YamlError>>;

/// What a text contains, in order. The marks are where it begins.
#[derive(Debug)]
pub(super) enum Event {
    StreamStart,
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias { name: String },
    Scalar { anchor: Option<String>, tag: Option<String>, value: String, plain: bool },
    SequenceStart { anchor: Option<String>, tag: Option<String> },
    SequenceEnd,
    MappingStart { anchor: Option<String>, tag: Option<String> },
    MappingEnd,
}

#[derive(Clone, Copy, Debug)]
enum State {
    StreamStart,
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirstEntry,
    BlockSequenceEntry,
    IndentlessSequenceEntry,
    BlockMappingFirstKey,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirstEntry,
    FlowSequenceEntry,
    FlowSequenceEntryMappingKey,
    FlowSequenceEntryMappingValue,
    FlowSequenceEntryMappingEnd,
    FlowMappingFirstKey,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

pub(super) struct Parser<'a> {
    scanner: Scanner<'a>,
    state: State,
    states: Vec<State>,
    marks: Vec<Mark>,
    /// Handles and what they stand for.
    tags: Vec<(String, String)>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, max_depth: usize) -> Self {
        Self {
            scanner: Scanner::new(text, max_depth),
            state: State::StreamStart,
            states: Vec::new(),
            marks: Vec::new(),
            tags: Vec::new(),
        }
    }

    /// The next event. After the stream's end there are only more of them.
    pub(super) fn next(&mut self) -> Result<(Event, Mark)> {
        match self.state {
            State::StreamStart => {
                let mark = self.scanner.peek()?.start;
                self.scanner.skip();
                self.state = State::ImplicitDocumentStart;
                Ok((Event::StreamStart, mark))
            }
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(true, false),
            State::BlockSequenceFirstEntry => self.first(Self::block_sequence_entry),
            State::BlockSequenceEntry => self.block_sequence_entry(false),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingFirstKey => self.first(Self::block_mapping_key),
            State::BlockMappingKey => self.block_mapping_key(false),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirstEntry => self.first(Self::flow_sequence_entry),
            State::FlowSequenceEntry => self.flow_sequence_entry(false),
            State::FlowSequenceEntryMappingKey => self.flow_sequence_entry_mapping_key(),
            State::FlowSequenceEntryMappingValue => self.flow_sequence_entry_mapping_value(),
            State::FlowSequenceEntryMappingEnd => {
                self.state = State::FlowSequenceEntry;
                Ok((Event::MappingEnd, self.scanner.peek()?.start))
            }
            State::FlowMappingFirstKey => self.first(Self::flow_mapping_key),
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(),
            State::FlowMappingEmptyValue => {
                let mark = self.scanner.peek()?.start;
                Ok(self.empty(State::FlowMappingKey, mark))
            }
            State::End => Ok((Event::StreamEnd, Mark::default())),
        }
    }

    fn token(&mut self) -> Result<&Token> {
        Ok(&self.scanner.peek()?.token)
    }

    fn pop_state(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Takes the token that begins a collection, and remembers where.
    fn first(&mut self, entry: fn(&mut Self, bool) -> Result<(Event, Mark)>) -> Result<(Event, Mark)> {
        let mark = self.scanner.peek()?.start;
        self.marks.push(mark);
        self.scanner.skip();
        entry(self, true)
    }

    /// Ends a collection with the token that ends it.
    fn end(&mut self, event: Event) -> Result<(Event, Mark)> {
        let mark = self.scanner.peek()?.start;
        self.pop_state();
        self.marks.pop();
        self.scanner.skip();
        Ok((event, mark))
    }

    fn empty(&mut self, state: State, mark: Mark) -> (Event, Mark) {
        self.state = state;
        (Event::Scalar { anchor: None, tag: None, value: String::new(), plain: true }, mark)
    }

    fn error_in<T>(&mut self, context: &str, problem: &str) -> Result<T> {
        let at = self.scanner.peek()?.start;
        let begin = self.marks.pop().unwrap_or_default();
        Err(YamlError::new(YamlErrorKind::Parser, problem, at).within(context, begin))
    }

    fn document_start(&mut self, implicit: bool) -> Result<(Event, Mark)> {
        if !implicit {
            while *self.token()? == Token::DocumentEnd {
                self.scanner.skip();
            }
        }
        let next = self.scanner.peek()?;
        let start = next.start;
        match next.token {
            Token::StreamEnd => {
                self.state = State::End;
                self.scanner.skip();
                Ok((Event::StreamEnd, start))
            }
            Token::VersionDirective { .. } | Token::TagDirective { .. } | Token::DocumentStart => {
                self.directives()?;
                let next = self.scanner.peek()?;
                if next.token != Token::DocumentStart {
                    let problem = "did not find expected <document start>";
                    return Err(YamlError::new(YamlErrorKind::Parser, problem, next.start));
                }
                self.scanner.skip();
                self.states.push(State::DocumentEnd);
                self.state = State::DocumentContent;
                Ok((Event::DocumentStart, start))
            }
            _ if implicit => {
                self.directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
                Ok((Event::DocumentStart, start))
            }
            _ => {
                self.directives()?;
                let problem = "did not find expected <document start>";
                Err(YamlError::new(YamlErrorKind::Parser, problem, self.scanner.peek()?.start))
            }
        }
    }

    fn directives(&mut self) -> Result<()> {
        let error = |problem: &str, mark| Err(YamlError::new(YamlErrorKind::Parser, problem, mark));
        let mut version = false;
        loop {
            let next = self.scanner.peek()?;
            let mark = next.start;
            match &mut next.token {
                Token::VersionDirective { .. } if version => return error("found duplicate %YAML directive", mark),
                Token::VersionDirective { major: 1, minor: 1 | 2 } => version = true,
                Token::VersionDirective { .. } => return error("found incompatible YAML document", mark),
                Token::TagDirective { handle, prefix } => {
                    let (handle, prefix) = (std::mem::take(handle), std::mem::take(prefix));
                    if self.tags.iter().any(|(known, _)| *known == handle) {
                        return error("found duplicate %TAG directive", mark);
                    }
                    self.tags.push((handle, prefix));
                }
                _ => break,
            }
            self.scanner.skip();
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            if !self.tags.iter().any(|(known, _)| known == handle) {
                self.tags.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        Ok(())
    }

    fn document_content(&mut self) -> Result<(Event, Mark)> {
        let next = self.scanner.peek()?;
        match next.token {
            Token::VersionDirective { .. }
            | Token::TagDirective { .. }
            | Token::DocumentStart
            | Token::DocumentEnd
            | Token::StreamEnd => {
                let mark = next.start;
                let state = self.states.pop().unwrap_or(State::End);
                Ok(self.empty(state, mark))
            }
            _ => self.node(true, false),
        }
    }

    fn document_end(&mut self) -> Result<(Event, Mark)> {
        let next = self.scanner.peek()?;
        let mark = next.start;
        if next.token == Token::DocumentEnd {
            self.scanner.skip();
        }
        self.tags.clear();
        self.state = State::DocumentStart;
        Ok((Event::DocumentEnd, mark))
    }

    fn node(&mut self, block: bool, indentless: bool) -> Result<(Event, Mark)> {
        let next = self.scanner.peek()?;
        let mut start = next.start;
        if let Token::Alias(name) = &mut next.token {
            let name = std::mem::take(name);
            self.pop_state();
            self.scanner.skip();
            return Ok((Event::Alias { name }, start));
        }
        let (mut anchor, mut tag) = (None, None);
        for n in 0..2 {
            let next = self.scanner.peek()?;
            let mark = next.start;
            match &mut next.token {
                Token::Anchor(name) if anchor.is_none() => anchor = Some(std::mem::take(name)),
                Token::Tag { handle, suffix } if tag.is_none() => {
                    tag = Some((std::mem::take(handle), std::mem::take(suffix), mark));
                }
                _ => break,
            }
            if n == 0 {
                start = mark;
            }
            self.scanner.skip();
        }
        let tag = match tag {
            None => None,
            Some((handle, suffix, _)) if handle.is_empty() => Some(suffix),
            Some((handle, suffix, mark)) => match self.tags.iter().find(|(known, _)| *known == handle) {
                Some((_, prefix)) => Some(format!("{prefix}{suffix}")),
                None => {
                    return Err(YamlError::new(YamlErrorKind::Parser, "found undefined tag handle", mark)
                        .within("while parsing a node", start));
                }
            },
        };
        let next = self.scanner.peek()?;
        let event = match &mut next.token {
            Token::BlockEntry if indentless => {
                self.state = State::IndentlessSequenceEntry;
                Event::SequenceStart { anchor, tag }
            }
            Token::Scalar { value, plain } => {
                let (value, plain) = (std::mem::take(value), *plain);
                // `!` makes even quoted text as if it were plain
                let plain = if tag.as_deref() == Some("!") { true } else { plain && tag.is_none() };
                self.pop_state();
                self.scanner.skip();
                Event::Scalar { anchor, tag, value, plain }
            }
            Token::FlowSequenceStart => {
                self.state = State::FlowSequenceFirstEntry;
                Event::SequenceStart { anchor, tag }
            }
            Token::FlowMappingStart => {
                self.state = State::FlowMappingFirstKey;
                Event::MappingStart { anchor, tag }
            }
            Token::BlockSequenceStart if block => {
                self.state = State::BlockSequenceFirstEntry;
                Event::SequenceStart { anchor, tag }
            }
            Token::BlockMappingStart if block => {
                self.state = State::BlockMappingFirstKey;
                Event::MappingStart { anchor, tag }
            }
            _ if anchor.is_some() || tag.is_some() => {
                let plain = tag.as_deref().is_none_or(str::is_empty);
                self.pop_state();
                Event::Scalar { anchor, tag, value: String::new(), plain }
            }
            _ => {
                let context = if block { "while parsing a block node" } else { "while parsing a flow node" };
                let problem = "did not find expected node content";
                return Err(YamlError::new(YamlErrorKind::Parser, problem, next.start).within(context, start));
            }
        };
        Ok((event, start))
    }

    /// The node after an indicator, or nothing if one of `ends` follows.
    fn node_or_empty(&mut self, then: State, indentless: bool, ends: fn(&Token) -> bool) -> Result<(Event, Mark)> {
        let mark = self.scanner.peek()?.end;
        self.scanner.skip();
        if ends(self.token()?) {
            return Ok(self.empty(then, mark));
        }
        self.states.push(then);
        self.node(true, indentless)
    }

    fn block_sequence_entry(&mut self, _: bool) -> Result<(Event, Mark)> {
        match self.token()? {
            Token::BlockEntry => self.node_or_empty(State::BlockSequenceEntry, false, |token| {
                matches!(token, Token::BlockEntry | Token::BlockEnd)
            }),
            Token::BlockEnd => self.end(Event::SequenceEnd),
            _ => self.error_in("while parsing a block collection", "did not find expected '-' indicator"),
        }
    }

    fn indentless_sequence_entry(&mut self) -> Result<(Event, Mark)> {
        let next = self.scanner.peek()?;
        if next.token == Token::BlockEntry {
            return self.node_or_empty(State::IndentlessSequenceEntry, false, |token| {
                matches!(token, Token::BlockEntry | Token::Key | Token::Value | Token::BlockEnd)
            });
        }
        let mark = next.start;
        self.pop_state();
        Ok((Event::SequenceEnd, mark))
    }

    fn block_mapping_key(&mut self, _: bool) -> Result<(Event, Mark)> {
        match self.token()? {
            Token::Key => self.node_or_empty(State::BlockMappingValue, true, |token| {
                matches!(token, Token::Key | Token::Value | Token::BlockEnd)
            }),
            Token::BlockEnd => self.end(Event::MappingEnd),
            _ => self.error_in("while parsing a block mapping", "did not find expected key"),
        }
    }

    fn block_mapping_value(&mut self) -> Result<(Event, Mark)> {
        let next = self.scanner.peek()?;
        let mark = next.start;
        if next.token == Token::Value {
            return self.node_or_empty(State::BlockMappingKey, true, |token| {
                matches!(token, Token::Key | Token::Value | Token::BlockEnd)
            });
        }
        Ok(self.empty(State::BlockMappingKey, mark))
    }

    fn flow_node(&mut self, then: State) -> Result<(Event, Mark)> {
        self.states.push(then);
        self.node(false, false)
    }

    fn flow_sequence_entry(&mut self, first: bool) -> Result<(Event, Mark)> {
        if !first && *self.token()? != Token::FlowSequenceEnd {
            if *self.token()? != Token::FlowEntry {
                return self.error_in("while parsing a flow sequence", "did not find expected ',' or ']'");
            }
            self.scanner.skip();
        }
        let next = self.scanner.peek()?;
        let mark = next.start;
        match next.token {
            Token::FlowSequenceEnd => self.end(Event::SequenceEnd),
            // `[a: b]` is a map in a list
            Token::Key => {
                self.state = State::FlowSequenceEntryMappingKey;
                self.scanner.skip();
                Ok((Event::MappingStart { anchor: None, tag: None }, mark))
            }
            _ => self.flow_node(State::FlowSequenceEntry),
        }
    }

    fn flow_sequence_entry_mapping_key(&mut self) -> Result<(Event, Mark)> {
        let next = self.scanner.peek()?;
        if matches!(next.token, Token::Value | Token::FlowEntry | Token::FlowSequenceEnd) {
            // libyaml takes this token away
            let mark = next.end;
            self.scanner.skip();
            return Ok(self.empty(State::FlowSequenceEntryMappingValue, mark));
        }
        self.flow_node(State::FlowSequenceEntryMappingValue)
    }

    fn flow_sequence_entry_mapping_value(&mut self) -> Result<(Event, Mark)> {
        if *self.token()? == Token::Value {
            self.scanner.skip();
            if !matches!(self.token()?, Token::FlowEntry | Token::FlowSequenceEnd) {
                return self.flow_node(State::FlowSequenceEntryMappingEnd);
            }
        }
        let mark = self.scanner.peek()?.start;
        Ok(self.empty(State::FlowSequenceEntryMappingEnd, mark))
    }

    fn flow_mapping_key(&mut self, first: bool) -> Result<(Event, Mark)> {
        if !first && *self.token()? != Token::FlowMappingEnd {
            if *self.token()? != Token::FlowEntry {
                return self.error_in("while parsing a flow mapping", "did not find expected ',' or '}'");
            }
            self.scanner.skip();
        }
        match self.token()? {
            Token::FlowMappingEnd => self.end(Event::MappingEnd),
            Token::Key => {
                self.scanner.skip();
                let next = self.scanner.peek()?;
                if matches!(next.token, Token::Value | Token::FlowEntry | Token::FlowMappingEnd) {
                    let mark = next.start;
                    return Ok(self.empty(State::FlowMappingValue, mark));
                }
                self.flow_node(State::FlowMappingValue)
            }
            _ => self.flow_node(State::FlowMappingEmptyValue),
        }
    }

    fn flow_mapping_value(&mut self) -> Result<(Event, Mark)> {
        if *self.token()? == Token::Value {
            self.scanner.skip();
            if !matches!(self.token()?, Token::FlowEntry | Token::FlowMappingEnd) {
                return self.flow_node(State::FlowMappingKey);
            }
        }
        let mark = self.scanner.peek()?.start;
        Ok(self.empty(State::FlowMappingKey, mark))
    }
}
