//! Entries of one line: `deb [arch=amd64 signed-by=/key.gpg] https://deb.example stable main # a comment`.

use brine_guest::Result;

use super::{MAIN_FILE, to_bool};

/// A line of a file of sources. A line that is no entry keeps its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    pub invalid: bool,
    pub disabled: bool,
    /// `deb` or `deb-src`.
    pub kind: String,
    pub architectures: Vec<String>,
    /// Empty for none.
    pub signed_by: String,
    pub trusted: Option<bool>,
    pub uri: String,
    pub dist: String,
    pub comps: Vec<String>,
    pub comment: String,
    /// The line as it was read: its options stay.
    pub line: String,
    pub file: String,
}

/// An option in brackets: its name and its text. Names that Salt knows are `arch` and `signedby`.
struct Choice {
    name: String,
    full: String,
    value: String,
}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// When it looks like an entry and has too few words.
    pub fn read(line: &str, file: &str) -> Result<Self> {
        let mut entry = Self { line: line.into(), file: file.into(), ..Self::default() };
        let mut text = line.trim();
        if text.is_empty() {
            return Ok(Self { invalid: true, ..entry });
        }
        if let Some(rest) = text.strip_prefix('#') {
            entry.disabled = true;
            text = rest;
        }
        if let Some(at) = text.find('#').filter(|at| *at > 0) {
            entry.comment = text[at + 1..].into();
            text = &text[..at];
        }
        let mut words = words(text.trim());
        let known = words.first().is_some_and(|kind| ["deb", "deb-src", "rpm", "rpm-src"].contains(&kind.as_str()));
        if !known || words.len() < 3 {
            return Ok(Self { invalid: true, ..entry });
        }
        if words[1].starts_with('[') {
            if !words[1..].iter().any(|word| word.ends_with(']')) {
                return Ok(Self { invalid: true, ..entry });
            }
            for word in &mut words {
                *word = word.trim_matches(['[', ']']).to_owned();
            }
            words.retain(|word| !word.is_empty());
            for choice in choices(line) {
                match &choice.name[..] {
                    "arch" => entry.architectures.extend(choice.value.split(',').map(str::to_owned)),
                    "signedby" => entry.signed_by = choice.value.clone(),
                    "trusted" => entry.trusted = to_bool(&choice.value),
                    _ => (),
                }
                if let Some(at) = words.iter().position(|word| *word == choice.full) {
                    words.remove(at);
                }
            }
        }
        if words.len() < 3 {
            return Err(format!("Invalid repository definition: {}", words.join(" ")));
        }
        entry.comps = words.split_off(3);
        [entry.kind, entry.uri, entry.dist] = words.try_into().unwrap_or_default();
        Ok(entry)
    }

    /// As [`Line::read`], of the main file.
    ///
    /// # Errors
    /// As [`Line::read`].
    pub fn of_main(line: &str) -> Result<Self> {
        Self::read(line, MAIN_FILE)
    }

    /// Makes the line anew. Options that are not known stay as they were.
    pub fn text(&self) -> String {
        if self.invalid {
            return self.line.trim().into();
        }
        let mut choices = choices(&self.line);
        let mut set = |name: &str, full: String| match choices.iter_mut().find(|choice| choice.name == name) {
            Some(choice) => choice.full = full,
            None => choices.push(Choice { name: name.into(), full, value: String::new() }),
        };
        if !self.architectures.is_empty() {
            set("arch", format!("arch={}", self.architectures.join(",")));
        }
        if !self.signed_by.is_empty() {
            set("signedby", format!("signed-by={}", self.signed_by));
        }
        if self.trusted == Some(true) {
            set("trusted", "trusted=yes".into());
        }
        choices.retain(|choice| !(choice.name == "trusted" && choice.value == "no" && self.trusted != Some(true)));
        let options: Vec<&str> =
            choices.iter().map(|choice| &choice.full[..]).filter(|full| !full.is_empty()).collect();
        let options = if options.is_empty() { String::new() } else { format!("[{}]", options.join(" ")) };
        let comps = self.comps.join(" ");
        let comment = if self.comment.is_empty() { String::new() } else { format!("#{}", self.comment) };
        let mut parts = vec![if self.disabled { "#" } else { "" }, &self.kind, &options];
        parts.retain(|part| !part.is_empty());
        // Empty ones of these leave their blanks, as Salt's do.
        parts.extend([&self.uri[..], &self.dist, &comps]);
        if !comment.is_empty() {
            parts.push(&comment);
        }
        parts.join(" ").trim().into()
    }
}

/// The words of an entry. The address of a CD may have blanks.
fn words(text: &str) -> Vec<String> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    match (text.rfind("cdrom:"), text.rfind('/')) {
        (Some(start), Some(end)) if end > start => {
            let mut all = words(&text[..start]);
            all.push(text[start..=end].trim().into());
            all.extend(words(&text[end + 1..]));
            all
        }
        _ => words(text),
    }
}

/// The options between brackets, if one of them has a value.
fn choices(line: &str) -> Vec<Choice> {
    let mut found: Vec<Choice> = Vec::new();
    let Some(inner) = bracketed(line) else { return found };
    let mut architectures: Vec<&str> = Vec::new();
    for full in inner.trim_matches(['[', ']']).split_whitespace() {
        let (name, value) = full.split_once('=').unwrap_or((full, ""));
        let (name, value) = if full.starts_with("arch") {
            architectures.extend(value.split(','));
            ("arch", architectures.join(","))
        } else if full.starts_with("signed-by") {
            ("signedby", value.to_owned())
        } else {
            (name, value.to_owned())
        };
        match found.iter_mut().find(|choice| choice.name == name) {
            Some(choice) => (choice.full, choice.value) = (full.into(), value),
            None => found.push(Choice { name: name.into(), full: full.into(), value }),
        }
    }
    found
}

/// The first text between brackets that has a `=`.
fn bracketed(line: &str) -> Option<&str> {
    let (_, inner) = line.split_once('[')?;
    let equals = inner.find('=')?;
    let end = inner[equals..].find(']')?;
    Some(&inner[..equals + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Line {
        Line::of_main(line).unwrap()
    }

    #[test]
    fn a_line_has_its_parts() {
        let line = read("# deb [arch=amd64,i386 signed-by=/k.gpg trusted=yes lang=en] http://x stable main extra #why");
        assert!(!line.invalid && line.disabled);
        assert_eq!((&line.kind[..], &line.uri[..], &line.dist[..]), ("deb", "http://x", "stable"));
        assert_eq!((line.architectures.join(" "), line.comps.join(" ")), ("amd64 i386".into(), "main extra".into()));
        assert_eq!((&line.signed_by[..], line.trusted, &line.comment[..]), ("/k.gpg", Some(true), "why"));
        let again = "# deb [arch=amd64,i386 signed-by=/k.gpg trusted=yes lang=en] http://x stable main extra #why";
        assert_eq!(line.text(), again);
    }

    #[test]
    fn a_changed_line_keeps_its_other_options() {
        let mut line = read("deb [ lang=en trusted=no ] http://x stable main");
        line.architectures = vec!["amd64".into()];
        line.signed_by = "/k".into();
        line.comps = vec!["a".into(), "b".into()];
        assert_eq!(line.text(), "deb [lang=en arch=amd64 signed-by=/k] http://x stable a b");
        line.trusted = Some(true);
        assert_eq!(line.text(), "deb [lang=en trusted=yes arch=amd64 signed-by=/k] http://x stable a b");
    }

    #[test]
    fn what_is_no_entry_stays() {
        for text in
            ["", "# a comment", "deb http://x", "rubbish http://x stable", "deb [arch=amd64 http://x stable main"]
        {
            let line = read(&format!("{text}\n"));
            assert!(line.invalid, "{text}");
            assert_eq!(line.text(), text);
        }
        assert_eq!(
            Line::of_main("deb [arch=amd64] http://x").unwrap_err(),
            "Invalid repository definition: deb http://x"
        );
    }

    #[test]
    fn a_cd_has_blanks_in_its_address() {
        let line = read("deb cdrom:[Debian 12 - amd64]/ bookworm main");
        assert_eq!((&line.uri[..], &line.dist[..]), ("cdrom:[Debian 12 - amd64]/", "bookworm"));
    }
}
