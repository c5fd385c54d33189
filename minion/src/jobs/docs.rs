//! The documentation that a job returns when it names a module, or the beginning of a function's name, instead of a function. Salt's
//! minion does the same.

use brine_protocol::text::docstring;
use brine_protocol::value::{Value, map};
use brine_sandbox::{Function, Sandbox};

/// Upper bound on the bytes of documentation in one return. The standard modules have about ten thousand together; other modules
/// have as many as their authors wrote.
const MAX_BYTES: usize = 1 << 20;

/// The documentation of all functions whose names begin with `fun`, and Salt's sentence for `fun` itself, with the function that it is
/// almost the name of. None if no name begins with `fun`, and if `fun` is a function.
pub(super) async fn list_functions(sandbox: &Sandbox, fun: &str) -> Option<Value> {
    if fun.is_empty() {
        return None;
    }
    sandbox.settle_those(|module| module.starts_with(fun) || fun.starts_with(module)).await;
    let mut docs = Vec::new();
    let mut bytes = 0;
    for module in sandbox.names() {
        if !module.starts_with(fun) && !fun.starts_with(&module) {
            continue;
        }
        let Some(described) = sandbox.describe(&module) else { continue };
        for function in &described.info.functions {
            let name = format!("{module}.{}", function.name);
            if name == fun {
                return None;
            }
            if !name.starts_with(fun) {
                continue;
            }
            let doc = documentation(&module, function);
            bytes += name.len() + doc.len();
            if bytes > MAX_BYTES {
                break;
            }
            docs.push((name, Value::from(doc)));
        }
    }
    if docs.is_empty() {
        return None;
    }
    // Other names begin with it, so `fun` is only a part of a name.
    let meant = sandbox.meant(fun).map(|meant| format!(" Did you mean {meant}?")).unwrap_or_default();
    docs.push((fun.to_owned(), Value::from(format!("'{fun}' is not available.{meant}"))));
    docs.sort_by(|(a, _), (b, _)| a.cmp(b));
    Some(map(docs))
}

/// A function's documentation in the layout of a Python docstring; its signature if it has no documentation.
fn documentation(module: &str, function: &Function) -> String {
    match function.doc.as_deref().map(str::trim_end) {
        Some(doc) if !doc.is_empty() => docstring(doc),
        _ => docstring(&brine_sandbox::signature(module, function)),
    }
}
