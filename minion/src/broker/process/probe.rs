//! Probes: programs that are to look, in a job that changes nothing (`test=True`).
//!
//! The kernel keeps a probe from changing anything, see `brine_spawn::Probe`. Where it cannot, the probe is not run.

use std::time::Duration;

use brine_protocol::value::Value;
use brine_sandbox::HostError;

use super::request::Request;

/// The longest time of a probe: the check of `unless` answers within a second, and a dry run waits for each.
const LONGEST: Duration = Duration::from_secs(60);

/// Makes a request a probe. The value is the answer if this host cannot run it.
pub(super) fn prepare(request: &mut Request) -> Result<Option<Value>, HostError> {
    let probe = match brine_spawn::Probe::new() {
        Ok(probe) => probe,
        Err(why) => return Ok(Some(Value::from(why))),
    };
    request.timeout = Some(request.timeout.map_or(LONGEST, |timeout| timeout.min(LONGEST)));
    request.detach = false;
    request.probe = Some(probe);
    Ok(None)
}
