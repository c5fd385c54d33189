//! Versions of extensions, compared as Python's `LooseVersion` does: numbers as numbers, words as words.

use std::cmp::Ordering;

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Number(u64),
    Word(String),
}

/// Whether a version is lower than another one.
pub(crate) fn is_older(version: &str, other: &str) -> bool {
    let (version, other) = (parts(version), parts(other));
    let unequal = version.iter().zip(&other).find_map(|(a, b)| Some(compare(a, b)).filter(|order| order.is_ne()));
    unequal.unwrap_or(version.len().cmp(&other.len())).is_lt()
}

/// Python compares numbers with words as texts.
fn compare(a: &Part, b: &Part) -> Ordering {
    let text = |part: &Part| match part {
        Part::Number(number) => number.to_string(),
        Part::Word(word) => word.clone(),
    };
    match (a, b) {
        (Part::Number(a), Part::Number(b)) => a.cmp(b),
        (a, b) => text(a).cmp(&text(b)),
    }
}

/// Digits, small letters, and whatever else is between dots.
fn parts(version: &str) -> Vec<Part> {
    let kind = |c: char| match c {
        '.' => 0,
        '0'..='9' => 1,
        'a'..='z' => 2,
        _ => 3,
    };
    let mut parts = Vec::new();
    let mut rest = version;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| kind(c) != kind(first)).unwrap_or(rest.len());
        let (part, more) = rest.split_at(end);
        if kind(first) != 0 {
            parts.push(part.parse().map_or_else(|_| Part::Word(part.into()), Part::Number));
        }
        rest = more;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_numbers() {
        for (older, newer) in [("1.9", "1.10"), ("1.2", "1.2.1"), ("1.0beta1", "1.0beta2"), ("9.6", "15.4"), ("", "1")]
        {
            assert!(is_older(older, newer) && !is_older(newer, older), "{older} {newer}");
        }
        assert!(!is_older("1.2", "1.2"));
    }
}
