//! Regular expressions with Python's meaning ([`brine_patterns`] reads the syntax), matched from the start of a text as
//! `re.match` does.
//!
//! Expressions come from operators (also in permissions) and from minions (peer publish, the mine). They are matched in
//! linear time if possible. Only look-around and back-references need backtracking, which is bounded in steps.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brine_patterns::{Dialect, Flags, Rewritten, rewrite};

/// Upper bound on the size of a compiled expression.
const MAX_SIZE: usize = 1 << 20;
/// Upper bound on the expressions of one target.
const MAX_OF_TARGET: usize = 256;
/// Size of a compiled expression that any of them may have.
const MIN_SIZE: usize = 64 << 10;
/// Upper bound on the steps of one match with backtracking; expressions for host names need hundreds.
const MAX_STEPS: usize = 50_000;

/// An expression with the meaning of Python's `re`.
#[derive(Debug, Clone)]
pub struct Regex(Arc<Engine>);

#[derive(Debug)]
enum Engine {
    Linear(regex::Regex),
    /// An expression that once exceeded its steps matches nothing any more, so that it cannot do so again for each of
    /// ten thousand minions.
    Backtracking {
        regex: Box<fancy_regex::Regex>,
        tired: AtomicBool,
    },
}

impl Regex {
    /// Compiles an expression.
    ///
    /// # Errors
    /// One line about the error in the expression.
    pub fn new(pattern: &str) -> Result<Self, String> {
        Self::within(pattern, MAX_SIZE)
    }

    /// As [`Regex::new`], compiled to at most so many bytes.
    fn within(pattern: &str, size: usize) -> Result<Self, String> {
        let Rewritten { pattern, backtracks } = rewrite(pattern, Flags::default(), Dialect::Unicode)?;
        let anchored = format!(r"\A(?:{pattern})");
        let last_line = |error: String| error.lines().last().unwrap_or_default().trim().to_owned();
        if !backtracks {
            let built = regex::RegexBuilder::new(&anchored).size_limit(size).dfa_size_limit(size).build();
            return built
                .map(|regex| Self(Arc::new(Engine::Linear(regex))))
                .map_err(|error| last_line(error.to_string()));
        }
        let mut builder = fancy_regex::RegexBuilder::new(&anchored);
        builder.backtrack_limit(MAX_STEPS).delegate_size_limit(size).delegate_dfa_size_limit(size);
        match builder.build() {
            Ok(regex) => {
                Ok(Self(Arc::new(Engine::Backtracking { regex: Box::new(regex), tired: AtomicBool::new(false) })))
            }
            Err(error) => Err(last_line(error.to_string())),
        }
    }

    /// Whether the expression matches from the start of the text, as `re.match` does. An expression that exceeds its
    /// steps matches nothing from then on, so use a match to permit and never to forbid.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        match &*self.0 {
            Engine::Linear(regex) => regex.is_match(text),
            Engine::Backtracking { tired, .. } if tired.load(Ordering::Relaxed) => false,
            Engine::Backtracking { regex, tired } => regex.is_match(text).unwrap_or_else(|error| {
                tracing::warn!("the expression {:?} takes too long and matches nothing: {error}", regex.as_str());
                tired.store(true, Ordering::Relaxed);
                false
            }),
        }
    }
}

/// Compiles the expressions of one target. A target is short and may have many, each of which could take a megabyte: so the more there are, the
/// smaller they have to be.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    compiled: Cell<usize>,
}

impl Compiler {
    /// Compiles one more.
    pub(super) fn compile(&self, pattern: &str) -> Result<Regex, String> {
        let count = self.compiled.get() + 1;
        self.compiled.set(count);
        if count > MAX_OF_TARGET {
            return Err(format!("it has more than {MAX_OF_TARGET} expressions"));
        }
        Regex::within(pattern, (MAX_SIZE / count).max(MIN_SIZE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two kilobytes of a compound target took a second and 150 MB.
    #[test]
    fn expressions_of_one_target_share_a_bound() {
        let patterns = Compiler::default();
        let large = r"\w{15}";
        assert!(patterns.compile(large).is_ok(), "one may be large");
        let taken = (0..20).filter(|_| patterns.compile(large).is_ok()).count();
        assert!(taken < 10, "{taken} more of them");
        let patterns = Compiler::default();
        assert!((0..MAX_OF_TARGET).all(|n| patterns.compile(&format!("web{n}.*")).is_ok()));
        assert!(patterns.compile("web").unwrap_err().contains("more than 256 expressions"));
    }

    #[test]
    fn what_python_reads_differently() {
        for (pattern, text, expected) in [
            ("web", "web1", Some(true)),
            ("web|db1$", "db12", Some(false)),
            ("eb", "web1", Some(false)),
            ("[[a]]", "a]", Some(true)),
            ("[[a]]", "a", Some(false)),
            ("[a&&b]", "&", Some(true)),
            ("[a-]", "-", Some(true)),
            ("[]a]", "]", Some(true)),
            ("[^]a]", "]", Some(false)),
            ("[a", "a", None),
            ("[]", "a", None),
            ("[z-a]", "z", None),
            (r"\<a\>", "<a>", Some(true)),
            (r"a\Z", "a", Some(true)),
            (r"a\z", "a", None),
            (r"\pL", "a", None),
            ("a$", "a\n", Some(true)),
            ("(?m)a$.b", "a\nb", Some(false)),
            (r"(?m)a$\nb", "a\nb", Some(true)),
            ("a{,2}b", "aab", Some(true)),
            ("a{x}", "a{x}", Some(true)),
            ("{", "{", Some(true)),
            ("a**", "a", None),
            ("*a", "a", None),
            ("^*", "a", None),
            ("a++a", "aa", Some(false)),
            ("(?i)WEB", "web", Some(true)),
            ("a(?i)B", "ab", None),
            ("(?i:A)b", "ab", Some(true)),
            ("(?x)a b # c", "ab", Some(true)),
            (r"(?x) [ ] \ b +", "  bb", Some(true)),
            ("a(?#b)*c", "aac", Some(true)),
            ("(?a)a", "a", None),
            ("(a)?(?(1)b|c)", "ab", None),
            ("(a)|b)", "a", None),
            ("((a)", "a", None),
            (r"\101", "A", Some(true)),
            (r"[\101-\103]", "B", Some(true)),
            (r"\w+", "ü", Some(true)),
            (r"\s", "\x1c", Some(true)),
            ("(?!db)", "web1", Some(true)),
            ("(?!db)", "db1", Some(false)),
            (r".*(?<=1)$", "db1", Some(true)),
            (r"(\w)\1", "oo", Some(true)),
            (r"(\w)\1", "ox", Some(false)),
            (r"(?P<a>.)(?P=a)", "ww", Some(true)),
            (r"\2", "a", None),
        ] {
            let matched = Regex::new(pattern).map(|regex| regex.matches(text));
            assert_eq!(matched.clone().ok(), expected, "{pattern} {text:?} {matched:?}");
        }
    }

    #[test]
    fn bombs_are_refused_or_end() {
        assert!(Regex::new("(a{1000}){1000}").is_err());
        assert!(Regex::new(&"(".repeat(100_000)).is_err());
        assert!(Regex::new("(?:(?:(?:(?=a)b){1000}){1000}){1000}").is_ok_and(|regex| !regex.matches("a")));
        assert!(Regex::new(&format!("{}a{}", "(?=".repeat(5_000), ")".repeat(5_000))).is_err());
        let evil = Regex::new("(?=(a+)+$)b?(a|a)*c").unwrap();
        let started = std::time::Instant::now();
        for _ in 0..10_000 {
            assert!(!evil.matches(&"a".repeat(200)));
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_an_expression_or_an_error(
            pattern in r"([ab1(){}\[\]*+?|^$\\.,:<=!>#&~-]|\(\?[=!>:]|\(\?<[=!]|\(\?P<n>|\\[1wsbBAZ]|\{[0-9],?[0-9]?\}){0,14}",
            text in "[ab1 \n]{0,12}",
        ) {
            if let Ok(regex) = Regex::new(&pattern) {
                let _ = regex.matches(&text);
            }
        }
    }
}
