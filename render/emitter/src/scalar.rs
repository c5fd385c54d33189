//! How a scalar is written: what its text allows, and the five styles.

use super::{Emitter, Node, Place, Result, Style};

/// What a scalar allows.
struct Analysis {
    multiline: bool,
    flow_plain: bool,
    block_plain: bool,
    single_quoted: bool,
    block: bool,
}

pub(super) fn is_break(c: char) -> bool {
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
    pub(super) fn scalar(&mut self, node: &Node, text: &str, style: Option<Style>, place: Place) -> Result {
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
        let mut line_breaks = false;
        let mut special = self.format.visible && brine_text::marked(text).any(|(c, is_active)| is_active && c != '\n');
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
            let plain = plain && !(self.format.visible && brine_text::is_active(c));
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

/// A character as it is written between double quotes if it cannot stand there.
#[must_use]
pub fn escaped(c: char) -> String {
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
