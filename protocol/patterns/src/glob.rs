//! Shell-style patterns with Python's rules.

/// Whether the text matches a shell-style pattern as Python's `fnmatch.fnmatchcase` decides.
pub fn fnmatch(pattern: &str, text: &str) -> bool {
    Glob::new(pattern).matches(text)
}

/// A shell-style pattern with Python's rules, which differ from a shell's: `*` matches everything, there is no escape,
/// and an unclosed `[` matches itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Star,
    Any,
    Char(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a pattern; every text is valid.
    pub fn new(pattern: &str) -> Self {
        let chars: Vec<char> = pattern.chars().collect();
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            at += 1;
            match c {
                '*' if pieces.last() == Some(&Piece::Star) => {}
                '*' => pieces.push(Piece::Star),
                '?' => pieces.push(Piece::Any),
                '[' => match class(&chars, at) {
                    Some((piece, next)) => {
                        pieces.push(piece);
                        at = next;
                    }
                    None => pieces.push(Piece::Char('[')),
                },
                c => pieces.push(Piece::Char(c)),
            }
        }
        Self(pieces)
    }

    /// Returns the one text that matches, of a pattern without wildcards.
    pub fn exact(&self) -> Option<String> {
        self.0.iter().map(Piece::literal).collect()
    }

    /// Returns the texts between the wildcards, none of them empty. What matches has all of them.
    pub fn literals(&self) -> impl Iterator<Item = String> {
        let runs = self.0.split(|piece| piece.literal().is_none()).filter(|run| !run.is_empty());
        runs.map(|run| run.iter().filter_map(Piece::literal).collect())
    }

    /// Whether the whole text matches. Takes at most as many steps as the product of both lengths.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut piece, mut at) = (0, 0);
        // The place to continue from if the last star has to match one more character.
        let mut retry: Option<(usize, usize)> = None;
        while at < text.len() {
            match self.0.get(piece) {
                Some(Piece::Star) => {
                    retry = Some((piece + 1, at));
                    piece += 1;
                }
                Some(one) if one.takes(text[at]) => {
                    piece += 1;
                    at += 1;
                }
                _ => match &mut retry {
                    Some((after_star, from)) => {
                        *from += 1;
                        (piece, at) = (*after_star, *from);
                    }
                    None => return false,
                },
            }
        }
        self.0[piece..].iter().all(|p| *p == Piece::Star)
    }
}

impl Piece {
    const fn literal(&self) -> Option<char> {
        match self {
            Self::Char(own) => Some(*own),
            _ => None,
        }
    }

    fn takes(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => true,
            Self::Char(own) => *own == c,
            Self::Class { negated, ranges } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated,
        }
    }
}

/// Takes the `!` of a negated class. Python removes empty ranges before it looks for `!`, so it reads `[b-a!c]` as
/// `[!c]`.
fn take_negation(ranges: &mut Vec<(char, char)>) -> bool {
    match ranges.first().copied() {
        Some(('!', '!')) => drop(ranges.remove(0)),
        // The rest of a range that began with `!`.
        Some(('!', to)) => drop(ranges.splice(..1, [('-', '-'), (to, to)])),
        _ => return false,
    }
    true
}

/// Reads the class after `[`; returns it and the index after it. None if the class is not closed.
fn class(chars: &[char], start: usize) -> Option<(Piece, usize)> {
    let negated = chars.get(start) == Some(&'!');
    let first = start + usize::from(negated);
    // A `]` in the first place is a member of the class.
    let end = first + 1 + chars.get(first + 1..)?.iter().position(|&c| c == ']')?;
    let mut ranges = Vec::new();
    let mut at = first;
    while at < end {
        let is_range = at + 2 < end && chars[at + 1] == '-';
        let (from, to) = (chars[at], chars[if is_range { at + 2 } else { at }]);
        // An empty range matches nothing.
        if from <= to {
            ranges.push((from, to));
        }
        at += if is_range { 3 } else { 1 };
    }
    let negated = negated || take_negation(&mut ranges);
    Some((Piece::Class { negated, ranges }, end + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn globs_are_pythons() {
        let cases = [
            ("*", "", true),
            ("web*", "web1", true),
            ("web*", "aweb", false),
            ("*.example.*", "a.example.com", true),
            ("w?b", "wéb", true),
            ("w?b", "wb", false),
            ("[ab]x", "bx", true),
            ("[!ab]x", "bx", false),
            ("[!ab]x", "cx", true),
            ("[a-c]", "b", true),
            ("[c-a]", "b", false),
            ("[!c-a]", "b", true),
            ("[a-]", "-", true),
            ("[]]", "]", true),
            ("[!]]", "]", false),
            ("[]a]", "a", true),
            ("[", "[", true),
            ("[a", "[a", true),
            ("[]", "[]", true),
            ("[!]", "[!]", true),
            ("a\\*", "a\\b", true),
            ("WEB", "web", false),
            ("a**b*c", "aXbYc", true),
            ("[^a]", "^", true),
            ("[[]", "[", true),
            ("[a-b-c]", "-", true),
            ("{a,b}", "a", false),
            ("{a,b}", "{a,b}", true),
        ];
        for (pattern, name, expect) in cases {
            assert_eq!(fnmatch(pattern, name), expect, "{pattern} {name}");
        }
    }

    #[test]
    fn what_a_pattern_demands_literally() {
        for (pattern, exact, literals) in [
            ("a/b", Some("a/b"), vec!["a/b"]),
            ("", Some(""), vec![]),
            ("a[", Some("a["), vec!["a["]),
            ("*", None, vec![]),
            ("[ab]?", None, vec![]),
            ("a*b?c[d-e]f", None, vec!["a", "b", "c", "f"]),
            ("[]]é**[!", None, vec!["é", "[!"]),
        ] {
            let glob = Glob::new(pattern);
            assert_eq!(glob.exact().as_deref(), exact, "{pattern}");
            assert_eq!(glob.literals().collect::<Vec<_>>(), literals, "{pattern}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "*a".repeat(1000) + "b";
        assert!(!fnmatch(&pattern, &"a".repeat(255)));
    }

    proptest! {
        #[test]
        fn every_text_is_a_glob_and_none_panics(pattern in "[\\[\\]!a-c*?-]{0,12}", name in "[a-c\\[\\]!-]{0,8}") {
            let _ = fnmatch(&pattern, &name);
        }

        #[test]
        fn a_glob_without_magic_is_equality(a in "[a-c.]{0,3}", b in "[a-c.]{0,3}") {
            prop_assert_eq!(fnmatch(&a, &b), a == b);
        }
    }
}
