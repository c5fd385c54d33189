//! Hashes of passwords as `/etc/shadow` has them: SHA-crypt.

use brine_guest::Result;
use sha_crypt::{Params, sha256_crypt, sha512_crypt};

const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Characters of a salt; more are not used.
const SALT: usize = 16;
/// Upper bound on the rounds that a salt may ask for: some seconds.
const MAX_ROUNDS: u32 = 5_000_000;
/// Rounds where a salt does not say how many.
const ROUNDS: u32 = Params::RECOMMENDED_ROUNDS;

/// An algorithm by its name in Salt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// `$5$`
    Sha256,
    /// `$6$`
    Sha512,
}

impl Algorithm {
    /// # Errors
    /// When there is no such algorithm here.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "sha256" => Ok(Self::Sha256),
            "sha512" => Ok(Self::Sha512),
            other => Err(format!(
                "Cannot hash using '{other}' hash algorithm. Natively supported algorithms are: ['sha512', 'sha256']."
            )),
        }
    }

    /// The algorithm of a hash, by what is between its first dollar signs.
    ///
    /// # Errors
    /// When there is no such algorithm here.
    pub fn identified(ident: &str) -> Result<Self> {
        match ident {
            "5" => Ok(Self::Sha256),
            "6" => Ok(Self::Sha512),
            "1" => Self::named("md5"),
            "2a" => Self::named("blowfish"),
            // Salt takes its first algorithm then.
            _ => Ok(Self::Sha512),
        }
    }

    fn ident(self) -> char {
        match self {
            Self::Sha256 => '5',
            Self::Sha512 => '6',
        }
    }
}

/// A random salt of these bytes.
pub fn salt(random: [u8; SALT]) -> String {
    random.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 63)])).collect()
}

/// The hash of a password, with the salt in it, which may begin with `rounds=N$`.
///
/// # Errors
/// When the salt cannot be in a shadow file, or asks for too many rounds.
pub fn hash(password: &str, salt: &str, algorithm: Algorithm) -> Result<String> {
    if salt.contains([':', '\n', '\0']) {
        return Err("crypt_salt: a salt has no colon and no line's end".into());
    }
    let (rounds, salt) = match salt.strip_prefix("rounds=").and_then(|rest| rest.split_once('$')) {
        Some((rounds, salt)) => {
            let rounds: u32 = rounds.parse().map_err(|_| "crypt_salt: the rounds are no number".to_owned())?;
            if rounds > MAX_ROUNDS {
                return Err(format!("crypt_salt: {rounds} rounds are too many; {MAX_ROUNDS} are the most"));
            }
            (Some(rounds.max(Params::ROUNDS_MIN)), salt)
        }
        None => (None, salt),
    };
    let salt = salt.split('$').next().unwrap_or_default();
    let mut end = salt.len().min(SALT);
    while !salt.is_char_boundary(end) {
        end -= 1;
    }
    let salt = &salt[..end];
    let params = Params::new(rounds.unwrap_or(ROUNDS)).map_err(|error| error.to_string())?;
    let digest = match algorithm {
        Algorithm::Sha256 => encoded(&sha256_crypt(password.as_bytes(), salt.as_bytes(), params), [0, 2, 1]),
        Algorithm::Sha512 => encoded(&sha512_crypt(password.as_bytes(), salt.as_bytes(), params), [0, 1, 2]),
    };
    let said = rounds.map_or_else(String::new, |rounds| format!("rounds={rounds}$"));
    Ok(format!("${}${said}{salt}${digest}", algorithm.ident()))
}

/// SHA-crypt's text of a digest: of each third of it a byte, in an order that turns by `turns` from group to group, four
/// characters of six bits a group, and the bytes that are left over.
fn encoded(digest: &[u8], turns: [usize; 3]) -> String {
    let third = digest.len() / 3;
    let mut text = String::new();
    let mut push = |bytes: [u8; 3], characters: usize| {
        let mut bits = bytes.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        for _ in 0..characters {
            text.push(char::from(ALPHABET[(bits & 63) as usize]));
            bits >>= 6;
        }
    };
    for group in 0..third {
        let mut bytes = [digest[group], digest[group + third], digest[group + 2 * third]];
        bytes.rotate_left(turns[group % 3]);
        push(bytes, 4);
    }
    match digest[3 * third..] {
        [last] => push([0, 0, last], 2),
        [first, last] => push([0, last, first], 3),
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By glibc: `crypt.crypt(password, "$5$" + salt)` and `"$6$"`.
    #[test]
    fn hashes_are_crypts() {
        for (password, salt, sha256, sha512) in HASHES {
            assert_eq!(hash(password, salt, Algorithm::Sha256).as_deref(), Ok(sha256));
            assert_eq!(hash(password, salt, Algorithm::Sha512).as_deref(), Ok(sha512));
        }
    }

    #[test]
    fn what_would_break_a_shadow_file_or_take_minutes_is_refused() {
        assert!(hash("x", "a:b", Algorithm::Sha512).is_err());
        assert!(hash("x", "a\nb", Algorithm::Sha512).is_err());
        assert!(hash("x", "rounds=999999999$a", Algorithm::Sha512).is_err());
        assert!(Algorithm::named("md5").is_err());
    }

    #[test]
    fn a_random_salt_has_all_its_characters() {
        assert_eq!(salt([0; 16]), "................");
        assert_eq!(salt([255; 16]), "zzzzzzzzzzzzzzzz");
    }

    const HASHES: [(&str, &str, &str, &str); 4] = [
        (
            "secret",
            "saltsalt",
            "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
            "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1",
        ),
        (
            "",
            "a",
            "$5$a$CZ9Csdk0HaS3TQcxgDHTwM2gwOEDCViPn83i6BpFdH.",
            "$6$a$Z6IPkDduHdwavesVY2NFMpOHkigshxPYdhfLg0D3A7/XFQcso9RV2E8qczyJ2su.dj6RRLaTpvgwN1rZfK0I9.",
        ),
        (
            "pässwörd with a long text beyond the block of a digest, twice as long as that",
            "0123456789abcdefgh",
            "$5$0123456789abcdef$y91pE2.CZmQ7qRzMn6Ylqq5C3p6sDC8KQPAfwHIiio6",
            "$6$0123456789abcdef$KQELo/rd.uT3DUbMm303nBrtJLBOtNvzPwAyhrFNVBGEhlKf4jY/eRLLoLvJ5xqyYDTTbekPwXaQtdE5g8ODY.",
        ),
        (
            "x",
            "rounds=1234$abc",
            "$5$rounds=1234$abc$GQUBRcRTNQlGV3K5J3jQ0frqOnDs0lQTZRoda9/6Hr0",
            "$6$rounds=1234$abc$8cf7/a/vq34A0R3i4KKEyavjt51gE5pTDViewHYRLcxHKu7lbyVtrjJHqH9H7xkQpjNRtGyNtjlQVWVuno.uj/",
        ),
    ];
}
