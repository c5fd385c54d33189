//! A sandbox for tests: its configuration, jobs and callers. Unit tests of `brine-sandbox` cannot use it: they would get
//! two copies of the crate's types.
#![allow(clippy::unwrap_used, reason = "only tests use it")]

use std::path::Path;
use std::sync::Arc;

use brine_kit::programs::sandbox_program;
use brine_kit::wait::DEADLINE;
use brine_protocol::value::from_json;
use brine_sandbox::{Caller, Grants, JobContext, Policy, SandboxConfig, Settings, Sha256Hex};

/// Returns the configuration of a sandbox with the folders of this one, the two programs and the default limits. It
/// grants nothing.
pub fn config(dir: &Path) -> SandboxConfig {
    let standard_dir = dir.join("standard");
    std::fs::create_dir_all(&standard_dir).unwrap();
    SandboxConfig {
        executor: sandbox_program("brine-executor"),
        compiler: sandbox_program("brine-compiler"),
        cache_dir: dir.join("cache"),
        standard_dir,
        standard: None,
        modules_dir: dir.join("modules"),
        recordings_dir: dir.join("recordings"),
        settings: settings(),
    }
}

/// Returns settings for a small sandbox, with the default limits.
pub fn settings() -> Settings {
    Settings {
        max_running: 8,
        max_waiting: 0,
        max_queued: 8,
        total_memory: 4 << 30,
        executor_idle: DEADLINE,
        ..Settings::default()
    }
}

/// Returns the policy of the `sandbox:` section of a configuration.
#[track_caller]
pub fn policy(sandbox: &serde_json::Value) -> Policy {
    Settings::read(&from_json(sandbox)).unwrap_or_else(|error| panic!("{error}")).policy
}

/// Returns the context of a job that root of the master published.
pub fn job(jid: &str, fun: &str) -> JobContext {
    JobContext {
        jid: jid.to_owned(),
        function: fun.to_owned(),
        user: "root".to_owned(),
        minion_id: "minion".to_owned(),
        ..JobContext::default()
    }
}

/// Returns the caller for a function of this module in a job, with these grants.
pub fn caller(job: JobContext, module: &str, grants: Grants) -> Caller {
    Caller::new(Arc::new(job), module.parse().unwrap(), Sha256Hex::from([0; 32]), Arc::new(grants), DEADLINE)
}
