//! Writes grants in the form of the configuration.

use std::fmt::{self, Write};

use crate::grants::Grant;
use crate::names::Names;
use crate::programs::ProcessGrant;
use crate::rules::rule_text;

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No => f.write_str("false"),
            Self::Yes => f.write_str("true"),
            Self::Names(names) => write!(f, "{names}"),
            Self::Process(process) => write!(f, "{process}"),
            Self::Directories(directories) => {
                let mode = |writable| if writable { "rw" } else { "ro" };
                let parts = directories.iter().map(|dir| format!("{}: {}", yaml_text(&dir.path), mode(dir.writable)));
                write!(f, "{{{}}}", parts.collect::<Vec<_>>().join(", "))
            }
            Self::Changes(trees) => {
                let parts = trees.iter().map(|tree| format!("{}: {}", yaml_text(&tree.path), tree.access));
                write!(f, "{{{}}}", parts.collect::<Vec<_>>().join(", "))
            }
            Self::Network(rules) => {
                let rules: Vec<String> = rules.iter().map(rule_text).collect();
                f.write_str(&yaml_list(rules.iter().map(String::as_str)))
            }
        }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Only(names) => f.write_str(&yaml_list(names.iter().map(String::as_str))),
        }
    }
}

impl fmt::Display for ProcessGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = [("users", &self.users), ("groups", &self.groups), ("env", &self.env), ("cwd", &self.cwd)];
        let plain = self.lines.is_none() && !self.detach && self.file_size.is_none() && self.looks.is_empty();
        if plain && self.programs == Names::Any && others.iter().all(|(_, names)| **names == Names::Any) {
            return f.write_str("any");
        }
        if plain && self.programs != Names::Any && others.iter().all(|(_, names)| names.is_none()) {
            return write!(f, "{}", self.programs);
        }
        // A dict of lines alone has no programs.
        let mut comma = "";
        f.write_char('{')?;
        if !self.programs.is_none() || self.lines.is_none() {
            write!(f, "programs: {}", self.programs)?;
            comma = ", ";
        }
        if let Some(lines) = &self.lines {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            write!(f, "{comma}lines: {}", yaml_list(lines.iter().map(String::as_str)))?;
        }
        for (key, names) in others.iter().filter(|(_, names)| !names.is_none()) {
            write!(f, ", {key}: {names}")?;
        }
        if !self.looks.is_empty() {
            let looks: Vec<String> = self.looks.iter().map(ToString::to_string).collect();
            write!(f, ", looks: {}", yaml_list(looks.iter().map(String::as_str)))?;
        }
        if self.detach {
            f.write_str(", detach: true")?;
        }
        if let Some(bytes) = self.file_size {
            write!(f, ", file_size: {bytes}")?;
        }
        f.write_char('}')
    }
}

/// Writes a list in YAML's flow style.
pub fn yaml_list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.map(yaml_text).collect();
    format!("[{}]", items.join(", "))
}

/// Writes a text in YAML's flow style, quoted if a reader could parse it as anything else.
pub fn yaml_text(text: &str) -> String {
    const WORDS: [&str; 11] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "nan"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '_'))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.'))
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if plain {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            // YAML's escapes, because the owner pastes the line.
            c if brine_text::is_active(c) => {
                let code = u32::from(c);
                let _ = if code > 0xffff { write!(quoted, "\\U{code:08x}") } else { write!(quoted, "\\u{code:04x}") };
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
