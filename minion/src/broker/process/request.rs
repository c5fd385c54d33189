//! Checks a request: its bounds, and its grant for a second time.
//!
//! The sandbox has compared the request with the policy already. The comparisons here share no code with that check, so
//! that one mistake alone cannot run a program that was not granted.

use std::ffi::OsString;
use std::path::{Component, Path};
use std::time::Duration;

use brine_sandbox::{Grants, HostError, Names, ProcessRun};

/// Upper bounds on the number of arguments and on the bytes of one and of all of them. The limits of Linux are the same
/// for one argument, and twice as high for all arguments with the usual stack.
const MAX_ARGS: usize = 10_000;
const MAX_ARG: usize = 128 * 1024 - 1;
const MAX_ARGS_BYTES: usize = 1024 * 1024;
/// Upper bounds on the number of variables and on the bytes of all of them.
const MAX_VARIABLES: usize = 1_000;
const MAX_ENV_BYTES: usize = 512 * 1024;
/// Upper bound on the bytes of input, which must fit the memory of a module.
const MAX_STDIN: usize = 16 * 1024 * 1024;
/// Upper bounds on the bytes of a path and of a name.
const MAX_PATH: usize = 4_096;
const MAX_NAME: usize = 256;
/// Bytes kept of each output: the default, which is the default bound on a whole return, and the largest value that a
/// module may set.
pub(super) const OUTPUT: u64 = 1024 * 1024;
const MAX_OUTPUT: u64 = 4 * 1024 * 1024;

/// A checked program to run. It may hold secrets, so it has no `Debug`.
pub(super) struct Request {
    /// A bare name if any program is granted, else an absolute path.
    pub(super) program: String,
    pub(super) args: Vec<OsString>,
    /// The working directory; none for the default.
    pub(super) cwd: Option<String>,
    /// The real working directory must be one of these or below one of them; none allows any.
    pub(super) cwd_within: Option<Vec<String>>,
    pub(super) env: Vec<(String, String)>,
    pub(super) clean_env: bool,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) timeout: Option<Duration>,
    /// The user; none for the minion's own.
    pub(super) user: Option<String>,
    pub(super) group: Option<String>,
    /// The granted groups beside the user's own.
    pub(super) groups: Names,
    pub(super) umask: Option<u32>,
    /// Bytes kept of each output.
    pub(super) keep: usize,
    pub(super) merge_stderr: bool,
    /// Whether descendants in a session of their own may stay.
    pub(super) detach: bool,
    /// Upper bound on the bytes of a file that the program writes.
    pub(super) file_size: Option<u64>,
    /// What keeps the program from changing anything.
    pub(super) probe: Option<brine_spawn::Probe>,
}

impl Request {
    pub(super) fn read(asked: ProcessRun, grants: &Grants) -> Result<Self, HostError> {
        within_bounds(&asked).map_err(HostError::Failed)?;
        let grant = &grants.process;
        let program = asked.argv.first().cloned().unwrap_or_default();
        let denied = |why: String| Err(HostError::Denied(why));
        if !grant.programs.has(&program) && grant.line(&asked.argv) != Some(&program) {
            return denied(format!("the program {program:?} was not granted to this module"));
        }
        if let Some((name, _)) = asked.env.iter().find(|(name, _)| !(harmless(name) || grant.env.matches(name))) {
            return denied(format!("the variable {name:?} was not granted to this module"));
        }
        if let Some(name) = &asked.run_as {
            let own = grants.user.as_ref().map_or_else(|| super::account::is_own(name), |own| own == name);
            if !own && !grant.users.has(name) {
                return denied(format!("running programs as {name:?} was not granted to this module"));
            }
        }
        let user = asked.run_as.or_else(|| grants.user.clone());
        let cwd_within = match &grant.cwd {
            Names::Any => None,
            Names::Only(directories) => Some(directories.clone()),
        };
        Ok(Self {
            program,
            args: asked.argv.into_iter().skip(1).map(OsString::from).collect(),
            cwd: asked.cwd,
            cwd_within,
            env: asked.env,
            clean_env: asked.clean_env,
            stdin: asked.stdin.map(|stdin| stdin.into_vec()),
            timeout: asked.timeout_ms.map(Duration::from_millis),
            user,
            group: asked.group,
            groups: grant.groups.clone(),
            umask: asked.umask,
            keep: usize::try_from(asked.max_output.unwrap_or(OUTPUT).min(MAX_OUTPUT)).unwrap_or_default(),
            merge_stderr: asked.merge_stderr,
            detach: grant.detach,
            file_size: grant.file_size,
            probe: None,
        })
    }
}

/// Whether a variable is always allowed: language and time zone do not change what a program does.
fn harmless(name: &str) -> bool {
    matches!(name, "LANG" | "LANGUAGE" | "TZ") || name.starts_with("LC_")
}

fn within_bounds(asked: &ProcessRun) -> Result<(), String> {
    let Some(program) = asked.argv.first().filter(|program| !program.is_empty()) else {
        return Err("no program was named".to_owned());
    };
    if program.contains('/') && !program.starts_with('/') {
        return Err(format!("{program:?} is neither a program's name nor an absolute path"));
    }
    if program.len() > MAX_PATH {
        return Err(format!("a program's path has at most {MAX_PATH} bytes"));
    }
    if asked.argv.len() > MAX_ARGS {
        return Err(format!("{} arguments are more than the {MAX_ARGS} that a program is given", asked.argv.len()));
    }
    if asked.argv.iter().any(|arg| arg.len() > MAX_ARG) {
        return Err(format!("an argument has at most {MAX_ARG} bytes"));
    }
    let bytes: usize = asked.argv.iter().map(|arg| arg.len() + 1).sum();
    if bytes > MAX_ARGS_BYTES {
        return Err(format!("{bytes} bytes of arguments are more than the {MAX_ARGS_BYTES} that a program is given"));
    }
    if asked.argv.iter().any(|arg| arg.contains('\0')) {
        return Err("an argument has a NUL byte in it".to_owned());
    }
    if asked.env.len() > MAX_VARIABLES {
        return Err(format!("{} variables are more than the {MAX_VARIABLES} that a program is given", asked.env.len()));
    }
    let bytes: usize = asked.env.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if bytes > MAX_ENV_BYTES || asked.env.iter().any(|(name, value)| name.len() + value.len() + 1 > MAX_ARG) {
        return Err(format!("variables have at most {MAX_ARG} bytes each and {MAX_ENV_BYTES} together"));
    }
    for (name, value) in &asked.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!("{name:?} cannot be the name of a variable"));
        }
        if value.contains('\0') {
            return Err(format!("the variable {name:?} has a NUL byte in it"));
        }
    }
    if asked.stdin.as_ref().is_some_and(|stdin| stdin.len() > MAX_STDIN) {
        return Err(format!("a program is given at most {MAX_STDIN} bytes to read"));
    }
    if let Some(cwd) = &asked.cwd {
        let path = Path::new(cwd);
        let plain = path.components().all(|part| !matches!(part, Component::ParentDir));
        if cwd.len() > MAX_PATH || cwd.contains('\0') || !path.is_absolute() || !plain {
            return Err(format!("the directory {cwd:?} is not an absolute path without .."));
        }
    }
    for name in asked.run_as.iter().chain(&asked.group) {
        if name.is_empty() || name.len() > MAX_NAME || name.contains(['\0', ':', '\n']) {
            return Err(format!("{name:?} cannot be the name of a user or a group"));
        }
    }
    match asked.umask {
        Some(mask) if mask > 0o777 => Err(format!("a umask is at most 777, not {mask:o}")),
        _ => Ok(()),
    }
}
