//! Writes doc comments into a component, as the sections that `docs.rs` reads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};
use wit_parser::{Resolve, WorldItem, WorldKey};

use crate::docs::{PREFIX, ROOT, SECTION, VERSION};
use crate::error::ReadError;
use crate::read::read;
use crate::version;

/// Why docs cannot be written into a component.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The component cannot be read.
    #[error("the component {0}")]
    Read(#[from] ReadError),
    /// The WIT cannot be read, or has no such world.
    #[error("the WIT: {0}")]
    Wit(String),
}

/// Writes the doc comments of a world into a component that was built from it, and replaces existing sections of docs.
/// `wit` are folders or files as for wit-bindgen, dependencies first. The world is in the last one.
///
/// # Errors
///
/// The component or the WIT cannot be read, or a description is too large.
pub fn embed_docs<P: AsRef<Path>>(wasm: &[u8], wit: &[P], world: Option<&str>) -> Result<Vec<u8>, EmbedError> {
    let info = read(wasm)?;
    let mut resolve = Resolve::default();
    let mut main = None;
    for path in wit {
        main = Some(resolve.push_path(path).map_err(wit_error)?.0);
    }
    let main = main.ok_or_else(|| EmbedError::Wit("no folder was given".into()))?;
    let id = resolve.select_world(&[main], world).map_err(wit_error)?;

    let exports: BTreeSet<&[String]> = info.all().map(|function| function.export.as_slice()).collect();
    let mut func_exports = Map::new();
    let mut interface_exports = Map::new();
    let mut packages: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (key, item) in &resolve.worlds[id].exports {
        let name = resolve.name_world_key(key);
        match item {
            WorldItem::Function(function) => {
                if exports.contains([name.clone()].as_slice())
                    && let Some(doc) = &function.docs.contents
                {
                    func_exports.insert(name, json!({ "docs": doc }));
                }
            }
            WorldItem::Interface { id, .. } => {
                let mut funcs = Map::new();
                for (func, function) in &resolve.interfaces[*id].functions {
                    if exports.contains([name.clone(), func.clone()].as_slice())
                        && let Some(doc) = &function.docs.contents
                    {
                        funcs.insert(func.clone(), json!({ "docs": doc }));
                    }
                }
                if funcs.is_empty() {
                    continue;
                }
                let interface = &resolve.interfaces[*id];
                match (key, interface.package, &interface.name) {
                    (WorldKey::Interface(_), Some(package), Some(own)) => {
                        let package = resolve.packages[package].name.to_string();
                        packages.entry(package).or_default().insert(own.clone(), json!({ "funcs": funcs }));
                    }
                    _ => {
                        interface_exports.insert(name, json!({ "funcs": funcs }));
                    }
                }
            }
            WorldItem::Type { .. } => {}
        }
    }
    let doc = resolve.worlds[id].docs.contents.clone().or_else(|| resolve.packages[main].docs.contents.clone());

    let mut root = Map::new();
    if let Some(doc) = doc {
        root.insert("docs".into(), doc.into());
    }
    for (name, items) in [("func_exports", func_exports), ("interface_exports", interface_exports)] {
        if !items.is_empty() {
            root.insert(name.into(), items.into());
        }
    }
    let mut out = without_sections(wasm);
    if !root.is_empty() {
        append(&mut out, SECTION, &json!({ "worlds": { ROOT: root } }));
    }
    for (package, interfaces) in packages {
        append(&mut out, &format!("{PREFIX}{package}"), &json!({ "interfaces": interfaces }));
    }
    // If the world exports functions at its root, the build loses the package's version too.
    if let (None, Some(version)) = (&info.version, &resolve.packages[main].name.version) {
        use wasm_encoder::Section;
        let (name, data) = (version::SECTION.into(), version.to_string().into_bytes().into());
        wasm_encoder::CustomSection { name, data }.append_to(&mut out);
    }
    Ok(out)
}

fn wit_error(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Wit(format!("{error:#}"))
}

fn append(out: &mut Vec<u8>, name: &str, docs: &Value) {
    use wasm_encoder::Section;
    let mut data = vec![VERSION];
    data.extend_from_slice(docs.to_string().as_bytes());
    wasm_encoder::CustomSection { name: name.into(), data: data.into() }.append_to(out);
}

/// Returns the component without its own sections of docs. The component was parsed before, so its sections are well
/// formed.
fn without_sections(wasm: &[u8]) -> Vec<u8> {
    const HEADER: usize = 8;
    const CUSTOM: u8 = 0;
    let (header, mut rest) = wasm.split_at(HEADER.min(wasm.len()));
    let mut out = header.to_vec();
    while !rest.is_empty() {
        let mut reader = wasmparser::BinaryReader::new(rest, 0);
        let (Ok(id), Ok(size)) = (reader.read_u8(), reader.read_var_u32()) else { break };
        let start = rest.len() - reader.bytes_remaining();
        let (section, after) = rest.split_at((start + size as usize).min(rest.len()));
        let name = wasmparser::BinaryReader::new(&section[start.min(section.len())..], 0).read_string();
        let is_docs = id == CUSTOM && name.is_ok_and(|name| name == SECTION || name.starts_with(PREFIX));
        if !is_docs {
            out.extend_from_slice(section);
        }
        rest = after;
    }
    out
}
