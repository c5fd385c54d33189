//! Seccomp: the system calls that the kernel accepts from this process. All others fail with EPERM, which callers take
//! for "not allowed here", so that a call missing from the list causes an error and not a crash.
//!
//! There are two filters. The first answers clone3 with ENOSYS, because its arguments are in memory, which a filter
//! cannot read; glibc then makes threads with clone. The second is the list. The kernel applies the stricter result.

mod list;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch};

use crate::{Spec, Walls};

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the second wall knows the system calls of x86_64 and aarch64 only");

/// The number of a call, and the combinations of arguments that are accepted; an empty list accepts any.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Filters the system calls of this process from now on.
pub(crate) fn restrict(spec: &Spec, walls: &mut Walls) {
    match install(spec) {
        Ok(()) => walls.seccomp = true,
        Err(why) => walls.notes.push(format!("no seccomp: {why}")),
    }
}

fn install(spec: &Spec) -> Result<(), String> {
    let no_clone3: Rules = [(libc::SYS_clone3, Vec::new())].into();
    let first = program(no_clone3, SeccompAction::Errno(errno(libc::ENOSYS)), SeccompAction::Allow)?;
    let second = program(list::rules(spec)?, SeccompAction::Allow, SeccompAction::Errno(errno(libc::EPERM)))?;
    for filter in [first, second] {
        seccompiler::apply_filter_all_threads(&filter).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn errno(number: libc::c_int) -> u32 {
    number.unsigned_abs()
}

fn program(rules: Rules, listed: SeccompAction, other: SeccompAction) -> Result<BpfProgram, String> {
    let filter = SeccompFilter::new(rules, other, listed, ARCH).map_err(|error| error.to_string())?;
    BpfProgram::try_from(filter).map_err(|error| error.to_string())
}
