//! ChaCha20-Poly1305 (RFC 8439) with a number as nonce.

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

pub(super) const KEY_LEN: usize = 32;
pub(super) const TAG_LEN: usize = 16;

fn key(key: &[u8; KEY_LEN]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).expect("a key of 32 bytes"))
}

/// Four zero bytes, then the number with its highest byte first.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Encrypts in place, and appends the tag. The caller uses each number once for a key.
pub(super) fn seal(with: &[u8; KEY_LEN], number: u64, data: &[u8], bytes: &mut Vec<u8>) {
    key(with).seal_in_place_append_tag(nonce(number), Aad::from(data), bytes).expect("less than the cipher's 256 GiB");
}

/// Decrypts in place; none if it was not encrypted with this key, number and data.
pub(super) fn open<'a>(with: &[u8; KEY_LEN], number: u64, data: &[u8], bytes: &'a mut [u8]) -> Option<&'a [u8]> {
    key(with).open_in_place(nonce(number), Aad::from(data), bytes).ok().map(|opened| &*opened)
}
