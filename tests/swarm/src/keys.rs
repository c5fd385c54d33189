//! The minions' keys: each its own, all made of a few primes, because ten thousand times two primes take minutes, and a hundred and fifty
//! primes, which make as many pairs, take seconds. So they are worth nothing as keys: who has two of them can work out both. The primes are
//! kept in a folder, so that a master that knows the minions knows them the next time.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brine_openssl::OpensslKey;
use brine_protocol::keys::{EncAlg, KeyError, PrivateOps, PublicKey, SignAlg};
use openssl::bn::{BigNum, BigNumContext, BigNumRef};
use openssl::error::ErrorStack;
use openssl::rsa::RsaPrivateKeyBuilder;

/// The public exponent of all keys.
const EXPONENT: u32 = 65_537;

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file or folder.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("{path} holds what is no prime of this size; delete it, and another one is made", path = path.display())]
    Primes {
        /// Which.
        path: PathBuf,
    },
    /// OpenSSL refused.
    #[error("OpenSSL makes no such key: {0}")]
    Openssl(#[from] ErrorStack),
    /// The key that came out is none that the protocol takes.
    #[error("a key made of two primes of the folder cannot be used: {0}")]
    Key(#[from] KeyError),
}

/// One minion's key, in OpenSSL's hands, with the token that it signs over and over.
#[derive(Debug)]
pub struct SwarmKey {
    ops: OpensslKey,
    /// The last message that was signed for a token, and the signature: always the same two.
    token: OnceLock<(Vec<u8>, Vec<u8>)>,
}

impl PrivateOps for SwarmKey {
    fn sign(&self, alg: SignAlg, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.ops.sign(alg, message)
    }

    fn decrypt(&self, alg: EncAlg, ciphertext: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.ops.decrypt(alg, ciphertext)
    }

    fn x931_sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        if let Some((signed, signature)) = self.token.get()
            && signed == message
        {
            return Ok(signature.clone());
        }
        let signature = self.ops.x931_sign(message)?;
        let _ = self.token.set((message.to_vec(), signature.clone()));
        Ok(signature)
    }

    fn public(&self) -> &PublicKey {
        self.ops.public()
    }
}

/// The first `count` keys of `bits` bits, made of the primes in `folder`; primes that are missing are made, by as many threads as there are
/// processors. `made` is called with the number of new ones so far.
///
/// # Errors
/// When the folder cannot be used, or holds something else.
pub fn prepare(
    folder: &Path,
    bits: u32,
    count: usize,
    made: impl Fn(usize) + Sync,
) -> Result<Vec<Arc<SwarmKey>>, KeysError> {
    let path = folder.join(format!("primes-{bits}"));
    let mut primes = read(&path, bits)?;
    let missing = (2..).find(|n| n * (n - 1) / 2 >= count).unwrap_or(2_usize).saturating_sub(primes.len());
    if missing > 0 {
        let new = AtomicUsize::new(0);
        primes.extend(parallel(missing, |_| {
            let prime = prime(bits)?;
            made(new.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(prime)
        })?);
        write(folder, &path, &primes)?;
    }
    parallel(count, |index| {
        let (one, two) = pair(index);
        Ok(Arc::new(key(&primes[one], &primes[two])?))
    })
}

/// The pair of primes of a key: (0, 1), (0, 2), (1, 2), (0, 3), … so that more primes change no earlier key.
fn pair(index: usize) -> (usize, usize) {
    let two = (1..).find(|two| two * (two + 1) / 2 > index).unwrap_or(1);
    (index - two * (two - 1) / 2, two)
}

fn prime(bits: u32) -> Result<BigNum, KeysError> {
    let half = i32::try_from(bits / 2).unwrap_or(i32::MAX);
    loop {
        let mut prime = BigNum::new()?;
        // Its two highest bits are set, so that two of them make a key of all bits.
        prime.generate_prime(half, false, None, None)?;
        if prime.mod_word(EXPONENT)? != 1 {
            return Ok(prime);
        }
    }
}

fn key(p: &BigNum, q: &BigNum) -> Result<SwarmKey, KeysError> {
    let mut context = BigNumContext::new()?;
    let one = BigNum::from_u32(1)?;
    let number = || BigNum::new();
    let (mut n, mut d, mut phi, e) = (number()?, number()?, number()?, BigNum::from_u32(EXPONENT)?);
    let (mut p1, mut q1, mut dp, mut dq, mut qi) = (number()?, number()?, number()?, number()?, number()?);
    n.checked_mul(p, q, &mut context)?;
    p1.checked_sub(p, &one)?;
    q1.checked_sub(q, &one)?;
    phi.checked_mul(&p1, &q1, &mut context)?;
    d.mod_inverse(&e, &phi, &mut context)?;
    dp.nnmod(&d, &p1, &mut context)?;
    dq.nnmod(&d, &q1, &mut context)?;
    qi.mod_inverse(q, p, &mut context)?;
    let rsa = RsaPrivateKeyBuilder::new(n, e, d)?;
    let rsa = rsa.set_factors(BigNumRef::to_owned(p)?, BigNumRef::to_owned(q)?)?.set_crt_params(dp, dq, qi)?.build();
    let ops = OpensslKey::from_pem(&rsa.private_key_to_pem()?)?;
    Ok(SwarmKey { ops, token: OnceLock::new() })
}

fn read(path: &Path, bits: u32) -> Result<Vec<BigNum>, KeysError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(KeysError::File { path: path.to_owned(), source }),
    };
    let half = i32::try_from(bits / 2).unwrap_or(i32::MAX);
    let prime = |line: &str| BigNum::from_hex_str(line).ok().filter(|prime| prime.num_bits() == half);
    let primes = text.lines().map(|line| prime(line).ok_or_else(|| KeysError::Primes { path: path.to_owned() }));
    primes.collect()
}

/// Whole or not at all.
fn write(folder: &Path, path: &Path, primes: &[BigNum]) -> Result<(), KeysError> {
    let failed = |source| KeysError::File { path: path.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let part = path.with_extension(format!("part{}", std::process::id()));
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part).map_err(failed)?;
    for prime in primes {
        writeln!(file, "{}", prime.to_hex_str()?).map_err(failed)?;
    }
    fs::rename(&part, path).map_err(failed)
}

/// `count` things, in order, made by as many threads as there are processors.
fn parallel<T: Send>(count: usize, make: impl Fn(usize) -> Result<T, KeysError> + Sync) -> Result<Vec<T>, KeysError> {
    let (next, things, failure) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)), Mutex::new(None));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count || lock(&failure).is_some() {
                return;
            }
            match make(index) {
                Ok(thing) => lock(&things).push((index, thing)),
                Err(error) => drop(lock(&failure).get_or_insert(error)),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut things = things.into_inner().unwrap_or_else(PoisonError::into_inner);
    things.sort_by_key(|(index, _)| *index);
    Ok(things.into_iter().map(|(_, thing)| thing).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_made_once_and_keys_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let max = |counter: &AtomicUsize, made| {
            counter.fetch_max(made, Ordering::Relaxed);
        };
        let keys = prepare(folder.path(), 1024, 3, |made| max(&first, made)).unwrap();
        let again = prepare(folder.path(), 1024, 10, |made| max(&second, made)).unwrap();
        assert_eq!((first.into_inner(), second.into_inner(), again.len()), (3, 2, 10));
        let pems = |keys: &[Arc<SwarmKey>]| keys.iter().map(|key| key.public().to_pem()).collect::<Vec<_>>();
        assert_eq!(pems(&keys), pems(&again)[..3]);
        let different: std::collections::HashSet<String> = pems(&again).into_iter().collect();
        assert_eq!(different.len(), 10, "each has its own");
        std::fs::write(folder.path().join("primes-1024"), "x\n").unwrap();
        let error = prepare(folder.path(), 1024, 2, |_| ()).unwrap_err().to_string();
        assert!(error.contains("primes-1024") && error.contains("delete it"), "{error}");
    }

    #[test]
    fn they_are_keys_that_the_protocol_takes() {
        let folder = tempfile::tempdir().unwrap();
        for key in prepare(folder.path(), 1024, 3, |_| ()).unwrap() {
            assert_eq!(key.public().bits(), 1024);
            let sealed = key.public().encrypt(EncAlg::OaepSha1, b"session").unwrap();
            assert_eq!(key.decrypt(EncAlg::OaepSha1, &sealed).unwrap(), b"session");
            let signature = key.sign(SignAlg::Pkcs1v15Sha1, b"load").unwrap();
            assert!(key.public().verify(SignAlg::Pkcs1v15Sha1, b"load", &signature));
            let token = key.x931_sign(b"salt").unwrap();
            assert_eq!(key.x931_sign(b"salt").unwrap(), token, "signed once");
            assert_eq!(key.public().x931_recover(&token).unwrap(), b"salt");
            let other = key.x931_sign(b"other").unwrap();
            assert_eq!(key.public().x931_recover(&other).unwrap(), b"other");
        }
    }

    #[test]
    fn pairs_come_in_an_order_that_more_primes_do_not_change() {
        let first: Vec<_> = (0..7).map(pair).collect();
        assert_eq!(first, [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (0, 4)]);
        assert_eq!(pair(9_999), (129, 141));
    }
}
