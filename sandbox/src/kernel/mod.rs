//! Runs calls of modules: executors, admission, compiled code by content, and the broker's seam.
//!
//! The kernel knows calls, grants, limits and contents. It knows no policy, no store of installed modules, no settings
//! and no reports: the rest of this crate has them and imports the kernel, never the other way round
//! (`tools/check-imports.py`). It passes a job's context through to executors and the broker.
//!
//! - `name.rs`       checked names of modules; `loadable.rs` a module as executors know it
//! - `run/`          one call from admission to outcome
//! - `admission/`    decides which call runs, waits or is refused
//! - `broker/`       the trait that performs everything outside an instance, and the one check before it
//! - `executors.rs`  the set of executors; `supervisor/` one of them across its processes; `suspects.rs` modules that
//!   kill them
//! - `process.rs`    one executor process; `link/` the conversation with it; `value.rs` MessagePack from it, checked
//!   against bounds before it is built
//! - `record.rs`   the recording of a call, part by part; `foresight.rs` answers that are handed over with a call
//! - `compile.rs`    one run of the compiler in its cage; `cache.rs` compiled code by content; `lanes.rs` the queues
//!   for fetching and compiling
//! - `spawn.rs`      starts the two programs; `user.rs` selects their user; `directories.rs` checks their directories;
//!   `cgroup.rs` their control groups, if available
//! - `memory.rs`     the memory available to all instances; `trim.rs` returns freed memory to the host

pub(crate) mod admission;
pub(crate) mod broker;
pub(crate) mod cache;
pub(crate) mod cgroup;
pub(crate) mod compile;
pub(crate) mod directories;
pub(crate) mod executors;
pub(crate) mod foresight;
pub(crate) mod lanes;
pub(crate) mod link;
pub(crate) mod loadable;
pub(crate) mod memory;
pub(crate) mod name;
pub(crate) mod process;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod spawn;
pub(crate) mod supervisor;
pub(crate) mod suspects;
pub(crate) mod trim;
pub(crate) mod user;
pub(crate) mod value;
