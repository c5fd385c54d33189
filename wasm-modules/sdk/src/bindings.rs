//! The host's interfaces, made from `wit/` at the top.
#![allow(missing_docs, clippy::all, reason = "generated")]

wit_bindgen::generate!({ world: "imports", path: "wit", generate_all, additional_derives: [PartialEq] });
