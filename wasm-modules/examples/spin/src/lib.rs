//! `spin`: a module that misbehaves, to demonstrate the sandbox's reaction.

wit_bindgen::generate!({ world: "spin", path: "wit" });

// Only for its panic hook.
use brine_guest as _;
use std::hint::black_box;

struct Module;

impl Guest for Module {
    fn forever() {
        loop {
            black_box(());
        }
    }

    fn bomb() -> u64 {
        const CHUNK: usize = 1 << 20;
        let mut taken = Vec::new();
        // A failed allocation aborts, as in most programs.
        while taken.len() < 1 << 16 {
            taken.push(black_box(vec![1_u8; CHUNK]));
        }
        (taken.len() * CHUNK) as u64
    }

    fn panic(message: Option<String>) {
        panic!("{}", message.as_deref().unwrap_or("Test panic"));
    }

    fn recurse() -> u64 {
        fn deeper(depth: u64) -> u64 {
            if black_box(depth) == u64::MAX { depth } else { black_box(deeper(depth + 1)) + 1 }
        }
        deeper(0)
    }
}

export!(Module);
