//! Entries in deb822: fields, one a line, that may go on in the lines that begin with a blank.

use super::{split, to_bool};

/// A stanza. Fields keep their order; comments are before or after them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stanza {
    fields: Vec<(String, String)>,
    header: Vec<String>,
    footer: Vec<String>,
    pub file: String,
}

impl Stanza {
    /// Reads the lines of one stanza.
    pub fn read(text: &str, file: &str) -> Self {
        let mut stanza = Self { file: file.into(), ..Self::default() };
        let mut began = false;
        for line in text.lines() {
            if line.starts_with('#') {
                let comments = if began { &mut stanza.footer } else { &mut stanza.header };
                comments.push(line.into());
                continue;
            }
            began = true;
            match field(line) {
                Some((name, value)) => {
                    stanza.fields.retain(|(known, _)| known != name);
                    stanza.fields.push((name.into(), value.into()));
                }
                None => {
                    if let Some((_, value)) = stanza.fields.last_mut() {
                        value.push('\n');
                        value.push_str(line);
                    }
                }
            }
        }
        for (_, value) in &mut stanza.fields {
            *value = value.trim().to_owned();
        }
        stanza
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The value of a field, whose name may be in other case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &value[..])
    }

    /// The words of a field.
    pub fn words(&self, name: &str) -> Vec<String> {
        split(self.get(name).unwrap_or_default())
    }

    /// Sets a field. An empty one is not written.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.fields.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, slot)) => *slot = value.into(),
            None => self.fields.push((name.into(), value.into())),
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.fields.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    pub fn is_disabled(&self) -> bool {
        self.get("Enabled").and_then(to_bool) == Some(false)
    }

    pub fn set_disabled(&mut self, disabled: bool) {
        if disabled {
            self.set("Enabled", "no");
        } else {
            self.remove("Enabled");
        }
    }

    /// Replaces the comment before the fields.
    pub fn set_comment(&mut self, comment: &str) {
        let lines: Vec<&str> = comment.lines().collect();
        let all = lines.iter().all(|line| line.starts_with('#'));
        self.header = lines.iter().map(|line| if all { line.to_string() } else { format!("#{line}") }).collect();
    }

    /// The text, with a line end.
    pub fn text(&self) -> String {
        let comment = |lines: &[String]| if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" };
        let fields = self.fields.iter().filter(|(_, value)| !value.is_empty());
        let fields: String = fields.map(|(name, value)| format!("{name}: {value}\n")).collect();
        format!("{}{fields}{}", comment(&self.header), comment(&self.footer))
    }
}

/// A name without blanks, a colon, a value that may be empty. The name may have colons.
fn field(line: &str) -> Option<(&str, &str)> {
    let word = line.split(char::is_whitespace).next().unwrap_or_default();
    let at = word.rfind(':').filter(|at| *at > 0)?;
    let value = &line[at + 1..];
    Some((&line[..at], value.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# about\nTypes: deb deb-src\nURIs: http://x\nSuites: a b\nComponents: main\nSigned-By:\n -----BEGIN\n .\n x\n# end\n";

    #[test]
    fn a_stanza_has_fields_and_comments() {
        let mut stanza = Stanza::read(TEXT, "/f.sources");
        assert_eq!(stanza.words("types"), ["deb", "deb-src"]);
        assert_eq!(stanza.get("signed-by"), Some("-----BEGIN\n .\n x"));
        assert!(!stanza.is_disabled());
        stanza.set_disabled(true);
        stanza.set("Components", "");
        stanza.set_comment("new");
        assert_eq!(
            stanza.text(),
            "#new\nTypes: deb deb-src\nURIs: http://x\nSuites: a b\nSigned-By: -----BEGIN\n .\n x\nEnabled: no\n# end\n"
        );
    }
}
