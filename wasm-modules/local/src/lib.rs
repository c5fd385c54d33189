//! The module `local`: a returner for trying returners. Its documentation is in `wit/world.wit`.

wit_bindgen::generate!({
    world: "local",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
});

use brine_guest::host::log::{self, Level};

struct Module;

impl Guest for Module {
    fn returner(ret: Data) -> Result<bool, String> {
        log::write(Level::Warning, &ret.value()?.to_text());
        Ok(true)
    }
}

export!(Module);
