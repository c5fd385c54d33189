//! The password hashes of htpasswd files: bcrypt, SHA-crypt, Apache's MD5 (long the default of `htpasswd`) and `{SHA}`.
//!
//! DES crypt is refused because it reads only eight characters. Other text is refused because some readers take it for
//! a plain password.

use base64::Engine as _;
use md5::{Digest, Md5};
use sha_crypt::{PasswordVerifier as _, ShaCrypt};
use sha1::Sha1;
use subtle::ConstantTimeEq;

/// Each step doubles the time of bcrypt; this cost takes some seconds.
const BCRYPT_COST_MAX: u32 = 16;

/// Checks the password against the hash `stored`. The error says that the hash is not supported.
pub(super) fn verify(password: &str, stored: &str) -> Result<bool, String> {
    if let Some(rest) = ["$2y$", "$2b$", "$2a$"].iter().find_map(|kind| stored.strip_prefix(kind)) {
        let cost = rest.split('$').next().and_then(|cost| cost.parse::<u32>().ok());
        if cost.is_none_or(|cost| cost > BCRYPT_COST_MAX) {
            return Err(format!("a bcrypt hash has no cost of at most {BCRYPT_COST_MAX}"));
        }
        return bcrypt::verify(password, stored).map_err(|e| format!("a bcrypt hash is not used: {e}"));
    }
    if stored.starts_with("$5$") || stored.starts_with("$6$") {
        return Ok(ShaCrypt::default().verify_password(password.as_bytes(), stored).is_ok());
    }
    if let Some((salt, _)) = stored.strip_prefix("$apr1$").and_then(|rest| rest.split_once('$')) {
        return Ok(same(&apr1(password.as_bytes(), salt), stored));
    }
    if let Some(digest) = stored.strip_prefix("{SHA}") {
        return Ok(same(&base64::prelude::BASE64_STANDARD.encode(Sha1::digest(password)), digest));
    }
    Err("a password hash is not used: it is none of bcrypt, SHA-crypt, apr1 and {SHA}. Make it with: htpasswd -B"
        .to_owned())
}

fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// Computes Apache's MD5 hash with its thousand rounds, as `openssl passwd -apr1` does.
fn apr1(password: &[u8], salt: &str) -> String {
    let salt = &salt.as_bytes()[..salt.len().min(8)];
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut md5 = Md5::new().chain_update(password).chain_update(b"$apr1$").chain_update(salt);
    for chunk in password.chunks(16) {
        md5.update(&inner[..chunk.len()]);
    }
    let mut length = password.len();
    while length > 0 {
        md5.update(if length & 1 == 1 { &[0] } else { password.get(..1).unwrap_or_default() });
        length >>= 1;
    }
    let mut digest = md5.finalize();
    for round in 0..1_000 {
        let mut md5 = Md5::new();
        md5.update(if round % 2 == 1 { password } else { &digest[..] });
        if round % 3 != 0 {
            md5.update(salt);
        }
        if round % 7 != 0 {
            md5.update(password);
        }
        md5.update(if round % 2 == 1 { &digest[..] } else { password });
        digest = md5.finalize();
    }
    let mut text = format!("$apr1${}$", String::from_utf8_lossy(salt));
    let mut push = |bytes: [u8; 3], characters: usize| {
        const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        for _ in 0..characters {
            text.push(char::from(ALPHABET[(bits & 63) as usize]));
            bits >>= 6;
        }
    };
    for at in 0..5 {
        // The last of the five groups ends with byte 5 instead of 16.
        let last = if at == 4 { 5 } else { at + 12 };
        push([digest[at], digest[at + 6], digest[last]], 4);
    }
    push([0, 0, digest[11]], 2);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes made by `openssl passwd` and `htpasswd -s`, and the bcrypt hash of Apache's documentation.
    #[test]
    fn hashes_of_other_programs() {
        for (password, stored) in [
            (
                "pw",
                "$6$saltstring$.vnWcCATS7HX9wLGcWGmRWMy3QtkFQmcbgZ0JzwapmXyqGJ2Gt5UXnLK..eJGzeBsKnKBZB8CvweVE1t5sq6n.",
            ),
            ("pw", "$5$saltstring$gpdvZHQ.qundoWJjAZwNzbBrhvpB73knRq.7HdH6Y9."),
            ("myPassword", "$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/"),
            ("a much longer password than sixteen bytes", "$apr1$abcdefgh$Eqv4oIyMsS.tjfvQCJYY1/"),
            ("myPassword", "{SHA}VBPuJHI7uixaa6LQGWx4s+5GKNE="),
            ("myPassword", "$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC"),
        ] {
            assert_eq!(verify(password, stored), Ok(true), "{stored}");
            assert_eq!(verify("wrong", stored), Ok(false), "{stored}");
            assert_eq!(verify("", stored), Ok(false), "{stored}");
        }
    }

    #[test]
    fn what_is_no_good_hash_is_not_taken() {
        for stored in
            ["", "pw", "rqXexS6ZhobKA", "$2y$31$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC", "$1$a$b"]
        {
            assert!(verify("pw", stored).is_err(), "{stored}");
        }
        for stored in ["$6$", "$6$x", "$apr1$$"] {
            assert_eq!(verify("pw", stored), Ok(false), "{stored}");
        }
    }
}
