//! `limits` and `compile`.

use std::time::Duration;

use rmpv::Value;

use super::values::{count, entries, milliseconds, size};
use super::{Result, error};
use crate::policy::LimitChanges;
use crate::{CompileLimits, Limits};

pub(super) fn limits(path: &str, value: &Value) -> Result<LimitChanges> {
    let mut limits = LimitChanges::default();
    for (key, value) in entries(path, value)? {
        let path = format!("{path}:{key}");
        let number = |most| count(&path, value, 0..=most).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        match key {
            // A module needs at least one page of memory, and a 32-bit memory ends at 4 GiB.
            "memory" => limits.memory = Some(size(&path, value, 64 << 10..=4 << 30)?),
            "wall" => limits.wall_ms = Some(milliseconds(&path, value)?),
            "cpu" => limits.cpu_ms = Some(milliseconds(&path, value)?),
            "calls_cpu" => limits.calls_cpu_ms = Some(milliseconds(&path, value)?),
            "output" => limits.output = Some(size(&path, value, 1 << 10..=Limits::MAX_OUTPUT)?),
            "log" => limits.log = Some(size(&path, value, 0..=1 << 30)?),
            "log_lines" => limits.log_lines = Some(number(10_000_000)?),
            "host_bytes" => limits.host_bytes = Some(size(&path, value, 64 << 10..=1 << 30)?),
            "host_calls" => limits.host_calls = Some(number(1_000_000_000)?),
            "written" => limits.written = Some(size(&path, value, 0..=1 << 50)?),
            "new_files" => limits.new_files = Some(number(1_000_000_000)?.into()),
            _ => {
                let known = "memory, wall, cpu, calls_cpu, output, log, log_lines, host_bytes, host_calls, written and new_files";
                return error(&path, format!("there is no such limit; there are {known}"));
            }
        }
    }
    Ok(limits)
}

pub(super) fn compile(path: &str, value: &Value, limits: &mut CompileLimits) -> Result<()> {
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
