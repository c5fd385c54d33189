//! Any file: its pipe of renderers, with a Jinja that changes nothing.
#![no_main]

use brine_render::pipe::{self, PipeOptions, Rendered};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(Rendered::Value(value)) = pipe::render(text, &PipeOptions::default(), |text, _| Ok(text.to_owned())) {
        let _ = value.short_repr();
        assert_eq!(value.equals(&value), Some(true));
    }
});
