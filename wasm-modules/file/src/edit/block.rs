//! `file.blockreplace` on a text: the lines between two markers.

use brine_render::regex::{Flags, Regex, RegexError};

use super::lines;
use super::pattern::{about, backtracks};

/// The markers and what comes between them.
pub(crate) struct Block<'a> {
    pub start: &'a str,
    pub end: &'a str,
    pub content: &'a str,
    /// Where the block goes if it is not there.
    pub missing: Missing<'a>,
    /// Whether the end marker gets a line of its own; none: if the content does not end with a line end.
    pub append_newline: Option<bool>,
}

/// What becomes of a text without the markers.
#[derive(Clone, Copy)]
pub(crate) enum Missing<'a> {
    Error,
    Append,
    Prepend,
    /// Before, or after, the first line that the expression matches.
    Before(&'a str),
    After(&'a str),
}

impl Block<'_> {
    /// The lines of the new text.
    pub(crate) fn apply(&self, text: &str) -> Result<Vec<String>, String> {
        let old = lines::of_file(text);
        let ending = old.first().map_or("\n", |line| if line.ends_with("\r\n") { "\r\n" } else { "\n" });
        let mut new: Vec<String> = Vec::new();
        let (mut inside, mut found) = (false, false);
        for line in &old {
            if line.contains(self.start) {
                inside = true;
            } else if inside {
                if let Some(at) = line.find(self.end) {
                    (inside, found) = (false, true);
                    self.put(&mut new, ending, &line[at..]);
                }
                continue;
            }
            new.push((*line).to_owned());
        }
        if inside {
            return Err("Unterminated marked block. End of file reached before marker_end.".into());
        }
        if !found {
            self.add(&mut new, &old, ending)?;
        }
        Ok(new)
    }

    /// Adds the block to a text without it.
    fn add(&self, new: &mut Vec<String>, old: &[&str], ending: &str) -> Result<(), String> {
        let mut block = vec![format!("{}{ending}", self.start)];
        self.put(&mut block, ending, self.end);
        let place = match self.missing {
            Missing::Prepend => Some(0),
            Missing::Append => {
                if let Some(last) = new.last_mut().filter(|last| !last.ends_with(ending)) {
                    last.push_str(ending);
                }
                Some(new.len())
            }
            Missing::Before(pattern) => matching(old, pattern)?,
            Missing::After(pattern) => matching(old, pattern)?.map(|at| at + 1),
            Missing::Error => None,
        };
        let place = place.ok_or("Cannot edit marked block. Markers were not found in file.")?;
        new.splice(place..place, block);
        Ok(())
    }

    /// Puts the content and the line with the end marker.
    fn put(&self, into: &mut Vec<String>, ending: &str, end: &str) {
        let end = format!("{}{ending}", end.trim_end_matches(['\r', '\n']));
        let of_its_own = self.append_newline.unwrap_or(!self.content.ends_with('\n'));
        let content: Vec<&str> = self.content.split("\r\n").flat_map(|part| part.split('\n')).collect();
        for (number, line) in content.iter().enumerate() {
            if number + 1 < content.len() {
                into.push(format!("{line}{ending}"));
            } else if of_its_own {
                into.extend([format!("{line}{ending}"), end.clone()]);
            } else {
                into.push(format!("{line}{end}"));
            }
        }
    }
}

/// The first line that an expression matches.
fn matching(lines: &[&str], pattern: &str) -> Result<Option<usize>, String> {
    let length = lines.iter().map(|line| line.len()).max().unwrap_or_default();
    let regex = Regex::new(pattern, Flags::default(), backtracks(length)).map_err(|error| about(error, pattern))?;
    for (at, line) in lines.iter().enumerate() {
        if regex.find(line).map_err(RegexError::into_text)?.is_some() {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(content: &'static str) -> Block<'static> {
        Block { start: "#S", end: "#E", content, missing: Missing::Error, append_newline: None }
    }

    fn applied(block: &Block<'_>, text: &str) -> Result<String, String> {
        block.apply(text).map(|lines| lines.concat())
    }

    /// Recorded from `file.blockreplace` of Salt 3008.3.
    #[test]
    fn blocks_are_replaced_as_salt_does() {
        let old = "a\n#S x\nold\n  #E y\nb";
        assert_eq!(applied(&block("n1\nn2"), old).unwrap(), "a\n#S x\nn1\nn2\n#E y\nb");
        assert_eq!(applied(&block("n1\n"), old).unwrap(), "a\n#S x\nn1\n#E y\nb");
        assert_eq!(applied(&block(""), old).unwrap(), "a\n#S x\n\n#E y\nb");
        let joined = Block { append_newline: Some(false), ..block("n1") };
        assert_eq!(applied(&joined, old).unwrap(), "a\n#S x\nn1#E y\nb");
        assert_eq!(applied(&block("n"), "#S\r\n#E\r\n").unwrap(), "#S\r\nn\r\n#E\r\n");
        assert!(applied(&block("n"), "#S\n").unwrap_err().starts_with("Unterminated"));
        assert!(applied(&block("n"), "a\n").unwrap_err().starts_with("Cannot edit"));
    }

    #[test]
    fn a_missing_block_is_added() {
        let with = |missing| Block { missing, ..block("n") };
        assert_eq!(applied(&with(Missing::Append), "a").unwrap(), "a\n#S\nn\n#E\n");
        assert_eq!(applied(&with(Missing::Append), "").unwrap(), "#S\nn\n#E\n");
        assert_eq!(applied(&with(Missing::Prepend), "a").unwrap(), "#S\nn\n#E\na");
        assert_eq!(applied(&with(Missing::Before("^b")), "a\nb\nb\n").unwrap(), "a\n#S\nn\n#E\nb\nb\n");
        assert_eq!(applied(&with(Missing::After("^b")), "a\nb\nb\n").unwrap(), "a\nb\n#S\nn\n#E\nb\n");
        assert!(applied(&with(Missing::After("x")), "a\n").unwrap_err().starts_with("Cannot edit"));
        assert!(applied(&with(Missing::After("(")), "a\n").is_err());
    }
}
