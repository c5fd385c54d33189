//! `brine:host/schedule`: the jobs that this minion starts by itself.

use std::sync::Arc;

use brine_protocol::msgpack::Limits;
use brine_protocol::value::Value;
use brine_sandbox::{ByteBuf, Caller, HostError, ScheduleChange, ScheduleOp, SchedulePlace};
use brine_schedule::dates::{Moment, by_format};

use super::events::decode;
use super::{MinionBroker, Perform};
use crate::schedule::{Change, From};

/// Bounds on the jobs of one change.
const JOBS: Limits = Limits { max_bytes: 4 << 20, max_depth: 32, max_items: 400_000 };

impl Perform<ScheduleOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: ScheduleOp) -> Result<Value, HostError> {
        let (schedule, asker) = (Arc::clone(&self.schedule), caller.job.master.as_deref().map(Arc::from));
        // It reads and writes files.
        let done = tokio::task::spawn_blocking(move || match op {
            ScheduleOp::List { place } => Ok(schedule.list(match place {
                SchedulePlace::Opts => From::Opts,
                SchedulePlace::Pillar => From::Pillar,
                SchedulePlace::All => From::All,
            })),
            ScheduleOp::Saved => schedule.saved().map_err(HostError::Failed),
            ScheduleOp::Status { name, time_format } => Ok(schedule.status(&name, &time_format)),
            ScheduleOp::Update { change, persist } => {
                schedule.change(read(change, asker.clone())?, persist, asker.as_deref()).map_err(HostError::Failed)
            }
            ScheduleOp::IsDate { text, format } => Ok(Value::from(match format {
                Some(format) => by_format(&text, &format).is_some(),
                None => Moment::parse(&text, jiff::Zoned::now().date()).is_ok(),
            })),
        });
        done.await.unwrap_or_else(|_| Err(HostError::Failed("the minion failed".to_owned())))
    }
}

fn read(change: ScheduleChange, asker: Option<Arc<str>>) -> Result<Change, HostError> {
    let jobs = |bytes: ByteBuf| decode(&bytes, &JOBS);
    Ok(match change {
        ScheduleChange::Add(data) => Change::Add(jobs(data)?),
        ScheduleChange::Modify(name, data) => Change::Modify(name, jobs(data)?),
        ScheduleChange::Delete(name) => Change::Delete(name),
        ScheduleChange::Enable(enabled) => Change::Enable(enabled),
        ScheduleChange::EnableJob(name, enabled) => Change::EnableJob(name, enabled),
        ScheduleChange::Postpone(name, data) => Change::Postpone(name, jobs(data)?),
        ScheduleChange::Reload(data) => Change::Reload(jobs(data)?),
        ScheduleChange::Run(name) => Change::Run(name, asker),
        ScheduleChange::Save => Change::Save,
        ScheduleChange::ReplaceSaved(data) => Change::ReplaceSaved(jobs(data)?),
    })
}
