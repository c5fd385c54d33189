//! `recordings`.

use rmpv::Value;

use super::values::{entries, list, size};
use super::{Result, error};

/// Bounds on recordings of calls, and what they must not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingSettings {
    /// `size`: bytes of one recording.
    pub size: u64,
    /// `total`: bytes of all recordings together.
    pub total: u64,
    /// `secrets`: names of variables, arguments and HTTP headers whose values are replaced, in lower case. `*` stands for any
    /// text.
    pub secrets: Vec<String>,
}

impl Default for RecordingSettings {
    /// 8 MiB hold what ordinary calls are told. The names are those that people give to secrets.
    fn default() -> Self {
        let secrets =
            ["*pass*", "*secret*", "*token*", "*_key", "*-key", "authorization", "proxy-authorization", "cookie"];
        Self { size: 8 << 20, total: 64 << 20, secrets: secrets.map(str::to_owned).to_vec() }
    }
}

pub(super) fn read(path: &str, value: &Value, settings: &mut RecordingSettings) -> Result<()> {
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        match key {
            "size" => settings.size = size(&path, value, 4 << 10..=16 << 20)?,
            "total" => settings.total = size(&path, value, 64 << 10..=1 << 40)?,
            "secrets" => {
                let names = list(&path, value, |_, _| Ok(()))?;
                settings.secrets = names.iter().map(|name| name.to_lowercase()).collect();
            }
            _ => return error(&path, "there is no such setting; there are size, total and secrets"),
        }
    }
    Ok(())
}
