//! How a client proves to a server that it knows a password, without sending it: SCRAM-SHA-256 (RFC 5802, RFC 7677), and
//! PostgreSQL's md5. Neither binds the channel.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_guest::Result;
use brine_guest::hash::Hash;
use sha2::{Digest, Sha256};

use crate::password::{hmac, salted};

/// The mechanism's name.
pub const NAME: &str = "SCRAM-SHA-256";
/// Upper bound on the rounds that a server may ask for: they are this side's work.
const MAX_ROUNDS: u32 = 1_000_000;

/// A proof under way.
pub struct Proof {
    password: String,
    nonce: String,
    /// What the server has to answer at the end, once it is known.
    signature: Option<[u8; 32]>,
}

impl Proof {
    /// `random` are bytes that nobody can predict.
    pub fn new(password: &str, random: &[u8]) -> Self {
        // What is no text of SASLprep is used as it is, as in libpq.
        let password = stringprep::saslprep(password).map_or_else(|_| password.to_owned(), |plain| plain.into_owned());
        Self { password, nonce: STANDARD.encode(random), signature: None }
    }

    /// The first message to the server.
    pub fn first(&self) -> String {
        format!("n,,n=,r={}", self.nonce)
    }

    /// The second message, which answers the server's first.
    ///
    /// # Errors
    /// One line, when the server does not keep to SCRAM.
    pub fn second(&mut self, said: &[u8]) -> Result<String> {
        let wrong = || "the server does not keep to SCRAM".to_owned();
        let said = std::str::from_utf8(said).map_err(|_| wrong())?;
        let mut parts = said.split(',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name)).ok_or_else(wrong);
        let (nonce, salt, rounds) = (part("r=")?, part("s=")?, part("i=")?);
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(wrong());
        }
        let salt = STANDARD.decode(salt).map_err(|_| wrong())?;
        let rounds = rounds.parse().ok().filter(|rounds| (1..=MAX_ROUNDS).contains(rounds)).ok_or_else(wrong)?;
        let salted = salted(self.password.as_bytes(), &salt, rounds);
        let bare = format!("c=biws,r={nonce}");
        let all = format!("n=,r={},{said},{bare}", self.nonce);
        let key = hmac(&salted, b"Client Key");
        let mut proof = hmac(&Sha256::digest(key), all.as_bytes());
        proof.iter_mut().zip(key).for_each(|(proof, key)| *proof ^= key);
        self.signature = Some(hmac(&hmac(&salted, b"Server Key"), all.as_bytes()));
        Ok(format!("{bare},p={}", STANDARD.encode(proof)))
    }

    /// Checks that the server knows the password too.
    ///
    /// # Errors
    /// One line, when it does not.
    pub fn check(&self, said: &[u8]) -> Result<()> {
        let said = said.strip_prefix(b"v=").and_then(|said| STANDARD.decode(said).ok());
        match (said, self.signature) {
            (Some(said), Some(signature)) if said == signature => Ok(()),
            _ => Err("the server does not know the password that it asks for".into()),
        }
    }
}

/// The answer to a server that asks for md5 with this salt.
pub fn md5(role: &str, password: &str, salt: &[u8]) -> String {
    let hex = |parts: &[&[u8]]| {
        let mut hash = Hash::new("md5").expect("there is such a hash");
        parts.iter().for_each(|part| hash.update(part));
        hash.hex()
    };
    let inner = hex(&[password.as_bytes(), role.as_bytes()]);
    format!("md5{}", hex(&[inner.as_bytes(), salt]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677's example, but for the user's name, which PostgreSQL takes from elsewhere: so the proof was computed by
    /// Python's hashlib for this exchange.
    #[test]
    fn a_proof_is_rfc_7677s() {
        let mut proof = Proof { password: "pencil".into(), nonce: "rOprNGfwEbeRWgbNEkqO".into(), signature: None };
        assert_eq!(proof.first(), "n,,n=,r=rOprNGfwEbeRWgbNEkqO");
        let second = proof.second(SERVER_FIRST).unwrap();
        assert_eq!(second, CLIENT_FINAL);
        proof.check(SERVER_FINAL).unwrap();
        assert!(proof.check(b"v=AAAA").is_err() && proof.check(b"e=other-error").is_err() && proof.check(b"").is_err());
        assert!(Proof::new("pencil", &[1; 18]).check(b"v=").is_err(), "before it was asked");
    }

    const SERVER_FIRST: &[u8] =
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const CLIENT_FINAL: &str =
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=qvT2SWdEH5Q06albL+hjSYuUhCG7VndFyzIb7CK4n9k=";
    const SERVER_FINAL: &[u8] = b"v=3HO6Qt1M4MKJrmlKaoOqLAI0/0TV0HZe7J9H3MBtSOg=";

    #[test]
    fn a_server_that_does_not_keep_to_it_is_left() {
        for odd in [
            &b""[..],
            b"r=x,s=W22Z,i=4096",
            b"r=rOprNGfwEbeRWgbNEkqO,s=W22Z,i=4096",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=0",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=4000000000",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=#,i=4096",
            b"s=W22Z,i=4096",
            b"\xff",
        ] {
            let mut proof = Proof { password: "pencil".into(), nonce: "rOprNGfwEbeRWgbNEkqO".into(), signature: None };
            assert!(proof.second(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn md5_has_the_salt() {
        // PostgreSQL's: 'md5' || md5(md5('secret' || 'app') || '1234')
        assert_eq!(md5("app", "secret", b"1234"), "md5be6334d82ca0245ee4fb8abda28edf4c");
    }
}
