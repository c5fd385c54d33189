//! Secrets of a master on its disk, readable only with the master's RSA key.

use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};

use super::aead::{self, KEY_LEN};
use crate::keys::PrivateKey;

const SALT_LEN: usize = 16;

/// Encrypts and decrypts small files by a key that follows from the master's RSA key. It does not print.
pub struct Vault(Prk);

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault(<secret>)")
    }
}

impl Vault {
    /// Of the master with this RSA key.
    pub fn of(rsa: &PrivateKey) -> Self {
        Self(Prk::new_less_safe(HKDF_SHA256, rsa.derive(b"brine vault key 1").expose()))
    }

    /// Encrypts the content of the file with this name: a salt, then the ciphertext.
    pub fn seal(&self, name: &str, content: &[u8]) -> Vec<u8> {
        let salt: [u8; SALT_LEN] = rand::random();
        let mut sealed = content.to_vec();
        aead::seal(&self.key(&salt), 0, name.as_bytes(), &mut sealed);
        [salt.as_slice(), &sealed].concat()
    }

    /// Decrypts; none if the file was made with another RSA key, under another name, or was changed.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (salt, sealed) = sealed.split_first_chunk::<SALT_LEN>()?;
        let mut bytes = sealed.to_vec();
        aead::open(&self.key(salt), 0, name.as_bytes(), &mut bytes).map(<[u8]>::to_vec)
    }

    /// Each file has a key of its own.
    fn key(&self, salt: &[u8; SALT_LEN]) -> [u8; KEY_LEN] {
        let mut key = [0; KEY_LEN];
        self.0.expand(&[salt], HKDF_SHA256).and_then(|okm| okm.fill(&mut key)).expect("one block of output");
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_opens_under_its_name_with_its_key_and_unchanged() {
        let key = |n: usize| PrivateKey::from_pem(brine_kit::keys::PEM[n]).unwrap();
        let (vault, other) = (Vault::of(&key(0)), Vault::of(&key(1)));
        let sealed = vault.seal("web1", b"secret");
        assert_ne!(sealed, vault.seal("web1", b"secret"));
        assert!(!sealed.windows(6).any(|six| six == b"secret"));
        assert_eq!(Vault::of(&key(0)).open("web1", &sealed).as_deref(), Some(&b"secret"[..]));
        assert_eq!(vault.open("web2", &sealed), None);
        assert_eq!(other.open("web1", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(vault.open("web1", &changed), None, "byte {at}");
            assert_eq!(vault.open("web1", &sealed[..at]), None, "{at} bytes");
        }
    }
}
