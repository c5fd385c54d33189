//! One question, and what is an address.

use std::net::{Ipv4Addr, Ipv6Addr};

use brine_guest::program::{self, Program};

/// Upper bound on the characters of a name.
const MAX_NAME: usize = 1024;

/// A question to a name server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// The type of the records, such as AAAA.
    pub kind: &'a str,
    pub name: &'a str,
    /// None for that of the host.
    pub server: Option<&'a str>,
}

impl Question<'_> {
    /// The words of the program.
    fn words(&self) -> Result<Vec<String>, String> {
        for word in [Some(self.name), self.server, Some(self.kind)].into_iter().flatten() {
            // What begins so is an option of the program, or a server.
            let is_word = !word.is_empty() && word.len() <= MAX_NAME && !word.starts_with(['-', '+', '@']);
            if !is_word || word.contains(|c: char| c.is_control() || c.is_whitespace()) {
                return Err(format!("{word:?} is no name to ask for"));
            }
        }
        let mut words = match self.kind {
            "PTR" => vec!["dig", "+short", "-x", self.name],
            kind => vec!["dig", "+short", self.name, kind],
        }
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
        words.extend(self.server.map(|server| format!("@{server}")));
        Ok(words)
    }

    /// The answer as the program prints it; none if it failed.
    pub(crate) fn ask(&self) -> Result<Option<String>, String> {
        let words = self.words()?;
        if !program::exists("dig")? {
            let why = "The dig execution module cannot be loaded: the dig binary is not in the path.";
            return Err(format!("'dig' __virtual__ returned False: {why}"));
        }
        let done = Program::new(words).run()?;
        Ok((done.code == 0).then_some(done.stdout))
    }
}

/// Whether a text is an address, alone or with the length of a prefix.
pub(crate) fn is_address(text: &str) -> bool {
    let (address, length) = match text.rsplit_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let bounds = if address.parse::<Ipv4Addr>().is_ok() {
        1..=32
    } else if address.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()) {
        8..=128
    } else {
        return false;
    };
    length.is_none_or(|length| length.parse().is_ok_and(|length: i64| bounds.contains(&length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_salt() {
        for good in ["127.0.0.1", "127.0.0.1/8", "1111:2222:3333:4444:5555:6666:7777:8888", "::1", "2001:db8::/32"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["", "127.0.0", "127.0.0.1/33", "127.0.0.1/0", "::1/7", "127.0.0.1/a", "example.com", "a/8"] {
            assert!(!is_address(bad), "{bad}");
        }
    }

    #[test]
    fn names_are_no_options() {
        let words = |kind, name, server| Question { kind, name, server }.words().map(|words| words.join(" "));
        assert_eq!(words("A", "a.example", None).as_deref(), Ok("dig +short a.example A"));
        assert_eq!(words("PTR", "192.0.2.1", Some("ns")).as_deref(), Ok("dig +short -x 192.0.2.1 @ns"));
        for bad in ["", "-f/etc/shadow", "+trace", "@evil", "a b", "a\nb"] {
            assert!(words("A", bad, None).is_err() && words("A", "a", Some(bad)).is_err(), "{bad:?}");
        }
    }
}
