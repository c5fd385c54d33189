//! The conditions under which a running call may call another function.

use std::time::Instant;

use crate::kernel::admission::NESTED_OF_ONE;
use crate::kernel::broker::Caller;
use crate::kernel::name::{quoted, shown};

/// Upper bound on the functions in a chain of calls, the job's own function included.
const MAX_DEPTH: usize = 8;
const _: () = assert!(MAX_DEPTH - 1 == NESTED_OF_ONE);

/// Returns the milliseconds that a nested call of this function may take. The error is one line that says why there is
/// none. A state may come again below itself: a state that runs states (`module.run` of `state.sls`) may run one like
/// itself, and it can do so only by a function, which may not come again.
pub(crate) fn time_left(caller: &Caller, fun: &str, is_state: bool) -> Result<u64, String> {
    if !is_state && caller.chain.iter().any(|before| before == fun) {
        return Err(format!("{} is already being called: {}", quoted(fun), chain_text(&caller.chain, fun)));
    }
    if caller.chain.len() >= MAX_DEPTH {
        let chain = chain_text(&caller.chain, fun);
        return Err(format!("{} is not called: calls go {MAX_DEPTH} functions deep at most: {chain}", quoted(fun)));
    }
    let left = caller.ends.saturating_duration_since(Instant::now());
    let left = super::milliseconds(left);
    if left == 0 {
        return Err(format!("{} is not called: its caller's time is up", quoted(fun)));
    }
    if caller.is_spent() {
        return Err(format!(
            "{} is not called: the functions that {} called have used up its limit of their CPU time \
             (sandbox:limits:calls_cpu)",
            quoted(fun),
            caller.job.function
        ));
    }
    Ok(left)
}

/// `test.a → test.b → test.a`
fn chain_text(chain: &[String], fun: &str) -> String {
    let names = chain.iter().map(String::as_str).chain([fun]);
    names.map(shown).collect::<Vec<_>>().join(" → ")
}
