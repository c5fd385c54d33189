//! Runs calls of modules: executors, admission, compiled code by content, and the broker's seam.
//!
//! The kernel knows calls, grants, limits and contents. It knows no policy, no store of installed modules, no settings
//! and no reports: the rest of this crate has them and imports the kernel, never the other way round
//! (`tools/check-imports.py`).

pub(crate) mod admission;
pub(crate) mod broker;
pub(crate) mod cache;
pub(crate) mod cgroup;
pub(crate) mod compile;
pub(crate) mod directories;
pub(crate) mod executors;
pub(crate) mod lanes;
pub(crate) mod link;
pub(crate) mod loadable;
pub(crate) mod memory;
pub(crate) mod name;
pub(crate) mod process;
pub(crate) mod run;
pub(crate) mod spawn;
pub(crate) mod supervisor;
pub(crate) mod suspects;
pub(crate) mod trim;
pub(crate) mod user;
pub(crate) mod value;
