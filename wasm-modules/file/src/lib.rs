//! The module `file`: files of the host. The functions and states and their documentation are in `wit/world.wit`.
//!
//! - `functions.rs` the functions; `states/` the states, a file each
//! - `ret.rs`       the result of a state while it is made
//! - `look/`        what only looks
//! - `change/`      what changes names, owners, modes and whole files
//! - `manage/`      the content that a file is to have, and the file
//! - `edit/`        what changes the text of files

// On the host, where the tests run, nothing is exported: `read` and `lstat` would replace those of libc.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "file",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/http@1.0.0": brine_guest::host::http,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/metadata@1.0.0": brine_guest::host::metadata,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
        "wasi:filesystem/types@0.2.0": brine_guest::wasi::filesystem::types,
        "wasi:filesystem/preopens@0.2.0": brine_guest::wasi::filesystem::preopens,
    },
    generate_all,
});

mod change;
mod edit;
mod functions;
mod look;
mod manage;
mod ret;
mod states;

struct Module;

#[cfg(target_family = "wasm")]
export!(Module);
