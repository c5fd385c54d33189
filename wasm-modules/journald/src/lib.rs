//! The beacon `journald`: entries of the systemd journal that have the fields of a service. journalctl reads the journal.
//!
//! - [`services`] what is looked for · [`entry`] an entry as Salt has it
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "journald",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod entry;
mod services;

use brine_guest::beacons::{self, Reading};
use brine_guest::host::log::{self, Level};
use brine_guest::program::Program;
use brine_guest::{Data, Value};

use services::Services;

/// Milliseconds that journalctl may take.
const PATIENCE: u64 = 20_000;
/// Entries asked for at once. Fewer, if the output is more than the host keeps.
const LINES: [usize; 3] = [1_000, 50, 1];
/// Events of one look; further entries wait for the next one.
const MAX_EVENTS: usize = 400;
/// Bytes of the entries of one look. A look tells 512 KiB.
const MAX_BYTES: usize = 300 << 10;

struct Module;

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("journald", &config, services::judge)
    }

    fn beacon(config: Data, state: Option<Vec<u8>>) -> Result<Reading, String> {
        let services = Services::read(&beacons::merged("journald", &config)?);
        let Some(Value::Text(cursor)) = beacons::kept(state)? else {
            let last = read(&["--lines=1".to_owned()])?;
            let cursor = last.lines().last().and_then(entry::cursor).unwrap_or_default();
            return Ok(Reading::keeping(Vec::new(), cursor.into()));
        };
        let matches = services.matches();
        if services.is_empty() {
            return Ok(Reading::keeping(Vec::new(), cursor.into()));
        }
        let mut failure = String::new();
        for lines in LINES {
            let mut arguments = vec![format!("--lines={lines}")];
            if !cursor.is_empty() {
                arguments.push(format!("--after-cursor={cursor}"));
            }
            arguments.extend(matches.iter().cloned());
            match read(&arguments) {
                Ok(text) => {
                    if text.lines().count() >= lines {
                        log::write(
                            Level::Warning,
                            &format!("the journal: of the new entries, the last {lines} are told"),
                        );
                    }
                    let (events, cursor) = told(&services, &text, cursor);
                    return Ok(Reading::keeping(events, cursor.into()));
                }
                Err(why) => failure = why,
            }
        }
        Err(failure)
    }
}

fn read(arguments: &[String]) -> Result<String, String> {
    let program = Program::new(["journalctl", "--output=json", "--no-pager", "--quiet"]);
    let output = program.args(arguments.iter().cloned()).timeout(PATIENCE).run()?;
    match output.timed_out {
        true => Err("journalctl takes too long".into()),
        false => output.ok(),
    }
}

/// The events of as many entries as one look may have, and where the last of these is.
fn told(services: &Services, text: &str, mut cursor: String) -> (Vec<Value>, String) {
    let (mut events, mut bytes) = (Vec::new(), 0);
    for line in text.lines() {
        let Some(entry) = entry::read(line) else { continue };
        let own = services.events(&entry);
        bytes += own.len() * line.len();
        if !events.is_empty() && (events.len() + own.len() > MAX_EVENTS || bytes > MAX_BYTES) {
            break;
        }
        events.extend(own);
        cursor = entry::cursor(line).unwrap_or(cursor);
    }
    (events, cursor)
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = r#"{"__CURSOR":"s=1;i=2","PRIORITY":"6","SYSLOG_IDENTIFIER":"sshd","MESSAGE":"Accepted","_PID":"77","_BOOT_ID":"0f1e2d3c4b5a69788796a5b4c3d2e1f0"}"#;

    fn services(fields: &[(&str, Value)]) -> Services {
        let fields = Value::dict(fields.iter().cloned());
        Services::read(&Value::dict([("services", Value::dict([("ssh", fields)]))]))
    }

    #[test]
    fn entries_are_told_with_salts_fields() {
        let services = services(&[("SYSLOG_IDENTIFIER", "sshd".into()), ("PRIORITY", 6_i64.into())]);
        assert_eq!(services.matches(), ["SYSLOG_IDENTIFIER=sshd", "PRIORITY=6"]);
        let text = format!("no JSON\n{ENTRY}\n");
        let (events, cursor) = told(&services, &text, "before".into());
        assert_eq!(cursor, "s=1;i=2");
        let [event] = events.as_slice() else { panic!("{events:?}") };
        for (key, value) in [
            ("tag", "ssh".into()),
            ("MESSAGE", "Accepted".into()),
            ("PRIORITY", Value::Int(6)),
            ("_PID", Value::Int(77)),
            ("_BOOT_ID", "UUID('0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0')".into()),
        ] {
            assert_eq!(event.get(key), Some(&value), "{key}");
        }
    }

    #[test]
    fn all_fields_have_to_fit() {
        for fields in [
            &[("SYSLOG_IDENTIFIER", "cron".into())][..],
            &[("PRIORITY", "6".into())],
            &[("PRIORITY", 5_i64.into()), ("MESSAGE", "Accepted".into())],
            &[("NOTHING", "x".into())],
        ] {
            assert!(told(&services(fields), ENTRY, String::new()).0.is_empty(), "{fields:?}");
        }
    }

    #[test]
    fn more_waits_for_the_next_look() {
        let line = |n: usize| ENTRY.replace("i=2", &format!("i={n}"));
        let text: Vec<String> = (0..1_000).map(line).collect();
        let services = services(&[("PRIORITY", 6_i64.into())]);
        let (events, cursor) = told(&services, &text.join("\n"), String::new());
        assert_eq!((events.len(), cursor.as_str()), (400, "s=1;i=399"));
        let long = ENTRY.replace("Accepted", &"x".repeat(4_000));
        let (events, _) = told(&services, &vec![long; 400].join("\n"), String::new());
        assert!(events.len() < 80 && events.len() > 50, "{}", events.len());
    }
}
