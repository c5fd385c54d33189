//! The module `salt_version`: the release of Salt that this minion behaves like. The functions and their documentation are in
//! `wit/world.wit`; what they compute is in `brine_render::functions`, as for templates.

wit_bindgen::generate!({
    world: "salt-version",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
    },
    generate_all,
});

use brine_guest::host::grains;
use brine_guest::{compute, wire};
use brine_render::functions::Module as Functions;

struct Module;

type Answer = Result<Data, String>;

/// The release is a grain.
fn call(function: &str, name: Data) -> Answer {
    let mut surroundings = compute::nothing();
    surroundings.grains = wire::dict(&grains::items())?;
    compute::call(Functions::SALT_VERSION, &surroundings, function, [("name", Some(name))])
}

impl Guest for Module {
    fn get_release_number(name: Data) -> Answer {
        call("get_release_number", name)
    }

    fn equal(name: Data) -> Answer {
        call("equal", name)
    }

    fn greater_than(name: Data) -> Answer {
        call("greater_than", name)
    }

    fn less_than(name: Data) -> Answer {
        call("less_than", name)
    }
}

export!(Module);
