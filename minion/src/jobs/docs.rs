//! What is returned in place of a result where a job names a module, or the beginning of a function's name, and no function: what there
//! is that begins so, as Salt's minion returns it.

use brine_protocol::value::{Value, map};
use brine_sandbox::Function;

use crate::runtime::Runtime;

/// Bytes of documentation in one return. The standard modules have some ten thousand together; what else is here, others wrote.
const MAX_BYTES: usize = 1 << 20;

/// A dict of the documentation of all functions whose names begin with `fun`, and of `fun` itself with Salt's sentence. None where
/// nothing begins so, and where there is such a function.
pub(super) fn instead(runtime: &dyn Runtime, fun: &str) -> Option<Value> {
    if fun.is_empty() {
        return None;
    }
    let mut docs = Vec::new();
    let mut bytes = 0;
    for module in runtime.names() {
        if !module.starts_with(fun) && !fun.starts_with(&module) {
            continue;
        }
        let Some(described) = runtime.describe(&module) else { continue };
        for function in &described.info.functions {
            let name = format!("{module}.{}", function.name);
            if name == fun {
                return None;
            }
            if !name.starts_with(fun) {
                continue;
            }
            let doc = docstring(&module, function);
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
    // Something begins with it, so that it is a part of a name and no more.
    docs.push((fun.to_owned(), Value::from(format!("'{fun}' is not available."))));
    docs.sort_by(|(a, _), (b, _)| a.cmp(b));
    Some(map(docs))
}

/// A function's documentation laid out as a Python docstring is; its signature where there is none.
fn docstring(module: &str, function: &Function) -> String {
    let text = match function.doc.as_deref().map(str::trim_end) {
        Some(doc) if !doc.is_empty() => doc.to_owned(),
        _ => brine_sandbox::signature(module, function),
    };
    let mut out = String::from("\n");
    for line in text.lines() {
        if !line.is_empty() {
            out.push_str("    ");
            out.push_str(line);
        }
        out.push('\n');
    }
    out.push_str("    ");
    out
}
