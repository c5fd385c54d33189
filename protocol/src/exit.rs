//! Exit codes of Salt's programs (§11.2).

/// Everything went well.
pub const OK: i32 = 0;
/// Something failed.
pub const GENERIC: i32 = 1;
/// A state failed, or no minion returned.
pub const STATE_FAILURE: i32 = 2;
/// An option was misused, or the master's fingerprint is not the configured one.
pub const OPTION: i32 = 42;
/// The command line or the configuration is wrong.
pub const USAGE: i32 = 64;
/// The user to run as does not exist.
pub const NO_USER: i32 = 67;
/// A service that is needed is not there.
pub const UNAVAILABLE: i32 = 69;
/// An internal error.
pub const SOFTWARE: i32 = 70;
/// An output file cannot be made.
pub const CANT_CREATE: i32 = 73;
/// Failed for now; trying again may help.
pub const TEMPORARY: i32 = 75;
/// Not permitted; a minion also exits with it when the master rejected its key (§3.4).
pub const NO_PERMISSION: i32 = 77;
/// `salt-call` was asked for a function that does not exist.
pub const NO_FUNCTION: i32 = 255;
