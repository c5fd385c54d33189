//! RSA keys: Salt's PEM files, signatures, OAEP and the X9.31 "private encrypt" (§2.2, §3.6, §3.9).
//!
//! Private operations are constant-time and blinded. A master may plug in another implementation through [`PrivateOps`].

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Why a key operation failed. Decryption failures are all alike on purpose.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not such a key.
    #[error("not an RSA {kind} key in PEM form: {why}")]
    Parse {
        /// Private or public.
        kind: &'static str,
        /// What the parser said.
        why: String,
    },
    /// A key file cannot be read or written.
    #[error("key file {}: {source}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file does not hold a key.
    #[error("key file {}: {source}", path.display())]
    Content {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        source: Box<KeyError>,
    },
    /// The key is shorter or longer than is safe or usual.
    #[error("an RSA key of {0} bits is outside 1024 to 8192 bits")]
    Size(usize),
    /// The private operation failed.
    #[error("the RSA operation failed")]
    Operation,
    /// The name is none of the algorithms.
    #[error("{0:?} is not a known algorithm")]
    Algorithm(String),
}

/// How messages are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SignAlg {
    /// `PKCS1v15-SHA1`, Salt's default.
    #[default]
    Pkcs1v15Sha1,
    /// `PKCS1v15-SHA224`.
    Pkcs1v15Sha224,
}

/// How keys are encrypted.
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

/// What a private key does. Blocking: a 2048-bit operation takes 0.3 to 1.5 ms.
pub trait PrivateOps: Send + Sync {
    /// Signs the message.
    ///
    /// # Errors
    /// [`KeyError::Operation`].
    fn sign(&self, alg: SignAlg, message: &[u8]) -> Result<Vec<u8>, KeyError>;
    /// Decrypts what was encrypted to the public key.
    ///
    /// # Errors
    /// [`KeyError::Operation`], whatever the cause.
    fn decrypt(&self, alg: EncAlg, ciphertext: &[u8]) -> Result<Vec<u8>, KeyError>;
    /// The X9.31 signature of the bare message, as OpenSSL's `RSA_private_encrypt` makes it.
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
    key: rsa::RsaPrivateKey,
    public: PublicKey,
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(<secret>)")
    }
}

/// An RSA public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    key: rsa::RsaPublicKey,
    pem: String,
}

impl PrivateKey {
    /// A new key. Slow: seconds for 2048 bits without optimisation.
    ///
    /// # Errors
    /// [`KeyError::Size`] or [`KeyError::Operation`].
    pub fn generate(bits: usize) -> Result<Self, KeyError> {
        let _ = bits;
        todo!()
    }

    /// Reads PKCS#1 or PKCS#8 PEM without a passphrase.
    ///
    /// # Errors
    /// [`KeyError::Parse`] or [`KeyError::Size`].
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let _ = pem;
        todo!()
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`KeyError::File`] or [`KeyError::Content`].
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let _ = path;
        todo!()
    }

    /// The key as PKCS#1 PEM, as Salt writes it.
    pub fn to_pem(&self) -> crate::secret::Secret<String> {
        let _ = &self.key;
        todo!()
    }

    /// The public half.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Writes the key file, mode 0400, atomically and never readable by others even for a moment.
    ///
    /// # Errors
    /// [`KeyError::File`].
    pub fn write_private(&self, path: &Path) -> Result<(), KeyError> {
        let _ = path;
        todo!()
    }
}

impl PrivateOps for PrivateKey {
    fn sign(&self, alg: SignAlg, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let _ = (alg, message);
        todo!()
    }

    fn decrypt(&self, alg: EncAlg, ciphertext: &[u8]) -> Result<Vec<u8>, KeyError> {
        let _ = (alg, ciphertext);
        todo!()
    }

    fn x931_sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let _ = message;
        todo!()
    }

    fn public(&self) -> &PublicKey {
        &self.public
    }
}

impl PublicKey {
    /// Reads SPKI or PKCS#1 PEM; line ends and surrounding blanks do not matter.
    ///
    /// # Errors
    /// [`KeyError::Parse`] or [`KeyError::Size`].
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let _ = pem;
        todo!()
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`KeyError::File`] or [`KeyError::Content`].
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let _ = path;
        todo!()
    }

    /// The key as SPKI PEM with a trailing newline, as it lies on disk.
    pub fn to_pem(&self) -> String {
        format!("{}\n", self.pem)
    }

    /// The key as it travels: SPKI PEM, LF, no trailing newline.
    pub fn clean_pem(&self) -> &str {
        &self.pem
    }

    /// Colon-separated hex SHA-256 over the PEM's body (§3.9).
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.pem)
    }

    /// Whether the signature is this key's for the message.
    pub fn verify(&self, alg: SignAlg, message: &[u8], signature: &[u8]) -> bool {
        let _ = (alg, message, signature, &self.key);
        todo!()
    }

    /// Encrypts a short message to the key.
    ///
    /// # Errors
    /// [`KeyError::Operation`] when the message is too long.
    pub fn encrypt(&self, alg: EncAlg, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let _ = (alg, message);
        todo!()
    }

    /// The message of an X9.31 signature, or none if it is not one of this key's.
    pub fn x931_recover(&self, signature: &[u8]) -> Option<Vec<u8>> {
        let _ = signature;
        todo!()
    }

    /// The modulus' length in bits.
    pub fn bits(&self) -> usize {
        todo!()
    }

    /// Writes the key file, mode 0644, atomically.
    ///
    /// # Errors
    /// [`KeyError::File`].
    pub fn write_public(&self, path: &Path) -> Result<(), KeyError> {
        let _ = path;
        todo!()
    }
}

/// A PEM as Salt compares and sends it: stripped, LF between the lines, no trailing newline.
pub fn clean_pem(pem: &str) -> String {
    pem.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Colon-separated hex SHA-256 over the body lines of a PEM and their newlines (§3.9), valid or not.
pub fn fingerprint(pem: &str) -> String {
    use sha2::Digest as _;
    let clean = clean_pem(pem);
    let lines: Vec<&str> = clean.lines().collect();
    let body = if lines.len() > 2 { &lines[1..lines.len() - 1] } else { &[] };
    let mut hash = sha2::Sha256::new();
    for line in body {
        hash.update(line.as_bytes());
        hash.update(b"\n");
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}

/// Writes a file atomically (a temporary file beside it, synced, renamed over it) with exactly this mode.
///
/// # Errors
/// When the file cannot be made, written or renamed.
pub fn write_file(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    let _ = (path, content, mode);
    todo!()
}
