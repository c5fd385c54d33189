//! RSA keys: Salt's PEM files, signatures, OAEP and the X9.31 "private encrypt" (§2.2, §3.6, §3.9).
//!
//! Private operations are constant-time and blinded. A master can use another implementation through [`PrivateOps`].

mod new;
mod store;
mod x931;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rsa::pkcs1::{DecodeRsaPrivateKey as _, DecodeRsaPublicKey as _, EncodeRsaPrivateKey as _};
use rsa::pkcs8::{DecodePrivateKey as _, DecodePublicKey as _, EncodePublicKey as _, LineEnding};
use rsa::traits::{PrivateKeyParts as _, PublicKeyParts as _};
use rsa::{BoxedUint, Oaep, Pkcs1v15Sign, RsaPrivateKey, RsaPublicKey};
use sha1::Sha1;
use sha2::{Digest as _, Sha224, Sha256};
use zeroize::Zeroizing;

use crate::files::write_synced;
use crate::secret::Secret;

pub use store::{KeyFileAction, KeyFileError, KeyKind, KeyListing, KeyState, KeyStore, KeyStoreError};

/// Why a key operation failed. All decryption failures are the same error on purpose.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not a key of this kind.
    #[error("not an RSA {kind} key in PEM form: {why}")]
    Parse {
        /// Private or public.
        kind: &'static str,
        /// The parser's error.
        why: String,
    },
    /// A key file cannot be read or written.
    #[error("key file {}: {source}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file does not hold a key.
    #[error("key file {}: {source}", path.display())]
    Content {
        /// The file.
        path: std::path::PathBuf,
        /// The error in the content.
        source: Box<KeyError>,
    },
    /// The key is shorter than is safe, or longer than a peer may make this process compute with.
    #[error("an RSA key of {0} bits is outside {MIN_BITS} to {MAX_BITS} bits")]
    Size(usize),
    /// The private operation failed.
    #[error("the RSA operation failed")]
    Operation,
    /// No algorithm has this name.
    #[error("{0:?} is not a known algorithm")]
    Algorithm(String),
}

/// Lower bound on the bits of a key.
pub const MIN_BITS: usize = 1024;
/// Upper bound on the bits of a key: the cost of a hostile peer's key grows with the cube of its length.
pub const MAX_BITS: usize = 4096;
/// Upper bound on the bytes of a key file. Key files have 3 KB at most.
const MAX_KEY_FILE: u64 = 64 << 10;

/// The signing algorithm of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SignAlg {
    /// `PKCS1v15-SHA1`, Salt's default.
    #[default]
    Pkcs1v15Sha1,
    /// `PKCS1v15-SHA224`.
    Pkcs1v15Sha224,
}

/// The encryption algorithm of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EncAlg {
    /// `OAEP-SHA1`, Salt's default.
    #[default]
    OaepSha1,
    /// `OAEP-SHA224`.
    OaepSha224,
}

impl SignAlg {
    /// Salt's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pkcs1v15Sha1 => "PKCS1v15-SHA1",
            Self::Pkcs1v15Sha224 => "PKCS1v15-SHA224",
        }
    }
}

impl EncAlg {
    /// Salt's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OaepSha1 => "OAEP-SHA1",
            Self::OaepSha224 => "OAEP-SHA224",
        }
    }
}

impl fmt::Display for SignAlg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for EncAlg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SignAlg {
    type Err = KeyError;
    fn from_str(name: &str) -> Result<Self, KeyError> {
        match name {
            "PKCS1v15-SHA1" => Ok(Self::Pkcs1v15Sha1),
            "PKCS1v15-SHA224" => Ok(Self::Pkcs1v15Sha224),
            other => Err(KeyError::Algorithm(other.chars().take(40).collect())),
        }
    }
}

impl FromStr for EncAlg {
    type Err = KeyError;
    fn from_str(name: &str) -> Result<Self, KeyError> {
        match name {
            "OAEP-SHA1" => Ok(Self::OaepSha1),
            "OAEP-SHA224" => Ok(Self::OaepSha224),
            other => Err(KeyError::Algorithm(other.chars().take(40).collect())),
        }
    }
}

/// The operations of a private key. They block: a 2048-bit operation takes 0.3 to 1.5 ms.
pub trait PrivateOps: Send + Sync {
    /// Signs a message.
    ///
    /// # Errors
    /// [`KeyError::Operation`].
    fn sign(&self, alg: SignAlg, message: &[u8]) -> Result<Vec<u8>, KeyError>;
    /// Decrypts a message to the public key.
    ///
    /// # Errors
    /// [`KeyError::Operation`], whatever the cause.
    fn decrypt(&self, alg: EncAlg, ciphertext: &[u8]) -> Result<Vec<u8>, KeyError>;
    /// The X9.31 signature of the unhashed message, as OpenSSL's `RSA_private_encrypt` makes it.
    ///
    /// # Errors
    /// [`KeyError::Operation`]; also when the message is longer than the modulus less 2 bytes.
    fn x931_sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError>;
    /// The public half.
    fn public(&self) -> &PublicKey;
}

/// An RSA private key.
#[derive(Clone)]
pub struct PrivateKey {
    key: RsaPrivateKey,
    public: PublicKey,
}

impl fmt::Debug for dyn PrivateOps + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateOps(<secret>)")
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(<secret>)")
    }
}

/// An RSA public key.
#[derive(Clone)]
pub struct PublicKey {
    key: RsaPublicKey,
    pem: String,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for PublicKey {}

impl PrivateKey {
    /// Generates a key, which takes a tenth of a second for 2048 bits.
    ///
    /// # Errors
    /// [`KeyError::Size`] or [`KeyError::Operation`].
    pub fn generate(bits: usize) -> Result<Self, KeyError> {
        check_size(bits)?;
        Self::checked(new::key(bits)?)
    }

    /// Reads PKCS#1 or PKCS#8 PEM without a passphrase.
    ///
    /// # Errors
    /// [`KeyError::Parse`] or [`KeyError::Size`].
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let pem = Zeroizing::new(clean_pem(pem));
        let parsed = if pem.starts_with("-----BEGIN RSA PRIVATE KEY-----") {
            RsaPrivateKey::from_pkcs1_pem(&pem).map_err(|e| e.to_string())
        } else if pem.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----") {
            Err("it has a passphrase, which is not supported".to_owned())
        } else {
            RsaPrivateKey::from_pkcs8_pem(&pem).map_err(|e| e.to_string())
        };
        Self::checked(parsed.map_err(|why| KeyError::Parse { kind: "private", why })?)
    }

    fn checked(key: RsaPrivateKey) -> Result<Self, KeyError> {
        let public = PublicKey::checked(key.to_public_key())?;
        Ok(Self { key, public })
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`KeyError::File`] or [`KeyError::Content`].
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let pem = Zeroizing::new(read_key_file(path)?);
        Self::from_pem(&pem).map_err(|e| KeyError::Content { path: path.to_owned(), source: Box::new(e) })
    }

    /// The key as PKCS#1 PEM, as Salt writes it.
    pub fn to_pem(&self) -> Secret<String> {
        let pem = self.key.to_pkcs1_pem(LineEnding::LF).expect("a checked two-prime key has a PEM form");
        Secret::new(pem.as_str().to_owned())
    }

    /// The public half.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// A secret that follows from this key, for one use: HKDF-SHA256 with the modulus as salt, the private exponent as
    /// input and the use as info. It says nothing about the key or the secrets for other uses.
    pub fn derive(&self, usage: &[u8]) -> Secret<[u8; 32]> {
        use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
        let secret = Zeroizing::new(self.key.d().to_be_bytes());
        let mut derived = [0; 32];
        Salt::new(HKDF_SHA256, &self.key.n().to_be_bytes())
            .extract(&secret)
            .expand(&[usage], HKDF_SHA256)
            .and_then(|okm| okm.fill(&mut derived))
            .expect("one block of output");
        Secret::new(derived)
    }

    /// Writes the key file atomically with mode 0400; others can never read it.
    ///
    /// # Errors
    /// [`KeyError::File`].
    pub fn write_private(&self, path: &Path) -> Result<(), KeyError> {
        write_synced(path, self.to_pem().expose().as_bytes(), 0o400)
            .map_err(|source| KeyError::File { path: path.to_owned(), source })
    }
}

impl PrivateOps for PrivateKey {
    fn sign(&self, alg: SignAlg, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let rng = &mut rand::rng();
        match alg {
            SignAlg::Pkcs1v15Sha1 => self.key.sign_with_rng(rng, Pkcs1v15Sign::new::<Sha1>(), &Sha1::digest(message)),
            SignAlg::Pkcs1v15Sha224 => {
                self.key.sign_with_rng(rng, Pkcs1v15Sign::new::<Sha224>(), &Sha224::digest(message))
            }
        }
        .map_err(|_| KeyError::Operation)
    }

    fn decrypt(&self, alg: EncAlg, ciphertext: &[u8]) -> Result<Vec<u8>, KeyError> {
        let rng = &mut rand::rng();
        match alg {
            EncAlg::OaepSha1 => self.key.decrypt_blinded(rng, Oaep::<Sha1>::new(), ciphertext),
            EncAlg::OaepSha224 => self.key.decrypt_blinded(rng, Oaep::<Sha224>::new(), ciphertext),
        }
        .map_err(|_| KeyError::Operation)
    }

    fn x931_sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let size = self.key.size();
        let precision = self.key.n_bits_precision();
        let padded = x931::pad(message, size).ok_or(KeyError::Operation)?;
        let m = BoxedUint::from_be_slice(&padded, precision).map_err(|_| KeyError::Operation)?;
        let s = rsa::hazmat::rsa_decrypt_and_check(&self.key, Some(&mut rand::rng()), &m)
            .map_err(|_| KeyError::Operation)?;
        let other = self.key.n().as_ref().wrapping_sub(&s);
        left_padded(if s < other { &s } else { &other }, size).ok_or(KeyError::Operation)
    }

    fn public(&self) -> &PublicKey {
        &self.public
    }
}

impl PublicKey {
    /// Reads SPKI or PKCS#1 PEM; the kind of line ends and surrounding blanks are ignored.
    ///
    /// # Errors
    /// [`KeyError::Parse`] or [`KeyError::Size`].
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let clean = clean_pem(pem);
        // Old Salt versions wrote SPKI with the header of PKCS#1 (§3.6), so the header does not decide.
        let spki = clean.replace("RSA PUBLIC KEY-----", "PUBLIC KEY-----");
        let key = RsaPublicKey::from_public_key_pem(&spki)
            .or_else(|e| RsaPublicKey::from_pkcs1_pem(&clean).map_err(|_| e))
            .map_err(|e| KeyError::Parse { kind: "public", why: e.to_string() })?;
        Self::checked(key)
    }

    /// Reads SPKI in DER, as TLS sends it.
    ///
    /// # Errors
    /// [`KeyError::Parse`] or [`KeyError::Size`].
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let key = RsaPublicKey::from_public_key_der(der)
            .map_err(|e| KeyError::Parse { kind: "public", why: e.to_string() })?;
        Self::checked(key)
    }

    fn checked(key: RsaPublicKey) -> Result<Self, KeyError> {
        check_size(usize::try_from(key.n().bit_width_vartime()).unwrap_or(usize::MAX))?;
        // The key is encoded again, so that each key has one text and carries no other data.
        let pem = key
            .to_public_key_pem(LineEnding::LF)
            .map_err(|e| KeyError::Parse { kind: "public", why: e.to_string() })?;
        Ok(Self { key, pem: clean_pem(&pem) })
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`KeyError::File`] or [`KeyError::Content`].
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        Self::from_pem(&read_key_file(path)?)
            .map_err(|e| KeyError::Content { path: path.to_owned(), source: Box::new(e) })
    }

    /// The key as SPKI PEM with a trailing newline, as in key files.
    pub fn to_pem(&self) -> String {
        format!("{}\n", self.pem)
    }

    /// The key as SPKI PEM with LF and no trailing newline, as in messages.
    pub fn clean_pem(&self) -> &str {
        &self.pem
    }

    /// Colon-separated hex SHA-256 over the PEM's body (§3.9).
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.pem)
    }

    /// Whether the signature over the message is by this key.
    pub fn verify(&self, alg: SignAlg, message: &[u8], signature: &[u8]) -> bool {
        match alg {
            // A minion verifies each publication. AWS-LC takes a tenth of `rsa`'s time but has no SHA-224.
            SignAlg::Pkcs1v15Sha1 => {
                let key = aws_lc_rs::signature::RsaPublicKeyComponents { n: self.key.n_bytes(), e: self.key.e_bytes() };
                key.verify(&aws_lc_rs::signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, message, signature)
                    .is_ok()
            }
            SignAlg::Pkcs1v15Sha224 => {
                self.key.verify(Pkcs1v15Sign::new::<Sha224>(), &Sha224::digest(message), signature).is_ok()
            }
        }
    }

    /// Encrypts a short message to the key.
    ///
    /// # Errors
    /// [`KeyError::Operation`] when the message is too long.
    pub fn encrypt(&self, alg: EncAlg, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let rng = &mut rand::rng();
        match alg {
            EncAlg::OaepSha1 => self.key.encrypt(rng, Oaep::<Sha1>::new(), message),
            EncAlg::OaepSha224 => self.key.encrypt(rng, Oaep::<Sha224>::new(), message),
        }
        .map_err(|_| KeyError::Operation)
    }

    /// The message of an X9.31 signature; none if the signature is not by this key.
    pub fn x931_recover(&self, signature: &[u8]) -> Option<Vec<u8>> {
        let size = self.key.size();
        if signature.len() != size {
            return None;
        }
        let s = BoxedUint::from_be_slice(signature, self.key.n_bits_precision()).ok()?;
        if s >= *self.key.n().as_ref() {
            return None;
        }
        let t = rsa::hazmat::rsa_encrypt(&self.key, &s).ok()?;
        let padded = left_padded(&t, size)?;
        let padded = if padded.last()? & 0x0f == 0x0c {
            padded
        } else {
            left_padded(&self.key.n().as_ref().wrapping_sub(&t), size)?
        };
        x931::unpad(&padded).map(<[u8]>::to_vec)
    }

    /// The length of the modulus in bits.
    pub fn bits(&self) -> usize {
        usize::try_from(self.key.n().bit_width_vartime()).unwrap_or(usize::MAX)
    }

    /// Writes the key file, mode 0644, atomically.
    ///
    /// # Errors
    /// [`KeyError::File`].
    pub fn write_public(&self, path: &Path) -> Result<(), KeyError> {
        write_synced(path, self.to_pem().as_bytes(), 0o644)
            .map_err(|source| KeyError::File { path: path.to_owned(), source })
    }
}

/// The message in a block with X9.31's padding, for other implementations; none if the padding is wrong.
pub fn x931_message(block: &[u8]) -> Option<&[u8]> {
    x931::unpad(block)
}

const fn check_size(bits: usize) -> Result<(), KeyError> {
    if bits < MIN_BITS || bits > MAX_BITS {
        return Err(KeyError::Size(bits));
    }
    Ok(())
}

/// The number as exactly `size` bytes, big-endian.
fn left_padded(n: &BoxedUint, size: usize) -> Option<Vec<u8>> {
    let bytes = n.to_be_bytes();
    let extra = bytes.len().saturating_sub(size);
    if bytes[..extra].iter().any(|&b| b != 0) {
        return None;
    }
    let mut out = vec![0; size - (bytes.len() - extra)];
    out.extend_from_slice(&bytes[extra..]);
    Some(out)
}

fn read_key_file(path: &Path) -> Result<String, KeyError> {
    brine_files::read_named_text(path, MAX_KEY_FILE).map_err(|source| KeyError::File { path: path.to_owned(), source })
}

/// The form of a PEM that Salt compares and sends: stripped, LF between lines, no trailing newline.
pub fn clean_pem(pem: &str) -> String {
    pem.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Colon-separated hex SHA-256 over the body lines of a PEM and their newlines (§3.9). The PEM need not be valid.
pub fn fingerprint(pem: &str) -> String {
    hashed::<Sha256>(pem)
}

/// As [`fingerprint`], with the hash that `hash_type` names (`sha1`, `sha224`, `sha256`, `sha384`, `sha512`).
///
/// # Errors
/// [`KeyError::Algorithm`] for any other name.
pub fn fingerprint_by(hash_type: &str, pem: &str) -> Result<String, KeyError> {
    Ok(match hash_type {
        "sha1" => hashed::<Sha1>(pem),
        "sha224" => hashed::<Sha224>(pem),
        "sha256" => hashed::<Sha256>(pem),
        "sha384" => hashed::<sha2::Sha384>(pem),
        "sha512" => hashed::<sha2::Sha512>(pem),
        other => return Err(KeyError::Algorithm(other.chars().take(40).collect())),
    })
}

fn hashed<D: sha2::digest::Digest>(pem: &str) -> String {
    let clean = clean_pem(pem);
    let lines: Vec<&str> = clean.lines().collect();
    let body = if lines.len() > 2 { &lines[1..lines.len() - 1] } else { &[] };
    let mut hash = D::new();
    for line in body {
        hash.update(line.as_bytes());
        hash.update(b"\n");
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}
