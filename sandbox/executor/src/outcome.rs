//! Builds the message of a failed call: one line for the operator that names the limit or the cause.

use brine_sandbox_wire::{FailKind, Limits, Outcome, Run};
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;

use crate::directories::Directories;
use crate::failure::{HostFailure, size};
use crate::guest::{Guest, MAX_HANDLES, MAX_RESOURCES};

/// Upper bound on the characters of a foreign error.
const MAX_REASON: usize = 400;

/// Upper bound on the characters of the broker's error. A refusal ends with the line of configuration that would allow
/// the operation, which must be complete.
const MAX_REFUSAL: usize = 4_000;

/// wasmtime's message when a call between guest and host exceeds its hostcall fuel. The type of this error is private.
const FUEL_EXHAUSTED: &str = "fuel allocated for hostcalls has been exhausted";

/// wasmtime's message when a guest exceeds its handles. This error has no type.
const HANDLES_EXHAUSTED: &str = "store handle limit exceeded";

/// Returns a failed call's outcome. In this module, `name` is always the function's full name.
#[must_use]
pub fn failed(kind: FailKind, message: String) -> Outcome {
    Outcome::Failed { kind, message, retcode: 1 }
}

/// Returns the outcome of a call that exceeded its wall clock limit.
#[must_use]
pub fn wall(name: &str, limits: &Limits) -> Outcome {
    let limit = duration(limits.wall_ms);
    failed(FailKind::Wall, format!("{name} was stopped: its wall clock limit of {limit} is used up"))
}

/// Returns the outcome of a call that exceeded its CPU limit.
#[must_use]
pub fn cpu(name: &str, limits: &Limits) -> Outcome {
    let limit = duration(limits.cpu_ms);
    failed(FailKind::Cpu, format!("{name} was stopped: its CPU limit of {limit} is used up"))
}

/// Returns the outcome of a call that the minion killed.
#[must_use]
pub fn killed(name: &str, reason: &str) -> Outcome {
    failed(FailKind::Killed, format!("{name} was stopped: {}", brine_text::short(reason, MAX_REASON)))
}

/// Returns the outcome of a call whose return is too large.
#[must_use]
pub fn output(name: &str, limits: &Limits) -> Outcome {
    let limit = size(limits.output);
    failed(FailKind::Output, format!("{name} was stopped: its return is larger than its output limit of {limit}"))
}

/// Returns the outcome for an error of the engine. The error's chain and the guest's budget reveal the cause.
#[must_use]
pub fn engine(name: &str, error: &wasmtime::Error, guest: &Guest, limits: &Limits) -> Outcome {
    if let Some(failure) = error.downcast_ref::<HostFailure>() {
        let kind = if let HostFailure::Planned(_) = failure { FailKind::Planned } else { FailKind::Host };
        return failed(kind, format!("{name} was stopped: {}", brine_text::short(&failure.to_string(), MAX_REFUSAL)));
    }
    if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        let last = last_line(guest);
        return failed(FailKind::Trap, format!("{name} exited with status {} and returned nothing{last}", exit.0));
    }
    if guest.memory.refused() {
        let limit = size(limits.memory);
        return failed(FailKind::Memory, format!("{name} was stopped: its memory limit of {limit} is used up"));
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        let last = last_line(guest);
        return failed(FailKind::Trap, format!("{name} trapped: {}{last}", reason(*trap)));
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        let line = format!("{name} was stopped: its limit of {MAX_RESOURCES} open handles is used up");
        return failed(FailKind::Host, line);
    }
    let root = error.root_cause().to_string();
    if root.contains(HANDLES_EXHAUSTED) {
        let line = format!("{name} was stopped: its limit of {MAX_HANDLES} handles is used up");
        return failed(FailKind::Host, line);
    }
    if root.contains(FUEL_EXHAUSTED) {
        let limit = size(limits.host_bytes.max(limits.output));
        let line = format!("{name} was stopped: it hands over more than its limit of {limit} at once");
        return failed(FailKind::Output, line);
    }
    failed(FailKind::Trap, format!("{name} cannot go on: {}", brine_text::short(&root, MAX_REASON)))
}

/// Extends a function's error message: if the message or the call's arguments name a granted directory that is left
/// out, the result says why.
#[must_use]
pub fn with_left_out(mut message: String, directories: &Directories, run: &Run) -> String {
    let named = |text: &[u8], path: &str| text.windows(path.len().max(1)).any(|part| part == path.as_bytes());
    let about = |path: &str, message: &str| {
        named(message.as_bytes(), path) || named(&run.args, path) || named(&run.kwargs, path)
    };
    let left_out = directories.left_out().find(|(path, why)| about(path, &message) && !message.contains(why));
    if let Some((path, why)) = left_out {
        let end = message.trim_end_matches(['.', ' ', '\n']).len();
        message.truncate(end);
        message.push_str(&format!("; {} {}", brine_text::short(path, MAX_REASON), brine_text::short(&why, MAX_REASON)));
    }
    message
}

fn reason(trap: Trap) -> String {
    match trap {
        Trap::StackOverflow => "stack overflow".to_owned(),
        // Languages that place their stack below their data get this trap when the stack is full.
        Trap::MemoryOutOfBounds => "out of bounds memory access (its own stack may be used up)".to_owned(),
        Trap::UnreachableCodeReached => "it gave up (`unreachable` was executed)".to_owned(),
        other => {
            let text = other.to_string();
            text.strip_prefix("wasm trap: ").unwrap_or(&text).to_owned()
        }
    }
}

/// Returns the last logged line, because a panic logs its message last.
fn last_line(guest: &Guest) -> String {
    match guest.line.last_line() {
        line if line.is_empty() => String::new(),
        line => format!("; its last log line: {line}"),
    }
}

/// Formats a duration: `60 s`, `1.5 s`, `200 ms`.
#[must_use]
pub fn duration(ms: u64) -> String {
    match ms {
        _ if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        _ if ms > 1_000 => format!("{}.{} s", ms / 1_000, format!("{:03}", ms % 1_000).trim_end_matches('0')),
        _ => format!("{ms} ms"),
    }
}
