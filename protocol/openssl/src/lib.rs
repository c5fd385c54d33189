//! The private operations of Salt's protocol with OpenSSL, four times as fast as the portable ones. The master performs
//! two of them for each authentication of a minion; the swarm simulates thousands of minions in one process.
//!
//! This is a separate crate so that a minion, which needs one such operation in an hour, does not link OpenSSL.

use std::fmt;

use brine_protocol::keys::{EncAlg, KeyError, PrivateKey, PrivateOps, PublicKey, SignAlg, x931_message};
use openssl::bn::BigNum;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::md::Md;
use openssl::pkey::{PKey, Private};
use openssl::pkey_ctx::PkeyCtx;
use openssl::rsa::{Padding, Rsa};
use zeroize::Zeroizing;

/// A private key that OpenSSL uses.
pub struct OpensslKey {
    rsa: Rsa<Private>,
    key: PKey<Private>,
    public: PublicKey,
}

/// Makes a new key; none if OpenSSL cannot.
pub fn generate(bits: usize) -> Option<PrivateKey> {
    let rsa = Rsa::generate(u32::try_from(bits).ok()?).ok()?;
    let pem = Zeroizing::new(rsa.private_key_to_pem().ok()?);
    PrivateKey::from_pem(std::str::from_utf8(&pem).ok()?).ok()
}

/// The message of an X9.31 signature, as [`PublicKey::x931_recover`], ten times as fast; none if the signature is not by this key.
pub fn x931_recover(key: &PublicKey, signature: &[u8]) -> Option<Vec<u8>> {
    let rsa = Rsa::public_key_from_pem(key.clean_pem().as_bytes()).ok()?;
    let size = rsa.size() as usize;
    if signature.len() != size {
        return None;
    }
    let mut block = vec![0; size];
    rsa.public_decrypt(signature, &mut block, Padding::NONE).ok()?;
    if block.last()? & 0x0f != 0x0c {
        let mut other = BigNum::new().ok()?;
        other.checked_sub(rsa.n(), &*BigNum::from_slice(&block).ok()?).ok()?;
        block = other.to_vec_padded(i32::try_from(size).ok()?).ok()?;
    }
    x931_message(&block).map(<[u8]>::to_vec)
}

impl fmt::Debug for OpensslKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpensslKey(<secret>)")
    }
}

impl OpensslKey {
    /// Reads the text of a key file, PKCS#1 or PKCS#8.
    ///
    /// # Errors
    /// [`KeyError::Parse`] or [`KeyError::Size`].
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let refused = |why: ErrorStack| KeyError::Parse { kind: "private", why: why.to_string() };
        let key = PKey::private_key_from_pem(pem).map_err(refused)?;
        let rsa = key.rsa().map_err(refused)?;
        let public = rsa.public_key_to_pem().map_err(refused)?;
        let public = PublicKey::from_pem(&String::from_utf8_lossy(&public))?;
        Ok(Self { rsa, key, public })
    }

    /// Loads a key into OpenSSL.
    ///
    /// # Errors
    /// When OpenSSL does not accept the key.
    pub fn new(key: &PrivateKey) -> Result<Self, ErrorStack> {
        let rsa = Rsa::private_key_from_pem(key.to_pem().expose().as_bytes())?;
        Ok(Self { key: PKey::from_rsa(rsa.clone())?, rsa, public: key.public().clone() })
    }

    fn x931(&self, message: &[u8]) -> Result<Vec<u8>, ErrorStack> {
        // OpenSSL pads for X9.31 only in its deprecated interface, so the padding is made here (PROTOCOL.md §2.2).
        let size = self.rsa.size() as usize;
        let mut block = Vec::with_capacity(size);
        match size.checked_sub(message.len() + 2) {
            None => return Err(ErrorStack::get()),
            Some(0) => block.push(0x6a),
            Some(fill) => {
                block.push(0x6b);
                block.resize(fill, 0xbb);
                block.push(0xba);
            }
        }
        block.extend_from_slice(message);
        block.push(0xcc);
        let mut signature = vec![0; size];
        let n = self.rsa.private_encrypt(&block, &mut signature, Padding::NONE)?;
        let s = BigNum::from_slice(&signature[..n])?;
        let mut other = BigNum::new()?;
        other.checked_sub(self.rsa.n(), &s)?;
        let least = if s < other { s } else { other };
        least.to_vec_padded(i32::try_from(size).unwrap_or(i32::MAX))
    }

    fn oaep(&self, alg: EncAlg, ciphertext: &[u8]) -> Result<Vec<u8>, ErrorStack> {
        // OpenSSL would accept a shorter ciphertext as a number with leading zeroes.
        if ciphertext.len() != self.rsa.size() as usize {
            return Err(ErrorStack::get());
        }
        let digest = match alg {
            EncAlg::OaepSha1 => Md::sha1(),
            EncAlg::OaepSha224 => Md::sha224(),
        };
        let mut context = PkeyCtx::new(&self.key)?;
        context.decrypt_init()?;
        context.set_rsa_padding(Padding::PKCS1_OAEP)?;
        context.set_rsa_oaep_md(digest)?;
        context.set_rsa_mgf1_md(digest)?;
        let mut message = Vec::new();
        context.decrypt_to_vec(ciphertext, &mut message)?;
        Ok(message)
    }

    fn pkcs1(&self, alg: SignAlg, message: &[u8]) -> Result<Vec<u8>, ErrorStack> {
        let digest = match alg {
            SignAlg::Pkcs1v15Sha1 => MessageDigest::sha1(),
            SignAlg::Pkcs1v15Sha224 => MessageDigest::sha224(),
        };
        let mut signer = openssl::sign::Signer::new(digest, &self.key)?;
        signer.sign_oneshot_to_vec(message)
    }
}

impl PrivateOps for OpensslKey {
    fn sign(&self, alg: SignAlg, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.pkcs1(alg, message).map_err(|_| KeyError::Operation)
    }

    fn decrypt(&self, alg: EncAlg, ciphertext: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.oaep(alg, ciphertext).map_err(|_| KeyError::Operation)
    }

    fn x931_sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.x931(message).map_err(|_| KeyError::Operation)
    }

    fn public(&self) -> &PublicKey {
        &self.public
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_portable_implementation() {
        let portable = generate(2048).unwrap();
        let fast = OpensslKey::new(&portable).unwrap();
        for alg in [SignAlg::Pkcs1v15Sha1, SignAlg::Pkcs1v15Sha224] {
            assert_eq!(fast.sign(alg, b"salt").unwrap(), portable.sign(alg, b"salt").unwrap());
        }
        for message in [b"salt".as_slice(), &[b'x'; 64], &[0; 254], b""] {
            let signature = fast.x931_sign(message).unwrap();
            assert_eq!(signature, portable.x931_sign(message).unwrap());
            for signature in [signature.clone(), vec![0xff; 256], vec![1; 256], signature[1..].to_vec(), Vec::new()] {
                assert_eq!(x931_recover(fast.public(), &signature), fast.public().x931_recover(&signature));
            }
            assert_eq!(x931_recover(fast.public(), &signature).unwrap(), message);
        }
        assert!(fast.x931_sign(&[1; 255]).is_err());
        for alg in [EncAlg::OaepSha1, EncAlg::OaepSha224] {
            let sealed = fast.public().encrypt(alg, b"key").unwrap();
            assert_eq!(fast.decrypt(alg, &sealed).unwrap(), b"key");
            assert!(fast.decrypt(alg, &sealed[1..]).is_err());
            assert!(fast.decrypt(alg, &[7; 256]).is_err());
        }
        let read = OpensslKey::from_pem(portable.to_pem().expose().as_bytes()).unwrap();
        assert_eq!(read.public(), portable.public());
        assert!(OpensslKey::from_pem(b"-----BEGIN RSA PRIVATE KEY-----").is_err());
    }
}
