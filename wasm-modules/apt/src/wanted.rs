//! Versions that are asked for: `1.2`, `1.2*`, `>=1.0,<2`.

use std::cmp::Ordering;

use brine_guest::fnmatch;

use crate::version::{compare, without_epoch};

const OPERATORS: [&str; 10] = ["<=>", "!=", ">=", "<=", ">>", "<<", "<>", ">", "<", "="];

/// Splits off the comparison that a version begins with; empty if there is none.
pub fn split_comparison(version: &str) -> (&str, &str) {
    let operator = OPERATORS.into_iter().find(|operator| version.starts_with(operator)).unwrap_or_default();
    let rest = &version[operator.len()..];
    let rest = match rest.chars().next() {
        Some(c) if c.is_whitespace() && rest.len() > c.len_utf8() => &rest[c.len_utf8()..],
        _ => rest,
    };
    match rest.is_empty() || rest.contains(['<', '>', '=']) {
        true => ("", version),
        false => (operator, rest),
    }
}

/// Whether `a OPERATOR b` holds. With an operator that is none, or with what is no version, nothing holds.
pub fn holds(a: &str, operator: &str, b: &str, ignore_epoch: bool) -> bool {
    let known = ["<", "<=", "==", ">=", ">", "!="];
    if !known.contains(&operator) {
        return false;
    }
    let order = match ignore_epoch {
        true => compare(without_epoch(a), without_epoch(b)),
        false => compare(a, b),
    };
    match (order, operator) {
        (None, _) => false,
        (Some(Ordering::Less), "<" | "<=" | "!=") => true,
        (Some(Ordering::Equal), "<=" | "==" | ">=") => true,
        (Some(Ordering::Greater), ">=" | ">" | "!=") => true,
        _ => false,
    }
}

/// Returns the first of the available versions that the comparison allows.
pub fn first_match<'a>(wanted: &str, available: &'a [String], ignore_epoch: bool) -> Option<&'a String> {
    let (operator, version) = split_comparison(wanted);
    let operator = if operator.is_empty() { "==" } else { operator };
    available.iter().find(|candidate| holds(candidate, operator, version, ignore_epoch))
}

/// The conditions that are separated by commas, each an operator and a version.
pub fn conditions(wanted: &str) -> Vec<(&str, &str)> {
    let wanted = wanted.trim();
    if wanted.is_empty() {
        return Vec::new();
    }
    wanted
        .split(',')
        .map(|condition| {
            let (operator, version) = split_comparison(condition.trim());
            (if matches!(operator, "=" | "") { "==" } else { operator }, version)
        })
        .collect()
}

/// How to compare.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// None: an epoch counts if the wanted version has one, or with `<` and `>`.
    pub ignore_epoch: Option<bool>,
    /// Whether a later version than the one that is asked for will do.
    pub allow_updates: bool,
}

/// Whether one of the installed versions is what is asked for.
pub fn fulfilled(installed: &[String], wanted: &str, how: How) -> bool {
    let conditions = conditions(wanted);
    installed.iter().any(|version| {
        conditions.iter().all(|(operator, desired)| {
            let updates = how.allow_updates && conditions.len() == 1 && *operator == "==";
            let operator = if updates { ">=" } else { operator };
            let ignore = how.ignore_epoch.unwrap_or(!operator.contains(['<', '>']) && !desired.contains(':'));
            operator == "==" && fnmatch(desired, version) || holds(version, operator, desired, ignore)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_split_off() {
        for (text, expected) in [
            ("1.0", ("", "1.0")),
            (">=1.0", (">=", "1.0")),
            (">= 1.0", (">=", "1.0")),
            ("=1.0", ("=", "1.0")),
            ("<>1", ("<>", "1")),
            ("==1", ("", "==1")),
            (">", ("", ">")),
            ("", ("", "")),
        ] {
            assert_eq!(split_comparison(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_installed_is_what_is_asked_for() {
        let fulfils = |installed: &str, wanted: &str, how: How| fulfilled(&[installed.into()], wanted, how);
        let how = How::default();
        for (installed, wanted, expected) in [
            ("1.0-1", "1.0-1", true),
            ("1.0-1", "1.0*", true),
            ("1:1.0-1", "1.0-1", true),
            ("1:1.0-1", "2:1.0-1", false),
            ("1:1.0-1", ">1.5", true),
            ("1.0-1", ">=0.9,<1.1", true),
            ("1.0-1", ">=0.9, <1.0", false),
            ("1.0-1", "!=1.0-1", false),
            ("1.0-1", ">>0.1", false),
            ("1.0-1", "", true),
        ] {
            assert_eq!(fulfils(installed, wanted, how), expected, "{installed} {wanted}");
        }
        assert!(!fulfils("1:1.0-1", "1.0-1", How { ignore_epoch: Some(false), ..how }));
        assert!(!fulfils("1:1.0-1", ">1.5", How { ignore_epoch: Some(true), ..how }));
        assert!(fulfils("2.0", "1.0", How { allow_updates: true, ..how }));
        assert!(!fulfils("2.0", "1.0", how));
    }

    #[test]
    fn the_first_version_that_fits_is_taken() {
        let available = ["3".to_owned(), "2".into(), "1".into()];
        assert_eq!(first_match("<3", &available, false).map(String::as_str), Some("2"));
        assert_eq!(first_match(">3", &available, false), None);
    }
}
