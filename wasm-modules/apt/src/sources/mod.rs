//! The sources of packages: files of one-line entries (`sources.list`) and of stanzas (`*.sources`, deb822).
//!
//! - [`line`]: entries of one line
//! - [`stanza`]: entries in deb822
//! - [`list`]: all entries of all files, and what is found and changed there

pub mod line;
pub mod list;
pub mod stanza;

use brine_guest::Value;

pub use line::Line;
pub use list::SourcesList;
pub use stanza::Stanza;

/// The file of entries that name none.
pub const MAIN_FILE: &str = "/etc/apt/sources.list";
/// The folder of further files.
pub const PARTS: &str = "/etc/apt/sources.list.d/";

/// Splits at blanks, which do not count within brackets.
pub fn split(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let (mut piece, mut within, mut after_space) = (String::new(), false, false);
    for c in text.trim().chars() {
        match c {
            '[' => {
                if after_space {
                    pieces.push(std::mem::take(&mut piece));
                }
                (after_space, within) = (false, true);
                piece.push(c);
            }
            ']' => {
                within = false;
                piece.push(c);
            }
            c if after_space && !c.is_whitespace() => {
                after_space = false;
                pieces.push(std::mem::take(&mut piece));
                piece.push(c);
            }
            c if c.is_whitespace() && !within => after_space = true,
            c => piece.push(c),
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// What the words of apt's configuration mean; none for others.
pub fn to_bool(word: &str) -> Option<bool> {
    match &word.to_lowercase()[..] {
        "no" | "false" | "without" | "off" | "disable" | "0" => Some(false),
        "yes" | "true" | "with" | "on" | "enable" | "1" => Some(true),
        _ => None,
    }
}

/// An entry of either form.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Line(Line),
    Stanza(Stanza),
}

impl Entry {
    pub fn file(&self) -> &str {
        match self {
            Self::Line(line) => &line.file,
            Self::Stanza(stanza) => &stanza.file,
        }
    }

    pub fn set_file(&mut self, file: String) {
        match self {
            Self::Line(line) => line.file = file,
            Self::Stanza(stanza) => stanza.file = file,
        }
    }

    /// Whether it is no entry but a comment, an empty line or a mistake.
    pub fn is_invalid(&self) -> bool {
        match self {
            Self::Line(line) => line.invalid,
            Self::Stanza(stanza) => stanza.is_empty(),
        }
    }

    pub fn is_disabled(&self) -> bool {
        match self {
            Self::Line(line) => line.disabled,
            Self::Stanza(stanza) => stanza.is_disabled(),
        }
    }

    pub fn set_disabled(&mut self, disabled: bool) {
        match self {
            Self::Line(line) => line.disabled = disabled,
            Self::Stanza(stanza) => stanza.set_disabled(disabled),
        }
    }

    pub fn types(&self) -> Vec<String> {
        match self {
            Self::Line(line) => vec![line.kind.clone()],
            Self::Stanza(stanza) => stanza.words("Types"),
        }
    }

    pub fn uris(&self) -> Vec<String> {
        match self {
            Self::Line(line) => vec![line.uri.clone()],
            Self::Stanza(stanza) => stanza.words("URIs"),
        }
    }

    pub fn suites(&self) -> Vec<String> {
        match self {
            Self::Line(line) if line.dist.is_empty() => Vec::new(),
            Self::Line(line) => vec![line.dist.clone()],
            Self::Stanza(stanza) => stanza.words("Suites"),
        }
    }

    /// A line has one suite at most.
    pub fn set_suites(&mut self, suites: &[String]) {
        match self {
            Self::Line(line) => line.dist = suites.first().cloned().unwrap_or_default(),
            Self::Stanza(stanza) => stanza.set("Suites", &suites.join(" ")),
        }
    }

    pub fn comps(&self) -> Vec<String> {
        match self {
            Self::Line(line) => line.comps.clone(),
            Self::Stanza(stanza) => stanza.words("Components"),
        }
    }

    pub fn set_comps(&mut self, comps: &[String]) {
        match self {
            Self::Line(line) => line.comps = comps.to_vec(),
            Self::Stanza(stanza) => stanza.set("Components", &comps.join(" ")),
        }
    }

    pub fn architectures(&self) -> Vec<String> {
        match self {
            Self::Line(line) => line.architectures.clone(),
            Self::Stanza(stanza) => stanza.words("Architectures"),
        }
    }

    pub fn set_architectures(&mut self, architectures: &[String]) {
        match self {
            Self::Line(line) => line.architectures = architectures.to_vec(),
            Self::Stanza(stanza) => stanza.set("Architectures", &architectures.join(" ")),
        }
    }

    /// A stanza without the field has none.
    pub fn signed_by(&self) -> Option<String> {
        match self {
            Self::Line(line) => Some(line.signed_by.clone()),
            Self::Stanza(stanza) => stanza.get("Signed-By").map(str::to_owned),
        }
    }

    pub fn set_signed_by(&mut self, file: &str) {
        match self {
            Self::Line(line) => line.signed_by = file.into(),
            Self::Stanza(stanza) => stanza.set("Signed-By", file),
        }
    }

    pub fn trusted(&self) -> Option<bool> {
        match self {
            Self::Line(line) => line.trusted,
            Self::Stanza(stanza) => stanza.get("Trusted").and_then(to_bool),
        }
    }

    pub fn set_trusted(&mut self, trusted: Option<bool>) {
        match (self, trusted) {
            (Self::Line(line), trusted) => line.trusted = trusted,
            (Self::Stanza(stanza), Some(trusted)) => stanza.set("Trusted", if trusted { "yes" } else { "no" }),
            (Self::Stanza(stanza), None) => stanza.remove("Trusted"),
        }
    }

    /// The text of the entry, without a line end.
    pub fn text(&self) -> String {
        match self {
            Self::Line(line) => line.text(),
            Self::Stanza(stanza) => stanza.text().trim().to_owned(),
        }
    }

    /// What Salt tells of the entry, for each address, suite and type that it has.
    pub fn described(&self) -> Vec<(String, Value)> {
        let mut result = Vec::new();
        let signed_by = self.signed_by();
        for uri in self.uris() {
            for suite in self.suites() {
                for kind in self.types() {
                    let line = match self {
                        Self::Line(line) => line.line.trim().to_owned(),
                        Self::Stanza(_) => self.as_line(&kind, &uri, &suite),
                    };
                    let disabled = self.is_disabled();
                    let described = Value::dict([
                        ("file", self.file().into()),
                        ("comps", self.comps().into()),
                        ("disabled", disabled.into()),
                        ("enabled", (!disabled).into()),
                        ("dist", suite.clone().into()),
                        ("suites", self.suites().into()),
                        ("type", kind.clone().into()),
                        ("types", self.types().into()),
                        ("uri", uri.clone().into()),
                        ("uris", self.uris().into()),
                        ("line", line.into()),
                        ("architectures", self.architectures().into()),
                        ("signedby", signed_by.clone().into()),
                    ]);
                    result.push((uri.clone(), described));
                }
            }
        }
        result
    }

    fn as_line(&self, kind: &str, uri: &str, suite: &str) -> String {
        let line = Line {
            kind: kind.into(),
            uri: uri.into(),
            dist: suite.into(),
            comps: self.comps(),
            disabled: self.is_disabled(),
            architectures: self.architectures(),
            // Salt's text of a field that is not there.
            signed_by: self.signed_by().unwrap_or_else(|| "None".into()),
            trusted: self.trusted(),
            ..Line::default()
        };
        line.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_hold_together() {
        assert_eq!(
            split("deb [arch=amd64 signed-by=/k]  http://x ./ "),
            ["deb", "[arch=amd64 signed-by=/k]", "http://x", "./"]
        );
        assert_eq!(split("  "), Vec::<String>::new());
    }

    #[test]
    fn both_forms_are_described_alike() {
        let line =
            Entry::Line(Line::read("deb [arch=amd64 signed-by=/k.gpg] http://x stable main", "/f.list").unwrap());
        let text =
            "Types: deb\nURIs: http://x\nSuites: stable\nComponents: main\nArchitectures: amd64\nSigned-By: /k.gpg\n";
        let stanza = Entry::Stanza(Stanza::read(text, "/f.list"));
        assert_eq!(line.described(), stanza.described());
        assert_eq!(line.described()[0].0, "http://x");
    }
}
