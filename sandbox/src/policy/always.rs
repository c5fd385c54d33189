//! Interfaces that every module may import, and limits that standard modules have beyond the defaults.

use brine_sandbox_wire::Limits;

/// Raises a standard module's limits to what its purpose needs, unless the owner has set another common limit.
pub(crate) fn standard_limits(module: &str, limits: &mut Limits) {
    /// Twice the size of the largest file that comes from a master.
    const FILES: u64 = 1 << 30;
    let common = Limits::default();
    if module == "cp" && limits.written == common.written {
        limits.written = FILES;
    }
    if module == "state" {
        // A run has many states, a compile reads many files, and a return has all results. Its functions all need it.
        fn raise<T: PartialEq + Copy>(limit: &mut T, common: T, to: T) {
            if *limit == common {
                *limit = to;
            }
        }
        raise(&mut limits.wall_ms, common.wall_ms, 3_600_000);
        raise(&mut limits.cpu_ms, common.cpu_ms, 300_000);
        raise(&mut limits.calls_cpu_ms, common.calls_cpu_ms, 3_600_000);
        raise(&mut limits.memory, common.memory, 256 << 20);
        raise(&mut limits.output, common.output, Limits::MAX_OUTPUT);
        raise(&mut limits.host_calls, common.host_calls, 100_000);
    }
}

/// Raises a state's limits to what states need, unless the owner has set another common limit: installing a package takes
/// minutes, and a tree of files has many. The run that it belongs to bounds its time.
pub(crate) fn state_limits(limits: &mut Limits) {
    let common = Limits::default();
    if limits.wall_ms == common.wall_ms {
        limits.wall_ms = 3_600_000;
    }
    if limits.host_calls == common.host_calls {
        limits.host_calls = 100_000;
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
