//! Exit codes of Salt's programs (§11.2).

/// Success.
pub const OK: i32 = 0;
/// A failure.
pub const GENERIC: i32 = 1;
/// A state failed, or no minion returned.
pub const STATE_FAILURE: i32 = 2;
/// An option was misused, or the master's fingerprint differs from the configured one.
pub const OPTION: i32 = 42;
/// The command line or the configuration is wrong.
pub const USAGE: i32 = 64;
/// The configured user does not exist.
pub const NO_USER: i32 = 67;
/// A required service is not available.
pub const UNAVAILABLE: i32 = 69;
/// An internal error.
pub const SOFTWARE: i32 = 70;
/// An output file cannot be made.
pub const CANT_CREATE: i32 = 73;
/// A temporary failure; another try may help.
pub const TEMPORARY: i32 = 75;
/// Not permitted; a minion also exits with it when the master rejected its key (§3.4).
pub const NO_PERMISSION: i32 = 77;
/// `salt-call` did not find the function.
pub const NO_FUNCTION: i32 = 255;
