//! What a compile asks of its surroundings, and what it is told.

use std::rc::Rc;

use brine_render::jinja::CallError;
use brine_render::{Dict, Value};

use crate::fault::Fault;

/// A file of the file server.
#[derive(Clone, Debug)]
pub struct File {
    /// Where the host has it, as templates and messages see it: it ends with the path below the roots.
    pub path: String,
    /// Its content.
    pub data: Rc<[u8]>,
}

/// What a state function takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Those without a default, in their order.
    pub required: Vec<String>,
    /// Those with a default.
    pub optional: Vec<String>,
    /// It takes any other name too (`**kwargs`).
    pub open: bool,
}

/// What compiles and runs may ask of their surroundings.
pub trait Host {
    /// The environments of the file server, in its order.
    fn environments(&self) -> Vec<String>;

    /// The names of the SLS files of an environment (`a.b` for `a/b.sls` and for `a/b/init.sls`), in any order.
    fn states(&self, saltenv: &str) -> Vec<String>;

    /// A file below the roots of an environment (`a/b.sls`); none if there is none.
    ///
    /// # Errors
    /// The file cannot be fetched.
    fn load(&self, saltenv: &str, path: &str) -> Result<Option<File>, String>;

    /// Whether templates can call an execution function of this name.
    fn has_function(&self, name: &str) -> bool;

    /// Whether templates can name an execution module (`salt.test`).
    fn has_module(&self, name: &str) -> bool {
        let _ = name;
        true
    }

    /// The names of all execution functions that templates can call.
    fn functions(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a template is told that uses an execution function which is not here; without it, that there is none.
    fn why_no_function(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// A number that nobody can know, for templates that make random values; none if there is no source of them.
    fn random(&self) -> Option<u64> {
        None
    }

    /// Seconds since 1970, for templates that tell the time; none if there is no clock.
    fn now(&self) -> Option<i64> {
        None
    }

    /// Calls an execution function for a template of an environment.
    ///
    /// # Errors
    /// The function failed, or is not allowed here.
    fn call(
        &self,
        saltenv: &str,
        name: &str,
        positional: Vec<Value>,
        keyword: Vec<(Rc<str>, Value)>,
    ) -> Result<Value, CallError>;

    /// Whether there is a state function of this name (`pkg.installed`, `service.mod_watch`).
    fn has_state(&self, name: &str) -> bool;

    /// What a state function takes; none if it is not there.
    fn parameters(&self, name: &str) -> Option<Parameters>;

    /// Why a state function is not there.
    fn why_missing(&self, name: &str) -> Option<String> {
        Some(format!("'{name}' is not available."))
    }

    /// Whether a target of a top file is this minion. `matcher` is `compound`, `glob`, `grain`, …; `nodegroups` is for
    /// the matcher `nodegroup`.
    ///
    /// # Errors
    /// The matcher does not know what to do with the expression.
    fn is_target(&self, expression: &Value, matcher: &str, nodegroups: &Value) -> Result<bool, Fault>;

    /// What the master's `master_tops` gives for this minion: lists of SLS names by environment.
    fn master_tops(&self) -> Dict {
        Dict::default()
    }

    /// Logs something that is no error.
    fn warn(&self, message: &str) {
        let _ = message;
    }
}
