//! Differences of texts as Salt shows them: Python's `difflib.unified_diff`.
//!
//! Operators and programs read these texts, so they have to be equal to Python's. Its algorithm is not one of those that
//! crates for differences have: the longest block that both texts have, then the same on both sides of it, with lines
//! that are frequent left out of the search.

use std::borrow::Cow;
use std::collections::HashMap;

/// Lines around a change that are shown.
const CONTEXT: usize = 3;
/// From this many lines on, lines that are more frequent than one in a hundred are no beginning of a block.
const MANY: usize = 200;
/// Upper bound on comparisons: some seconds. The rest of the texts is then one change.
const MAX_STEPS: u64 = 200_000_000;

/// What has changed in a file, as Salt says it: nothing if nothing has, a sentence if one of them is no text, else
/// [`unified`] without names.
pub fn of_contents(old: &[u8], new: &[u8]) -> String {
    if old == new {
        return String::new();
    }
    match (is_text(old), is_text(new)) {
        (true, true) => unified(&lines(old), &lines(new), "", ""),
        (false, false) => "Replace binary file".into(),
        (false, true) => "Replace binary file with text file".into(),
        (true, false) => "Replace text file with binary file".into(),
    }
}

/// The lines of a content with their ends. A line that is not UTF-8 is read as Latin-1, as Salt does.
pub fn lines(content: &[u8]) -> Vec<Cow<'_, str>> {
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    let text = |line| match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(line.iter().map(|byte| char::from(*byte)).collect()),
    };
    lines.map(text).collect()
}

/// The differences of two lists of lines, which have their ends; `from` and `to` are their names. Empty if there are none.
pub fn unified<T: AsRef<str>>(old: &[T], new: &[T], from: &str, to: &str) -> String {
    let mut out = String::new();
    for group in groups(codes(old, new)) {
        if out.is_empty() {
            out = format!("--- {from}\n+++ {to}\n");
        }
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        out += &format!("@@ -{} +{} @@\n", range(first.old.0, last.old.1), range(first.new.0, last.new.1));
        let mut put = |sign: char, lines: &[T]| {
            for line in lines {
                out.push(sign);
                out.push_str(line.as_ref());
            }
        };
        for code in &group {
            let (gone, come) = (&old[code.old.0..code.old.1], &new[code.new.0..code.new.1]);
            if code.same {
                put(' ', gone);
            } else {
                put('-', gone);
                put('+', come);
            }
        }
    }
    out
}

/// Whether Salt takes this for text: by its first 512 bytes.
pub fn is_text(content: &[u8]) -> bool {
    let block = &content[..content.len().min(512)];
    if block.is_empty() {
        return true;
    }
    // A character may be cut at the end.
    let decodes = std::str::from_utf8(block).map_or_else(|error| error.error_len().is_none(), |_| true);
    let is_odd = |byte: &&u8| match byte {
        b'\n' | b'\r' | b'\t' | 0x0c | 0x08 | 32..=126 => false,
        128..=254 => !decodes,
        _ => true,
    };
    let odd = block.iter().filter(is_odd).count();
    !block.contains(&0) && odd * 10 <= block.len() * 3
}

/// A part of both texts, from and to the line after it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Code {
    same: bool,
    old: (usize, usize),
    new: (usize, usize),
}

/// A block that both texts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    old: usize,
    new: usize,
    size: usize,
}

fn range(start: usize, stop: usize) -> String {
    match stop - start {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        length => format!("{},{length}", start + 1),
    }
}

/// Parts that are the same or not, in turns.
fn codes<T: AsRef<str>>(old: &[T], new: &[T]) -> Vec<Code> {
    let (mut codes, mut at) = (Vec::new(), (0, 0));
    for Block { old, new, size } in Search::of(old, new).blocks() {
        if at.0 < old || at.1 < new {
            codes.push(Code { same: false, old: (at.0, old), new: (at.1, new) });
        }
        at = (old + size, new + size);
        if size > 0 {
            codes.push(Code { same: true, old: (old, at.0), new: (new, at.1) });
        }
    }
    codes
}

/// The changes with the lines around them; changes that are near are in one group.
fn groups(mut codes: Vec<Code>) -> Vec<Vec<Code>> {
    if let Some(first) = codes.first_mut().filter(|code| code.same) {
        first.old.0 = first.old.0.max(first.old.1.saturating_sub(CONTEXT));
        first.new.0 = first.new.0.max(first.new.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = codes.last_mut().filter(|code| code.same) {
        last.old.1 = last.old.1.min(last.old.0 + CONTEXT);
        last.new.1 = last.new.1.min(last.new.0 + CONTEXT);
    }
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    for mut code in codes {
        if code.same && code.old.1 - code.old.0 > 2 * CONTEXT {
            let old = (code.old.0, code.old.1.min(code.old.0 + CONTEXT));
            let new = (code.new.0, code.new.1.min(code.new.0 + CONTEXT));
            group.push(Code { same: true, old, new });
            groups.push(std::mem::take(&mut group));
            code.old.0 = code.old.0.max(code.old.1.saturating_sub(CONTEXT));
            code.new.0 = code.new.0.max(code.new.1.saturating_sub(CONTEXT));
        }
        group.push(code);
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|code| !code.same));
    groups
}

/// The search for blocks. Lines are numbers: equal lines have equal ones.
struct Search {
    old: Vec<u32>,
    new: Vec<u32>,
    /// Where in the new text each line is, by its number; none of frequent lines.
    places: Vec<Vec<usize>>,
    /// How long the block is that ends at a place of the new text, and at the place before.
    lengths: [Vec<usize>; 2],
    steps: u64,
}

impl Search {
    fn of<T: AsRef<str>>(old: &[T], new: &[T]) -> Self {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut numbered = Vec::new();
        for lines in [old, new] {
            let mut list = Vec::with_capacity(lines.len());
            for line in lines {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                list.push(*numbers.entry(line.as_ref()).or_insert(next));
            }
            numbered.push(list);
        }
        let new = numbered.pop().unwrap_or_default();
        let old = numbered.pop().unwrap_or_default();
        let mut places = vec![Vec::new(); numbers.len()];
        for (at, line) in new.iter().enumerate() {
            places[*line as usize].push(at);
        }
        if new.len() >= MANY {
            let most = new.len() / 100 + 1;
            places.iter_mut().filter(|places| places.len() > most).for_each(Vec::clear);
        }
        let lengths = [vec![0; new.len() + 1], vec![0; new.len() + 1]];
        Self { old, new, places, lengths, steps: 0 }
    }

    /// All blocks in order, and an empty one at the end.
    fn blocks(mut self) -> Vec<Block> {
        let mut found = Vec::new();
        let mut todo = vec![((0, self.old.len()), (0, self.new.len()))];
        while let Some((old, new)) = todo.pop() {
            let block = self.longest(old, new);
            if block.size == 0 {
                continue;
            }
            found.push(block);
            let after = (block.old + block.size, block.new + block.size);
            if old.0 < block.old && new.0 < block.new {
                todo.push(((old.0, block.old), (new.0, block.new)));
            }
            if after.0 < old.1 && after.1 < new.1 {
                todo.push(((after.0, old.1), (after.1, new.1)));
            }
        }
        found.sort_unstable();
        let mut blocks: Vec<Block> = Vec::new();
        for block in found {
            match blocks.last_mut() {
                Some(last) if last.old + last.size == block.old && last.new + last.size == block.new => {
                    last.size += block.size;
                }
                _ => blocks.push(block),
            }
        }
        blocks.push(Block { old: self.old.len(), new: self.new.len(), size: 0 });
        blocks
    }

    /// The longest block of two parts; of several, the first in the old text, then the first in the new one.
    fn longest(&mut self, old: (usize, usize), new: (usize, usize)) -> Block {
        let mut best = Block { old: old.0, new: new.0, size: 0 };
        // The places of the new text with a length, in this line's list and in that of the line before.
        let mut touched: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
        for at in old.0..old.1 {
            let places = &self.places[self.old[at] as usize];
            let first = places.partition_point(|place| *place < new.0);
            for &place in places[first..].iter().take_while(|place| **place < new.1) {
                self.steps += 1;
                // Lengths are kept one place further, so that the place before the first has one.
                let size = self.lengths[0][place] + 1;
                self.lengths[1][place + 1] = size;
                touched[1].push(place + 1);
                if size > best.size {
                    best = Block { old: at + 1 - size, new: place + 1 - size, size };
                }
            }
            for place in touched[0].drain(..) {
                self.lengths[0][place] = 0;
            }
            self.lengths.swap(0, 1);
            touched.swap(0, 1);
            if self.steps > MAX_STEPS {
                break;
            }
        }
        for place in touched[0].drain(..) {
            self.lengths[0][place] = 0;
        }
        // With frequent lines before and after it.
        while best.old > old.0 && best.new > new.0 && self.old[best.old - 1] == self.new[best.new - 1] {
            best = Block { old: best.old - 1, new: best.new - 1, size: best.size + 1 };
        }
        while best.old + best.size < old.1
            && best.new + best.size < new.1
            && self.old[best.old + best.size] == self.new[best.new + best.size]
        {
            best.size += 1;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &str, new: &str) -> String {
        of_contents(old.as_bytes(), new.as_bytes())
    }

    /// Recorded from Python's `difflib`, as the longer cases below.
    #[test]
    fn differences_are_pythons() {
        assert_eq!(of("a\n", "a\n"), "");
        assert_eq!(of("a\n", "b\n"), "--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(of("", "b\nc\n"), "--- \n+++ \n@@ -0,0 +1,2 @@\n+b\n+c\n");
        assert_eq!(of("b\nc", ""), "--- \n+++ \n@@ -1,2 +0,0 @@\n-b\n-c");
        assert_eq!(of("a\nb\nc\n", "a\nc"), "--- \n+++ \n@@ -1,3 +1,2 @@\n a\n-b\n-c\n+c");
    }

    #[test]
    fn long_texts_agree_with_recorded_ones() {
        for case in include_str!("../tests/diff_cases.txt").split("=====\n").filter(|case| !case.is_empty()) {
            let parts: Vec<&str> = case.split("-----\n").collect();
            let [old, new, expected] = parts[..] else { panic!("{case}") };
            assert_eq!(of(old, new), expected);
        }
    }

    #[test]
    fn what_is_no_text_has_a_sentence() {
        assert_eq!(of("a\0", "b"), "Replace binary file with text file");
        assert_eq!(of("a", "b\0"), "Replace text file with binary file");
        assert_eq!(of("\0", "b\0"), "Replace binary file");
        assert!(is_text("ä\u{fe}".as_bytes()) && is_text(b"") && !is_text(&[200, 1, 200, 255]));
        assert_eq!(of_contents(b"\xe4aaaaa\n", b"b\n"), "--- \n+++ \n@@ -1 +1 @@\n-äaaaaa\n+b\n");
    }

    #[test]
    fn texts_that_are_all_alike_end() {
        let (old, new) = ("a\nb\n".repeat(60), "b\na\n".repeat(60));
        assert!(of(&old, &new).starts_with("--- \n"));
        let (old, new) = ("a\n".repeat(50_000), "a\nb\n".repeat(50_000));
        assert!(of(&old, &new).starts_with("--- \n"));
    }
}
