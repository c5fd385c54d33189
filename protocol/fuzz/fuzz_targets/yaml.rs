//! Configuration files and arguments of a command line.
#![no_main]

use brine_protocol::args;
use brine_protocol::config::yaml;
use brine_protocol::msgpack;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(value) = yaml::load(text) {
        let _ = msgpack::encode_network(&value);
    }
    let _ = args::parse_input(&[text.to_owned()]);
});
