//! A file as a recording. What is read is written and read as the same.
#![no_main]

use brine_recording::{MAGIC, Recording, is_same};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let file = [MAGIC, data].concat();
    match Recording::from_bytes(&file) {
        Ok(recording) => {
            let again = Recording::from_bytes(&recording.to_bytes()).expect("what we wrote, we read");
            assert_eq!(again, recording);
            for call in &recording.calls {
                assert!(is_same(&call.asked, &call.hidden, &call.asked), "equal to itself, wherever its markers are");
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
    let _ = Recording::from_bytes(data);
});
