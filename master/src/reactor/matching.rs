//! Which of many globs a tag matches.
//!
//! Globs are kept by the text before their first wildcard, so that a tag is compared with few of them. Of those, what is
//! cheap to see comes before the glob itself: how the tag ends, and a text in its middle.

use std::collections::{BTreeMap, HashMap};

use brine_patterns::Glob;
use memchr::memmem::Finder;

/// Globs, each under the number of its place.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The globs by the text before their first wildcard, by its length in bytes.
    by_start: BTreeMap<usize, HashMap<Box<[u8]>, Vec<Row>>>,
}

#[derive(Debug)]
struct Row {
    place: usize,
    /// Fewer bytes than this do not match.
    least: usize,
    end: Box<[u8]>,
    middle: Option<Finder<'static>>,
    rest: Rest,
}

/// What is left to look at.
#[derive(Debug)]
enum Rest {
    /// The tag is as long as the start.
    Equal,
    /// One star between start and end takes whatever is there.
    Nothing,
    Glob(Glob),
}

impl Index {
    pub(super) fn new<'a>(globs: impl IntoIterator<Item = &'a str>) -> Self {
        let mut this = Self::default();
        for (place, glob) in globs.into_iter().enumerate() {
            let (start, row) = Row::new(place, glob);
            let same_length = this.by_start.entry(start.len()).or_default();
            same_length.entry(start.as_bytes().into()).or_default().push(row);
        }
        this
    }

    /// Returns the places of the globs that match, in their order.
    pub(super) fn matching(&self, tag: &str) -> Vec<usize> {
        let bytes = tag.as_bytes();
        let mut found = Vec::new();
        for (length, starts) in self.by_start.range(..=bytes.len()) {
            for row in starts.get(&bytes[..*length]).into_iter().flatten() {
                if row.matches(tag, *length) {
                    found.push(row.place);
                }
            }
        }
        found.sort_unstable();
        found
    }
}

impl Row {
    fn new(place: usize, glob: &str) -> (&str, Self) {
        let is_special = |c| matches!(c, '*' | '?' | '[');
        let Some(first) = glob.find(is_special) else {
            let row = Self { place, least: glob.len(), end: [].into(), middle: None, rest: Rest::Equal };
            return (glob, row);
        };
        let (start, pattern) = glob.split_at(first);
        // A class can have any text; without one, what is between wildcards is literal.
        let has_class = pattern.contains('[');
        let end = match pattern.rfind(|c| is_special(c) || c == ']') {
            Some(last) => &pattern[last + 1..],
            None => "",
        };
        let between = &pattern[..pattern.len() - end.len()];
        let parts = between.split(['*', '?']).filter(|part| !part.is_empty() && !has_class);
        let middle = parts.max_by_key(|part| part.len());
        let rest = if between == "*" { Rest::Nothing } else { Rest::Glob(Glob::new(glob)) };
        let row = Self {
            place,
            least: start.len() + end.len(),
            end: end.as_bytes().into(),
            middle: middle.map(|part| Finder::new(part).into_owned()),
            rest,
        };
        (start, row)
    }

    /// `start` bytes of the tag are known to be right.
    fn matches(&self, tag: &str, start: usize) -> bool {
        let bytes = tag.as_bytes();
        bytes.len() >= self.least
            && bytes.ends_with(&self.end)
            && self.middle.as_ref().is_none_or(|middle| middle.find(&bytes[start..]).is_some())
            && match &self.rest {
                Rest::Equal => bytes.len() == self.least,
                Rest::Nothing => true,
                Rest::Glob(glob) => glob.matches(tag),
            }
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
