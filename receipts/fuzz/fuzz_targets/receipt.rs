//! Bytes as each of the forms in which receipts come: of a return, a store, an export, and a host's file. What is read has one encoding.
#![no_main]

use brine_receipts::{Evidence, Fingerprint, Receipt, Record, SignedReceipt, SigningKey, Vouched};

/// A fixed seed, so that a receipt made of the input can be signed.
const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n-----END PRIVATE KEY-----\n";

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(receipt) = Receipt::from_json(data) {
        assert_eq!(receipt.to_json(), data, "the one encoding");
        let signed = SigningKey::from_pem(PEM).expect("a key").sign(receipt);
        assert_eq!(SignedReceipt::from_compact(&signed.to_compact()).as_ref(), Ok(&signed));
    }
    if let Ok(signed) = SignedReceipt::from_compact(data) {
        assert_eq!(signed.to_compact(), data, "the one encoding");
        let (receipt, key) = SignedReceipt::unverified(data).expect("what is verified can be read");
        assert_eq!((&receipt, &key), (signed.receipt(), signed.key()));
    }
    let _ = SignedReceipt::unverified(data);
    let mut rest = data;
    while let Ok(Some((record, size))) = Record::read(rest) {
        assert!(size <= rest.len());
        let _ = record.to_bytes();
        rest = &rest[size..];
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let minion_key = Fingerprint([7; 32]);
        if let Ok(vouched) = Vouched::from_text(text, minion_key) {
            assert_eq!(vouched.receipt.receipt().minion_key, minion_key);
            assert_eq!(vouched.to_text(), text, "the one encoding");
        }
        let _ = Evidence::verify(text);
    }
});
