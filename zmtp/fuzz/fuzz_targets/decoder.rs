//! The first byte determines the pieces in which the rest arrives. The decoder must return the same result as for the
//! whole, hold no more than its limits, and never panic. Its output must encode and decode again.
#![no_main]

use brine_zmtp::frame::{Command, Decoded, Decoder, DecoderLimits, FrameError, encode_command, encode_message};
use libfuzzer_sys::fuzz_target;

const LIMITS: DecoderLimits = DecoderLimits { max_message: 4096, max_frames: 8, max_command: 512 };

fn decode(bytes: &[u8], step: usize) -> (Vec<Decoded>, Option<FrameError>) {
    let mut decoder = Decoder::new(LIMITS);
    let mut items = Vec::new();
    for mut part in bytes.chunks(step.max(1)) {
        loop {
            match decoder.decode(&mut part) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(error) => return (items, Some(error)),
            }
        }
        assert!(part.is_empty());
        assert!(decoder.buffered() <= LIMITS.max_message + LIMITS.max_command);
    }
    (items, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((step, bytes)) = data.split_first() else { return };
    let whole = decode(bytes, bytes.len());
    assert_eq!(decode(bytes, usize::from(*step)), whole);
    for item in whole.0 {
        let again = match &item {
            // An unknown command cannot be encoded.
            Decoded::Command(Command::Unknown) => continue,
            // Unknown properties are dropped, so READY may be shorter, but it decodes to the same command.
            Decoded::Command(command) => encode_command(command),
            Decoded::Message(frames) => encode_message(frames),
        };
        assert_eq!(decode(&again, again.len()), (vec![item], None));
    }
});
