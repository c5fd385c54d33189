//! The module `stateconf`: states that do nothing. Its documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "stateconf",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
    },
    generate_all,
});

use brine_guest::Data;
use brine_guest::states::StateResult;

use exports::states::Guest;

struct Module;

impl Guest for Module {
    fn set(_: Data, _: Data) -> Result<StateResult, String> {
        Ok(StateResult::good(""))
    }

    fn context(_: Data, _: Data) -> Result<StateResult, String> {
        Ok(StateResult::good(""))
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
