//! Bounds the size of requests to the broker. A request goes into a message and into the minion's memory, so its size
//! is checked before it is made. The broker checks the meaning of a request and not its size.

use brine_capabilities::{HostOp, Size};

/// Upper bound on the bytes of keys, names and paths.
const MAX_NAMES: usize = 64 << 10;

/// Upper bound on the bytes of a command's arguments and variables. Linux accepts 128 KiB for one of them, and whole
/// scripts are passed this way.
const MAX_COMMAND: usize = 256 << 10;

/// Upper bound on the bytes of content: a program's standard input, a body, a part of a file, arguments of a function.
const MAX_CONTENT: usize = 4 << 20;

/// Checks the size of a request.
///
/// # Errors
/// A sentence that says which part is too large.
pub fn check(op: &HostOp) -> Result<(), String> {
    let Size { names, command, content } = op.size();
    if names > MAX_NAMES {
        return Err(format!("{names} bytes are no key or name"));
    }
    if command > MAX_COMMAND {
        return Err(format!("a command of {command} bytes is over the limit of {} KiB", MAX_COMMAND >> 10));
    }
    if content > MAX_CONTENT {
        return Err(format!("{content} bytes are over the limit of {} MiB for one request", MAX_CONTENT >> 20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use brine_sandbox_wire::{ByteBuf, PolicyOp, ProcessOp, ProcessRun};

    use super::*;

    #[test]
    fn each_part_has_its_own_bound() {
        let stdin = |size| {
            let stdin = Some(ByteBuf::from(vec![0; size]));
            HostOp::Process(ProcessOp::Run(Box::new(ProcessRun { stdin, ..ProcessRun::default() })))
        };
        assert_eq!(check(&stdin(MAX_CONTENT)), Ok(()));
        assert_eq!(
            check(&stdin(MAX_CONTENT + 1)).unwrap_err(),
            "4194305 bytes are over the limit of 4 MiB for one request"
        );
        let argv = |count| {
            let argv = vec![String::new(); count];
            HostOp::Process(ProcessOp::Run(Box::new(ProcessRun { argv, ..ProcessRun::default() })))
        };
        assert_eq!(check(&argv(MAX_COMMAND / Size::NAME)), Ok(()));
        assert!(check(&argv(MAX_COMMAND / Size::NAME + 1)).unwrap_err().contains("over the limit of 256 KiB"));
        let name = |size| HostOp::Policy(PolicyOp::Show { name: "x".repeat(size) });
        assert_eq!(check(&name(MAX_NAMES)), Ok(()));
        assert_eq!(check(&name(MAX_NAMES + 1)).unwrap_err(), "65537 bytes are no key or name");
    }
}
