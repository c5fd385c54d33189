//! The module `rawfile_json`: a returner. Its documentation is in `wit/world.wit`.

wit_bindgen::generate!({
    world: "rawfile-json",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/config@1.0.0": brine_guest::host::config,
    },
});

use std::fs::OpenOptions;
use std::io::Write;

use brine_guest::host::config;
use brine_guest::{Value, json};

/// Salt's default.
const FILE: &str = "/var/log/salt/events";

struct Module;

impl Guest for Module {
    fn returner(ret: Data) -> Result<bool, String> {
        let path = match config::get("rawfile_json.filename").map(|path| path.value()).transpose()? {
            Some(Value::Text(path)) if !path.is_empty() => path,
            _ => FILE.to_owned(),
        };
        let mut line = json::to_text(&ret.value()?);
        line.push('\n');
        let failed = |error: std::io::Error| format!("{path} cannot be written: {error}");
        let mut file = OpenOptions::new().append(true).create(true).open(&path).map_err(failed)?;
        // In one piece: others may append at the same time.
        file.write_all(line.as_bytes()).map_err(failed)?;
        Ok(true)
    }
}

export!(Module);
