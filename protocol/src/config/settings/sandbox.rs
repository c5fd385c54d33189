//! `sandbox` in a minion's configuration: what modules may do and use. The sandbox checks these values itself; a test compares.

use super::*;

settings! { AREA = "Sandbox (see docs/sandbox.md)";
    /// What modules may do on this host, and what they may use; on a master, its engines.
    SANDBOX: Value = mapping("sandbox", both("{}")).live();
    /// Modules, functions (`cmd.run`) or `*`, and for each its grants, signatures, `user`, `limits`, `max_running` and `max_queued`.
    SANDBOX_MODULES: Value = mapping("sandbox:modules", minion("{}")).live();
    /// `modules` for the jobs of single masters, by the fingerprints of their keys.
    SANDBOX_MASTERS: Value = mapping("sandbox:masters", minion("{}")).live();
    /// Named blocks of grants for Brine's own modules that this host takes over: `observe`, `files`, `services`, `packages`, `states`, `salt` or the owner's.
    SANDBOX_PROFILES: Value = any("sandbox:profiles", minion("[]")).live();
    /// Folder of the owner's profiles, one file `NAME.yaml` each; without it, `profiles.d` beside the configuration file.
    SANDBOX_PROFILES_DIR: Value = any("sandbox:profiles_dir", minion(NONE)).live();
    /// Standard modules that an installed module may replace.
    SANDBOX_REPLACE_STANDARD: Value = any("sandbox:replace_standard", minion("[]")).live();
    /// Folder of the public keys that may sign modules; without it, `module_keys` beside the configuration file.
    SANDBOX_KEYS: Value = any("sandbox:keys", minion(NONE)).live();
    /// Keys (`keys`) and contents (`sha256`) that are not trusted any more, wherever they are named.
    SANDBOX_REVOKED: Value = mapping("sandbox:revoked", minion("{}")).live();
    /// User that modules run as; without it, the sandbox's own where the minion is root.
    SANDBOX_USER: Value = any("sandbox:user", minion(NONE));
    /// Refuse to run modules where the kernel lacks a part of the second wall.
    SANDBOX_REQUIRE_SECOND_WALL: Value = setting("sandbox:require_second_wall", minion("false"), SettingKind::Boolean);
    /// Time after which a process that runs modules ends when it has nothing to do.
    SANDBOX_EXECUTOR_IDLE: Value = span("sandbox:executor_idle", "60s");
    /// Jobs that compute at a time; without it 16, or four for each core where that is more. In an entry of `modules`: of that module.
    SANDBOX_MAX_RUNNING: Value = count("sandbox:max_running", NONE, 1..=1_000);
    /// Jobs that began and wait for something.
    SANDBOX_MAX_WAITING: Value = count("sandbox:max_waiting", "256", 0..=2_000);
    /// Jobs that wait to begin. In an entry of `modules`: of that module.
    SANDBOX_MAX_QUEUED: Value = count("sandbox:max_queued", "1000", 0..=1_000_000);
    /// Memory of all modules together; without it, half of the host's or of the minion's control group.
    SANDBOX_TOTAL_MEMORY: Value = size("sandbox:total_memory", NONE, 64 << 20..=1 << 44);
    /// What one call may use. An entry of `modules` may have its own `limits`.
    SANDBOX_LIMITS: Value = mapping("sandbox:limits", minion("{}")).live();
    /// Memory.
    SANDBOX_LIMITS_MEMORY: Value = size("sandbox:limits:memory", "64MiB", 64 << 10..=4 << 30).live();
    /// Time by the clock.
    SANDBOX_LIMITS_WALL: Value = span("sandbox:limits:wall", "60s").live();
    /// Time on a processor.
    SANDBOX_LIMITS_CPU: Value = span("sandbox:limits:cpu", "30s").live();
    /// Time on a processor of all functions together that one call calls, directly and through others.
    SANDBOX_LIMITS_CALLS_CPU: Value = span("sandbox:limits:calls_cpu", "5m").live();
    /// Size of the result.
    SANDBOX_LIMITS_OUTPUT: Value = size("sandbox:limits:output", "4MiB", 1 << 10..=(32 << 20) - (64 << 10)).live();
    /// Size of the log.
    SANDBOX_LIMITS_LOG: Value = size("sandbox:limits:log", "64KiB", 0..=1 << 30).live();
    /// Lines of the log.
    SANDBOX_LIMITS_LOG_LINES: Value = count("sandbox:limits:log_lines", "1000", 0..=10_000_000).live();
    /// Size of all that is passed between module and host.
    SANDBOX_LIMITS_HOST_BYTES: Value = size("sandbox:limits:host_bytes", "16MiB", 64 << 10..=1 << 30).live();
    /// Calls to the host.
    SANDBOX_LIMITS_HOST_CALLS: Value = count("sandbox:limits:host_calls", "10000", 0..=1_000_000_000).live();
    /// Size of all that is written to granted directories.
    SANDBOX_LIMITS_WRITTEN: Value = size("sandbox:limits:written", "256MiB", 0..=1 << 50).live();
    /// Files and folders made in granted directories.
    SANDBOX_LIMITS_NEW_FILES: Value = count("sandbox:limits:new_files", "10000", 0..=1_000_000_000).live();
    /// Whether the last 20 jobs of each refusal are kept for `sandbox.suggest`, and not one: true, or a list of modules.
    SANDBOX_LEARN: Value = any("sandbox:learn", minion("False"));
    /// What the event `salt/minion/ID/sandbox/refused` tells the master: true, the functions and jobs; full, also what was wanted; or false.
    SANDBOX_TELL_REFUSALS: Value = any("sandbox:tell_refusals", minion("True"));
    /// Recordings of calls, which `record` in an entry of `modules` switches on.
    SANDBOX_RECORDINGS: Value = mapping("sandbox:recordings", minion("{}"));
    /// Size of one recording. A call that asks the host for more goes on, and its recording ends.
    SANDBOX_RECORDINGS_SIZE: Value = size("sandbox:recordings:size", "8MiB", 4 << 10..=16 << 20);
    /// Size of all recordings together; the oldest make room.
    SANDBOX_RECORDINGS_TOTAL: Value = size("sandbox:recordings:total", "64MiB", 64 << 10..=1 << 40);
    /// Names of variables, arguments and HTTP headers whose values are replaced in recordings; `*` stands for any text.
    SANDBOX_RECORDINGS_SECRETS: Value = any("sandbox:recordings:secrets", minion("['*pass*', '*secret*', '*token*', '*_key', '*-key', authorization, proxy-authorization, cookie]"));
    /// What the compiler may use for one module.
    SANDBOX_COMPILE: Value = mapping("sandbox:compile", minion("{}"));
    /// Size of the module.
    SANDBOX_COMPILE_MODULE: Value = size("sandbox:compile:module", "32MiB", 1 << 10..=1 << 30);
    /// Memory of the compiler.
    SANDBOX_COMPILE_MEMORY: Value = size("sandbox:compile:memory", "1GiB", 64 << 20..=64 << 30);
    /// Time on a processor.
    SANDBOX_COMPILE_CPU: Value = span("sandbox:compile:cpu", "60s");
    /// Size of the compiled code.
    SANDBOX_COMPILE_FILE: Value = size("sandbox:compile:file", "128MiB", 1 << 20..=4 << 30);
    /// Time by the clock.
    SANDBOX_COMPILE_WALL: Value = span("sandbox:compile:wall", "5m");
}

const fn count(name: &'static str, default: &'static str, range: RangeInclusive<i64>) -> Setting<Value> {
    integer(name, minion(default), "", range)
}

const fn size(name: &'static str, default: &'static str, range: RangeInclusive<u64>) -> Setting<Value> {
    setting(name, minion(default), SettingKind::Size { min: *range.start(), max: *range.end() })
}

const fn span(name: &'static str, default: &'static str) -> Setting<Value> {
    setting(name, minion(default), SettingKind::Span)
}
