//! Both flavours, and hostile messages.

use proptest::prelude::*;

use super::*;
use crate::value::{Value, bytes, list, map, text};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("NaN is not equal to itself", |n| !n.is_nan()).prop_map(Value::from),
        ".{0,40}".prop_map(text),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(bytes),
        (any::<i8>(), proptest::collection::vec(any::<u8>(), 0..20)).prop_map(|(k, d)| Value::Ext(k, d)),
    ];
    leaf.prop_recursive(4, 64, 20, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
            proptest::collection::vec((inner.clone(), inner), 0..20).prop_map(Value::Map),
        ]
    })
}

proptest! {
    #[test]
    fn disk_flavour_keeps_every_value(v in any_value()) {
        prop_assert_eq!(decode_disk(&encode_disk(&v), &Limits::DISK).unwrap(), v);
    }

    #[test]
    fn network_flavour_is_stable_and_has_no_new_codes(v in any_value()) {
        let sent = encode_network(&v);
        let read = decode(&sent, &Limits::REQUEST).unwrap();
        prop_assert_eq!(encode_network(&read), sent);
    }

    #[test]
    fn buffers_have_room_for_the_whole_value(v in any_value()) {
        prop_assert!(encode_disk(&v).len() <= room(&v));
        prop_assert!(encode_network(&v).len() <= room(&v));
    }

    /// Skipped and decoded entries together are the whole map, whether or not it is well-formed.
    #[test]
    fn entries_are_those_of_the_whole(v in any_value(), broken in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>()))) {
        let mut sent = encode_disk(&v);
        if let Some((at, byte)) = broken {
            let at = at.index(sent.len());
            sent[at] = byte;
        }
        let whole = decode(&sent, &Limits::REQUEST).map(|value| match value {
            Value::Map(mut entries) => {
                entries.retain(|(key, _)| key.as_str().is_some_and(|key| key.len() % 2 == 0));
                Value::Map(entries)
            }
            _ => Value::Nil,
        });
        let entries = decode_entries(&sent, &Limits::REQUEST, &|key| key.len() % 2 == 0);
        // NaN is not equal to itself.
        prop_assert_eq!(format!("{entries:?}"), format!("{whole:?}"));
    }

    #[test]
    fn hostile_bytes_do_not_panic(b in proptest::collection::vec(any::<u8>(), 0..200)) {
        for limits in [Limits::UNAUTHENTICATED, Limits::REQUEST] {
            let _ = decode(&b, &limits);
            let _ = decode_raw(&b, &limits);
            let _ = decode_disk(&b, &limits);
            let _ = decode_prefix(&b, &limits);
            let _ = decode_entries(&b, &limits, &|key| key.len() % 2 == 0);
        }
    }

    #[test]
    fn every_prefix_of_a_value_is_truncated(v in any_value(), cut in any::<proptest::sample::Index>()) {
        let sent = encode_disk(&v);
        let at = cut.index(sent.len());
        prop_assert_eq!(decode_disk(&sent[..at], &Limits::DISK), Err(DecodeError::Truncated));
    }
}

#[test]
fn sixteen_megabytes_of_nils_are_refused_by_the_header() {
    let mut nils = vec![0xdd, 0x01, 0x00, 0x00, 0x00];
    nils.resize(5 + (16 << 20), 0xc0);
    assert_eq!(
        decode(&nils, &Limits::REQUEST),
        Err(DecodeError::TooMuch { what: "items", limit: Limits::REQUEST.max_items })
    );
    assert_eq!(
        decode(&nils, &Limits::UNAUTHENTICATED),
        Err(DecodeError::TooMuch { what: "bytes", limit: Limits::UNAUTHENTICATED.max_bytes })
    );
}

#[test]
fn nested_headers_share_one_budget() {
    // Many lists that each claim as many items as bytes are left. Without a common budget, n² values would be reserved.
    let nested = [0xdc, 0x03, 0xff].repeat(2000);
    assert!(matches!(decode(&nested, &Limits::UNAUTHENTICATED), Err(DecodeError::TooMuch { .. })));
}

#[test]
fn depth_is_bounded() {
    let deep = vec![0x91; 100_000];
    for limits in [Limits::REQUEST, Limits::UNAUTHENTICATED, Limits::PUBLICATION, Limits::EVENT] {
        let error = decode(&deep[..50_000], &limits).unwrap_err();
        assert!(matches!(error, DecodeError::TooMuch { what: "levels", .. }), "{error}");
    }
}

#[test]
fn lengths_are_not_believed() {
    for claim in [&[0xdb, 0xff, 0xff, 0xff, 0xff][..], &[0xc6, 0xff, 0xff, 0xff, 0xff], &[0xdd, 0, 0x10, 0, 0]] {
        assert_eq!(decode(claim, &Limits::REQUEST), Err(DecodeError::Truncated), "{claim:x?}");
    }
}

#[test]
fn one_value_and_nothing_behind_it() {
    assert_eq!(decode(&[0xc0, 0xc0], &Limits::REQUEST), Err(DecodeError::Trailing(1)));
    assert_eq!(decode(&[0xc1], &Limits::REQUEST), Err(DecodeError::Reserved));
    assert_eq!(decode(&[], &Limits::REQUEST), Err(DecodeError::Truncated));
    assert_eq!(decode_prefix(&[0xc0, 0xc0], &Limits::EVENT), Ok((Value::Nil, 1)));
}

#[test]
fn utf8_becomes_text_whatever_it_was_sent_as() {
    let sent = encode_disk(&map([("b", bytes(*b"abc")), ("x", bytes([0xff]))]));
    assert_eq!(decode(&sent, &Limits::REQUEST).unwrap(), map([("b", text("abc")), ("x", bytes([0xff]))]));
    assert_eq!(
        decode_raw(&sent, &Limits::REQUEST).unwrap(),
        Value::Map(vec![(bytes(*b"b"), bytes(*b"abc")), (bytes(*b"x"), bytes([0xff]))])
    );
    assert_eq!(decode(&encode_disk(&list(["h\u{e9}"])), &Limits::REQUEST).unwrap(), list(["h\u{e9}"]));
}
