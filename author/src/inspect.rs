//! `salt-module inspect`

use std::process::ExitCode;
use std::time::Duration;

use brine_component::{Function, signature};
use brine_sandbox::{CompileCost, Rest};
use serde_json::{Value, json};

use crate::asks;
use crate::cage::Module;
use crate::cli::Inspect;
use crate::failure::{self, Failure};
use crate::signatures::{self, Block};

pub(crate) fn run(options: &Inspect) -> Result<ExitCode, Failure> {
    let module = Module::read(&options.file, !options.no_compile)?;
    let signatures = signatures::read(&options.file);
    if options.json {
        let json = as_json(&module, signatures.as_ref().map(Option::as_deref));
        say!("{}", brine_protocol::text::json(&format!("{json:#}")));
    } else {
        print(&module, signatures.as_ref().map(Option::as_deref));
    }
    // Every minion would refuse the module.
    let refused = matches!(module.compiled, Some(Err(_))) || !module.asks.unknown.is_empty();
    Ok(if refused { ExitCode::from(failure::FAILED) } else { ExitCode::SUCCESS })
}

fn print(module: &Module, signatures: Result<Option<&[Block]>, &Failure>) {
    say!("{} {}", module.name, module.version());
    if let Some(doc) = &module.info.doc {
        print_doc(doc, "  ");
    }
    say!("");
    say!("  {:<9} {}, {} bytes", "file", module.path.display(), module.wasm.len());
    say!("  {:<9} {}", "sha256", module.sha256);
    match signatures {
        Ok(None) => say!("  {:<9} no: there is no {}", "signed", signatures::path_of(&module.path).display()),
        Ok(Some(blocks)) => {
            for block in blocks {
                say!("  {:<9} {}", "signed", said(block));
            }
        }
        Err(error) => say!("  {:<9} no: {error}", "signed"),
    }
    match &module.compiled {
        Some(Ok(compiled)) => say!("  {:<9} {}", "compiles", cost(compiled)),
        Some(Err(why)) => say!("  {:<9} no, so every minion refuses it: it {}", "compiles", why),
        None => {}
    }
    say!("\nfunctions");
    for function in module.info.all() {
        say!("  {}", signature(&module.name, function));
        if let Some(doc) = &function.doc {
            print_doc(doc, "      ");
        }
    }
    for note in &module.info.notes {
        say!("  note: {note}");
    }
    say!("\nasks for");
    for line in module.asks.lines("  ") {
        say!("{line}");
    }
    if module.asks.is_nothing() {
        say!("  nothing that has to be granted");
    }
    let of_profiles = profiles(module);
    if !of_profiles.is_empty() {
        say!("\nprofiles have lines for Brine's own module of this name; no other gets them");
        for (profile, line) in of_profiles {
            say!("  {profile}: {line}");
        }
    }
    if let Some(lines) = configuration(module) {
        say!("\nto grant it, in the minion's configuration");
        for line in lines.lines() {
            say!("  {line}");
        }
    }
}

fn configuration(module: &Module) -> Option<String> {
    let functions: Vec<&str> = module.info.all().map(|function| function.name.as_str()).collect();
    asks::configuration(&module.name.parse().ok()?, module.sha256, &module.info.imports, &functions)
}

/// Returns the lines of Brine's profiles about this module's name, each with its profile.
fn profiles(module: &Module) -> Vec<(String, String)> {
    let (Ok(name), Ok(all)) = (module.name.parse(), brine_sandbox::all_profiles()) else { return Vec::new() };
    all.iter().flat_map(|profile| profile.lines(&name).into_iter().map(|line| (profile.name.clone(), line))).collect()
}

fn print_doc(doc: &str, indent: &str) {
    for line in doc.lines() {
        say!("{}", format!("{indent}{line}").trim_end());
    }
}

/// Describes a signature by its own statements, which are unverified without a key.
fn said(block: &Block) -> String {
    let said = block.said();
    let time = said.time().map(|time| format!(" on {time}")).unwrap_or_default();
    let version = said.version.map(|version| format!(", version {version}")).unwrap_or_default();
    format!("by key {}{time}{version}, as it says: `salt-module verify` checks that", block.key)
}

fn cost(compiled: &CompileCost) -> String {
    format!(
        "in {} ({} of CPU) with {} MB of memory at most, into {} KB of machine code",
        seconds(compiled.wall),
        seconds(compiled.cpu),
        compiled.memory.div_ceil(1_000_000),
        compiled.code.div_ceil(1_000)
    )
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn as_json(module: &Module, signatures: Result<Option<&[Block]>, &Failure>) -> Value {
    let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let compile = match &module.compiled {
        None => Value::Null,
        Some(Err(why)) => json!({ "error": why }),
        Some(Ok(compiled)) => json!({
            "wall_ms": milliseconds(compiled.wall),
            "cpu_ms": milliseconds(compiled.cpu),
            "memory": compiled.memory,
            "code": compiled.code,
        }),
    };
    let signatures = match signatures {
        Ok(blocks) => blocks.unwrap_or_default().iter().map(signature_json).collect(),
        Err(error) => json!({ "error": error.to_string() }),
    };
    let functions: Vec<Value> = module.info.all().map(|function| function_json(&module.name, function)).collect();
    json!({
        "name": module.name,
        "version": module.info.version,
        "doc": module.info.doc,
        "file": module.path,
        "size": module.wasm.len(),
        "sha256": module.sha256.to_string(),
        "signatures": signatures,
        "compile": compile,
        "functions": functions,
        "notes": module.info.notes,
        "imports": module.info.imports,
        "asks": module.asks.json(),
        "configuration": configuration(module),
        "profiles": profiles(module),
    })
}

fn signature_json(block: &Block) -> Value {
    let said = block.said();
    json!({ "key": block.key, "time": said.timestamp, "file": said.file, "version": said.version, "checked": false })
}

/// Describes one function.
pub(crate) fn function_json(module: &str, function: &Function) -> Value {
    let params: Vec<Value> = function
        .params
        .iter()
        .map(|param| {
            let rest = match param.rest {
                Rest::No => Value::Null,
                Rest::Args => "args".into(),
                Rest::Kwargs => "kwargs".into(),
            };
            json!({ "name": &*param.name, "type": &*param.ty, "optional": param.optional, "rest": rest })
        })
        .collect();
    json!({
        "name": function.name,
        "signature": signature(module, function),
        "params": params,
        "result": function.result.as_deref(),
        "doc": function.doc,
    })
}
