//! The harness of the tests that cross crates: real programs, real sockets on loopback, temporary folders.
//!
//! - [`salt`]: a Brine or a Python master and minion in a folder of their own
//! - [`postgres`]: a PostgreSQL server
//! - [`preloaded`]: Python's commands without the time of their start
//! - [`events`]: waiting for events of the master's bus
//! - [`keys`] and [`compiled`]: what every test would make anew at the cost of a second
//! - [`namespace`]: mounts that only some programs of a test see
//! - [`small_disk`]: a disk that a test can fill
//!
//! Programs, daemons and waits come from `brine-kit`.

pub mod compiled;
pub mod events;
pub mod keys;
pub mod namespace;
pub mod postgres;
pub mod preloaded;
pub mod salt;
pub mod small_disk;

/// Whether tests that can be exhaustive are (`BRINE_LONG`, which `make interop` sets).
pub fn long() -> bool {
    std::env::var_os("BRINE_LONG").is_some()
}

/// Checks whether a whole text is as expected. `…` stands for any text; on a line of its own it stands for any lines.
pub fn fits(text: &str, expect: &str) -> bool {
    let expect = expect.replace("\n…\n", "\n…");
    let mut parts = expect.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn placeholders() {
        for (text, expect, yes) in [
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "…", true),
            ("abc", "a…c", true),
            ("abc", "a…b", false),
            ("abab", "a…ab", true),
            ("ab", "ab…ab", false),
            ("a\nb\nc\nd\n", "a\n…\nd\n", true),
            ("a\nd\n", "a\n…\nd\n", true),
            ("x", "", false),
        ] {
            assert_eq!(fits(text, expect), yes, "{text:?} {expect:?}");
        }
    }
}
