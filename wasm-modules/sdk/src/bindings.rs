//! The host's interfaces, generated from the top-level folder `wit/`.
#![allow(missing_docs, clippy::all, reason = "generated")]

wit_bindgen::generate!({ world: "imports", path: "wit", generate_all, generate_unused_types: true, additional_derives: [PartialEq] });
