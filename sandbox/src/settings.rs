//! The `sandbox:` part of the minion's configuration. It decides what code may do on this host, so a key that is not known
//! or a value that does not fit is an error, never a default.

use std::time::Duration;

use rmpv::Value;

use crate::policy::{Capability, Entry, NOT_YET};
use crate::{CompileLimits, Limits, ModuleName, Policy};

/// Jobs at the same time on a machine with few cores: most wait rather than compute, and an idle instance is 40 KB.
const MIN_RUNNING: usize = 16;
/// And with many: four a core.
const RUNNING_PER_CORE: usize = 4;
/// Jobs that wait: a burst of a large highstate, and a bound to what a master can pile up.
const MAX_QUEUED: usize = 1_000;

/// `sandbox:` of the minion's configuration, checked. All of it has defaults.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `limits`
    pub limits: Limits,
    /// `modules`, `replace_standard`
    pub policy: Policy,
    /// `max_running`
    pub max_running: usize,
    /// `max_queued`
    pub max_queued: usize,
    /// `compile`
    pub compile: CompileLimits,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            limits: Limits::default(),
            policy: Policy::default(),
            max_running: MIN_RUNNING.max(RUNNING_PER_CORE * cores),
            max_queued: MAX_QUEUED,
            compile: CompileLimits::default(),
        }
    }
}

/// A setting that cannot be used: which, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {why}")]
pub struct SettingsError {
    /// Its way in the configuration: `sandbox:limits:memory`.
    pub key: String,
    /// One line.
    pub why: String,
}

type Result<T> = std::result::Result<T, SettingsError>;

fn error<T>(key: &str, why: impl Into<String>) -> Result<T> {
    Err(SettingsError { key: key.to_owned(), why: why.into() })
}

impl Settings {
    /// Reads the value of `sandbox`; nil where there is none.
    pub fn read(value: &Value) -> Result<Self> {
        let mut settings = Self::default();
        for (key, value) in entries("sandbox", value)? {
            let path = format!("sandbox:{key}");
            match key {
                "limits" => limits(&path, value, &mut settings.limits)?,
                "compile" => compile(&path, value, &mut settings.compile)?,
                "modules" => modules(&path, value, &mut settings.policy)?,
                "replace_standard" => {
                    for item in list(&path, value)? {
                        settings.policy.replace_standard.insert(name(&path, item)?);
                    }
                }
                "max_running" => settings.max_running = count(&path, value, 1..=1_000)?,
                "max_queued" => settings.max_queued = count(&path, value, 0..=1_000_000)?,
                _ => {
                    let known = "limits, compile, modules, replace_standard, max_running and max_queued";
                    return error(&path, format!("there is no such setting; there are {known}"));
                }
            }
        }
        Ok(settings)
    }
}

fn limits(path: &str, value: &Value, limits: &mut Limits) -> Result<()> {
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        match key {
            // Below a page there is no module; above 4 GiB no 32-bit memory.
            "memory" => limits.memory = size(&path, value, 64 << 10..=4 << 30)?,
            "wall" => limits.wall_ms = milliseconds(&path, value)?,
            "output" => limits.output = size(&path, value, 1 << 10..=Limits::MAX_OUTPUT)?,
            "log" => limits.log = size(&path, value, 0..=1 << 30)?,
            "host_bytes" => limits.host_bytes = size(&path, value, 64 << 10..=1 << 30)?,
            "host_calls" => {
                limits.host_calls = u32::try_from(count(&path, value, 0..=1_000_000_000)?).unwrap_or(u32::MAX);
            }
            _ => {
                return error(
                    &path,
                    "there is no such limit; there are memory, wall, output, log, host_bytes and host_calls",
                );
            }
        }
    }
    Ok(())
}

fn compile(path: &str, value: &Value, limits: &mut CompileLimits) -> Result<()> {
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        match key {
            "module" => limits.module = size(&path, value, 1 << 10..=1 << 30)?,
            "memory" => limits.memory = size(&path, value, 64 << 20..=64 << 30)?,
            "cpu" => limits.cpu_s = milliseconds(&path, value)?.div_ceil(1_000),
            "file" => limits.file = size(&path, value, 1 << 20..=4 << 30)?,
            "wall" => limits.wall = Duration::from_millis(milliseconds(&path, value)?),
            _ => return error(&path, "there is no such limit; there are module, memory, cpu, file and wall"),
        }
    }
    Ok(())
}

fn modules(path: &str, value: &Value, policy: &mut Policy) -> Result<()> {
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        let entry = entry(&path, value)?;
        if key == "*" {
            policy.every = entry;
        } else {
            policy.modules.insert(name(&path, &Value::from(key))?, entry);
        }
    }
    Ok(())
}

fn entry(path: &str, value: &Value) -> Result<Entry> {
    let mut entry = Entry::default();
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        if let Some(capability) = Capability::ALL.into_iter().find(|capability| capability.key() == key) {
            match value.as_bool() {
                Some(granted) => entry.says.insert(capability, granted),
                None => return error(&path, "true or false is expected"),
            };
        } else if key == "sha256" {
            match value.as_str().unwrap_or_default().parse() {
                Ok(hash) => entry.sha256 = Some(hash),
                Err(_) => return error(&path, "64 hex digits are expected, in quotes if all of them are decimal"),
            }
        } else if key == "signed_by" || NOT_YET.iter().any(|(not_yet, _)| *not_yet == key) {
            return error(&path, "this version of Brine does not know this grant yet");
        } else {
            let known: Vec<&str> = Capability::ALL.iter().map(|capability| capability.key()).collect();
            return error(&path, format!("there is no such grant; there are {} and sha256", known.join(", ")));
        }
    }
    Ok(entry)
}

/// The entries of a map with text keys; none for nil.
fn entries<'a>(path: &str, value: &'a Value) -> Result<Vec<(&'a str, &'a Value)>> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::Map(entries) => entries
            .iter()
            .map(|(key, value)| match key.as_str() {
                Some(key) => Ok((key, value)),
                None => error(path, format!("the key {key} is not text")),
            })
            .collect(),
        other => error(path, format!("a dict is expected, not {other}")),
    }
}

fn list<'a>(path: &str, value: &'a Value) -> Result<&'a [Value]> {
    match value {
        Value::Nil => Ok(&[]),
        Value::Array(items) => Ok(items),
        _ => error(path, "a list is expected"),
    }
}

fn name(path: &str, value: &Value) -> Result<ModuleName> {
    let text = value.as_str().unwrap_or_default();
    text.parse().or_else(|bad: crate::BadName| error(path, bad.to_string()))
}

fn count(path: &str, value: &Value, range: std::ops::RangeInclusive<usize>) -> Result<usize> {
    match value.as_u64().and_then(|n| usize::try_from(n).ok()) {
        Some(n) if range.contains(&n) => Ok(n),
        _ => error(path, format!("a number from {} to {} is expected, not {value}", range.start(), range.end())),
    }
}

/// A number with a unit; without one it counts `units[0]`'s.
fn quantity(value: &Value, units: &[(&str, f64)]) -> Option<f64> {
    if let Some(number) = value.as_f64() {
        return Some(number * units[0].1);
    }
    let text = value.as_str()?.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    Some(number.parse::<f64>().ok()? * factor)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "checked by the range"
)]
fn size(path: &str, value: &Value, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
    const UNITS: [(&str, f64); 10] = [
        ("", 1.0),
        ("B", 1.0),
        ("K", 1024.0),
        ("KB", 1e3),
        ("KiB", 1024.0),
        ("M", 1048576.0),
        ("MB", 1e6),
        ("MiB", 1048576.0),
        ("G", 1073741824.0),
        ("GiB", 1073741824.0),
    ];
    match quantity(value, &UNITS) {
        Some(bytes) if bytes >= *range.start() as f64 && bytes <= *range.end() as f64 => Ok(bytes as u64),
        Some(_) => error(path, format!("{value} is not between {} and {} bytes", range.start(), range.end())),
        None => error(path, format!("a size as in 64MiB is expected, not {value}")),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked by the range")]
fn milliseconds(path: &str, value: &Value) -> Result<u64> {
    const UNITS: [(&str, f64); 5] = [("", 1e3), ("s", 1e3), ("ms", 1.0), ("m", 60e3), ("h", 3600e3)];
    const DAY: f64 = 24.0 * 3600e3;
    match quantity(value, &UNITS) {
        Some(ms) if (10.0..=DAY).contains(&ms) => Ok(ms as u64),
        Some(_) => error(path, format!("{value} is not between 10ms and 24h")),
        None => error(path, format!("a time as in 60s is expected, not {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, Value)]) -> Value {
        Value::Map(entries.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect())
    }

    fn fails(value: &Value, expect: &str) {
        assert_eq!(Settings::read(value).unwrap_err().to_string(), expect);
    }

    #[test]
    fn defaults() {
        let settings = Settings::read(&Value::Nil).unwrap();
        assert_eq!(settings.limits, Limits::default());
        assert_eq!(settings.policy, Policy::default());
    }

    #[test]
    fn limits() {
        let limits = map(&[
            ("memory", "128MiB".into()),
            ("wall", "1.5s".into()),
            ("output", Value::from(2048)),
            ("log", "1 K".into()),
        ]);
        let settings = Settings::read(&map(&[("limits", limits), ("max_running", 3.into())])).unwrap();
        assert_eq!((settings.limits.memory, settings.limits.wall_ms), (128 << 20, 1_500));
        assert_eq!((settings.limits.output, settings.limits.log, settings.max_running), (2048, 1024, 3));
        let bad = |key: &str, value: Value| map(&[("limits", map(&[(key, value)]))]);
        fails(&bad("memory", "1".into()), "sandbox:limits:memory: \"1\" is not between 65536 and 4294967296 bytes");
        fails(&bad("memory", "lots".into()), "sandbox:limits:memory: a size as in 64MiB is expected, not \"lots\"");
        fails(&bad("memory", (-5).into()), "sandbox:limits:memory: -5 is not between 65536 and 4294967296 bytes");
        fails(&bad("wall", 0.into()), "sandbox:limits:wall: 0 is not between 10ms and 24h");
        fails(&bad("wall", f64::NAN.into()), "sandbox:limits:wall: NaN is not between 10ms and 24h");
        fails(
            &bad("time", 1.into()),
            "sandbox:limits:time: there is no such limit; there are memory, wall, output, log, host_bytes and host_calls",
        );
        fails(&map(&[("limits", 5.into())]), "sandbox:limits: a dict is expected, not 5");
    }

    #[test]
    fn grants() {
        let hash = "0a".repeat(32);
        let deploy = map(&[("sha256", hash.as_str().into()), ("jobs", true.into()), ("grains", false.into())]);
        let settings = Settings::read(&map(&[
            ("modules", map(&[("deploy", deploy), ("*", map(&[("config", false.into())]))])),
            ("replace_standard", Value::Array(vec!["test".into()])),
        ]))
        .unwrap();
        let entry = &settings.policy.modules["deploy"];
        assert_eq!(entry.sha256.unwrap().to_string(), hash);
        assert_eq!(entry.says, [(Capability::Grains, false), (Capability::Jobs, true)].into());
        assert_eq!(settings.policy.every.says, [(Capability::Config, false)].into());
        assert!(settings.policy.replace_standard.contains("test"));
        let bad = |key: &str, value: Value| map(&[("modules", map(&[("x", map(&[(key, value)]))]))]);
        for (key, value) in [("filesystem", Value::Nil), ("process", "any".into()), ("signed_by", Value::Nil)] {
            fails(
                &bad(key, value),
                &format!("sandbox:modules:x:{key}: this version of Brine does not know this grant yet"),
            );
        }
        fails(&bad("jobs", "yes".into()), "sandbox:modules:x:jobs: true or false is expected");
        fails(
            &bad("job", true.into()),
            "sandbox:modules:x:job: there is no such grant; there are grains, config, modules, jobs and sha256",
        );
        fails(
            &bad("sha256", "1234".into()),
            "sandbox:modules:x:sha256: 64 hex digits are expected, in quotes if all of them are decimal",
        );
        let bad = map(&[("modules", map(&[("../x", Value::Nil)]))]);
        assert!(Settings::read(&bad).unwrap_err().to_string().starts_with("sandbox:modules:../x: \"../x\" cannot be"));
        fails(
            &map(&[("moduls", Value::Nil)]),
            "sandbox:moduls: there is no such setting; there are limits, compile, modules, replace_standard, max_running and \
             max_queued",
        );
    }
}
