//! Which tags an engine sees: those of its globs. A wildcard never stands for the first parts of the master's own tags,
//! so that nobody shows jobs or keys to an engine without naming them.

use brine_patterns::fnmatch;

/// Upper bound on the globs of an engine.
const MAX_GLOBS: usize = 1_000;
/// Upper bound on the bytes of a glob.
const MAX_GLOB: usize = 4_096;

/// The globs of an engine.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tags(Vec<Glob>);

#[derive(Debug, PartialEq)]
struct Glob {
    text: String,
    /// The number of parts before the first one with a wildcard.
    literal: usize,
}

impl Tags {
    /// Reads globs.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence.
    pub(super) fn new<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut all = Vec::new();
        for text in globs {
            if text.is_empty() || text.len() > MAX_GLOB {
                return Err(format!("a glob of tags has 1 to {MAX_GLOB} bytes"));
            }
            if all.len() == MAX_GLOBS {
                return Err(format!("there are more than {MAX_GLOBS} globs of tags"));
            }
            let literal = text.split('/').take_while(|part| !part.contains(['*', '?', '['])).count();
            all.push(Glob { text: text.to_owned(), literal });
        }
        Ok(Self(all))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|glob| glob.text.as_str())
    }

    /// Whether an event with this tag is for the engine.
    pub(super) fn see(&self, tag: &str) -> bool {
        let spelled = spelled_out(tag);
        self.0.iter().any(|glob| glob.literal >= spelled && fnmatch(&glob.text, tag))
    }
}

/// The number of a tag's first parts that a glob spells out: of Salt's own two (`salt/job`), of the master's others one.
fn spelled_out(tag: &str) -> usize {
    let mut parts = tag.split('/');
    let first = parts.next().unwrap_or_default();
    match first {
        "salt" | "brine" if parts.next().is_some() => 2,
        first if brine_tags::is_reserved(first) => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_does_not_stand_for_the_masters_own_words() {
        let sees = |glob: &str, tag: &str| Tags::new([glob]).unwrap().see(tag);
        for (glob, tag) in [
            ("salt/job/*/ret/*", "salt/job/20261124000000000000/ret/web1"),
            ("salt/auth", "salt/auth"),
            ("salt/key*", "salt/keys"),
            ("*", "deploy/done"),
            ("deploy/*", "deploy/web/done"),
            ("minion_start", "minion_start"),
        ] {
            let expected = glob != "salt/key*";
            assert_eq!(sees(glob, tag), expected, "{glob} {tag}");
        }
        for (glob, tag) in [
            ("*", "salt/job/20261124000000000000/ret/web1"),
            ("*", "salt/auth"),
            ("salt/*", "salt/key"),
            ("s*/job/*", "salt/job/1/new"),
            ("salt/[jr]*/*", "salt/run/1/ret"),
            ("brine/*", "brine/audit/x"),
            ("*", "minion_start"),
            ("deploy/*", "other/deploy/x"),
        ] {
            assert!(!sees(glob, tag), "{glob} {tag}");
        }
        assert!(!Tags::default().see("deploy/done"));
        assert!(Tags::new([""]).is_err() && Tags::new(["x".repeat(5_000).as_str()]).is_err());
    }
}
