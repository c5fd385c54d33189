//! From nodes to text: libyaml 0.2.5's emitter (see `scanner`), which is what `salt.utils.yaml.safe_dump` writes with.
//!
//! libyaml is fed events and keeps a stack of states; we have the nodes, so each state is a function.

use super::represent::{Id, Kind, Node, Style};

/// Upper bound on a key that is written without `?`, in bytes with its anchor and tag.
const MAX_SIMPLE_KEY: usize = 128;

/// How the text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub(super) indent: i64,
    pub(super) width: i64,
    pub(super) unicode: bool,
    /// Upper bound on the bytes of the text.
    pub(super) max_bytes: usize,
}

/// The text has more bytes than allowed.
pub(super) struct TooLong;

type Result = std::result::Result<(), TooLong>;

pub(super) fn emit(nodes: &[Node], root: Id, format: Format) -> std::result::Result<String, TooLong> {
    let anchors = Anchors::number(nodes, root);
    let mut emitter = Emitter {
        nodes,
        anchors,
        format,
        out: String::new(),
        indent: -1,
        flow_level: 0,
        column: 0,
        whitespace: true,
        indention: true,
        open_ended: false,
    };
    emitter.node(root, Place { mapping: false, simple_key: false })?;
    emitter.write_indent();
    if emitter.open_ended {
        emitter.write_indicator("...", true, false, false);
        emitter.write_indent();
    }
    Ok(emitter.out)
}

/// Which nodes are referred to more than once, by what number, and which were written.
struct Anchors {
    numbers: Vec<u32>,
    written: Vec<bool>,
}

impl Anchors {
    fn number(nodes: &[Node], root: Id) -> Self {
        let mut seen = vec![false; nodes.len()];
        let mut numbers = vec![0; nodes.len()];
        let mut last = 0;
        let mut pile = vec![root];
        while let Some(id) = pile.pop() {
            if std::mem::replace(&mut seen[id], true) {
                if numbers[id] == 0 {
                    last += 1;
                    numbers[id] = last;
                }
                continue;
            }
            match &nodes[id].kind {
                Kind::Scalar { .. } => {}
                Kind::Sequence { items, .. } => pile.extend(items.iter().rev()),
                Kind::Mapping { entries, .. } => {
                    pile.extend(entries.iter().rev().flat_map(|(key, value)| [*value, *key]));
                }
            }
        }
        Self { numbers, written: vec![false; nodes.len()] }
    }
}

/// What is around a node.
#[derive(Clone, Copy)]
struct Place {
    mapping: bool,
    simple_key: bool,
}

const ITEM: Place = Place { mapping: false, simple_key: false };
const KEY: Place = Place { mapping: true, simple_key: false };
const SIMPLE_KEY: Place = Place { mapping: true, simple_key: true };
const VALUE: Place = Place { mapping: true, simple_key: false };

/// What a scalar allows.
struct Analysis {
    multiline: bool,
    flow_plain: bool,
    block_plain: bool,
    single_quoted: bool,
    block: bool,
}

struct Emitter<'a> {
    nodes: &'a [Node],
    anchors: Anchors,
    format: Format,
    out: String,
    indent: i64,
    flow_level: usize,
    column: i64,
    /// Whether the last character was white space.
    whitespace: bool,
    /// Whether the last characters were indentation, or `-`, `?` and `:`.
    indention: bool,
    /// Whether the last text ends in line breaks that count.
    open_ended: bool,
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blankz(c: Option<char>) -> bool {
    c.is_none_or(|c| matches!(c, ' ' | '\t') || is_break(c))
}

/// libyaml's: without what has four bytes in UTF-8.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

impl Emitter<'_> {
    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_text(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count() as i64;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn write_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }

    fn write_indent(&mut self) {
        let indent = self.indent.max(0);
        if !self.indention || self.column > indent || self.column == indent && !self.whitespace {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn write_indicator(&mut self, text: &str, need_whitespace: bool, is_whitespace: bool, is_indention: bool) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        self.put_text(text);
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    /// Indents what `content` writes.
    fn indented(&mut self, flow: bool, indentless: bool, content: impl FnOnce(&mut Self) -> Result) -> Result {
        let outer = self.indent;
        if self.indent < 0 {
            self.indent = if flow { self.format.indent } else { 0 };
        } else if !indentless {
            self.indent += self.format.indent;
        }
        let done = content(self);
        self.indent = outer;
        done
    }

    fn is_too_wide(&self) -> bool {
        self.column > self.format.width
    }

    fn node(&mut self, id: Id, place: Place) -> Result {
        if self.out.len() > self.format.max_bytes {
            return Err(TooLong);
        }
        let nodes = self.nodes;
        let node = &nodes[id];
        let number = self.anchors.numbers[id];
        if number > 0 {
            let again = std::mem::replace(&mut self.anchors.written[id], true);
            self.write_indicator(if again { "*" } else { "&" }, true, false, false);
            self.put_text(&format!("id{number:03}"));
            self.whitespace = false;
            self.indention = false;
            if again {
                if place.simple_key {
                    self.put(' ');
                }
                return Ok(());
            }
        }
        match &node.kind {
            Kind::Scalar { text, style } => self.scalar(node, text, *style, place),
            Kind::Sequence { items, flow } => {
                self.write_tag(node.explicit_tag());
                if self.flow_level > 0 || *flow || items.is_empty() {
                    self.flow_sequence(items)
                } else {
                    self.block_sequence(items, place)
                }
            }
            Kind::Mapping { entries, flow } => {
                self.write_tag(node.explicit_tag());
                if self.flow_level > 0 || *flow || entries.is_empty() {
                    self.flow_mapping(entries)
                } else {
                    self.block_mapping(entries)
                }
            }
        }
    }

    /// Writes a tag: a type's name, or `!`.
    fn write_tag(&mut self, tag: Option<&str>) {
        if let Some(tag) = tag {
            if !self.whitespace {
                self.put(' ');
            }
            self.put_text(tag);
            self.whitespace = false;
            self.indention = false;
        }
    }

    fn flow_sequence(&mut self, items: &[Id]) -> Result {
        self.write_indicator("[", true, true, false);
        self.flow_level += 1;
        self.indented(true, false, |this| {
            for (n, item) in items.iter().enumerate() {
                this.next_in_flow(n);
                this.node(*item, ITEM)?;
            }
            Ok(())
        })?;
        self.flow_level -= 1;
        self.write_indicator("]", false, false, false);
        Ok(())
    }

    fn next_in_flow(&mut self, n: usize) {
        if n > 0 {
            self.write_indicator(",", false, false, false);
        }
        if self.is_too_wide() {
            self.write_indent();
        }
    }

    fn flow_mapping(&mut self, entries: &[(Id, Id)]) -> Result {
        self.write_indicator("{", true, true, false);
        self.flow_level += 1;
        self.indented(true, false, |this| {
            for (n, (key, value)) in entries.iter().enumerate() {
                this.next_in_flow(n);
                if this.is_simple_key(*key) {
                    this.node(*key, SIMPLE_KEY)?;
                    this.write_indicator(":", false, false, false);
                } else {
                    this.write_indicator("?", true, false, false);
                    this.node(*key, KEY)?;
                    if this.is_too_wide() {
                        this.write_indent();
                    }
                    this.write_indicator(":", true, false, false);
                }
                this.node(*value, VALUE)?;
            }
            Ok(())
        })?;
        self.flow_level -= 1;
        self.write_indicator("}", false, false, false);
        Ok(())
    }

    fn block_sequence(&mut self, items: &[Id], place: Place) -> Result {
        let indentless = place.mapping && !self.indention;
        self.indented(false, indentless, |this| {
            for item in items {
                this.write_indent();
                this.write_indicator("-", true, false, true);
                this.node(*item, ITEM)?;
            }
            Ok(())
        })
    }

    fn block_mapping(&mut self, entries: &[(Id, Id)]) -> Result {
        self.indented(false, false, |this| {
            for (key, value) in entries {
                this.write_indent();
                if this.is_simple_key(*key) {
                    this.node(*key, SIMPLE_KEY)?;
                    this.write_indicator(":", false, false, false);
                } else {
                    this.write_indicator("?", true, false, true);
                    this.node(*key, KEY)?;
                    this.write_indent();
                    this.write_indicator(":", true, false, true);
                }
                this.node(*value, VALUE)?;
            }
            Ok(())
        })
    }

    fn is_simple_key(&self, id: Id) -> bool {
        let node = &self.nodes[id];
        let anchor = if self.anchors.numbers[id] > 0 { "id001".len() } else { 0 };
        if anchor > 0 && self.anchors.written[id] {
            return true;
        }
        let length = anchor + node.explicit_tag().map_or(0, str::len);
        let (fits, length) = match &node.kind {
            Kind::Scalar { text, .. } => (!text.contains(is_break), length + text.len()),
            Kind::Sequence { items, .. } => (items.is_empty(), length),
            Kind::Mapping { entries, .. } => (entries.is_empty(), length),
        };
        fits && length <= MAX_SIMPLE_KEY
    }

    fn scalar(&mut self, node: &Node, text: &str, style: Option<Style>, place: Place) -> Result {
        let allows = self.analyze(text);
        let tag = node.explicit_tag();
        let mut style = style.unwrap_or(Style::Plain);
        if place.simple_key && allows.multiline {
            style = Style::DoubleQuoted;
        }
        if style == Style::Plain {
            let plain = if self.flow_level > 0 { allows.flow_plain } else { allows.block_plain };
            let empty = text.is_empty() && (self.flow_level > 0 || place.simple_key);
            if !plain || empty || tag.is_none() && !node.is_plain_implicit() {
                style = Style::SingleQuoted;
            }
        }
        if style == Style::SingleQuoted && !allows.single_quoted {
            style = Style::DoubleQuoted;
        }
        let block = matches!(style, Style::Literal | Style::Folded);
        if block && (!allows.block || self.flow_level > 0 || place.simple_key) {
            style = Style::DoubleQuoted;
        }
        // text that is not plain is a `str`, unless a tag says that it is not
        let tag = if tag.is_none() && !node.is_str() && style != Style::Plain { Some("!") } else { tag };
        self.write_tag(tag);
        let breaks = !place.simple_key;
        self.indented(true, false, |this| {
            match style {
                Style::Plain => this.write_plain(text, breaks),
                Style::SingleQuoted => this.write_single_quoted(text, breaks),
                Style::DoubleQuoted => this.write_double_quoted(text, breaks),
                Style::Literal => this.write_literal(text),
                Style::Folded => this.write_folded(text),
            }
            Ok(())
        })
    }

    fn analyze(&self, text: &str) -> Analysis {
        if text.is_empty() {
            return Analysis {
                multiline: false,
                flow_plain: false,
                block_plain: true,
                single_quoted: true,
                block: false,
            };
        }
        let indicators = text.starts_with("---") || text.starts_with("...");
        let (mut block_indicators, mut flow_indicators) = (indicators, indicators);
        let (mut line_breaks, mut special) = (false, false);
        let (mut break_space, mut space_break) = (false, false);
        let (mut after_space, mut after_break, mut after_blank) = (false, false, true);
        let mut chars = text.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let before_blank = is_blankz(chars.peek().copied());
            let (flow, block) = match c {
                ',' | '[' | ']' | '{' | '}' => (true, first),
                '#' => (first || after_blank, first || after_blank),
                '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => (first, first),
                '?' => (true, first && before_blank),
                ':' => (true, before_blank),
                '-' => (first && before_blank, first && before_blank),
                _ => (false, false),
            };
            flow_indicators |= flow;
            block_indicators |= block;
            special |= !is_printable(c) || !c.is_ascii() && !self.format.unicode;
            let (space, line_break) = (c == ' ', is_break(c));
            line_breaks |= line_break;
            break_space |= space && after_break;
            space_break |= line_break && after_space;
            after_space = space;
            after_break = line_break;
            after_blank = is_blankz(Some(c));
            first = false;
        }
        let at_end = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let ends = at_end(text.chars().next()) || at_end(text.chars().next_back());
        let plain = !ends && !break_space && !space_break && !special && !line_breaks;
        Analysis {
            multiline: line_breaks,
            flow_plain: plain && !flow_indicators,
            block_plain: plain && !block_indicators,
            single_quoted: !break_space && !space_break && !special,
            block: !text.ends_with(' ') && !space_break && !special,
        }
    }

    fn write_plain(&mut self, text: &str, allow_breaks: bool) {
        if !self.whitespace && (!text.is_empty() || self.flow_level > 0) {
            self.put(' ');
        }
        let (mut spaces, mut breaks) = (false, false);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ' ' {
                if allow_breaks && !spaces && self.is_too_wide() && chars.peek() != Some(&' ') {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn write_single_quoted(&mut self, text: &str, allow_breaks: bool) {
        self.write_indicator("'", true, false, false);
        let (mut spaces, mut breaks, mut first) = (false, false, true);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ' ' {
                let inside = !first && chars.peek().is_some_and(|c| *c != ' ');
                if allow_breaks && !spaces && self.is_too_wide() && inside {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if c == '\'' {
                    self.put(c);
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
            first = false;
        }
        if breaks {
            self.write_indent();
        }
        self.write_indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_double_quoted(&mut self, text: &str, allow_breaks: bool) {
        self.write_indicator("\"", true, false, false);
        let (mut spaces, mut first) = (false, true);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let plain = is_printable(c) && (self.format.unicode || c.is_ascii());
            if !plain || is_break(c) || matches!(c, '"' | '\\') {
                self.put_text(&escaped(c));
                spaces = false;
            } else if c == ' ' {
                if allow_breaks && !spaces && self.is_too_wide() && !first && chars.peek().is_some() {
                    self.write_indent();
                    if chars.peek() == Some(&' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
            first = false;
        }
        self.write_indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// Writes what follows `|` and `>`: indentation if it cannot be seen, and what becomes of the last line breaks.
    fn write_block_hints(&mut self, text: &str) {
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            let digit = self.format.indent.to_string();
            self.write_indicator(&digit, false, false, false);
        }
        self.open_ended = false;
        let mut last = text.chars().rev();
        if !last.next().is_some_and(is_break) {
            self.write_indicator("-", false, false, false);
        } else if last.next().is_none_or(is_break) {
            self.write_indicator("+", false, false, false);
            self.open_ended = true;
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
    }

    fn write_literal(&mut self, text: &str) {
        self.write_indicator("|", true, false, false);
        self.write_block_hints(text);
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }

    fn write_folded(&mut self, text: &str) {
        self.write_indicator(">", true, false, false);
        self.write_block_hints(text);
        let (mut breaks, mut leading_spaces) = (true, true);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if is_break(c) {
                if !breaks && !leading_spaces && c == '\n' {
                    let after = chars.as_str().trim_start_matches(is_break);
                    if !is_blankz(after.chars().next()) {
                        self.put_break();
                    }
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                    leading_spaces = matches!(c, ' ' | '\t');
                }
                if !breaks && c == ' ' && !chars.as_str().starts_with(' ') && self.is_too_wide() {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                self.indention = false;
                breaks = false;
            }
        }
    }
}

fn escaped(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(c) {
                n @ 0..=0xff => format!("\\x{n:02X}"),
                n @ 0x100..=0xffff => format!("\\u{n:04X}"),
                n => format!("\\U{n:08X}"),
            };
        }
    };
    format!("\\{short}")
}
