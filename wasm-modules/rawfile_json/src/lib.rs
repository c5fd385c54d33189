//! The module `rawfile_json`: a returner. Its documentation is in `wit/world.wit`.

wit_bindgen::generate!({
    world: "rawfile-json",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/metadata@1.0.0": brine_guest::host::metadata,
        "wasi:filesystem/types@0.2.0": brine_guest::wasi::filesystem::types,
        "wasi:filesystem/preopens@0.2.0": brine_guest::wasi::filesystem::preopens,
    },
});

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
        // Calls for several returns run at the same time.
        brine_appending::append(&path, line.as_bytes()).map_err(|error| error.at(&path))?;
        Ok(true)
    }
}

export!(Module);
