//! `/etc/hosts`, as Salt's module `hosts` reads and edits it.

use brine_guest::changes::{self, Put};
use brine_guest::{Result, Value};

/// Where the file is.
pub const PATH: &str = "/etc/hosts";

/// A line with an address, or a comment.
#[derive(Debug, Clone, PartialEq)]
enum Line {
    Comment(String),
    Host { ip: String, aliases: Vec<String>, comment: Option<String> },
}

/// The file: what was read, and its lines with the lines of one address put together.
#[derive(Debug, Clone)]
pub struct Hosts {
    old: Option<String>,
    text: String,
}

impl Hosts {
    /// Reads the file. One that is missing is empty.
    ///
    /// # Errors
    /// One line, when it cannot be read, or is no text.
    pub fn open() -> Result<Self> {
        let old = changes::read_text(PATH)?;
        Ok(Self { text: old.clone().unwrap_or_default(), old })
    }

    /// Writes the file if it changed. One that is missing is made.
    ///
    /// # Errors
    /// One line, when it cannot be written, or somebody else changed it meanwhile.
    pub fn save(self) -> Result<()> {
        if self.old.as_ref() != Some(&self.text) {
            Put::new(PATH).instead_of(self.old.as_deref().map(str::as_bytes)).text(&self.text)?;
        }
        Ok(())
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for line in self.text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line.starts_with('#') {
                lines.push(Line::Comment(line.to_owned()));
                continue;
            }
            let (names, comment) = match line.split_once('#') {
                Some((names, comment)) => (names, Some(comment.trim_start()).filter(|comment| !comment.is_empty())),
                None => (line, None),
            };
            let mut names = names.split_whitespace().map(str::to_owned);
            let Some(address) = names.next() else { continue };
            let known = lines.iter_mut().find_map(|line| match line {
                Line::Host { ip, aliases, comment } if *ip == address => Some((aliases, comment)),
                _ => None,
            });
            match known {
                Some((aliases, known)) => {
                    aliases.extend(names);
                    if let Some(comment) = comment {
                        *known = Some(comment.to_owned());
                    }
                }
                None => {
                    let comment = comment.map(str::to_owned);
                    lines.push(Line::Host { ip: address, aliases: names.collect(), comment });
                }
            }
        }
        lines
    }

    fn set_lines(&mut self, lines: &[Line]) {
        self.text.clear();
        for line in lines {
            let line = match line {
                Line::Comment(text) => text.clone(),
                Line::Host { ip, aliases, comment: None } => format!("{ip}\t\t{}", aliases.join(" ")),
                Line::Host { ip, aliases, comment: Some(comment) } => {
                    format!("{ip}\t\t{}\t\t# {comment}", aliases.join(" "))
                }
            };
            self.text.push_str(line.trim());
            self.text.push('\n');
        }
    }

    /// The addresses with their `aliases` and `comment`; comments as `comment-0` and so on.
    pub fn value(&self) -> Value {
        let mut entries = Vec::new();
        let mut comments = 0;
        for line in self.lines() {
            match line {
                Line::Comment(text) => {
                    entries.push((format!("comment-{comments}").into(), vec![text.as_str()].into()));
                    comments += 1;
                }
                Line::Host { ip, aliases, comment } => {
                    let mut host = vec![("aliases".into(), aliases.into())];
                    if let Some(comment) = comment {
                        host.push(("comment".into(), comment.into()));
                    }
                    entries.push((ip.into(), Value::Dict(host)));
                }
            }
        }
        Value::Dict(entries)
    }

    /// The addresses in order, each with its names and its comment.
    pub fn addresses(&self) -> Vec<(String, Vec<String>, Option<String>)> {
        let host = |line| match line {
            Line::Host { ip, aliases, comment } => Some((ip, aliases, comment)),
            Line::Comment(_) => None,
        };
        self.lines().into_iter().filter_map(host).collect()
    }

    /// The names of an address; none if it is not there.
    pub fn aliases(&self, ip: &str) -> Option<Vec<String>> {
        self.addresses().into_iter().find(|(known, ..)| known == ip).map(|(_, aliases, _)| aliases)
    }

    /// Whether an address has all these names.
    pub fn has(&self, ip: &str, names: &[String]) -> bool {
        self.aliases(ip).is_some_and(|known| names.iter().all(|name| known.contains(name)))
    }

    /// Adds a name to an address.
    ///
    /// # Errors
    /// When one of them is no word.
    pub fn add(&mut self, ip: &str, name: &str) -> Result<()> {
        words(ip, "the address")?;
        words(name, "the name")?;
        if self.has(ip, &[name.to_owned()]) {
            return Ok(());
        }
        let mut lines = self.lines();
        let known = lines.iter_mut().find_map(|line| match line {
            Line::Host { ip: known, aliases, .. } if known == ip => Some(aliases),
            _ => None,
        });
        match known {
            Some(aliases) => aliases.push(name.to_owned()),
            None => lines.push(Line::Host { ip: ip.to_owned(), aliases: vec![name.to_owned()], comment: None }),
        }
        self.set_lines(&lines);
        Ok(())
    }

    /// Sets the comment of an address; returns whether it is there.
    ///
    /// # Errors
    /// When the comment is more than one line.
    pub fn set_comment(&mut self, ip: &str, text: &str) -> Result<bool> {
        one_line(text, "the comment")?;
        let mut lines = self.lines();
        let known = lines.iter_mut().find_map(|line| match line {
            Line::Host { ip: known, comment, .. } if known == ip => Some(comment),
            _ => None,
        });
        let Some(known) = known else { return Ok(false) };
        if known.as_deref() != Some(text) {
            *known = Some(text.to_owned());
            self.set_lines(&lines);
        }
        Ok(true)
    }

    /// Takes a name from an address. Other lines stay as they are.
    pub fn remove(&mut self, ip: &str, name: &str) {
        if !self.has(ip, &[name.to_owned()]) {
            return;
        }
        let lines = self.text.split_inclusive('\n').map(|line| {
            let trimmed = line.trim();
            let (names, comment) = match trimmed.split_once('#') {
                Some((names, comment)) => (names, Some(comment.trim_start())),
                None => (trimmed, None),
            };
            let mut names = names.split_whitespace();
            if names.next() != Some(ip) {
                return line.to_owned();
            }
            let left: Vec<&str> = names.filter(|known| *known != name).collect();
            match (left.is_empty(), comment) {
                (true, _) => String::new(),
                (false, None) => format!("{ip}\t\t{} \n", left.join(" ")),
                (false, Some(comment)) => format!("{ip}\t\t{} # {comment}\n", left.join(" ")),
            }
        });
        self.text = lines.collect();
    }

    /// Gives an address these names, a text, and no others; with an empty one its lines go.
    ///
    /// # Errors
    /// When something has more than one line, or the address is no word.
    pub fn set(&mut self, ip: &str, names: &str, comment: Option<&str>) -> Result<()> {
        words(ip, "the address")?;
        one_line(names, "the names")?;
        one_line(comment.unwrap_or_default(), "the comment")?;
        let new = match comment.filter(|comment| !comment.is_empty()) {
            _ if names.trim().is_empty() => String::new(),
            None => format!("{ip}\t\t{names}\n"),
            Some(comment) => format!("{ip}\t\t{names}\t\t# {comment}\n"),
        };
        let mut is_there = false;
        let mut text = String::new();
        for line in self.text.split_inclusive('\n') {
            if line.trim_start().starts_with('#') || line.split_whitespace().next() != Some(ip) {
                text.push_str(line);
            } else if !std::mem::replace(&mut is_there, true) {
                text.push_str(&new);
            }
        }
        if !is_there {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&new);
        }
        self.text = text;
        Ok(())
    }
}

fn words(text: &str, what: &str) -> Result<()> {
    match text.is_empty() || text.contains(|c: char| c.is_whitespace() || c == '#' || c.is_control()) {
        true => Err(format!("{what} is no word: {text:?}")),
        false => Ok(()),
    }
}

fn one_line(text: &str, what: &str) -> Result<()> {
    match text.contains(['\n', '\r', '\0']) {
        true => Err(format!("{what} has more than one line")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "127.0.0.1\tlocalhost lo\n# own\n\n10.0.0.1 a b # web\n10.0.0.2 c\n10.0.0.1 d\n";

    fn hosts(text: &str) -> Hosts {
        Hosts { old: None, text: text.into() }
    }

    fn edited(edit: impl Fn(&mut Hosts)) -> String {
        let mut hosts = hosts(FILE);
        edit(&mut hosts);
        hosts.text
    }

    /// Recorded from the module `hosts` of Salt 3008.3.
    #[test]
    fn the_file_is_read_as_salt_does() {
        assert_eq!(
            hosts(FILE).value().to_text(),
            "{'127.0.0.1': {'aliases': ['localhost', 'lo']}, 'comment-0': ['# own'], \
             '10.0.0.1': {'aliases': ['a', 'b', 'd'], 'comment': 'web'}, '10.0.0.2': {'aliases': ['c']}}"
        );
        assert!(hosts(FILE).has("10.0.0.1", &["a".into(), "d".into()]) && !hosts(FILE).has("10.0.0.9", &[]));
    }

    #[test]
    fn the_file_is_edited_as_salt_does() {
        let all = "127.0.0.1\t\tlocalhost lo\n# own\n10.0.0.1\t\ta b d\t\t# web\n10.0.0.2\t\tc";
        assert_eq!(edited(|hosts| hosts.add("10.0.0.2", "x").unwrap()), format!("{all} x\n"));
        assert_eq!(edited(|hosts| hosts.add("::1", "x").unwrap()), format!("{all}\n::1\t\tx\n"));
        assert_eq!(edited(|hosts| hosts.add("10.0.0.2", "c").unwrap()), FILE);
        assert_eq!(edited(|hosts| assert!(hosts.set_comment("10.0.0.2", "n").unwrap())), format!("{all}\t\t# n\n"));
        assert_eq!(edited(|hosts| assert!(!hosts.set_comment("1.1.1.1", "n").unwrap())), FILE);
        let removed = "127.0.0.1\tlocalhost lo\n# own\n\n10.0.0.1\t\tb # web\n10.0.0.2 c\n10.0.0.1\t\td \n";
        assert_eq!(edited(|hosts| hosts.remove("10.0.0.1", "a")), removed);
        assert_eq!(edited(|hosts| hosts.remove("10.0.0.2", "c")), FILE.replace("10.0.0.2 c\n", ""));
        let set = "127.0.0.1\tlocalhost lo\n# own\n\n10.0.0.1\t\tz\n10.0.0.2 c\n";
        assert_eq!(edited(|hosts| hosts.set("10.0.0.1", "z", None).unwrap()), set);
        assert_eq!(edited(|hosts| hosts.set("::1", "z", Some("n")).unwrap()), format!("{FILE}::1\t\tz\t\t# n\n"));
    }

    #[test]
    fn no_argument_adds_lines() {
        for bad in ["", "a b", "a\n10.0.0.9 evil", "#a"] {
            assert!(hosts(FILE).add("10.0.0.1", bad).is_err() && hosts(FILE).add(bad, "x").is_err(), "{bad:?}");
        }
        assert!(hosts(FILE).set_comment("10.0.0.1", "a\nb").is_err());
        assert!(hosts(FILE).set("10.0.0.1", "a\nb", None).is_err());
    }
}
