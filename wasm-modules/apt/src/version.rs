//! Debian's order of versions: `[epoch:]upstream[-revision]`, as `dpkg --compare-versions` decides it.

use std::cmp::Ordering;

/// A version in its three parts.
struct Version<'a> {
    epoch: u64,
    upstream: &'a str,
    revision: &'a str,
}

/// dpkg's bound on epochs.
const MAX_EPOCH: u64 = i32::MAX as u64;

/// Compares two versions; none if dpkg takes one of them for no version at all. The empty version is before all others. Characters that
/// no version has are only warned of by dpkg, so they are compared like any other.
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    let (a, b) = (parse(a)?, parse(b)?);
    Some(match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(a), Some(b)) => a
            .epoch
            .cmp(&b.epoch)
            .then_with(|| compare_part(a.upstream, b.upstream))
            .then_with(|| compare_part(a.revision, b.revision)),
    })
}

/// Removes what is before the first colon.
pub fn without_epoch(version: &str) -> &str {
    version.split_once(':').map_or(version, |(_, rest)| rest)
}

/// `Some(None)` is the empty version.
fn parse(text: &str) -> Option<Option<Version<'_>>> {
    let blank = [' ', '\t'];
    if text.is_empty() || text == "<unknown>" {
        return Some(None);
    }
    let text = text.trim_matches(blank);
    if text.is_empty() || text.contains(|c: char| c.is_ascii_whitespace()) {
        return None;
    }
    let (epoch, rest) = match text.split_once(':') {
        None => (0, text),
        Some((epoch, rest)) => (epoch.parse().ok().filter(|epoch| *epoch <= MAX_EPOCH)?, rest),
    };
    let (upstream, revision) = match rest.rsplit_once('-') {
        None => (rest, ""),
        Some((_, "")) => return None,
        Some(parts) => parts,
    };
    if upstream.is_empty() {
        return None;
    }
    Some(Some(Version { epoch, upstream, revision }))
}

/// Compares runs of other characters by their weights, and runs of digits by their numbers, in turns.
fn compare_part(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while !a.is_empty() || !b.is_empty() {
        while starts_other(a) || starts_other(b) {
            let order = weight(a).cmp(&weight(b));
            if order.is_ne() {
                return order;
            }
            (a, b) = (rest(a), rest(b));
        }
        let (number_a, number_b) = (digits(&mut a), digits(&mut b));
        let order = number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn starts_other(text: &[u8]) -> bool {
    text.first().is_some_and(|c| !c.is_ascii_digit())
}

/// A tilde is before the end, letters are before all other characters.
fn weight(text: &[u8]) -> i32 {
    match text.first() {
        None => 0,
        Some(b'~') => -1,
        Some(c) if c.is_ascii_digit() => 0,
        Some(c) if c.is_ascii_alphabetic() => i32::from(*c),
        Some(c) => i32::from(*c) + 256,
    }
}

fn rest(text: &[u8]) -> &[u8] {
    text.get(1..).unwrap_or_default()
}

/// Takes the digits at the start, and returns them without leading zeros.
fn digits<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|c| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, after) = text.split_at(end);
    *text = after;
    let zeros = number.iter().position(|c| *c != b'0').unwrap_or(number.len());
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In dpkg's order; those of one line are the same.
    const ORDER: &[&[&str]] = &[
        &["", "<unknown>"],
        &["~~a"],
        &["~"],
        &["0~~1"],
        &["0~1"],
        &["0", "0:0", "00", "0-0", "0-00"],
        &["0a"],
        &["0.1~rc1-1"],
        &["0.1-1~bpo"],
        &["0.1-1", "0.01-01", "0:0.1-1", "  0.1-1 "],
        &["0.1-1+b1"],
        &["0.1-1.1"],
        &["0.1+dfsg-1"],
        &["0.9"],
        &["0.10"],
        &["1.2a"],
        &["1.2b"],
        &["1.2+a"],
        &["1.2-a-1"],
        &["1.2.3"],
        &["99999999999999999999999999"],
        &["1:0"],
        &["1:1.0-1"],
        &["10:0"],
    ];

    #[test]
    fn versions_are_in_dpkgs_order() {
        for (i, a) in ORDER.iter().enumerate() {
            for (j, b) in ORDER.iter().enumerate() {
                for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
                    assert_eq!(compare(a, b), Some(i.cmp(&j)), "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn what_dpkg_refuses_is_no_version() {
        for bad in [" ", "a b", "x:1", "-1:1", "2147483648:1", "1:", "1-", "-1", ":1"] {
            assert_eq!(compare(bad, "1"), None, "{bad}");
            assert_eq!(compare("1", bad), None, "{bad}");
        }
    }

    /// dpkg itself, where it is.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test, on the machine that builds the modules")]
    fn dpkg_says_the_same() {
        let dpkg = |a: &str, operator: &str, b: &str| {
            let mut command = std::process::Command::new("dpkg");
            command.args(["--compare-versions", a, operator, b]).stderr(std::process::Stdio::null());
            command.status().ok().and_then(|status| status.code())
        };
        if dpkg("1", "eq", "1") != Some(0) {
            return;
        }
        let all: Vec<&str> = ORDER.iter().flat_map(|same| same.iter().copied()).collect();
        // Each with its two neighbours and with one that is refused or odd: a program is started for each question.
        let odd = ["a b", "1:", "x:1", "1-", "é", "1_2", "1:2:3"];
        let near = all.windows(2).map(|pair| (pair[0], pair[1]));
        for (a, b) in near.chain(odd.iter().map(|odd| (*odd, "1"))).chain(odd.iter().map(|odd| ("1", *odd))) {
            let answers = ["lt", "eq", "gt"].map(|operator| dpkg(a, operator, b));
            let expected = match answers {
                [Some(0), ..] => Some(Ordering::Less),
                [_, Some(0), _] => Some(Ordering::Equal),
                [.., Some(0)] => Some(Ordering::Greater),
                _ => None,
            };
            assert_eq!(compare(a, b), expected, "{a:?} {b:?}: dpkg ends with {answers:?}");
        }
    }
}
