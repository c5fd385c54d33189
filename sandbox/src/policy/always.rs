//! Interfaces that every module may import, and limits that standard modules have beyond the defaults.

use brine_sandbox_wire::Limits;

/// Raises a standard module's limits to what its purpose needs, unless the owner has set another common limit.
pub(crate) fn standard_limits(module: &str, limits: &mut Limits) {
    /// Twice the size of the largest file that comes from a master.
    const FILES: u64 = 1 << 30;
    if module == "cp" && limits.written == Limits::default().written {
        limits.written = FILES;
    }
}

/// Interfaces that every module may import. A trailing `*` matches any rest.
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

/// Checks whether every module may import the interface.
pub fn always(interface: &str) -> bool {
    ALWAYS.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => interface.starts_with(start),
        None => interface == *pattern,
    })
}
