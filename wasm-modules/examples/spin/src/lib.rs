//! `spin`: a module that misbehaves, to see what the sandbox does about it.

wit_bindgen::generate!({ world: "spin", path: "wit" });

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
        // A chunk that is not to be had aborts, as most programs would.
        while taken.len() < 1 << 16 {
            taken.push(black_box(vec![1_u8; CHUNK]));
        }
        (taken.len() * CHUNK) as u64
    }
}

export!(Module);
