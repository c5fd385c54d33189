//! `salt-call -d`: prints the documentation of modules.

use std::fmt::Write as _;

use crate::minion::Base;
use brine_cli::Failure;
use brine_cli::print::stdout;
use brine_protocol::exit;

/// Prints signature and documentation of every function whose name begins with `prefix`.
pub(super) async fn print(base: &Base, prefix: &str) -> Result<i32, Failure> {
    let module = prefix.split('.').next().unwrap_or_default();
    if !module.is_empty() {
        // A missing module is fetched, as for a call.
        let missing = |why| Failure::new(exit::GENERIC, format!("'{prefix}' is not available. {why}"));
        base.modules.ensure(module).await.map_err(missing)?;
    }
    // Names are compared with their modules, whichever of both is longer.
    base.sandbox.settle_those(|name| name.starts_with(prefix) || prefix.starts_with(name)).await;
    let mut out = String::new();
    for name in base.sandbox.names() {
        let Some(module) = base.sandbox.describe(&name) else { continue };
        for function in &module.info.functions {
            let full = format!("{name}.{}", function.name);
            if full.starts_with(prefix) {
                let _ = writeln!(out, "{full}:\n\n    {}\n", brine_sandbox::signature(&name, function));
                for line in function.doc.iter().flat_map(|doc| doc.lines()) {
                    let _ = writeln!(out, "{}", format!("    {line}").trim_end());
                }
                if function.doc.is_some() {
                    out.push('\n');
                }
            }
        }
    }
    if out.is_empty() && !prefix.is_empty() {
        return Err(Failure::new(exit::GENERIC, format!("'{prefix}' is not available.")));
    }
    if let Some(out) = out.strip_suffix('\n') {
        stdout(out);
    }
    Ok(exit::OK)
}
