//! Names and globs.

/// Upper bound on the bytes of a pattern and of the text it is compared with: the time grows with their product.
pub const MAX_NAME: usize = 4_096;

/// Some names, or any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// `any`
    Any,
    /// These names, as the owner wrote them.
    Only(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl Names {
    /// No names, as a static value.
    pub(crate) const NONE: &Self = &Self::Only(Vec::new());

    pub(crate) fn only(names: &[&str]) -> Self {
        Self::Only(names.iter().map(ToString::to_string).collect())
    }

    /// Checks whether the list is empty.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Adds other names.
    pub fn add(&mut self, others: &Self) {
        match (&mut *self, others) {
            (Self::Any, _) => {}
            (_, Self::Any) => *self = Self::Any,
            (Self::Only(names), Self::Only(others)) => {
                let others: Vec<String> = others.iter().filter(|name| !names.contains(name)).cloned().collect();
                names.extend(others);
            }
        }
    }

    /// Checks whether exactly this name is in the list.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(names) => names.iter().any(|known| known == name),
        }
    }

    /// Checks whether one of the names, as a glob, matches. `*` stands for any text within a part (parts are separated
    /// by `/`), `**` for any text, `?` for one character other than `/`. Nothing else is special.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(patterns) => patterns.iter().any(|pattern| glob(pattern, name)),
        }
    }

    /// Checks whether any path below this folder could match.
    pub fn matches_below(&self, folder: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(patterns) => patterns.iter().any(|pattern| {
                let states = walk(pattern, &format!("{folder}/"));
                // In the last state the pattern is used up and cannot match anything below the folder.
                states.is_some_and(|states| states[..states.len() - 1].contains(&true))
            }),
        }
    }

    /// Checks whether the name is in the list or below a name in it. `divider` separates the parts of both.
    pub fn holds(&self, parts: &[&str], divider: char) -> bool {
        match self {
            Self::Any => true,
            Self::Only(names) => names.iter().any(|name| {
                let mut asked = parts.iter();
                // `/` is above everything.
                name.trim_end_matches(divider).split(divider).all(|part| asked.next() == Some(&part))
            }),
        }
    }

    /// Returns the list with one more name.
    pub(crate) fn with(&self, name: &str) -> Self {
        match self {
            Self::Any => Self::Any,
            Self::Only(names) => {
                let mut names = names.clone();
                names.push(name.to_owned());
                Self::Only(names)
            }
        }
    }
}

/// Checks whether a literal text, used as a pattern, would match other texts too.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    One(char),
    AnyOne,
    Some,
    All,
}

pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    walk(pattern, text).is_some_and(|states| states.last() == Some(&true))
}

/// Returns the positions in the pattern that are reachable after the whole text; the last is the pattern's end. There
/// is no backtracking, whatever the pattern.
fn walk(pattern: &str, text: &str) -> Option<Vec<bool>> {
    if pattern.len() > MAX_NAME || text.len() > MAX_NAME {
        return None;
    }
    let mut tokens: Vec<Token> = Vec::with_capacity(pattern.len());
    for c in pattern.chars() {
        match (c, tokens.last()) {
            ('*', Some(Token::Some | Token::All)) => {
                tokens.pop();
                tokens.push(Token::All);
            }
            ('*', _) => tokens.push(Token::Some),
            ('?', _) => tokens.push(Token::AnyOne),
            (c, _) => tokens.push(Token::One(c)),
        }
    }
    let mut here = vec![false; tokens.len() + 1];
    here[0] = true;
    let skip = |here: &mut Vec<bool>| {
        for at in 0..tokens.len() {
            if here[at] && matches!(tokens[at], Token::Some | Token::All) {
                here[at + 1] = true;
            }
        }
    };
    skip(&mut here);
    for c in text.chars() {
        let mut next = vec![false; tokens.len() + 1];
        for at in (0..tokens.len()).filter(|at| here[*at]) {
            match tokens[at] {
                Token::One(one) if one == c => next[at + 1] = true,
                Token::AnyOne if c != '/' => next[at + 1] = true,
                Token::Some if c != '/' => next[at] = true,
                Token::All => next[at] = true,
                _ => {}
            }
        }
        skip(&mut next);
        here = next;
    }
    Some(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, expect) in [
            ("test.*", "test.ping", true),
            ("test.*", "test.", true),
            ("test.*", "tests.ping", false),
            ("test.ping", "test.pin", false),
            ("test.ping", "xtest.ping", false),
            ("t?st.ping", "test.ping", true),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("deploy/*", "deploy/a", true),
            ("deploy/*", "deploy/a/b", false),
            ("deploy/**", "deploy/a/b", true),
            ("deploy/**", "deploy", false),
            ("deploy/**", "deployx/a", false),
            ("deploy/**/x.conf", "deploy/a/b/x.conf", true),
            ("deploy/?", "deploy//", false),
            ("[ab]", "a", false),
            ("[ab]", "[ab]", true),
            ("a.c", "abc", false),
            ("***", "a/b", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(glob(pattern, text), expect, "{pattern} {text}");
        }
        // The longest pattern with the most `*`.
        let many = "*a".repeat(MAX_NAME / 2);
        assert!(!glob(&many, &"a".repeat(MAX_NAME / 2 - 1)));
        assert!(!glob("**", &"a".repeat(MAX_NAME + 1)));
    }

    #[test]
    fn below() {
        let names = Names::Only(vec!["deploy".into(), "web:tls".into()]);
        for (parts, expect) in [
            (&["deploy"][..], true),
            (&["deploy", "x"], true),
            (&["deployx"], false),
            (&["web"], false),
            (&["web", "tls"], true),
            (&["web", "tls", "key"], true),
            (&["web:tls"], false),
            (&["web", "other"], false),
            (&[], false),
        ] {
            assert_eq!(names.holds(parts, ':'), expect, "{parts:?}");
        }
    }
}
