//! All entries of all files.

use brine_guest::{Result, Value};

use super::{Entry, Line, MAIN_FILE, Stanza};

/// What Salt writes when there is no entry at all.
const EMPTY: &str = "## See sources.list(5) for more information, especialy\n# Remember that you can only use http, ftp or file URIs\n\
                     # CDROMs are managed through the apt-cdrom tool.\n";

/// What is to become of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    pub file: String,
    pub text: String,
}

/// The entries of a host, in the order of files and lines.
#[derive(Debug, Clone, Default)]
pub struct SourcesList {
    pub entries: Vec<Entry>,
}

/// A repository as it is named: a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Named(pub Line);

impl Named {
    /// Reads the name of a repository.
    ///
    /// # Errors
    /// When it looks like an entry and has too few words.
    pub fn read(repo: &str) -> Result<Self> {
        Line::of_main(repo).map(Self)
    }

    fn is_uri_of(&self, entry: &Entry) -> bool {
        entry.uris().iter().any(|uri| same_uri(uri, &self.0.uri))
    }

    /// Whether the entry has the same type, address and suite.
    pub fn is(&self, entry: &Entry) -> bool {
        entry.types().contains(&self.0.kind) && self.is_uri_of(entry) && entry.suites().contains(&self.0.dist)
    }
}

/// Addresses with and without a slash at the end are the same.
pub fn same_uri(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

impl SourcesList {
    /// Reads a file into the list. What is after a line that cannot be read is left out.
    pub fn load(&mut self, file: &str, text: &str) {
        if !file.ends_with(".sources") {
            let lines = text.split_inclusive('\n').map(|line| Line::read(line, file));
            self.entries.extend(lines.map_while(|line| line.ok().map(Entry::Line)));
            return;
        }
        let mut stanza = String::new();
        for line in text.split_inclusive('\n') {
            if !line.trim().is_empty() {
                stanza.push_str(line);
            } else if !stanza.is_empty() {
                self.entries.push(Entry::Stanza(Stanza::read(&std::mem::take(&mut stanza), file)));
            }
        }
        if !stanza.is_empty() {
            self.entries.push(Entry::Stanza(Stanza::read(&stanza, file)));
        }
    }

    /// The texts of all files that have entries.
    pub fn written(&self) -> Vec<Written> {
        if self.entries.is_empty() {
            return vec![Written { file: MAIN_FILE.into(), text: EMPTY.into() }];
        }
        let mut files: Vec<Written> = Vec::new();
        for entry in &self.entries {
            let text = entry.text();
            match files.iter_mut().find(|written| written.file == entry.file()) {
                None => files.push(Written { file: entry.file().into(), text: text + "\n" }),
                Some(written) => {
                    if matches!(entry, Entry::Stanza(_)) {
                        written.text.push('\n');
                    }
                    written.text.push_str(&text);
                    written.text.push('\n');
                }
            }
        }
        files
    }

    /// What Salt tells of all entries: lists of dicts by address.
    pub fn described(&self) -> Vec<(String, Vec<Value>)> {
        let mut result: Vec<(String, Vec<Value>)> = Vec::new();
        for (uri, described) in self.entries.iter().filter(|entry| !entry.is_invalid()).flat_map(Entry::described) {
            match result.iter_mut().find(|(known, _)| *known == uri) {
                Some((_, list)) => list.push(described),
                None => result.push((uri, vec![described])),
            }
        }
        result
    }

    /// The description of the entry of this name; an empty dict if there is none.
    pub fn find(&self, repo: &Named) -> Value {
        let Named(line) = repo;
        let text = |described: &Value, key: &str| described.get(key).map(Value::to_text).unwrap_or_default();
        let mut all = self.described().into_iter().flat_map(|(_, list)| list);
        let found = all.find(|described| {
            text(described, "type") == line.kind
                && same_uri(&text(described, "uri"), &line.uri)
                && text(described, "dist") == line.dist
                && (line.comps.is_empty() || has_one(described.get("comps"), &line.comps))
        });
        found.unwrap_or(Value::Dict(Vec::new()))
    }

    /// Removes what this name means: the whole of an entry, or its suite, or its components. Returns the files that had it.
    pub fn remove(&mut self, repo: &Named) -> Vec<String> {
        let Named(line) = repo;
        let mut files: Vec<String> = Vec::new();
        self.entries.retain_mut(|entry| {
            if entry.is_invalid() || !repo.is(entry) || entry.architectures() != line.architectures {
                return true;
            }
            let comps = entry.comps();
            let (others, common): (Vec<String>, Vec<String>) =
                comps.iter().cloned().partition(|comp| !line.comps.contains(comp));
            let same = others.is_empty() && line.comps.iter().all(|comp| comps.contains(comp));
            if !same && common.is_empty() {
                return true;
            }
            if !files.iter().any(|file| file == entry.file()) {
                files.push(entry.file().into());
            }
            if !same {
                entry.set_comps(&others);
                return !others.is_empty();
            }
            let mut suites = entry.suites();
            if let Some(at) = suites.iter().position(|suite| *suite == line.dist) {
                suites.remove(at);
            }
            entry.set_suites(&suites);
            !suites.is_empty()
        });
        files
    }

    /// How many entries a file has.
    pub fn count(&self, file: &str) -> usize {
        self.entries.iter().filter(|entry| !entry.is_invalid() && entry.file() == file).count()
    }
}

fn has_one(list: Option<&Value>, wanted: &[String]) -> bool {
    let Some(Value::List(items)) = list else { return false };
    items.iter().any(|item| item.text().is_some_and(|text| wanted.iter().any(|comp| comp == text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(files: &[(&str, &str)]) -> SourcesList {
        let mut list = SourcesList::default();
        files.iter().for_each(|(file, text)| list.load(file, text));
        list
    }

    fn written(list: &SourcesList) -> Vec<(String, String)> {
        list.written().into_iter().map(|written| (written.file, written.text)).collect()
    }

    #[test]
    fn files_that_are_not_changed_stay() {
        let one = "# about\n\ndeb http://x stable main\n";
        let other = "# about\nTypes: deb\nURIs: http://y\nSuites: stable\nComponents: main\n\nTypes: deb\nURIs: http://z/\nSuites: ./\n";
        let list = list(&[("/a.list", one), ("/b.sources", other)]);
        assert_eq!(written(&list), [("/a.list".into(), one.into()), ("/b.sources".into(), other.into())]);
        assert_eq!(written(&SourcesList::default())[0].0, MAIN_FILE);
    }

    #[test]
    fn a_repository_is_found_by_one_of_its_components() {
        let list = list(&[("/a.list", "deb http://x/ stable main extra\ndeb http://x ./\n")]);
        let find = |repo: &str| list.find(&Named::read(repo).unwrap());
        assert!(find("deb http://x stable extra").truthy());
        assert!(find("deb http://x stable").truthy());
        assert!(find("deb http://x/ ./").truthy());
        assert!(!find("deb http://x stable other").truthy());
        assert!(!find("deb-src http://x stable main").truthy());
        assert!(!find("nonsense").truthy());
    }

    #[test]
    fn a_repository_is_removed_as_far_as_it_is_named() {
        let lines = "deb http://x stable main extra\ndeb http://y stable main\n";
        let stanza = "Types: deb\nURIs: http://z\nSuites: a b\nComponents: main\n";
        let mut list = list(&[("/a.list", lines), ("/b.sources", stanza)]);
        let mut remove = |repo: &str| list.remove(&Named::read(repo).unwrap());
        assert_eq!(remove("deb http://x stable extra"), ["/a.list"]);
        assert_eq!(remove("deb http://y/ stable main"), ["/a.list"]);
        assert_eq!(remove("deb http://z a main"), ["/b.sources"]);
        assert!(remove("deb [arch=i386] http://x stable main").is_empty());
        assert!(remove("deb http://none stable main").is_empty());
        let expected = "Types: deb\nURIs: http://z\nSuites: b\nComponents: main\n";
        assert_eq!(
            written(&list),
            [("/a.list".into(), "deb http://x stable main\n".into()), ("/b.sources".into(), expected.into())]
        );
        assert_eq!((list.count("/a.list"), list.count("/c.list")), (1, 0));
    }
}
