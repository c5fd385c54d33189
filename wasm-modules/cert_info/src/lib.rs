//! The beacon `cert_info`: certificates in files that expire soon.
//!
//! - [`config`] which files, and how soon · [`certificate`] what is told of one · [`extensions`] its extensions, in OpenSSL's words
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "cert-info",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
    generate_all,
});

mod certificate;
mod config;
mod extensions;

use brine_guest::beacons::{self, Reading};
use brine_guest::host::changes;
use brine_guest::host::log::{self, Level};
use brine_guest::{Data, Value};
use wasi::clocks::wall_clock;

use certificate::Certificate;

/// Upper bound on the bytes of a file. A certificate has some thousand.
const MAX_FILE: u32 = 1 << 20;

struct Module;

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("cert_info", &config, |config| match config.get("files") {
            Some(_) => Ok(()),
            None => Err("Configuration for cert_info beacon must contain files option.".into()),
        })
    }

    fn beacon(config: Data, state: Option<Vec<u8>>) -> Result<Reading, String> {
        let files = config::files(&beacons::merged("cert_info", &config)?)?;
        let said = match beacons::kept(state)? {
            Some(Value::List(said)) => said,
            _ => Vec::new(),
        };
        let now = i64::try_from(wall_clock::now().seconds).unwrap_or(i64::MAX);
        let (mut certificates, mut unreadable) = (Vec::new(), Vec::new());
        for file in files {
            match read(&file.path) {
                Ok(certificate) => {
                    let days = certificate.days_left(now);
                    if file.days < 0.0 || days as f64 <= file.days {
                        certificates.push(certificate.value(&file.path, now));
                    }
                }
                Err(why) => {
                    // Not at each look.
                    let why = format!("Unable to load certificate {} ({why})", file.path);
                    let line = Value::Text(why);
                    if !said.contains(&line) {
                        log::write(Level::Error, &line.to_text());
                    }
                    unreadable.push(line);
                }
            }
        }
        let events = match certificates.is_empty() {
            true => Vec::new(),
            false => vec![Value::dict([("certificates", Value::List(certificates))])],
        };
        Ok(Reading::keeping(events, Value::List(unreadable)))
    }
}

fn read(path: &str) -> Result<Certificate, String> {
    let text = changes::read(path, 0, MAX_FILE)?;
    // Python's words.
    let text = text.ok_or_else(|| format!("[Errno 2] No such file or directory: '{path}'"))?;
    Certificate::first_of(&text)
}

export!(Module);
