//! The text of a file of sections, as Salt's module `ini_manage` reads and writes it: comments and unknown lines stay,
//! blank lines around sections are made anew.

use brine_guest::{Result, Value};

/// The end of a name that stands for a line, and not for an option: a comment, or a line that is neither.
const LINE: char = '#';
/// Upper bound on nested sections, which arguments may have.
const MAX_DEPTH: usize = 16;

/// How options are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form<'a> {
    pub separator: &'a str,
    pub no_spaces: bool,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Text(String),
    Section(Section),
}

/// Options, lines that stay, and sections, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Section(Vec<(String, Item)>);

impl Section {
    /// Reads a file.
    pub(crate) fn read(text: &str, form: Form<'_>) -> Self {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last() == Some(&"") {
            lines.pop();
        }
        let heads: Vec<(usize, &str)> =
            lines.iter().enumerate().filter_map(|(at, line)| Some((at, head(line)?))).collect();
        let part = |from: usize, to: usize, before_head: bool, after_head: bool| {
            let mut part = &lines[from..to];
            let blank = |line: &&str, white: bool| if white { line.trim().is_empty() } else { line.is_empty() };
            while part.first().is_some_and(|line| blank(line, after_head)) {
                part = &part[1..];
            }
            while part.last().is_some_and(|line| blank(line, before_head)) {
                part = &part[..part.len() - 1];
            }
            part.to_vec()
        };
        let first = heads.first().map_or(lines.len(), |(at, _)| *at);
        let mut file = Self::default();
        file.read_lines(&part(0, first, !heads.is_empty(), false), form);
        for (number, (at, name)) in heads.iter().enumerate() {
            let end = heads.get(number + 1).map(|(at, _)| *at);
            let mut section = Self::default();
            section.read_lines(&part(at + 1, end.unwrap_or(lines.len()), end.is_some(), true), form);
            match file.item(name) {
                // A section that comes again adds to the first.
                Some(Item::Section(known)) => {
                    for (name, item) in section.0 {
                        known.put(&name, item, form);
                    }
                }
                Some(item) => *item = Item::Section(section),
                None => file.0.push(((*name).to_owned(), Item::Section(section))),
            }
        }
        file
    }

    fn read_lines(&mut self, lines: &[&str], form: Form<'_>) {
        let (mut comments, mut unknown) = (0, 0);
        let mut indent = String::new();
        for line in lines {
            let stripped = line.trim_start();
            if stripped.starts_with(['#', ';']) {
                comments += 1;
                self.put(&format!("{LINE}comment{comments}"), Item::Text((*line).to_owned()), form);
                continue;
            }
            let here = line[..line.len() - stripped.len()].replace('\t', "    ");
            if here > indent
                && let Some((_, Item::Text(value))) = self.0.last_mut()
            {
                value.push('\n');
                value.push_str(line);
                continue;
            }
            if let Some((name, value)) = option(stripped, form.separator) {
                indent = here;
                self.put(name, Item::Text(value.to_owned()), form);
                continue;
            }
            unknown += 1;
            self.put(&format!("{LINE}unknown{unknown}"), Item::Text((*line).to_owned()), form);
        }
    }

    /// The item of a name.
    pub(crate) fn item(&mut self, name: &str) -> Option<&mut Item> {
        self.0.iter_mut().find(|(known, _)| known == name).map(|(_, item)| item)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Item> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, item)| item)
    }

    /// Removes an item.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Item> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Sets a name. A new option takes the place of a comment that has it.
    fn put(&mut self, name: &str, item: Item, form: Form<'_>) {
        if let Some(known) = self.item(name) {
            *known = item;
            return;
        }
        let commented = self.0.iter().position(|(known, item)| match item {
            Item::Text(text) if known.contains("#comment") => {
                let text = text.trim_start_matches('#').trim_start();
                option(text, form.separator).is_some_and(|(known, _)| known == name)
            }
            _ => false,
        });
        match commented.filter(|_| matches!(item, Item::Text(_))) {
            Some(at) => self.0[at] = (name.to_owned(), item),
            None => self.0.push((name.to_owned(), item)),
        }
    }

    /// Sets options and sections, and returns what changed: by name, `{"before": …, "after": …}`, below sections too.
    pub(crate) fn update(&mut self, entries: &[(Value, Value)], form: Form<'_>) -> Result<Vec<(Value, Value)>> {
        self.update_to(entries, form, 0)
    }

    fn update_to(&mut self, entries: &[(Value, Value)], form: Form<'_>, depth: usize) -> Result<Vec<(Value, Value)>> {
        if depth > MAX_DEPTH {
            return Err("the sections nest too deep".into());
        }
        let mut changes = Vec::new();
        for (name, value) in entries {
            let name = name.to_text();
            let item = match value {
                Value::Dict(options) => {
                    if let Some(Item::Section(known)) = self.item(&name) {
                        let below = known.update_to(options, form, depth + 1)?;
                        if !below.is_empty() {
                            changes.push((name.into(), Value::Dict(below)));
                        }
                        continue;
                    }
                    let mut section = Self::default();
                    section.update_to(options, form, depth + 1)?;
                    Item::Section(section)
                }
                value => Item::Text(value.to_text()),
            };
            let before = match self.get(&name) {
                Some(known) if *known == item => continue,
                Some(Item::Section(_)) => return Err(format!("{name} is a section and no option")),
                Some(Item::Text(text)) => text.as_str().into(),
                None => Value::None,
            };
            let change = Value::dict([("before", before), ("after", item.value(true))]);
            changes.push((name.as_str().into(), change));
            self.put(&name, item, form);
        }
        Ok(changes)
    }

    /// The options and sections as a dict; with the lines that stay if `all`.
    pub(crate) fn value(&self, all: bool) -> Value {
        let entries = self.0.iter().filter(|(name, _)| all || !name.starts_with(LINE));
        Value::Dict(entries.map(|(name, item)| (name.as_str().into(), item.value(all))).collect())
    }

    /// The text of a file.
    pub(crate) fn text(&self, form: Form<'_>) -> String {
        let mut out = String::new();
        self.write(&mut out, form);
        out.trim_start_matches('\n').to_owned()
    }

    fn write(&self, out: &mut String, form: Form<'_>) {
        let plain = form.separator.trim();
        let separator = match (form.separator.chars().all(|c| c == ' '), form.no_spaces) {
            (true, _) => " ".to_owned(),
            (false, true) => plain.to_owned(),
            (false, false) => format!(" {plain} "),
        };
        for (name, item) in &self.0 {
            let Item::Text(value) = item else { continue };
            if !name.trim_start().starts_with(['#', ';']) {
                out.push_str(name);
                out.push_str(&separator);
            }
            out.push_str(value);
            out.push('\n');
        }
        for (name, item) in &self.0 {
            if let Item::Section(section) = item {
                out.push_str(&format!("\n[{name}]\n"));
                section.write(out, form);
            }
        }
    }
}

impl Item {
    pub(crate) fn value(&self, all: bool) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Section(section) => section.value(all),
        }
    }
}

/// The name of a section, if a line begins one.
fn head(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('[')?.strip_suffix(']')?;
    (!name.is_empty()).then_some(name)
}

/// Name and value of a line without its indentation; none if it is no option.
fn option<'a>(line: &'a str, separator: &str) -> Option<(&'a str, &'a str)> {
    let first = line.chars().next()?.len_utf8();
    let at = first + line.get(first..)?.find(separator)?;
    Some((line[..at].trim_end(), line[at + separator.len()..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "; top\ntop = 1\n[main]\na = 1\n# note\n#b = 2\nc=3\n  more\n\n[other]\nx = y\n";
    const FORM: Form<'static> = Form { separator: "=", no_spaces: false };

    fn updated(text: &str, sections: &Value, form: Form<'_>) -> (String, Value) {
        let mut file = Section::read(text, form);
        let Value::Dict(entries) = sections else { panic!("no dict") };
        let changes = file.update(entries, form).unwrap();
        (file.text(form), Value::Dict(changes))
    }

    fn section(name: &str, options: &[(&str, Value)]) -> Value {
        Value::dict([(name, Value::dict(options.iter().map(|(name, value)| (*name, value.clone()))))])
    }

    /// Recorded from `ini.set_option` of Salt 3008.3.
    #[test]
    fn options_are_set_as_salt_does() {
        let (text, changes) = updated(FILE, &section("main", &[("a", "2".into()), ("b", 9_i64.into())]), FORM);
        assert_eq!(text, "; top\ntop = 1\n\n[main]\na = 2\n# note\nb = 9\nc = 3\n  more\n\n[other]\nx = y\n");
        assert_eq!(
            changes.to_text(),
            "{'main': {'a': {'before': '1', 'after': '2'}, 'b': {'before': None, 'after': '9'}}}"
        );
        let (text, changes) = updated("a 1\nb 2\n", &Value::dict([("a", "5".into())]), Form { separator: " ", ..FORM });
        assert_eq!((text.as_str(), changes.to_text().as_str()), ("a 5\nb 2\n", "{'a': {'before': '1', 'after': '5'}}"));
        let (text, _) = updated("", &section("new", &[("k", true.into())]), Form { no_spaces: true, ..FORM });
        assert_eq!(text, "[new]\nk=True\n");
        let (text, changes) =
            updated("[s]\na: 1\n", &section("s", &[("b", "3".into())]), Form { separator: ":", ..FORM });
        assert_eq!(text, "[s]\na : 1\nb : 3\n");
        assert_eq!(changes.to_text(), "{'s': {'b': {'before': None, 'after': '3'}}}");
    }

    #[test]
    fn values_of_files() {
        let file = Section::read(FILE, FORM);
        assert_eq!(
            file.value(false).to_text(),
            "{'top': '1', 'main': {'a': '1', 'c': '3\\n  more'}, 'other': {'x': 'y'}}"
        );
        let twice = Section::read("[a]\nx = 1\n[a]\ny = 2\n[b c]  \n[]\n", FORM);
        assert_eq!(twice.value(true).to_text(), "{'a': {'x': '1', 'y': '2'}, 'b c': {'#unknown1': '[]'}}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut file = Section::read(FILE, FORM);
        assert!(file.update(&[("main".into(), "x".into())], FORM).is_err());
        let mut deep = Value::dict([("a", "b".into())]);
        for _ in 0..20 {
            deep = Value::dict([("a", deep)]);
        }
        assert!(matches!(deep, Value::Dict(entries) if file.update(&entries, FORM).is_err()));
    }
}
