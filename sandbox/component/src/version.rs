//! A component's version, which is that of the package it was built from.

use wasmparser::{Encoding, Parser, Payload};

use crate::MAX_NAME;
use crate::error::ReadError;

/// The custom section for the version, as the tools of the component model write it.
pub(crate) const SECTION: &str = "version";

/// Returns the version in a component's section, or else the one of its first exported interface with a version. Reads
/// only the outermost sections, and validates nothing.
///
/// # Errors
///
/// The bytes are no component.
pub fn version(wasm: &[u8]) -> Result<Option<String>, ReadError> {
    if !wasm.starts_with(b"\0asm") {
        return Err(ReadError::NotWasm);
    }
    let (mut own, mut exported) = (None, None);
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(ReadError::malformed)? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => return Err(ReadError::NotComponent),
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if section.name() == SECTION && depth == 0 => {
                own = std::str::from_utf8(section.data()).ok().filter(|text| is_version(text)).map(str::to_owned);
            }
            Payload::ComponentExportSection(section) if depth == 0 && exported.is_none() => {
                for export in section {
                    // brine:test/functions@1.0.0
                    let name = export.map_err(ReadError::malformed)?.name.name;
                    let version = name.split_once('@').map(|(_, version)| version);
                    let version = version.filter(|version| name.len() <= MAX_NAME && is_version(version));
                    exported = exported.or_else(|| version.map(str::to_owned));
                }
            }
            _ => {}
        }
    }
    Ok(own.or(exported))
}

/// Checks for something like `1.2.3-rc.1+build`.
fn is_version(text: &str) -> bool {
    const MAX: usize = 64;
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    !text.is_empty() && text.len() <= MAX && text.chars().all(inside)
}
