//! `state.*`: orchestration. States run in the master: they start jobs, runners and functions of the wheel, wait for
//! events, and nothing else.
//!
//! **Rights.** An orchestration has those of its caller. Each job, runner and function of the wheel that it starts goes
//! through the same door, with the same check and the same line in the audit log, as if the caller had asked for it.
//!
//! | file | content |
//! |---|---|
//! | `asked` | what a caller asks for |
//! | `work` | one orchestration: what it needs, its thread, its result |
//! | `opts`, `turns` | the settings; the orchestrations at a time |
//! | `world` | files, functions and states, as the compiler and templates see them |
//! | `drive` | does what the run machine says is next |
//! | `patience` | waits on the thread of an orchestration, no longer than it may take |
//! | `table` | the states that there are, and what each takes |
//! | `pretend` | the states of `test` |
//! | `minions`, `publish` | `salt.state`, `salt.function`; their jobs |
//! | `in_master`, `parallel` | `salt.runner`, `salt.wheel`; `salt.parallel_runners` |
//! | `wait` | `salt.wait_for_event` |
//! | `result` | results of states, and what they come to together |
//! | `reaction` | SLS files of the reactor, to low chunks |
//! | `grains`, `pauses` | the grains of this host; pauses of runs |
//! | `begun` | the orchestrations that run, on disk |

mod asked;
mod begun;
mod drive;
mod grains;
mod in_master;
mod minions;
mod opts;
mod parallel;
mod patience;
mod pauses;
mod pretend;
mod publish;
mod reaction;
mod result;
mod table;
mod turns;
mod wait;
mod work;
mod world;

use brine_protocol::value::{Value, map};

use super::function::{Function, Outcome, Run, functions};
use asked::{Asked, What};
pub(super) use begun::Interrupted;
pub(crate) use opts::OrchestrateOpts;
pub(crate) use reaction::{Reacting, SlsFile};
pub(crate) use turns::Orchestrations;

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Runs SLS files of the file server as states of the master, with the rights of the caller.
    "state.orchestrate(mods, saltenv='base', test=None, exclude=None, pillar=None, pillarenv=None, pillar_enc=None, orchestration_jid=None)"
        => orchestrate,
    /// As state.orchestrate.
    "state.orch(mods, saltenv='base', test=None, exclude=None, pillar=None, pillarenv=None, pillar_enc=None, orchestration_jid=None)"
        => orchestrate,
    /// As state.orchestrate.
    "state.sls(mods, saltenv='base', test=None, exclude=None, pillar=None, pillarenv=None, pillar_enc=None, orchestration_jid=None)"
        => orchestrate,
    /// Runs one state of the master.
    "state.orchestrate_single(fun, name, test=None, queue=False, pillar=None, **kwargs)" => single,
    /// Runs states of the master from high data: a dict as SLS files have it.
    "state.orchestrate_high(data, test=None, queue=False, pillar=None, **kwargs)" => high,
    /// Shows what SLS files of the file server render to as states of the master.
    "state.orchestrate_show_sls(mods, saltenv='base', test=None, queue=False, pillar=None, pillarenv=None, pillar_enc=None)"
        => show_sls,
    /// As state.orchestrate_show_sls.
    "state.orch_show_sls(mods, saltenv='base', test=None, queue=False, pillar=None, pillarenv=None, pillar_enc=None)"
        => show_sls,
    /// Pauses an orchestration before a state, or before its next one, for seconds or until state.resume.
    "state.pause(jid, state_id=None, duration=None)" => |run| async move { pauses::pause(&run) },
    /// As state.pause.
    "state.set_pause(jid, state_id=None, duration=None)" => |run| async move { pauses::pause(&run) },
    /// Ends a pause of an orchestration.
    "state.resume(jid, state_id=None)" => |run| async move { pauses::resume(&run) },
    /// As state.resume.
    "state.rm_pause(jid, state_id=None)" => |run| async move { pauses::resume(&run) },
    /// Ends an orchestration before a state, or before its next one.
    "state.soft_kill(jid, state_id=None)" => |run| async move { pauses::kill(&run) },
};

/// The result of one in Salt's form.
fn of_master(run: &Run, result: Value) -> Value {
    map([(run.parts.opts.id.as_str(), result)])
}

async fn orchestrate(run: Run) -> Outcome {
    let what = What::Sls { mods: asked::names(&run, "mods"), exclude: asked::excluded(&run) };
    let done = work::run(&run, Asked::new(&run, what)?).await?;
    let data = of_master(&run, done);
    let code = i64::from(!result::is_good(&data, false));
    Ok(map([("data", data), ("outputter", Value::from("highstate")), ("retcode", code.into())]))
}

async fn single(run: Run) -> Outcome {
    let low = asked::chunk(&run)?;
    let done = work::run(&run, Asked::new(&run, What::Low(low))?).await?;
    Ok(told(&run, done))
}

async fn high(run: Run) -> Outcome {
    let done = work::run(&run, Asked::new(&run, What::High(asked::high(&run)?))?).await?;
    Ok(told(&run, done))
}

/// As Salt does it, the result comes as an event of progress too.
fn told(run: &Run, done: Value) -> Value {
    let data = of_master(run, done);
    run.event("progress", map([("data", data.clone()), ("outputter", Value::from("highstate"))]));
    data
}

async fn show_sls(run: Run) -> Outcome {
    let what = What::Show { mods: asked::names(&run, "mods") };
    let done = work::run(&run, Asked::new(&run, what)?).await?;
    Ok(of_master(&run, done))
}
