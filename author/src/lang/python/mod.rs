//! Python: componentize-py builds CPython and `module.py` into a component. WASI is stubbed out, so that a module
//! imports only what its WIT imports.

use std::fs;

use wasmparser::{ComponentExternalKind, Parser, Payload};

use super::{Language, Project};
use crate::failure::Failure;
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

    fn tour(&self) -> &'static [(&'static str, &'static str)] {
        &[(MAIN, "what they do"), ("test_greeting.py", "a test of it")]
    }

    fn test_command(&self) -> &'static str {
        "python3 -m unittest"
    }

    fn build(&self, project: &Project) -> Result<Vec<u8>, Failure> {
        let tool = tool::installed("componentize-py", VERSION, SIZE, |dir| tool::pip(dir, REQUIREMENTS))?;
        file::write(&project.scratch.join("brine_entry.py"), ENTRY.as_bytes())?;
        let output = project.scratch.join("component.wasm");
        let mut command = tool::command("python3");
        command.args(["-I", "-B", "-c", START]).arg(tool.join("lib"));
        command.arg("-q").arg("-d").arg(&project.wit.dir).args(["-w", project.wit.world_name()]);
        command.args(["componentize", "--stub-wasi", "brine_entry"]);
        command.arg("-p").arg(&project.dir).arg("-p").arg(&project.scratch).arg("-o").arg(&output);
        tool::quiet("componentize-py", &mut command, tool::PYTHON_HINT).map_err(explained)?;
        let component = fs::read(&output).map_err(|error| Failure::unreadable(&output, error))?;
        Ok(without_init(component))
    }
}

fn explained(failure: Failure) -> Failure {
    let words = failure.to_string();
    if words.contains("WitWorld") && words.contains("AttributeError") {
        let why =
            format!("{MAIN} has to have a class WitWorld, whose methods are the functions that the world exports");
        return Failure::failed(format!("{words}\n{why}"));
    }
    failure
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
