//! Forms, to the chunks that they are.
#![no_main]

mod shared;

use brine_api::body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    shared::follow(body::parse("application/x-www-form-urlencoded", bytes));
});
