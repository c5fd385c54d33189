//! The module `pkgrepo`: sources of packages as states. It reads and compares; what is on the host is the module `pkg`'s.

wit_bindgen::generate!({
    world: "pkgrepo",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
    },
});

mod absent;
mod managed;
mod pkg;

use brine_apt::arguments::Keywords;
use brine_guest::states::StateResult;
use brine_guest::{Data, Result};

use exports::states::Guest;

struct Module;

const PPA: &str = "ppa is not resolved: name the repository by its line, `deb [signed-by=/etc/apt/keyrings/NAME.gpg] \
                   https://ppa.launchpadcontent.net/OWNER/NAME/ubuntu RELEASE main`, and its key by key_url";

/// Keywords of the state system, which may come with a state that `mod_watch` calls.
const INTERNAL: [&str; 2] = ["sfun", "name"];

impl Guest for Module {
    fn managed(
        name: String,
        ppa: Option<Data>,
        _: Option<Data>,
        aptkey: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult> {
        let mut keywords = Keywords::read(&kwargs)?;
        INTERNAL.iter().for_each(|key| drop(keywords.take(key)));
        if ppa.is_some() {
            return Ok(StateResult::bad(PPA));
        }
        let aptkey = aptkey.map(|data| data.value()).transpose()?.is_none_or(|value| value.truthy());
        managed::run(&name, aptkey, keywords)
    }

    fn absent(name: String, kwargs: Data) -> Result<StateResult> {
        let mut keywords = Keywords::read(&kwargs)?;
        INTERNAL.iter().for_each(|key| drop(keywords.take(key)));
        if keywords.get("ppa").is_some() {
            return Ok(StateResult::bad(PPA));
        }
        absent::run(&name, &keywords)
    }
}

export!(Module);
