use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_protocol::keys::PrivateKey;
use proptest::prelude::*;

use super::*;

static RSA: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(1024).unwrap());
static OTHER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(1024).unwrap());
/// The seed 00 01 02 … 1f.
const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n-----END PRIVATE KEY-----\n";

fn key() -> SigningKey {
    SigningKey::from_pem(PEM).unwrap()
}

fn receipt(number: u64, previous: Option<Digest>) -> Receipt {
    let of = |text: &str| Digest::of(text.as_bytes());
    Receipt {
        version: Receipt::VERSION,
        number,
        previous,
        minion: "m1".to_owned(),
        minion_key: minion_key(),
        master: Some(Fingerprint(of("master").0)),
        series: Series::Spooled,
        publication: Some(of("publication")),
        jid: "20261120134740245008".to_owned(),
        arguments: of("arguments"),
        calls: vec![Call {
            function: "test.ping".to_owned(),
            retcode: 0,
            module: Some(Module {
                name: "test".to_owned(),
                sha256: of("module"),
                version: Some("0.1.0".to_owned()),
                signers: vec!["RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3".to_owned()],
                grants: of("grants"),
            }),
            usage: Some(Usage {
                wall_us: 1200,
                cpu_us: 900,
                memory_peak: 1_179_648,
                host_calls: 3,
                bytes_in: 120,
                bytes_out: 64,
            }),
        }],
        policy: Some(of("policy")),
        walls: ["user", "no_new_privs", "hidden", "seccomp", "landlock 6", "cgroup"].map(str::to_owned).to_vec(),
        start: Time(1_763_646_460_245_008_000),
        end: Time(1_763_646_460_249_000_001),
        retcode: 0,
        outcome: Outcome::Ran,
        returned: of("returned"),
    }
}

fn minion_key() -> Fingerprint {
    RSA.public().fingerprint().parse().unwrap()
}

/// As a master reads it.
fn read(vouched: &Vouched) -> Result<Vouched, ReceiptError> {
    Vouched::from_text(&vouched.to_text(), minion_key())
}

fn vouched(signed: SignedReceipt) -> Vouched {
    let vouch = Vouched::vouch("m1", signed.key(), &*RSA).unwrap();
    Vouched { receipt: signed, vouch }
}

/// With a fixed fingerprint, so that the bytes are always the same.
fn fixed() -> SignedReceipt {
    key().sign(Receipt { minion_key: Fingerprint([7; 32]), ..receipt(2, Some(Digest([9; 32]))) })
}

#[test]
fn the_bytes_are_stable() {
    let signed = fixed();
    let json = String::from_utf8(signed.receipt().to_json()).unwrap();
    assert!(json.starts_with(
        r#"{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"return/20261120134740245008/m1","digest":{"sha256":""#
    ));
    assert!(
        json.contains(r#""predicateType":"urn:brine:receipt:1","predicate":{"version":1,"number":2,"previous":"0909"#)
    );
    assert!(
        json.contains(r#""start":"2025-11-20T13:47:40.245008000Z","end":"2025-11-20T13:47:40.249000001Z""#),
        "{json}"
    );
    assert_eq!(signed.hash().to_string(), HASH, "{json}");
    assert_eq!(Digest::of(&signed.to_compact()).to_string(), COMPACT);
    assert_eq!(hex::encode(signed.key()), "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8");
}

const HASH: &str = "f1b152e1a73ee44915e8ae6f845270f0b595d84f8e950768580c132835342762";
const COMPACT: &str = "31db96e2b9c6959c9a87457ed7b99c6c733be3309bb0f9a1c6243b30880527f7";

/// With the word of an RSA key of 2,048 bits, which is what minions make.
fn bytes_in_a_return(receipt: Receipt) -> usize {
    Vouched { receipt: key().sign(receipt), vouch: vec![7; 256] }.to_text().len()
}

/// A job of a standard module, which nobody but the package signed.
fn standard(number: u64) -> Receipt {
    let mut receipt = receipt(number, Some(Digest([9; 32])));
    receipt.minion = "web01.frankfurt.example.com".to_owned();
    receipt.calls[0].function = "network.interfaces".to_owned();
    let module = receipt.calls[0].module.as_mut().unwrap();
    (module.name, module.signers) = ("network".to_owned(), Vec::new());
    receipt
}

#[test]
fn a_return_carries_less_than_a_kibibyte() {
    let usual = bytes_in_a_return(standard(1_000));
    assert!(usual <= 1024, "{usual} bytes");
    // Numbers as large as they get.
    let mut large = standard(1 << 40);
    large.minion = "m1".to_owned();
    large.calls[0].usage = Some(Usage {
        wall_us: 1 << 40,
        cpu_us: 1 << 40,
        memory_peak: 1 << 40,
        host_calls: 1 << 20,
        bytes_in: 1 << 40,
        bytes_out: 1 << 40,
    });
    large.end = Time(large.start.0 + (1 << 40));
    let large = bytes_in_a_return(large);
    assert!(large <= 1024, "{large} bytes");
    // What the host and the master keep.
    let kept = key().sign(standard(1_000)).to_compact().len();
    assert!(kept <= 540, "{kept} bytes");
}

#[test]
fn what_has_a_short_form_has_no_other() {
    let odd = Receipt {
        jid: "2026112013474024500a".to_owned(),
        walls: [
            "landlock 06",
            "landlock 111",
            "landlock 112",
            "landlock",
            "landlock -1",
            "user ",
            "",
            "cgroup",
            "user",
        ]
        .map(str::to_owned)
        .to_vec(),
        series: Series::Direct,
        outcome: Outcome::Killed,
        // A clock that was set back.
        start: Time(5),
        end: Time(-5),
        master: None,
        publication: None,
        policy: None,
        ..receipt(u64::MAX, None)
    };
    let other_module = |name: &str| {
        let mut receipt = receipt(1, None);
        receipt.calls[0].module.as_mut().unwrap().name = name.to_owned();
        receipt.calls.push(Call { function: "none".to_owned(), module: None, usage: None, retcode: -1 });
        receipt.calls.push(receipt.calls[0].clone());
        receipt
    };
    // Two digits in a byte are for decimal ones: hex digits may be of either case.
    let other_digits = Receipt { jid: "2026112013474024500A".to_owned(), ..receipt(1, None) };
    for receipt in [odd, other_digits, other_module("other"), other_module(""), other_module("test.ping")] {
        let whole = vouched(key().sign(receipt));
        assert_eq!(read(&whole).as_ref(), Ok(&whole));
        assert_eq!(SignedReceipt::from_compact(&whole.receipt.to_compact()).as_ref(), Ok(&whole.receipt));
    }
    let bytes = key().sign(receipt(1, None)).to_compact();
    let replaced = |from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).position(|window| window == from).expect("it is there");
        [&bytes[..at], to, &bytes[at + from.len()..]].concat()
    };
    let jid = [&[0xc4, 10][..], &hex::decode("20261120134740245008").unwrap()].concat();
    // The jid, a wall and the module's name in full; a number of a wall that is none, and an outcome that is none.
    let long: [(&[u8], &[u8], ReceiptError); 5] = [
        (&jid, b"\xb420261120134740245008", ReceiptError::NotCanonical),
        (&[0x96, 0, 1, 2, 3, 22, 4], b"\x96\xa4user\x01\x02\x03\x16\x04", ReceiptError::NotCanonical),
        (b"\x93\xc0\xa50.1.0", b"\x93\xa4test\xa50.1.0", ReceiptError::NotCanonical),
        (&[0x96, 0, 1, 2, 3, 22, 4], &[0x96, 0, 1, 2, 3, 22, 5], ReceiptError::Malformed("a wall has no such number")),
        (&[0x9b, 1, 14, 1], &[0x9b, 1, 0x6e, 1], ReceiptError::Malformed("its outcome is none")),
    ];
    for (from, to, why) in long {
        assert_eq!(SignedReceipt::from_compact(&replaced(from, to)), Err(why), "{to:?}");
    }
}

#[test]
fn all_encodings_lead_back_to_the_receipt() {
    let signed = key().sign(receipt(1, None));
    assert_eq!(Receipt::from_json(&signed.receipt().to_json()).as_ref(), Ok(signed.receipt()));
    assert_eq!(SignedReceipt::from_compact(&signed.to_compact()).as_ref(), Ok(&signed));
    let whole = vouched(signed);
    assert_eq!(read(&whole).as_ref(), Ok(&whole));
    assert_eq!(whole.check(RSA.public()), Ok(()));
    let line = Evidence { vouched: whole.clone(), minion_key: RSA.public().to_pem() }.to_line();
    assert_eq!(Evidence::verify(&line).unwrap().receipt, whole.receipt);
}

#[test]
fn a_made_key_is_read_again() {
    let pem = SigningKey::generate().unwrap();
    assert_eq!(SigningKey::from_pem(&pem).unwrap().public(), SigningKey::from_pem(&pem).unwrap().public());
    for bad in ["", "x", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", &PEM[..70]] {
        assert!(matches!(SigningKey::from_pem(bad), Err(ReceiptError::Key)), "{bad}");
    }
}

#[test]
fn a_signature_over_other_bytes_does_not_hold() {
    let (one, two) = (key().sign(receipt(1, None)), key().sign(receipt(2, None)));
    let (mut bytes, other) = (one.to_compact(), two.to_compact());
    let at = bytes.len() - 64;
    bytes[at..].copy_from_slice(&other[at..]);
    assert_eq!(SignedReceipt::from_compact(&bytes), Err(ReceiptError::Signature));
}

#[test]
fn another_minions_key_or_none_does_not_vouch() {
    let whole = vouched(key().sign(receipt(1, None)));
    assert_eq!(whole.check(OTHER.public()), Err(ReceiptError::OtherMinionKey));
    let strange = SigningKey::from_pem(&SigningKey::generate().unwrap()).unwrap().sign(receipt(1, None));
    let stolen = Vouched { receipt: strange, ..whole.clone() };
    assert_eq!(stolen.check(RSA.public()), Err(ReceiptError::Unvouched));
    let unproved = Unproved::from_text(&stolen.to_text(), minion_key()).unwrap();
    assert_eq!(unproved.check(RSA.public()), Err(ReceiptError::Unvouched));
    assert_eq!(stolen.receipt.key(), unproved.key());
    // The signature is over the fingerprint that the return does not carry.
    assert_eq!(Vouched::from_text(&whole.to_text(), Fingerprint([7; 32])), Err(ReceiptError::Signature));
    let of_another = Receipt { minion: "m2".to_owned(), ..receipt(1, None) };
    let stolen = Vouched { receipt: key().sign(of_another), ..whole };
    assert_eq!(stolen.check(RSA.public()), Err(ReceiptError::Unvouched));
}

#[test]
fn what_is_large_or_torn_or_padded_is_refused() {
    let compact = key().sign(receipt(1, None)).to_compact();
    assert_eq!(SignedReceipt::from_compact(&vec![0x90; 1 << 20]), Err(ReceiptError::TooLarge));
    assert_eq!(Vouched::from_text(&"A".repeat(1 << 20), Fingerprint([7; 32])), Err(ReceiptError::TooLarge));
    assert_eq!(Evidence::verify(&" ".repeat(MAX_LINE + 1)), Err(ReceiptError::TooLarge));
    assert_eq!(Receipt::from_json(&vec![b' '; 1 << 20]), Err(ReceiptError::TooLarge));
    for length in 0..compact.len() {
        assert!(SignedReceipt::from_compact(&compact[..length]).is_err(), "{length}");
    }
    let padded = [&compact[..], &[0xc0]].concat();
    assert_eq!(SignedReceipt::from_compact(&padded), Err(ReceiptError::NotCanonical));
    let mut spaced = receipt(1, None).to_json();
    spaced.insert(1, b' ');
    assert_eq!(Receipt::from_json(&spaced), Err(ReceiptError::NotCanonical));
    let later = Receipt { version: 2, ..receipt(1, None) };
    assert_eq!(Receipt::from_json(&later.to_json()), Err(ReceiptError::Version(2)));
    assert_eq!(SignedReceipt::from_compact(&key().sign(later).to_compact()), Err(ReceiptError::Version(2)));
}

#[test]
fn an_export_is_bound_to_what_was_signed() {
    let evidence = Evidence { vouched: vouched(key().sign(receipt(1, None))), minion_key: RSA.public().to_pem() };
    let mut line: serde_json::Value = serde_json::from_str(&evidence.to_line()).unwrap();
    let payload = STANDARD.decode(line["envelope"]["payload"].as_str().unwrap()).unwrap();
    let changed = String::from_utf8(payload).unwrap().replace(r#""retcode":0,"outcome"#, r#""retcode":1,"outcome"#);
    line["envelope"]["payload"] = STANDARD.encode(changed).into();
    assert_eq!(Evidence::verify(&line.to_string()), Err(ReceiptError::Signature));
    let mut line: serde_json::Value = serde_json::from_str(&evidence.to_line()).unwrap();
    line["minionKey"] = OTHER.public().to_pem().into();
    assert_eq!(Evidence::verify(&line.to_string()), Err(ReceiptError::OtherMinionKey));
}

/// An envelope says what it is, by whom, and nothing else: other tools read these words, and the signature is not over all of them.
#[test]
fn an_envelope_has_one_form() {
    let evidence = Evidence { vouched: vouched(key().sign(receipt(1, None))), minion_key: RSA.public().to_pem() };
    let good: serde_json::Value = serde_json::from_str(&evidence.to_line()).unwrap();
    let refused = |change: &dyn Fn(&mut serde_json::Value), why: ReceiptError| {
        let mut line = good.clone();
        change(&mut line);
        assert_ne!(line, good);
        assert_eq!(Evidence::verify(&line.to_string()), Err(why));
    };
    let other_type = "application/json".into();
    let line = ReceiptError::Malformed("it is no line of an export");
    let not_one = || ReceiptError::Malformed("it has not one signature");
    refused(
        &|line| line["envelope"]["payloadType"] = serde_json::Value::clone(&other_type),
        ReceiptError::Malformed("its payload is no in-toto statement"),
    );
    refused(
        &|line| line["envelope"]["signatures"][0]["keyid"] = "00".repeat(32).into(),
        ReceiptError::Malformed("its keyid is of another key"),
    );
    refused(&|line| line["envelope"]["signatures"] = serde_json::json!([]), not_one());
    refused(
        &|line| {
            let first = line["envelope"]["signatures"][0].clone();
            line["envelope"]["signatures"] = serde_json::json!([first, first]);
        },
        not_one(),
    );
    refused(&|line| line["envelope"]["signatures"][0]["sig"] = "AAAA".into(), ReceiptError::Signature);
    refused(&|line| line["vouch"] = "AAAA".into(), ReceiptError::Unvouched);
    refused(&|line| line["minionKey"] = "no key".into(), ReceiptError::Unvouched);
    refused(&|line| line["key"] = "AAAA".into(), ReceiptError::Malformed("a key has not 32 bytes"));
    refused(&|line| line["more"] = 1.into(), line.clone());
    refused(&|line| line["envelope"]["more"] = 1.into(), line.clone());
    refused(&|line| line["envelope"]["signatures"][0]["more"] = 1.into(), line);
    // Before it is decoded.
    for filler in ["A", "!"] {
        refused(&|line| line["envelope"]["payload"] = filler.repeat(700_000).into(), ReceiptError::TooLarge);
    }
}

#[test]
fn a_text_of_a_return_has_one_form() {
    let whole = vouched(key().sign(receipt(1, None)));
    let bytes = STANDARD.decode(whole.to_text()).unwrap();
    let text = |bytes: &[u8]| Vouched::from_text(&STANDARD.encode(bytes), minion_key());
    assert_eq!(text(&bytes).as_ref(), Ok(&whole));
    assert_eq!(text(&[&bytes[..], &[0xc0]].concat()), Err(ReceiptError::NotCanonical));
    for length in 0..bytes.len() {
        assert!(text(&bytes[..length]).is_err(), "{length}");
    }
    assert!(Vouched::from_text(&format!("{} ", whole.to_text()), minion_key()).is_err());
}

#[test]
fn a_key_does_not_print() {
    let printed = format!("{:?}", key());
    // The seed in decimal, hex and base64.
    for secret in ["1, 2, 3", "010203", "AAECAw"] {
        assert!(!printed.contains(secret), "{printed}");
    }
    assert!(printed.contains(&Digest::of(&key().public()).to_string()), "{printed}");
}

#[test]
fn chains_tell_gaps_and_forks() {
    let chain = |receipts: &[(u64, &str, Option<&str>)]| {
        let digest = |text: &str| Digest::of(text.as_bytes());
        let mut chain = Chain::default();
        for (number, hash, previous) in receipts {
            chain.add(&receipt(*number, previous.map(digest)), digest(hash));
        }
        chain.odd()
    };
    assert_eq!(chain(&[(2, "b", Some("a")), (1, "a", None), (3, "c", Some("b")), (1, "a", None)]), []);
    assert_eq!(chain(&[(7, "g", Some("f")), (8, "h", Some("g"))]), [], "the first ones are old and gone");
    assert_eq!(chain(&[(1, "a", None), (5, "e", Some("d"))]), [Odd::Gap(2, 4)]);
    assert_eq!(chain(&[(1, "a", None), (2, "b", Some("x"))]), [Odd::Fork(2)]);
    assert_eq!(chain(&[(1, "a", None), (2, "b", Some("a")), (2, "y", Some("a"))]), [Odd::Fork(2)]);
    assert_eq!(chain(&[(5, "e", None)]), [Odd::Fork(5)]);
    assert_eq!(chain(&[(1, "a", Some("x"))]), [Odd::Fork(1)]);
    // Both are told where the ones between are missing too.
    assert_eq!(chain(&[(1, "a", None), (1, "x", None), (3, "c", Some("b"))]), [Odd::Fork(1), Odd::Gap(2, 2)]);
    assert_eq!(chain(&[(1, "a", None), (u64::MAX, "z", Some("y"))]), [Odd::Gap(2, u64::MAX - 1)]);
}

#[test]
fn a_record_is_read_whole_or_not_at_all() {
    let by = AskedBy { key: vec![3; 32], vouch: vec![4; 256] };
    let asked = Asked { algorithm: "x".to_owned(), signature: vec![1; 256], blob: None, by: None };
    let compact = key().sign(receipt(1, None)).to_compact();
    let whole = Some(vec![2; 300].into());
    for asked in [
        None,
        Some(Asked { blob: whole.clone(), ..asked.clone() }),
        Some(Asked { blob: whole, by: Some(by), ..asked.clone() }),
    ] {
        let bytes = Record::receipt_to_bytes(&compact, asked.as_ref());
        let record = Record::Receipt { compact: compact.clone(), asked };
        assert_eq!(bytes, record.to_bytes());
        assert_eq!(Record::read(&bytes), Ok(Some((record, bytes.len()))));
    }
    let record = Record::Receipt { compact, asked: Some(asked) };
    let bytes = record.to_bytes();
    assert_eq!(Record::read(&[&bytes[..], b"more"].concat()), Ok(Some((record.clone(), bytes.len()))));
    for length in 0..bytes.len() {
        assert_eq!(Record::read(&bytes[..length]), Ok(None), "{length}");
    }
    for at in 0..bytes.len() {
        let mut bent = bytes.clone();
        bent[at] ^= 1;
        assert_eq!(Record::read(&bent), Ok(None), "{at}");
    }
    // As Brine wrote it before: without the mark, by SHA-256.
    let content = &bytes[8..];
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    let before = [&length[..], &Digest::of(content).0[..4], content].concat();
    assert_eq!(Record::read(&before), Ok(Some((record, before.len()))));
    let bent = [&before[..20], &[before[20] ^ 1], &before[21..]].concat();
    assert_eq!(Record::read(&bent), Ok(None));
    assert_eq!(Record::read(&[0; 64]), Ok(None));
    // One that is too large is not decoded.
    let content = vec![0xc1; (1 << 20) + 1];
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    assert_eq!(Record::read(&[&length[..], &Digest::of(&content).0[..4], &content].concat()), Ok(None));
    let marked = [&[1], &length[1..], &crc32fast::hash(&content).to_be_bytes(), &content].concat();
    assert_eq!(Record::read(&marked), Ok(None));
}

#[test]
fn more_hashes_than_places_are_none() {
    let bytes = fixed().to_compact();
    // Nine hashes, the key and the signature are the last part, behind its length.
    let at = bytes.len() - 384;
    assert_eq!(bytes[at - 3..at], [0xc5, 0x01, 0x80]);
    let more = [&bytes[..at - 2], &[0x01, 0xa0], &bytes[at..], &[7; 32]].concat();
    assert!(SignedReceipt::unverified(&bytes).is_ok());
    let why = ReceiptError::Malformed("it has more hashes than places for them");
    assert_eq!(SignedReceipt::unverified(&more), Err(why.clone()));
    assert_eq!(SignedReceipt::from_compact(&more), Err(why));
}

#[test]
fn a_fingerprint_has_one_spelling() {
    let text = Fingerprint([0xab; 32]).to_string();
    assert_eq!(text.parse(), Ok(Fingerprint([0xab; 32])));
    for other in [text.to_uppercase(), text.replace(':', "-"), text.replace(':', "")] {
        assert!(other.parse::<Fingerprint>().is_err(), "{other}");
    }
}

proptest! {
    #[test]
    fn hostile_bytes_do_not_verify(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..600, bit in 0u8..8) {
        prop_assert!(SignedReceipt::from_compact(&bytes).is_err());
        prop_assert!(Receipt::from_json(&bytes).is_err());
        let mut good = fixed().to_compact();
        let at = at % good.len();
        good[at] ^= 1 << bit;
        prop_assert!(SignedReceipt::from_compact(&good).is_err());
    }
}
