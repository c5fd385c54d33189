//! What every module may import, and what standard modules may use beyond the defaults.

use brine_sandbox_wire::Limits;

/// What a standard module needs beyond the defaults for what it is for, where the owner has not said another limit of all.
pub(crate) fn standard_limits(module: &str, limits: &mut Limits) {
    /// Twice the largest file that comes from a master.
    const FILES: u64 = 1 << 30;
    if module == "cp" && limits.written == Limits::default().written {
        limits.written = FILES;
    }
}

/// Interfaces that every module may import. `*` stands for the rest of a name.
pub(crate) const ALWAYS: [&str; 11] = [
    "brine:host/log",
    "brine:host/job",
    "wasi:clocks/*",
    "wasi:random/*",
    "wasi:io/*",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-*",
];

/// Whether every module may import it.
pub fn always(interface: &str) -> bool {
    ALWAYS.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => interface.starts_with(start),
        None => interface == *pattern,
    })
}
