//! X9.31 padding as in OpenSSL's RSA_private_encrypt: of the message itself, without a hash (§2.2).

/// Header, filler, message, trailer; none if the message is too long.
pub(super) fn pad(message: &[u8], size: usize) -> Option<Vec<u8>> {
    let filler = size.checked_sub(message.len() + 2)?;
    let mut padded = Vec::with_capacity(size);
    if filler == 0 {
        padded.push(0x6a);
    } else {
        padded.push(0x6b);
        padded.resize(filler, 0xbb);
        padded.push(0xba);
    }
    padded.extend_from_slice(message);
    padded.push(0xcc);
    Some(padded)
}

/// The message in the padding; none if the padding is invalid.
pub(super) fn unpad(padded: &[u8]) -> Option<&[u8]> {
    let (header, rest) = padded.split_first()?;
    let (trailer, middle) = rest.split_last()?;
    if *trailer != 0xcc {
        return None;
    }
    match header {
        0x6a => Some(middle),
        0x6b => {
            let at = middle.iter().position(|&b| b != 0xbb)?;
            if middle[at] != 0xba {
                return None;
            }
            middle.get(at + 1..)
        }
        _ => None,
    }
}
