//! `brine:host/log`: lines for the minion's log, within the job's budget.

use brine_sandbox_wire::LogLevel;

use super::bindings::brine::host::log::{Host, Level};
use crate::guest::Guest;

impl Host for Guest {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            Level::Trace => LogLevel::Trace,
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warning => LogLevel::Warning,
            Level::Error => LogLevel::Error,
        };
        self.line.log(level, &message);
        Ok(())
    }
}
