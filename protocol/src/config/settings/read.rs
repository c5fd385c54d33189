//! Converts values of the configuration to the types of settings.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::SettingKind;
use crate::value::{Value, ValueExt};

/// Environments and their folders, as `file_roots` has them.
pub type Folders = Vec<(String, Vec<String>)>;

/// A type of settings' values.
pub trait Typed: Sized {
    /// Converts a value of this kind. None if it does not fit. Relative paths are below `dir`.
    fn read(value: &Value, kind: SettingKind, dir: &Path) -> Option<Self>;
}

impl Typed for bool {
    fn read(value: &Value, kind: SettingKind, _: &Path) -> Option<Self> {
        if matches!(kind, SettingKind::Truth) { Some(value.truthy()) } else { value.as_bool() }
    }
}

macro_rules! integers {
    ($($type:ty),+) => {$(
        impl Typed for $type {
            fn read(value: &Value, kind: SettingKind, _: &Path) -> Option<Self> {
                let (min, max) = match kind {
                    SettingKind::Integer { min, max, .. } | SettingKind::Time { min, max, .. } => (min, max),
                    SettingKind::Port => (0, i64::from(u16::MAX)),
                    _ => return None,
                };
                let number = value.as_i64().filter(|number| (min..=max).contains(number))?;
                Self::try_from(number).ok()
            }
        }
    )+};
}

integers!(u16, u32, u64, usize, i64);

impl Typed for Duration {
    #[expect(clippy::cast_precision_loss, reason = "bounds are far below 2^53")]
    fn read(value: &Value, kind: SettingKind, _: &Path) -> Option<Self> {
        let SettingKind::Time { seconds, min, max, .. } = kind else { return None };
        let number = value.as_f64().filter(|number| (min as f64..=max as f64).contains(number))?;
        Self::try_from_secs_f64(number * seconds).ok()
    }
}

impl Typed for String {
    fn read(value: &Value, kind: SettingKind, _: &Path) -> Option<Self> {
        let text = scalar_text(value)?;
        match kind {
            SettingKind::Choice(words) if !words.contains(&text.as_str()) => None,
            _ => Some(text),
        }
    }
}

impl Typed for PathBuf {
    fn read(value: &Value, _: SettingKind, dir: &Path) -> Option<Self> {
        let text = value.text().filter(|text| !text.is_empty())?;
        // A log service is configured as a URL.
        Some(if text.contains("://") { Self::from(text) } else { dir.join(text) })
    }
}

impl Typed for Vec<String> {
    fn read(value: &Value, _: SettingKind, _: &Path) -> Option<Self> {
        texts(value)
    }
}

impl Typed for Folders {
    fn read(value: &Value, _: SettingKind, _: &Path) -> Option<Self> {
        let folders = |list: &Value| if list.is_nil() { Some(Vec::new()) } else { texts(list) };
        value.entries()?.iter().map(|(name, list)| Some((scalar_text(name)?, folders(list)?))).collect()
    }
}

/// Its reader checks the value.
impl Typed for Value {
    fn read(value: &Value, _: SettingKind, _: &Path) -> Option<Self> {
        Some(value.clone())
    }
}

pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(_) => value.text().map(str::to_owned),
        Value::Integer(_) | Value::F64(_) | Value::Boolean(_) => Some(value.python_str()),
        _ => None,
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(scalar_text).collect(),
        other => scalar_text(other).map(|text| vec![text]),
    }
}

/// Describes the values of this kind, as the end of "must be".
impl fmt::Display for SettingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |f: &mut fmt::Formatter<'_>, min: i64, max: i64| match max {
            i64::MAX => write!(f, ", {min} or more"),
            max => write!(f, " from {min} to {max}"),
        };
        match *self {
            Self::Boolean => f.write_str("true or false"),
            Self::Truth => f.write_str("true or false, or a value that Python takes for one"),
            Self::Integer { unit, min, max } => {
                f.write_str("a whole number")?;
                if !unit.is_empty() {
                    write!(f, " of {unit}")?;
                }
                range(f, min, max)
            }
            Self::Port => f.write_str("a port from 0 to 65535"),
            Self::Time { unit, min, max, .. } => {
                write!(f, "a number of {unit}")?;
                range(f, min, max)
            }
            Self::Size { min, max } => write!(f, "a size from {} to {}", binary(min), binary(max)),
            Self::Span => f.write_str("a time from 10ms to 24h"),
            Self::Text => f.write_str("text"),
            Self::Choice(words) => f.write_str(&words.join(", ")),
            Self::Path => f.write_str("a path"),
            Self::List => f.write_str("a list of texts"),
            Self::Folders => f.write_str("a map of names to lists of texts"),
            Self::Mapping => f.write_str("a mapping"),
            Self::Any => f.write_str("a value as documented"),
        }
    }
}

/// Writes bytes with the largest unit that leaves a whole number.
fn binary(bytes: u64) -> String {
    let units = [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}
