//! Directives, anchors, aliases and tags.

use super::cursor::{is_alpha, is_blank, is_blankz, is_breakz};
use super::{Mark, Result, Scanner, Token};

impl Scanner<'_> {
    pub(super) fn fetch_directive(&mut self) -> Result<()> {
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

    pub(super) fn scan_anchor(&mut self, alias: bool) -> Result<()> {
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

    pub(super) fn scan_tag(&mut self) -> Result<()> {
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
}
