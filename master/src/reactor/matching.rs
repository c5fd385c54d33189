//! Which of many globs a tag matches.
//!
//! A tag is read once for the literal text of all globs; only those whose text is there are compared. Of the texts
//! between a glob's wildcards, the one that the fewest other globs have stands for it.

use std::cmp::Reverse;
use std::collections::HashMap;

use aho_corasick::AhoCorasick;
use brine_patterns::Glob;

/// Globs, each under the number of its place.
#[derive(Debug)]
pub(super) struct Index {
    globs: Vec<Glob>,
    /// Those without wildcards.
    exact: HashMap<Box<str>, Vec<usize>>,
    /// The texts that stand for the others.
    texts: Option<AhoCorasick>,
    /// The places of the globs for which each of `texts` stands.
    by_text: Vec<Vec<usize>>,
    /// Those that have no literal text.
    without: Vec<usize>,
}

impl Index {
    pub(super) fn new<'a>(globs: impl IntoIterator<Item = &'a str>) -> Self {
        let globs: Vec<Glob> = globs.into_iter().map(Glob::new).collect();
        let mut uses: HashMap<String, usize> = HashMap::new();
        for text in globs.iter().flat_map(Glob::literals) {
            *uses.entry(text).or_default() += 1;
        }
        let mut this = Self { exact: HashMap::new(), texts: None, by_text: Vec::new(), without: Vec::new(), globs };
        let mut by_text: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, glob) in this.globs.iter().enumerate() {
            if let Some(tag) = glob.exact() {
                this.exact.entry(tag.into()).or_default().push(place);
                continue;
            }
            // Of two that are as rare, the shorter is in more tags.
            match glob.literals().max_by_key(|text| (Reverse(uses[text]), text.len())) {
                Some(text) => by_text.entry(text).or_default().push(place),
                None => this.without.push(place),
            }
        }
        let (texts, places): (Vec<String>, Vec<Vec<usize>>) = by_text.into_iter().unzip();
        match AhoCorasick::new(texts) {
            Ok(texts) => (this.texts, this.by_text) = (Some(texts), places),
            // Gigabytes of globs: each is compared by itself.
            Err(_) => this.without.extend(places.into_iter().flatten()),
        }
        this
    }

    /// Returns the places of the globs that match, in their order.
    pub(super) fn matching(&self, tag: &str) -> Vec<usize> {
        let texts = self.texts.iter().flat_map(|texts| texts.find_overlapping_iter(tag));
        let mut texts: Vec<usize> = texts.map(|found| found.pattern().as_usize()).collect();
        texts.sort_unstable();
        texts.dedup();
        let candidates = texts.iter().flat_map(|text| &self.by_text[*text]).chain(&self.without);
        let mut found: Vec<usize> = candidates.copied().filter(|place| self.globs[*place].matches(tag)).collect();
        found.extend(self.exact.get(tag).into_iter().flatten());
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn globs_match_as_each_by_itself() {
        let globs = [
            "*",
            "salt/minion/*/start",
            "salt/minion/web?/start",
            "salt/*",
            "salt/job/*/ret/web[0-9]*",
            "exact",
            "exact*",
            "*/start",
            "",
            "a[",
            "[a]b",
            "*x*y*",
            "salt/minion/*",
            "é*é",
            "a*a",
            "[!x]*",
            "salt/j?b/*/n*w",
        ];
        let index = Index::new(globs);
        for tag in [
            "",
            "exact",
            "exactly",
            "salt/minion/web1/start",
            "salt/minion/w/b/start",
            "salt/job/1/ret/web1",
            "salt/job/1/ret/db1",
            "salt/job/1/new",
            "a[",
            "ab",
            "axby",
            "é",
            "éé",
            "a",
            "aa",
            "start",
            "x/start",
            "salt/",
        ] {
            let each: Vec<usize> = globs
                .iter()
                .enumerate()
                .filter(|(_, glob)| brine_patterns::fnmatch(glob, tag))
                .map(|(at, _)| at)
                .collect();
            assert_eq!(index.matching(tag), each, "{tag}");
        }
    }

    proptest! {
        #[test]
        fn an_index_is_fnmatch(globs in proptest::collection::vec("[ab/*?\\[\\]!é-]{0,8}", 0..8), tag in "[ab/é\\[-]{0,10}") {
            let index = Index::new(globs.iter().map(String::as_str));
            let each: Vec<usize> = (0..globs.len()).filter(|at| brine_patterns::fnmatch(&globs[*at], &tag)).collect();
            prop_assert_eq!(index.matching(&tag), each);
        }
    }
}
