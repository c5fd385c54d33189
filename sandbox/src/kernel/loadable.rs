//! A module as executors know it, and the source of its compiled code.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use brine_sandbox_wire::Sha256Hex;
use futures_util::future::BoxFuture;

use crate::kernel::admission::History;
use crate::kernel::cache;
use crate::kernel::foresight::Foresight;
use crate::kernel::name::ModuleName;

/// A module that executors can load and run.
#[derive(Debug)]
pub(crate) struct Loadable {
    pub(crate) name: ModuleName,
    /// Hash of the component.
    pub(crate) sha256: Sha256Hex,
    /// The module's key in executors: its content, its name (which its descriptions contain) and the interfaces to
    /// link.
    pub(crate) key: Sha256Hex,
    /// Whether it is one of the package's modules.
    pub(crate) standard: bool,
    /// The interfaces that executors link when they load the module.
    pub(crate) interfaces: Vec<String>,
    /// Statistics of its functions' past calls.
    pub(crate) history: Arc<History>,
    /// What its calls asked first.
    pub(crate) foresight: Arc<Foresight>,
    /// Whether an executor has loaded it. An executor that replaces another one loads such modules before its first job.
    pub(crate) was_loaded: AtomicBool,
}

impl Loadable {
    /// Returns a module with this number of functions, which no call has used yet.
    pub(crate) fn new(
        name: ModuleName,
        sha256: Sha256Hex,
        standard: bool,
        interfaces: Vec<String>,
        functions: usize,
    ) -> Self {
        let mut text = [sha256.bytes(), name.as_str().as_bytes()].concat();
        for interface in &interfaces {
            text.push(0);
            text.extend_from_slice(interface.as_bytes());
        }
        let history = Arc::new(History::new(functions));
        let (foresight, was_loaded) = (Arc::default(), AtomicBool::new(false));
        Self { key: cache::sha256(&text), name, sha256, standard, interfaces, history, foresight, was_loaded }
    }
}

/// The source of compiled code for executors.
pub(crate) trait CodeSource: Send + Sync {
    /// Returns the modules that the permanent executor loads when it starts: those that it had loaded before.
    fn modules(&self) -> Vec<Arc<Loadable>>;

    /// Returns the checked, open file of a module's compiled code. None if it must be compiled again.
    fn cached_code<'a>(&'a self, module: &'a Loadable) -> BoxFuture<'a, Option<File>>;

    /// Like [`CodeSource::cached_code`], but compiles the component again if necessary. An error is one line.
    fn code<'a>(&'a self, module: &'a Loadable) -> BoxFuture<'a, Result<File, String>>;
}
