//! New keys. AWS-LC makes them in a fraction of the time that the crate `rsa` takes, so a minion's first start does not wait for its key. It knows
//! the usual sizes only.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use rsa::RsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey as _;
use zeroize::Zeroizing;

use super::KeyError;

/// Makes a key of this size, which is within the bounds.
pub(super) fn key(bits: usize) -> Result<RsaPrivateKey, KeyError> {
    let Some(size) = usual(bits) else {
        return RsaPrivateKey::new(&mut rand::rng(), bits).map_err(|_| KeyError::Operation);
    };
    let pair = KeyPair::generate(size).map_err(|_| KeyError::Operation)?;
    let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| KeyError::Operation)?;
    let der = Zeroizing::new(der.as_ref().to_vec());
    RsaPrivateKey::from_pkcs8_der(&der).map_err(|_| KeyError::Operation)
}

fn usual(bits: usize) -> Option<KeySize> {
    [KeySize::Rsa2048, KeySize::Rsa3072, KeySize::Rsa4096].into_iter().find(|size| size.len() * 8 == bits)
}

#[cfg(test)]
mod tests {
    use rsa::traits::PublicKeyParts as _;

    use super::*;

    #[test]
    fn keys_have_their_size_and_salts_exponent() {
        for bits in [1_024, 2_048, 2_056] {
            let one = key(bits).unwrap();
            assert_eq!(one.size() * 8, bits);
            assert_eq!(one.e(), &rsa::BoxedUint::from(65_537_u64));
            one.validate().unwrap();
            assert_ne!(key(bits).unwrap().n(), one.n());
        }
        assert_eq!([2_048, 3_072, 4_096].map(|bits| usual(bits).is_some()), [true; 3]);
    }
}
