//! The styles that a text may have in YAML, by libyaml's and PyYAML's rules.

use std::sync::LazyLock;

use regex::Regex;

/// Whether plain text would be read as a boolean, number, null, date or merge key (YAML 1.1, as PyYAML resolves it).
pub(super) fn reads_as_other(text: &str) -> bool {
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?x)^(?:
            yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF
            |~|null|Null|NULL|<<|=|!|&|\*
            |[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+
            |[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?
            |[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)
            |[0-9]{4}-[0-9]{2}-[0-9]{2}
            |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[\x20\t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?
                (?:[\x20\t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?
            )$",
        )
        .expect("the pattern is a constant")
    });
    text.is_empty() || OTHER.is_match(text)
}

/// The properties of a text by which libyaml chooses a style.
pub(super) struct Facts {
    pub(super) multiline: bool,
    pub(super) flow_plain: bool,
    pub(super) block_plain: bool,
    pub(super) single_quoted: bool,
    pub(super) block: bool,
}

impl Facts {
    /// With `visible`, the characters that [`brine_protocol::text`] marks are special too, so that the text is quoted with
    /// escapes.
    pub(super) fn gather(text: &str, visible: bool) -> Self {
        if text.is_empty() {
            return Self { multiline: false, flow_plain: false, block_plain: true, single_quoted: true, block: false };
        }
        let (mut block_indicators, mut flow_indicators) = (false, false);
        let mut line_breaks = false;
        let mut special = visible && brine_protocol::text::marked(text).any(|(c, active)| active && c != '\n');
        let (mut space_break, mut break_space) = (false, false);
        let (mut previous_space, mut previous_break) = (false, false);
        let mut preceded_by_whitespace = true;
        if text.starts_with("---") || text.starts_with("...") {
            block_indicators = true;
            flow_indicators = true;
        }
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let followed_by_whitespace = chars.peek().is_none_or(|(_, next)| is_blank_or_end(*next));
            if at == 0 {
                match c {
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
                        flow_indicators = true;
                        block_indicators = true;
                    }
                    '?' | ':' => {
                        flow_indicators = true;
                        block_indicators |= followed_by_whitespace;
                    }
                    '-' if followed_by_whitespace => {
                        flow_indicators = true;
                        block_indicators = true;
                    }
                    _ => {}
                }
            } else {
                match c {
                    ',' | '?' | '[' | ']' | '{' | '}' => flow_indicators = true,
                    ':' => {
                        flow_indicators = true;
                        block_indicators |= followed_by_whitespace;
                    }
                    '#' if preceded_by_whitespace => {
                        flow_indicators = true;
                        block_indicators = true;
                    }
                    _ => {}
                }
            }
            special |= !is_printable(c);
            if is_break(c) {
                line_breaks = true;
                space_break |= previous_space;
                (previous_space, previous_break) = (false, true);
            } else if c == ' ' {
                break_space |= previous_break;
                (previous_space, previous_break) = (true, false);
            } else {
                (previous_space, previous_break) = (false, false);
            }
            preceded_by_whitespace = is_blank_or_end(c);
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let at_edges = edge(text.chars().next()) || edge(text.chars().next_back());
        let trailing_space = text.ends_with(' ');
        let impossible = space_break || special;
        let plain = !at_edges && !break_space && !impossible && !line_breaks;
        Self {
            multiline: line_breaks,
            flow_plain: plain && !flow_indicators,
            block_plain: plain && !block_indicators,
            single_quoted: !break_space && !impossible,
            block: !trailing_space && !impossible,
        }
    }
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank_or_end(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\0') || is_break(c)
}

/// Characters that libyaml prints: none beyond the basic plane.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

pub(super) fn escaped(c: char) -> String {
    match c {
        '\0' => "\\0".to_owned(),
        '\x07' => "\\a".to_owned(),
        '\x08' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\x0b' => "\\v".to_owned(),
        '\x0c' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\x1b' => "\\e".to_owned(),
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{a0}' => "\\_".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        _ => match u32::from(c) {
            code @ 0..=0xff => format!("\\x{code:02X}"),
            code @ 0x100..=0xffff => format!("\\u{code:04X}"),
            code => format!("\\U{code:08X}"),
        },
    }
}
