//! The characters of the text, and what kinds of them there are.

use super::Scanner;

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// The end of the text is `\0`, which no text contains.
pub(super) fn is_breakz(c: char) -> bool {
    c == '\0' || is_break(c)
}

pub(super) fn is_blankz(c: char) -> bool {
    is_blank(c) || is_breakz(c)
}

pub(super) fn is_alpha(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

impl Scanner<'_> {
    pub(super) fn c(&self) -> char {
        self.rest.chars().next().unwrap_or('\0')
    }

    pub(super) fn at(&self, n: usize) -> char {
        self.rest.chars().nth(n).unwrap_or('\0')
    }

    pub(super) fn next(&mut self) {
        let mut chars = self.rest.chars();
        if chars.next().is_some() {
            self.rest = chars.as_str();
            self.mark.index += 1;
            self.mark.column += 1;
        }
    }

    pub(super) fn read(&mut self, into: &mut String) {
        into.push(self.c());
        self.next();
    }

    pub(super) fn skip_break(&mut self) {
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
    pub(super) fn read_break(&mut self, into: &mut String) {
        match self.c() {
            c @ ('\u{2028}' | '\u{2029}') => into.push(c),
            c if is_break(c) => into.push('\n'),
            _ => return,
        }
        self.skip_break();
    }

    pub(super) fn skip_blanks(&mut self) {
        while is_blank(self.c()) {
            self.next();
        }
    }

    pub(super) fn skip_comment(&mut self) {
        if self.c() == '#' {
            while !is_breakz(self.c()) {
                self.next();
            }
        }
    }

    pub(super) fn at_document_indicator(&self) -> bool {
        self.mark.column == 0 && (self.rest.starts_with("---") || self.rest.starts_with("...")) && is_blankz(self.at(3))
    }
}
