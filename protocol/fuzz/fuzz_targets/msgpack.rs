//! Values from hostile bytes: decoding is bounded, and a decoded value encodes to an equal one.
#![no_main]

use brine_protocol::msgpack::{self, Limits};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for limits in [Limits::UNAUTHENTICATED, Limits::ENVELOPE] {
        if let Ok(value) = msgpack::decode(data, &limits) {
            let sent = msgpack::encode_network(&value);
            let read = msgpack::decode(&sent, &limits).expect("what we sent, we read");
            assert_eq!(msgpack::encode_network(&read), sent);
        }
        if let Ok(value) = msgpack::decode_disk(data, &limits) {
            let stored = msgpack::encode_disk(&value);
            let read = msgpack::decode_disk(&stored, &limits).expect("what we stored, we read");
            assert_eq!(msgpack::encode_disk(&read), stored);
        }
        let _ = msgpack::decode_raw(data, &limits);
        let _ = msgpack::decode_prefix(data, &limits);
    }
});
