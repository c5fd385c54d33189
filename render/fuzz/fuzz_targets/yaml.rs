//! Any text as YAML: loading ends within its bounds, and what was loaded can be dumped, shown and sent, or is refused.
#![no_main]

use brine_render::convert::ConvertLimits;
use brine_render::yaml::{self, DumpOptions, Limits, Style};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let limits = Limits { text: 1 << 16, depth: 50, values: 1 << 12 };
    let Ok(value) = yaml::load(text, &limits) else { return };
    let _ = value.short_repr();
    let _ = value.to_wire(ConvertLimits { values: 1 << 14, bytes: 1 << 20 });
    for default_flow_style in [None, Some(true), Some(false)] {
        for default_style in [None, Some(Style::Folded), Some(Style::Literal)] {
            let options = DumpOptions { default_flow_style, default_style, max_bytes: 1 << 20, ..DumpOptions::default() };
            if let Ok(dumped) = yaml::dump(&value, &options) {
                let _ = yaml::load(&dumped, &limits);
            }
        }
    }
});
