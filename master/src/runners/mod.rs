//! Runners and the wheel (§7.3): functions that run in the master, for local callers.
//!
//! - `function.rs`  a function: documentation, signature, implementation
//! - `signature.rs` reads a signature, and binds the arguments of a call to it
//! - `call.rs`      the arguments as callers send them
//! - `service.rs`   the requests, and each run from its first event to its last
//! - `running.rs`   the current runs
//! - `state/`       orchestration: states that run in the master, with the rights of their caller
//! - `react.rs`    jobs that the reactor publishes
//! - `ask.rs`       jobs that runners publish and whose returns they collect
//! - one file for each module of functions, and `wheel/` for those of the wheel

mod ask;
mod cache;
mod call;
mod config;
mod doc;
mod engines;
mod error;
mod event;
mod fileserver;
mod function;
mod jobs;
mod manage;
mod mine;
mod network;
mod opts;
mod pillar;
mod react;
mod reactor;
mod receipts;
mod running;
mod salt;
mod service;
mod signature;
mod state;
mod survey;
mod test;
mod wheel;

use std::sync::Arc;

use brine_protocol::config::{Config, ConfigError};
use brine_protocol::value::{Value, ValueExt, map};

use crate::bus::Bus;
use crate::chains::Chains;
use crate::dispatch::Dispatcher;
use crate::engines::Engines;
use crate::fileserver::FileServer;
use crate::jobs::JobCache;
use crate::key_removal::KeyRemoval;
use crate::keys::MinionKeys;
use crate::live_settings::SharedSettings;
use crate::mine::Mine;
use crate::pillar::Pillars;
use crate::presence::Presence;
use crate::private_ops::PrivatePool;
pub(crate) use call::Call;
use function::{Failure, Function};
pub(crate) use opts::RunnerOpts;
pub(crate) use react::ReactorJob;
pub(crate) use running::Runs;
pub(crate) use service::{Runners, refusal};
pub(crate) use state::{OrchestrateOpts, Orchestrations, Reacting, SlsFile};

/// The parts of the master that the functions use.
pub(crate) struct Parts {
    pub(crate) opts: RunnerOpts,
    /// Checks that a master can start with a configuration.
    pub(crate) check_config: fn(&Config) -> Result<(), ConfigError>,
    pub(crate) live: SharedSettings,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) jobs: Arc<JobCache>,
    pub(crate) keys: Arc<MinionKeys>,
    pub(crate) key_removal: Arc<KeyRemoval>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) files: Arc<FileServer>,
    pub(crate) mine: Arc<Mine>,
    pub(crate) pillars: Arc<Pillars>,
    pub(crate) private: PrivatePool,
    pub(crate) bus: Bus,
    /// The current runs of runners.
    pub(crate) runs: Runs,
    pub(crate) orchestrations: Orchestrations,
    /// Learns of the runs that the reactor starts.
    pub(crate) chains: Arc<Chains>,
    pub(crate) engines: Arc<Engines>,
}

/// All runners, by module.
const RUNNERS: &[&[Function]] = &[
    cache::FUNCTIONS,
    cache::banks::FUNCTIONS,
    config::FUNCTIONS,
    doc::FUNCTIONS,
    engines::FUNCTIONS,
    error::FUNCTIONS,
    event::FUNCTIONS,
    fileserver::FUNCTIONS,
    jobs::FUNCTIONS,
    manage::FUNCTIONS,
    mine::FUNCTIONS,
    network::FUNCTIONS,
    pillar::FUNCTIONS,
    reactor::FUNCTIONS,
    receipts::FUNCTIONS,
    salt::FUNCTIONS,
    state::FUNCTIONS,
    survey::FUNCTIONS,
    test::FUNCTIONS,
];

/// Returns the names of all functions of `runner` or `wheel`.
pub(crate) fn names(form: &str) -> impl Iterator<Item = &'static str> {
    let all = if form == "wheel" { wheel::FUNCTIONS } else { RUNNERS };
    all.iter().copied().flatten().map(|function| function.name())
}

/// Returns the documentation of the functions whose names start with `begins`; `command` is the command that calls
/// them.
fn documentation(functions: &[&[Function]], command: &str, begins: &str) -> Value {
    let mut all: Vec<&Function> = functions.iter().copied().flatten().collect();
    all.sort_by_key(|function| function.name());
    let wanted = all.into_iter().filter(|function| function.name().starts_with(begins));
    map(wanted.map(|function| (function.name(), function.documentation(command))))
}

/// Finds a function by name. If there is none, returns the documentation of functions whose names start with the text,
/// or Salt's error.
fn find(functions: &'static [&'static [Function]], fun: &str) -> Result<&'static Function, Failure> {
    if let Some(function) = functions.iter().copied().flatten().find(|function| function.name() == fun) {
        return Ok(function);
    }
    match documentation(functions, "", fun) {
        docs if !fun.is_empty() && docs.truthy() => Err(Failure(docs)),
        _ => {
            let shown = brine_protocol::text::short(fun, 128);
            Err(Failure::from(format!("'{shown}' is not available.")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_one_name_and_a_sentence() {
        for functions in [RUNNERS, wheel::FUNCTIONS] {
            let mut names: Vec<&str> = functions.iter().copied().flatten().map(|function| function.name()).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
            for function in functions.iter().copied().flatten() {
                assert!(function.doc.ends_with('.') && function.doc.is_ascii(), "{}", function.name());
                assert!(function.signature.is_well_formed(), "{:?}", function.signature);
            }
        }
    }

    #[test]
    fn what_is_not_there_is_said_as_salt_says_it() {
        let said = |fun: &str| find(RUNNERS, fun).map(|function| function.name()).unwrap_err().0;
        assert_eq!(said("nobody.knows"), Value::from("'nobody.knows' is not available."));
        assert_eq!(said(""), Value::from("'' is not available."));
        assert_eq!(said("a\n\u{1b}[0m"), Value::from("'a\\n\\x1b[0m' is not available."));
        let docs = said("jobs.list");
        let names: Vec<_> = docs.entries().unwrap().iter().filter_map(|(name, _)| name.text()).collect();
        assert_eq!(names, ["jobs.list_job", "jobs.list_jobs", "jobs.list_jobs_filter"]);
        assert_eq!(find(RUNNERS, "jobs.list_job").unwrap().name(), "jobs.list_job");
    }
}
