//! Python: componentize-py builds CPython and `module.py` into a component. WASI is stubbed out, so that a module
//! imports only what its WIT imports.

use std::fs;

use wasmparser::{ComponentExternalKind, Parser, Payload};
use wit_parser::{WorldItem, WorldKey};

use super::{Language, Project, merge};
use crate::failure::Failure;
use crate::wit::Wit;
use crate::{file, tool};

pub(super) struct Python;

/// The file with the class of the world's functions.
const MAIN: &str = "module.py";

const VERSION: &str = "0.25.1";
const SIZE: &str = "17 MB to fetch, 47 MB on disk";
/// For x86_64 and aarch64.
const REQUIREMENTS: &str = "componentize-py==0.25.1 \
    --hash=sha256:8623cd8cab8453cb0cd8bf03f3c7103420d06f2f3d360186a280a70a1ca5e89f \
    --hash=sha256:7b6a87c520358166843af0daa86d2312d7af4cbcbbf1e598951085cf7f2991ca\n";
/// Where a component stays as componentize-py made it.
const SLOWER: &str = "the module is slower than it could be: its core modules are not merged";
/// The component's entry point, which imports `module.py`.
const ENTRY: &str = include_str!("entry.py");
/// Starts componentize-py without the user's own packages and settings.
const START: &str =
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from componentize_py import script; sys.exit(script())";

impl Language for Python {
    fn title(&self) -> &'static str {
        "Python"
    }

    fn looks_for(&self) -> &'static str {
        MAIN
    }

    fn template(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (MAIN, include_str!("../../../templates/python/module.py.in")),
            ("greeting.py", include_str!("../../../templates/python/greeting.py.in")),
            ("test_greeting.py", include_str!("../../../templates/python/test_greeting.py.in")),
            (".gitignore", "__pycache__/\n*.wasm\n"),
        ]
    }

    fn state_template(&self) -> Option<(&'static str, &'static str)> {
        Some((MAIN, include_str!("../../../templates/python/module_state.py.in")))
    }

    fn engine_template(&self) -> (&'static str, &'static str) {
        (MAIN, include_str!("../../../templates/python/module_engine.py.in"))
    }

    fn tour(&self) -> &'static [(&'static str, &'static str)] {
        &[(MAIN, "what they do"), ("test_greeting.py", "a test of it")]
    }

    fn test_command(&self) -> &'static str {
        "python3 -m unittest"
    }

    fn build(&self, project: &Project) -> Result<Vec<u8>, Failure> {
        let tool = tool::installed("componentize-py", VERSION, SIZE, |dir| tool::pip(dir, REQUIREMENTS))?;
        file::write(&project.scratch.join("brine_entry.py"), ENTRY.as_bytes())?;
        let classes = classes(&project.wit);
        let named = format!("CLASSES = {classes:?}\n");
        file::write(&project.scratch.join("brine_exports.py"), named.as_bytes())?;
        let output = project.scratch.join("component.wasm");
        let mut command = tool::command("python3");
        // The error is at the end of what it says, without the places in its own code.
        command.env("RUST_BACKTRACE", "0");
        command.args(["-I", "-B", "-c", START]).arg(tool.join("lib"));
        command.arg("-q").arg("-d").arg(&project.wit.dir).args(["-w", project.wit.world_name()]);
        command.args(["componentize", "--stub-wasi", "brine_entry"]);
        command.arg("-p").arg(&project.dir).arg("-p").arg(&project.scratch).arg("-o").arg(&output);
        tool::quiet("componentize-py", &mut command, tool::PYTHON_HINT)
            .map_err(|failure| explained(failure, &classes))?;
        let component = fs::read(&output).map_err(|error| Failure::unreadable(&output, error))?;
        let component = without_init(component);
        Ok(merge::merged(&component).unwrap_or_else(|why| {
            brine_cli::print::stderr(&format!("salt-module: {SLOWER}, because {why}"));
            component
        }))
    }
}

/// The classes that `module.py` has: of the world's own functions, and of each interface that it exports.
fn classes(wit: &Wit) -> Vec<String> {
    let world = &wit.resolve.worlds[wit.world];
    let own = world.exports.values().any(|item| matches!(item, WorldItem::Function(_)));
    let interfaces = world.exports.iter().filter_map(|(key, item)| match (key, item) {
        (WorldKey::Name(name), WorldItem::Interface { .. }) => Some(name.as_str()),
        (WorldKey::Interface(id), WorldItem::Interface { .. }) => wit.resolve.interfaces[*id].name.as_deref(),
        _ => None,
    });
    own.then_some("wit-world").into_iter().chain(interfaces).map(camel_case).collect()
}

/// `WitWorld` for `wit-world`, as componentize-py names classes.
fn camel_case(name: &str) -> String {
    name.split('-')
        .map(|word| word.get(..1).unwrap_or_default().to_ascii_uppercase() + word.get(1..).unwrap_or_default())
        .collect()
}

fn explained(failure: Failure, classes: &[String]) -> Failure {
    let words = failure.to_string();
    let lacks = |class: &&String| words.contains(&format!("has no attribute '{class}'"));
    match classes.iter().find(lacks) {
        None => failure,
        Some(class) => {
            let of = if class == "WitWorld" { "the world" } else { "its interface of that name" };
            Failure::failed(format!(
                "{MAIN} has to have a class {class}, whose methods are the functions that {of} exports"
            ))
        }
    }
}

/// Removes the interface `exports` that componentize-py leaves behind. Its `init` initialised the interpreter's memory
/// at build time, and it is no function of the module. An empty instance replaces it, so that indices stay valid.
fn without_init(wasm: Vec<u8>) -> Vec<u8> {
    const EXPORTS: u8 = 11;
    const INSTANCES: u8 = 5;
    let mut depth = 0usize;
    let mut found = None;
    for payload in Parser::new(0).parse_all(&wasm) {
        match payload {
            Ok(Payload::Version { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
            Ok(Payload::ComponentExportSection(section)) if depth == 1 && section.count() == 1 => {
                let export = section.clone().into_iter().next().and_then(Result::ok);
                let is = |export: &wasmparser::ComponentExport<'_>| {
                    export.name.name == "exports" && export.kind == ComponentExternalKind::Instance
                };
                if export.as_ref().is_some_and(is) {
                    found = Some(section.range());
                    break;
                }
            }
            Ok(_) => {}
            // The component's reader reports the error.
            Err(_) => break,
        }
    }
    let Some(contents) = found else { return wasm };
    // Before the contents are the section's kind and its length in LEB128.
    let Some(start) = contents.start.checked_sub(leb128(contents.len()) + 1) else { return wasm };
    if wasm.get(start) != Some(&EXPORTS) {
        return wasm;
    }
    let mut out = wasm[..start].to_vec();
    out.extend_from_slice(&[INSTANCES, 3, 1, 1, 0]);
    out.extend_from_slice(&wasm[contents.end..]);
    out
}

/// Returns the number of bytes of a number in LEB128.
fn leb128(number: usize) -> usize {
    (usize::BITS - number.leading_zeros()).div_ceil(7).max(1) as usize
}
