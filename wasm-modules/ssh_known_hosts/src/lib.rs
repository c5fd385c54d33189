//! The module `ssh_known_hosts`: states of hosts' keys. Their documentation is in `wit/world.wit`, the file in
//! [`brine_formats::known_hosts`]; the functions are in the module `ssh`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "ssh-known-hosts",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

use brine_formats::keyscan::{Asked, Set, Wanted};
use brine_formats::known_hosts::{self, File};
use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run, no_changes};
use wasi::random::random::get_random_u64;

use exports::states::Guest;

struct Module;

impl Guest for Module {
    fn present(
        name: String,
        user: Option<String>,
        fingerprint: Option<String>,
        key: Option<String>,
        port: Option<i64>,
        enc: Option<String>,
        config: Option<String>,
        hash_known_hosts: Option<bool>,
        timeout: Option<u64>,
        kind: Option<String>,
    ) -> Result<StateResult, String> {
        let config = match place(user.as_deref(), config) {
            Ok(config) => config,
            Err(why) => return Ok(StateResult::bad(why)),
        };
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (key, fingerprint, enc) = (given(&key), given(&fingerprint), given(&enc));
        if is_dry_run() {
            match (&key, &fingerprint, &enc) {
                (Some(_), Some(_), _) => {
                    return Ok(StateResult::bad("Specify either \"key\" or \"fingerprint\", not both."));
                }
                (Some(_), _, None) => {
                    return Ok(StateResult::bad("Required argument \"enc\" if using \"key\" argument."));
                }
                _ => {}
            }
        }
        let file = match File::open(user.as_deref(), Some(&config)) {
            Ok(file) => file,
            Err(why) => return Ok(StateResult::bad(why)),
        };
        if is_dry_run() {
            let known = file.entries(&known_hosts::name(&name, port)?, kind.as_deref())?;
            return Ok(match known_hosts::check(&known, key.as_deref(), fingerprint.as_deref()) {
                "exists" => StateResult::good(format!("Host {name} is already in {config}")),
                "add" => would(format!("Key for {name} is set to be added to {config}")),
                _ => would(format!("Key for {name} is set to be updated in {config}")),
            });
        }
        let wanted = Wanted {
            asked: Asked {
                hostname: &name,
                enc: enc.as_deref(),
                port,
                hash: hash_known_hosts != Some(false),
                timeout: timeout.unwrap_or(5),
                fingerprint_hash_type: kind.as_deref(),
            },
            key: key.as_deref(),
            fingerprint: fingerprint.as_deref(),
        };
        let (old, new) = match wanted.set(file, || known_hosts::salt(get_random_u64))? {
            Set::Exists(_) => return Ok(StateResult::good(format!("{name} already exists in {config}"))),
            Set::Failed(why) => return Ok(StateResult::bad(why)),
            Set::Updated { old, new } => (old, new),
        };
        let first = new.first();
        let first_key = first.map(|entry| entry.key.clone()).unwrap_or_default();
        let comment = if key.is_some() {
            format!("{name}'s key saved to {config} (key: {first_key})")
        } else if fingerprint.is_some() {
            let fingerprint = first.and_then(|entry| entry.fingerprint.clone()).unwrap_or_default();
            format!("{name}'s key saved to {config} (fingerprint: {fingerprint})")
        } else if let Some(enc) = enc {
            format!("{name}'s {enc} key saved to {config} (key: {first_key})")
        } else {
            format!("{name}'s key(s) saved to {config}")
        };
        let changes = Value::dict([("old", known_hosts::value(&old)), ("new", known_hosts::value(&new))]);
        Ok(StateResult::changed(comment, changes))
    }

    fn absent(name: String, user: Option<String>, config: Option<String>) -> Result<StateResult, String> {
        let config = match place(user.as_deref(), config) {
            Ok(config) => config,
            Err(why) => return Ok(StateResult::bad(why)),
        };
        let file = match File::open(user.as_deref(), Some(&config)) {
            Ok(file) => file,
            // As in Salt, where the user may be made before.
            Err(_) if is_dry_run() => return Ok(would(format!("Key for {name} is set to be removed from {config}"))),
            Err(why) => return Ok(StateResult::bad(why)),
        };
        let host = known_hosts::name(&name, None)?;
        let known = file.entries(&host, None)?;
        if known.is_empty() {
            return Ok(StateResult::good("Host is already absent"));
        }
        if is_dry_run() {
            return Ok(would(format!("Key for {name} is set to be removed from {config}")));
        }
        let comment = file.forget(&host)?;
        let changes = Value::dict([("old", known_hosts::value(&known)), ("new", Value::None)]);
        Ok(StateResult::changed(comment, changes))
    }
}

/// The file that is meant.
fn place(user: Option<&str>, config: Option<String>) -> Result<String, String> {
    let config = config.filter(|config| !config.is_empty());
    match user.filter(|user| !user.is_empty()) {
        Some(_) => Ok(config.unwrap_or_else(|| ".ssh/known_hosts".into())),
        None => match config.unwrap_or_else(|| "/etc/ssh/ssh_known_hosts".into()) {
            config if config.starts_with('/') => Ok(config),
            _ => Err("If not specifying a \"user\", specify an absolute \"config\".".into()),
        },
    }
}

fn would(comment: String) -> StateResult {
    StateResult::would(comment, no_changes())
}

#[cfg(target_family = "wasm")]
export!(Module);
