//! The result of a call.

use brine_component::signature;
use brine_sandbox_wire::{FailKind, Outcome, Sha256Hex, Usage};
use rmpv::Value;

use super::Call;
use crate::kernel::value;

/// The result of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutcome {
    /// The function's return value, or one line that says why there is none.
    pub value: Value,
    /// 0, the code that the function set, or 1.
    pub retcode: i64,
    /// Whether the function returned.
    pub success: bool,
    /// The resources used, nested calls included. None if the call never started.
    pub usage: Option<Usage>,
    /// The module that ran.
    pub sha256: Option<Sha256Hex>,
    /// In a job with `test=True`: what it would have done, maps of `fun` and `would`. None in other jobs.
    pub plan: Option<Vec<Value>>,
    /// Whether test mode ended it at what it would have done; the value says what.
    pub stopped: bool,
    /// Whether the value is what the function itself said of its failure.
    pub raised: bool,
}

impl JobOutcome {
    pub(crate) fn failed(text: impl Into<String>, sha256: Option<Sha256Hex>) -> Self {
        Self {
            value: Value::from(text.into()),
            retcode: 1,
            success: false,
            usage: None,
            sha256,
            plan: None,
            stopped: false,
            raised: false,
        }
    }
}

/// Makes the job's outcome from the executor's result.
pub(super) fn judge(call: &Call<'_>, outcome: Outcome, usage: Usage) -> JobOutcome {
    let Call { module, fun, limits, .. } = call;
    let sha256 = Some(module.sha256);
    let failed = |text: String, retcode: i32| JobOutcome {
        value: Value::from(text),
        retcode: if retcode == 0 { 1 } else { i64::from(retcode) },
        success: false,
        usage: Some(usage),
        sha256,
        plan: None,
        stopped: false,
        raised: false,
    };
    match outcome {
        Outcome::Returned { value, .. } if value.len() as u64 > limits.output => {
            failed(format!("{fun} returned {} bytes; the limit is {}.", value.len(), limits.output), 1)
        }
        Outcome::Returned { value, retcode } => match value::decode(&value) {
            // A function that returned is a success; the retcode is its own statement.
            Ok(value) => {
                let retcode = i64::from(retcode);
                JobOutcome { value, retcode, success: true, ..failed(String::new(), 0) }
            }
            Err(error) => failed(format!("{fun} returned a value that cannot be read: {error}."), 1),
        },
        Outcome::Failed { kind: FailKind::Arguments, message, retcode } if !message.starts_with("Passed invalid") => {
            let usage = signature(module.name.as_str(), call.function);
            failed(format!("Passed invalid arguments to {fun}: {message}. Usage: {usage}"), retcode)
        }
        Outcome::Failed { kind, message, retcode } => {
            // The executor itself saw the change that a directory does not allow.
            if let (FailKind::Planned, Some(plan), Some((_, what))) =
                (kind, call.plan, message.split_once("in test mode it would write"))
            {
                plan.record(fun, &format!("write{what}"));
            }
            let raised = kind == FailKind::Function;
            JobOutcome { stopped: kind == FailKind::Planned, raised, ..failed(message, retcode) }
        }
    }
}
