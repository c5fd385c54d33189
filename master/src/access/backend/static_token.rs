//! `statictoken`: tokens that the configuration lists by their SHA-256, for programs that cannot log in repeatedly.
//!
//! ```yaml
//! external_auth:
//!   statictoken:
//!     ^tokens: {ci: 9f86d08…}        # or a list of two, while one takes the other's place
//!     ci: [test.ping]
//! ```
//!
//! A token is accepted like a minted one (`token`), and as the password of its user. The hash has no salt and is cheap,
//! which is safe for random tokens (`openssl rand -hex 32`) and unsafe for texts that people choose; short tokens are
//! therefore refused.

use brine_protocol::value::{Value, ValueExt};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use super::Backend;

/// The system's name in `external_auth`.
pub(super) const NAME: &str = "statictoken";
/// Shortest token in characters: 128 bits in hexadecimal.
const TOKEN_MIN: usize = 32;
/// Longest token in characters.
const TOKEN_MAX: usize = 1_024;

/// The users with their tokens' hashes.
#[derive(Debug)]
pub(in crate::access) struct StaticTokens(Vec<(String, [u8; 32])>);

impl StaticTokens {
    /// The name of this system in `external_auth`.
    pub(in crate::access) const SYSTEM: &str = NAME;

    /// Reads `^tokens`.
    pub(in crate::access) fn new(options: &[(String, Value)]) -> Result<Self, String> {
        let tokens = options.iter().find(|(name, _)| name == "tokens").map(|(_, value)| value);
        let tokens = tokens.and_then(ValueExt::entries).ok_or("^tokens must be a map of users to SHA-256 sums")?;
        let mut known = Vec::new();
        for (user, sums) in tokens {
            let user = user.python_str();
            for sum in sums.list().unwrap_or(std::slice::from_ref(sums)) {
                let bytes =
                    sum.text().and_then(|text| hex::decode(text).ok()).and_then(|b| <[u8; 32]>::try_from(b).ok());
                let wrong = || format!("^tokens: {user}: not a SHA-256 sum. Make it with: printf %s TOKEN | sha256sum");
                known.push((user.clone(), bytes.ok_or_else(wrong)?));
            }
        }
        Ok(Self(known))
    }

    /// Returns the user of a token.
    pub(in crate::access) fn user_of(&self, token: &str) -> Option<&str> {
        if !(TOKEN_MIN..=TOKEN_MAX).contains(&token.len()) {
            return None;
        }
        let sum = Sha256::digest(token);
        let mut found = None;
        for (user, known) in &self.0 {
            if bool::from(known.ct_eq(&sum)) && found.is_none() {
                found = Some(user.as_str());
            }
        }
        found
    }
}

impl Backend for StaticTokens {
    fn check(&self, username: &str, password: &str) -> Result<Option<Vec<String>>, String> {
        Ok((self.user_of(password) == Some(username)).then(Vec::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{list, map};

    #[test]
    fn a_token_is_its_users_and_has_to_be_long() {
        let sum = |token: &str| Value::from(hex::encode(Sha256::digest(token)));
        let (ci, next, short) = ("c".repeat(64), "d".repeat(32), "e".repeat(31));
        let tokens = map([("ci", list([sum(&ci), sum(&next)])), ("weak", sum(&short)), ("empty", sum(""))]);
        let tokens = StaticTokens::new(&[("tokens".to_owned(), tokens)]).unwrap();
        for (token, user) in [
            (ci.as_str(), Some("ci")),
            (&next, Some("ci")),
            (&short, None),
            ("", None),
            (&ci[1..], None),
            (&"f".repeat(64), None),
        ] {
            assert_eq!(tokens.user_of(token), user, "{token}");
        }
        assert_eq!(tokens.check("ci", &ci), Ok(Some(vec![])));
        for (user, password) in [("weak", ci.as_str()), ("ci", "x"), ("weak", &short)] {
            assert_eq!(tokens.check(user, password), Ok(None), "{user}");
        }
    }

    #[test]
    fn what_is_no_sum_is_told() {
        for tokens in [Value::Nil, map([("ci", "secret")]), map([("ci", "ab")]), map([("ci", Value::Nil)])] {
            let error = StaticTokens::new(&[("tokens".to_owned(), tokens)]).unwrap_err();
            assert!(error.contains("SHA-256") && !error.contains("secret"), "{error}");
        }
        assert!(StaticTokens::new(&[]).is_err());
    }
}
