//! Globs as Python's fnmatch has them.

/// Whether the name matches the glob: `*`, `?`, `[abc]`, `[a-z]`, `[!abc]`. Upper and lower case differ, and `*` matches dots.
/// Time is bounded by the product of the two lengths.
pub fn fnmatch(name: &str, glob: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let glob: Vec<char> = glob.chars().collect();
    let (mut n, mut g) = (0, 0);
    // Where to go on when what follows the last `*` does not match: it takes one character more.
    let mut retry = None;
    loop {
        match glob.get(g) {
            Some('*') => {
                g += 1;
                retry = Some((n, g));
                continue;
            }
            Some(_) if n < name.len() => {
                if let Some(after) = one(name[n], &glob, g) {
                    (n, g) = (n + 1, after);
                    continue;
                }
            }
            None if n == name.len() => return true,
            _ => {}
        }
        match retry {
            Some((from, after)) if from < name.len() => {
                retry = Some((from + 1, after));
                (n, g) = (from + 1, after);
            }
            _ => return false,
        }
    }
}

/// Matches one character against what the glob has at `at`; gives where the glob goes on.
fn one(c: char, glob: &[char], at: usize) -> Option<usize> {
    match glob[at] {
        '?' => Some(at + 1),
        '[' => {
            let (negated, first) = if glob.get(at + 1) == Some(&'!') { (true, at + 2) } else { (false, at + 1) };
            // A `]` that comes first is a member; without an end, `[` is itself.
            let Some(end) = (first + 1..glob.len()).find(|&i| glob[i] == ']') else {
                return (c == '[').then_some(at + 1);
            };
            (within(c, &glob[first..end]) != negated).then_some(end + 1)
        }
        literal => (literal == c).then_some(at + 1),
    }
}

fn within(c: char, set: &[char]) -> bool {
    match set {
        [from, '-', to, rest @ ..] => (*from..=*to).contains(&c) || within(c, rest),
        [member, rest @ ..] => *member == c || within(c, rest),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_python_does() {
        // (name, glob, fnmatch.fnmatchcase(name, glob))
        let table = [
            ("test.ping", "test.ping", true),
            ("test.ping", "test.*", true),
            ("test.ping", "*", true),
            ("test.ping", "*ing", true),
            ("test.ping", "t*.p*g", true),
            ("test.ping", "t*.p*x", false),
            ("test.ping", "test", false),
            ("test.ping", "TEST.*", false),
            ("test.ping", "test?ping", true),
            ("test.ping", "test.pin?", true),
            ("test.ping", "test.ping?", false),
            ("test.ping", "test.[a-p]ing", true),
            ("test.ping", "test.[!p]ing", false),
            ("test.ping", "test.[!a-o]ing", true),
            ("a]b", "a[]]b", true),
            ("a[b", "a[b", true),
            ("a-b", "a[x-]b", true),
            ("", "", true),
            ("", "*", true),
            ("", "?", false),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "*a*a*a*a*a*a*a*a*a*c", false),
        ];
        for (name, glob, expected) in table {
            assert_eq!(fnmatch(name, glob), expected, "{name} {glob}");
        }
    }
}
