//! Shell completion of `salt-call`: the functions of the modules on this host.

use brine_cli::commandline::{self, Line};
use brine_sandbox::{Preparing, Sandbox};
use clap::{Command, CommandFactory as _};

use super::flags::Flags;
use super::setup::{load_conf, start_threads};
use crate::minion::{Base, package_sandbox};

/// Prints completions and ends the program if a shell requests completions.
pub(super) fn complete() {
    commandline::complete_or_document(&Flags::command(), &[("function", candidates)]);
}

fn candidates(command: &Command, line: &Line) -> Vec<String> {
    let Some(flags) = line.parse::<Flags>(command) else { return Vec::new() };
    let functions = || {
        let opts = load_conf(&flags).ok()?;
        let runtime = start_threads().ok()?;
        let functions = runtime.block_on(async {
            let sandbox = package_sandbox(&opts, flags.module_dir.clone(), Preparing::First).ok()?;
            let base = Base::prepare(opts, false, false, sandbox).await.ok()?;
            let functions = function_names(&base.sandbox);
            base.sandbox.shutdown().await;
            Some(functions)
        });
        runtime.shutdown_background();
        functions
    };
    functions().unwrap_or_default()
}

/// The functions of all modules here, as in `test.ping`.
fn function_names(sandbox: &Sandbox) -> Vec<String> {
    let modules = sandbox.names().into_iter().filter_map(|name| sandbox.describe(&name));
    let functions = modules.flat_map(|module| {
        let names = module.info.functions.iter().map(|function| format!("{}.{}", module.name, function.name));
        names.collect::<Vec<_>>()
    });
    functions.collect()
}
