//! `error.error`: fails as its arguments say.

use brine_protocol::value::empty_map;

use super::function::{Function, Outcome, Run, functions};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Fails with this exception, to try what happens then; without a name it does not.
    "error.error(name=None, message='')" => |run| async move { raise(&run, "runner") },
};

/// Python's built-in exceptions that can be tried; Salt's own follow.
const BUILT_IN: [&str; 18] = [
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "EOFError",
    "Exception",
    "ImportError",
    "IndexError",
    "KeyError",
    "LookupError",
    "MemoryError",
    "NameError",
    "NotImplementedError",
    "OSError",
    "PermissionError",
    "RuntimeError",
    "TypeError",
    "ValueError",
    "ZeroDivisionError",
];
const SALTS: [&str; 17] = [
    "AuthenticationError",
    "AuthorizationError",
    "CommandExecutionError",
    "CommandNotFoundError",
    "EauthAuthenticationError",
    "FileserverConfigError",
    "JobNotFound",
    "MinionError",
    "SaltCacheError",
    "SaltClientError",
    "SaltClientTimeout",
    "SaltException",
    "SaltInvocationError",
    "SaltMasterError",
    "SaltReqTimeoutError",
    "SaltSystemExit",
    "TokenAuthenticationError",
];

/// Returns Salt's text for an exception, without a traceback.
pub(super) fn raise(run: &Run, kind: &str) -> Outcome {
    let Some(name) = run.find_text("name") else { return Ok(empty_map()) };
    let message = run.text("message");
    // As in Salt's `raise_error`, an unknown name becomes a SaltException.
    let name = match name.as_str() {
        "" => "Exception".to_owned(),
        name if BUILT_IN.contains(&name) => name.to_owned(),
        name if SALTS.contains(&name) => format!("salt.exceptions.{name}"),
        _ => "salt.exceptions.SaltException".to_owned(),
    };
    // A TypeError, and its subclass in Salt, is shown as wrong arguments.
    if matches!(name.as_str(), "TypeError" | "salt.exceptions.SaltInvocationError") {
        return Err(run.wrong(&message));
    }
    let end = if message.is_empty() { String::new() } else { format!(": {message}") };
    Err(format!("Exception occurred in {kind} error.error: {name}{end}\n").into())
}
