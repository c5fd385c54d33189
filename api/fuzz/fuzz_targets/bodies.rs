//! Bodies of JSON and YAML, to the chunks that they are.
#![no_main]

mod shared;

use brine_api::body;

const KINDS: [&str; 4] = ["application/json", "text/plain", "application/x-yaml", "text/yaml; charset=utf-8"];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    shared::follow(body::parse(KINDS[usize::from(*kind) % KINDS.len()], bytes));
});
