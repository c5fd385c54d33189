//! A stream of event frames in both framings, in parts of any length.
#![no_main]

use brine_protocol::event::{Event, EventError, FrameDecoder, Framing, frame};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&part, stream)) = data.split_first() else { return };
    let mut decoder = FrameDecoder::new(1 << 16);
    for chunk in stream.chunks(usize::from(part).max(1)) {
        decoder.buffer().extend_from_slice(chunk);
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => {
                    let again = Event::decode(&event.encode()).expect("what we sent, we read");
                    assert_eq!(again.encode(), event.encode());
                    let mut one = FrameDecoder::default();
                    one.buffer().extend_from_slice(&frame(&event, Framing::Prefixed));
                    assert!(matches!(one.next_event(), Ok(Some(_))));
                }
                Ok(None) => break,
                // After a body that is no event, the stream can be read further; other errors end it.
                Err(EventError::Tag | EventError::NotMap) => {}
                Err(_) => return,
            }
        }
    }
});
