//! `large`: large returns of each kind, for benchmarks.

wit_bindgen::generate!({ world: "large", path: "wit" });

// Only for its panic hook.
use brine_guest as _;

struct Module;

/// Bytes of an entry in MessagePack: three keys with their values.
const ENTRY: u32 = 60;

impl Guest for Module {
    fn text(size: u32) -> String {
        "x".repeat(size as usize)
    }

    fn bytes(size: u32) -> Vec<u8> {
        vec![7; size as usize]
    }

    fn texts(size: u32) -> Vec<String> {
        (0..size / 32).map(|n| format!("{n:032}")).collect()
    }

    fn entries(size: u32) -> Vec<Entry> {
        (0..size / ENTRY)
            .map(|n| Entry { name: format!("/srv/app/file-{n:010}"), number: 1 << 40, changed: n % 2 == 0 })
            .collect()
    }
}

export!(Module);
