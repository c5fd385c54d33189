//! The sandbox of the product: the programs and standard modules of the package, with the owner's settings.

use std::path::PathBuf;
use std::sync::Arc;

use brine_sandbox::{Broker, Preparing, Restarts, Sandbox, SandboxConfig, Settings};
use futures_util::future::{BoxFuture, Shared};

use super::error::MinionError;
use crate::config::{MinionOpts, Package};
use crate::jobs::Functions;

/// The broker of modules, which is there when the minion's other parts are; none if the start failed meanwhile.
pub type ComingBroker = Shared<BoxFuture<'static, Option<Arc<dyn Broker>>>>;

/// Makes the sandbox, with what runs the functions of jobs in it, given the broker of its modules and the number of jobs at once.
pub type MakeSandbox = Box<
    dyn FnOnce(ComingBroker, usize) -> BoxFuture<'static, Result<(Arc<Sandbox>, Arc<dyn Functions>), MinionError>>
        + Send,
>;

/// Reads the owner's settings of the sandbox.
///
/// # Errors
/// When a setting cannot be used; the error names it.
pub fn sandbox_settings(opts: &MinionOpts) -> Result<Settings, MinionError> {
    Ok(Settings::load(&opts.sandbox, &opts.conf_dir)?)
}

/// The sandbox with the package of this program. `modules_dir` replaces the folder of fetched modules, and `standard` says when the
/// standard modules are prepared.
///
/// # Errors
/// When the package is not found or a setting cannot be used.
pub fn package_sandbox(
    opts: &MinionOpts,
    modules_dir: Option<PathBuf>,
    standard: Preparing,
) -> Result<MakeSandbox, MinionError> {
    let package = Package::find().map_err(|e| MinionError::Sandbox(e.to_string()))?;
    sandbox_with(package, opts, modules_dir, standard)
}

/// The sandbox with this package; the rest as in [`package_sandbox`].
///
/// # Errors
/// When a setting cannot be used; the error names it.
pub fn sandbox_with(
    package: Package,
    opts: &MinionOpts,
    modules_dir: Option<PathBuf>,
    standard: Preparing,
) -> Result<MakeSandbox, MinionError> {
    let settings = sandbox_settings(opts)?;
    let cache_dir = opts.cachedir.join("sandbox");
    let recordings_dir = opts.cachedir.join("recordings");
    let modules_dir = modules_dir.unwrap_or_else(|| opts.modules_dir());
    Ok(Box::new(move |broker, jobs| {
        Box::pin(async move {
            let config = SandboxConfig {
                executor: package.executor,
                compiler: package.compiler,
                cache_dir,
                standard_dir: package.modules,
                standard: None,
                modules_dir,
                recordings_dir,
                settings: Settings { max_running: jobs, ..settings },
            };
            let sandbox = Sandbox::start_before(config, broker, Restarts::default(), standard).await;
            let sandbox = sandbox.map_err(|e| MinionError::Sandbox(e.to_string()))?;
            let functions: Arc<dyn Functions> = sandbox.clone();
            Ok((sandbox, functions))
        })
    }))
}
