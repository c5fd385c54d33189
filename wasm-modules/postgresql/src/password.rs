//! Passwords as PostgreSQL keeps them: `md5…` and `SCRAM-SHA-256$…` (RFC 5803).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_guest::hash::Hash;
use brine_guest::{Result, Value};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The rounds of new hashes: PostgreSQL's own number.
const ROUNDS: u32 = 4096;
/// Upper bound on the rounds of a hash that is compared with: a server's role may have any.
const MAX_ROUNDS: u32 = 1_000_000;
const SCRAM: &str = "SCRAM-SHA-256";

/// How a password is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `md5`
    Md5,
    /// `scram-sha-256`
    Scram,
    /// As it is, which no server since version 10 takes.
    Plain,
}

impl Method {
    /// Reads the argument `encrypted`.
    ///
    /// # Errors
    /// Salt's sentence, when there is no such method.
    pub fn read(encrypted: &Value) -> Result<Self> {
        match encrypted {
            Value::None | Value::Bool(true) => Ok(Self::Md5),
            Value::Bool(false) => Ok(Self::Plain),
            Value::Text(name) if name == "md5" => Ok(Self::Md5),
            Value::Text(name) if name == "scram-sha-256" => Ok(Self::Scram),
            other => Err(format!("Unknown password algorithm: {}", other.to_text())),
        }
    }

    /// The hash of a role's password; what is a hash already stays. `random` gives 64 bits that nobody can predict.
    ///
    /// # Errors
    /// When the password has characters that SCRAM does not allow.
    pub fn hash(self, role: &str, password: &str, random: impl Fn() -> u64) -> Result<String> {
        match self {
            Self::Md5 if !password.starts_with("md5") => Ok(md5(role, password)),
            Self::Scram if !password.starts_with(SCRAM) => {
                let salt = [random().to_be_bytes(), random().to_be_bytes()].concat();
                scram(password, &salt, ROUNDS)
            }
            _ => Ok(password.to_owned()),
        }
    }

    /// Whether a password is the one of which the server keeps `kept`.
    ///
    /// # Errors
    /// As for [`Method::hash`].
    pub fn fits(self, role: &str, password: &str, kept: &str) -> Result<bool> {
        let expected = match self {
            Self::Md5 if !password.starts_with("md5") => md5(role, password),
            Self::Scram if !password.starts_with(SCRAM) => match parts(kept) {
                Some((rounds, salt)) => scram(password, &salt, rounds)?,
                None => return Ok(false),
            },
            _ => password.to_owned(),
        };
        Ok(expected == kept)
    }
}

/// The rounds and the salt of a hash.
fn parts(kept: &str) -> Option<(u32, Vec<u8>)> {
    let (rounds, rest) = kept.strip_prefix(SCRAM)?.strip_prefix('$')?.split_once(':')?;
    let (salt, _) = rest.split_once('$')?;
    let rounds = rounds.parse().ok().filter(|rounds| (1..=MAX_ROUNDS).contains(rounds))?;
    Some((rounds, STANDARD.decode(salt).ok()?))
}

fn md5(role: &str, password: &str) -> String {
    let mut hash = Hash::new("md5").expect("there is such a hash");
    hash.update(password.as_bytes());
    hash.update(role.as_bytes());
    format!("md5{}", hash.hex())
}

fn scram(password: &str, salt: &[u8], rounds: u32) -> Result<String> {
    let password = stringprep::saslprep(password).map_err(|why| format!("the password is no one of SCRAM: {why}"))?;
    let salted = salted(password.as_bytes(), salt, rounds);
    let client = Sha256::digest(hmac(&salted, b"Client Key"));
    let server = hmac(&salted, b"Server Key");
    let [salt, client, server] = [salt, &client[..], &server[..]].map(|bytes| STANDARD.encode(bytes));
    Ok(format!("{SCRAM}${rounds}:{salt}${client}:{server}"))
}

/// PBKDF2 with one block.
pub(crate) fn salted(password: &[u8], salt: &[u8], rounds: u32) -> [u8; 32] {
    let keyed = keyed(password);
    let mac = |data: &[&[u8]]| -> [u8; 32] {
        let mut mac = keyed.clone();
        data.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    };
    let mut last = mac(&[salt, &1_u32.to_be_bytes()]);
    let mut all = last;
    for _ in 1..rounds {
        last = mac(&[&last]);
        all.iter_mut().zip(last).for_each(|(all, last)| *all ^= last);
    }
    all
}

pub(crate) fn hmac(key: &[u8], data: &[u8]) -> [u8; 32] {
    let mut mac = keyed(key);
    mac.update(data);
    mac.finalize().into_bytes().into()
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key may have any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677's example: its client and server key follow from this salted password.
    const KEPT: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

    #[test]
    fn scram_is_rfc_7677s() {
        assert!(Method::Scram.fits("user", "pencil", KEPT).unwrap());
        assert!(!Method::Scram.fits("user", "pencils", KEPT).unwrap());
        let new = Method::Scram.hash("user", "pencil", || 7).unwrap();
        assert_ne!(new, KEPT);
        assert!(Method::Scram.fits("user", "pencil", &new).unwrap());
        // Characters that look alike are one, and what is a hash is compared with the hash.
        assert!(Method::Scram.fits("u", "I\u{ad}X", &Method::Scram.hash("u", "IX", || 1).unwrap()).unwrap());
        assert!(Method::Scram.fits("user", KEPT, KEPT).unwrap());
        assert!(Method::Scram.hash("u", "a\u{7}", || 1).is_err());
    }

    #[test]
    fn md5_has_the_roles_name() {
        // PostgreSQL's: select 'md5' || md5('secret' || 'app')
        let hash = Method::Md5.hash("app", "secret", || 0).unwrap();
        assert_eq!(hash, "md56a422f785c9e20873908ce25d1736ae2");
        assert!(
            Method::Md5.fits("app", "secret", &hash).unwrap() && !Method::Md5.fits("other", "secret", &hash).unwrap()
        );
        assert_eq!(Method::Md5.hash("app", &hash, || 0).unwrap(), hash);
        assert_eq!(Method::Plain.hash("app", "secret", || 0).unwrap(), "secret");
    }

    #[test]
    fn a_hash_that_is_none_fits_nothing() {
        for kept in
            ["", "SCRAM-SHA-256$", "SCRAM-SHA-256$x:y$z:u", "SCRAM-SHA-256$4000000000:aa$b:c", "SCRAM-SHA-256$0:aa$"]
        {
            assert!(!Method::Scram.fits("u", "p", kept).unwrap(), "{kept}");
        }
        assert_eq!(Method::read(&"sha1".into()), Err("Unknown password algorithm: sha1".into()));
        assert_eq!(Method::read(&Value::None), Ok(Method::Md5));
    }
}
