//! A component from anybody, as the compiler's cage reads it, and its description, as the minion gets it from there.
#![no_main]

use brine_component::{ModuleInfo, read, signature};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    match read(data) {
        Ok(info) => {
            info.check().expect("what is read is within its bounds");
            let json = serde_json::to_vec(&info).expect("a description is plain data");
            let again: ModuleInfo = serde_json::from_slice(&json).expect("what was written is read");
            assert_eq!(again, info);
            for function in &info.functions {
                let line = signature("module", function);
                assert!(!line.contains(char::is_control), "{line:?}");
            }
        }
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
    // The description itself may come from a compiler that was taken over.
    if let Ok(info) = serde_json::from_slice::<ModuleInfo>(data) {
        let _ = info.check();
    }
});
