//! What can stand at the cursor of `salt-call`: a function of the modules on this host.

use brine_cli::commandline::{self, Line};
use clap::{Command, CommandFactory as _};

use super::flags::Flags;
use super::{conf, threads};
use crate::minion::{Base, package_sandbox};

/// Answers a shell, where one asks.
pub(super) fn answer() {
    commandline::complete_or_document(&Flags::command(), &[("function", candidates)]);
}

fn candidates(command: &Command, line: &Line) -> Vec<String> {
    let Some(flags) = line.parse::<Flags>(command) else { return Vec::new() };
    let functions = || {
        let opts = conf(&flags).ok()?;
        let runtime = threads().ok()?;
        let functions = runtime.block_on(async {
            let sandbox = package_sandbox(&opts, flags.module_dir.clone()).ok()?;
            let base = Base::prepare(opts, false, sandbox).await.ok()?;
            let functions = base.functions();
            base.runtime.shutdown().await;
            Some(functions)
        });
        runtime.shutdown_background();
        functions
    };
    functions().unwrap_or_default()
}
