//! The sections that carry doc comments.
//!
//! `package-docs` is what wit-parser writes into WIT packages and reads from components (`PackageMetadata`: a version
//! byte and JSON); tools that decode a component expect its world to be named `root` there and every name in it to exist,
//! so that is how it is written. Interfaces of other packages have no place in it; they go into sections
//! `package-docs:NAMESPACE:PACKAGE@VERSION`, the same format for that package. Reading takes what fits and leaves the
//! rest: docs decide nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use wit_parser::{PackageMetadata, Resolve, WorldItem, WorldKey};

use crate::{MAX_DOC, MAX_DOCS, ReadError};

/// The section for the component's own world.
pub(crate) const SECTION: &str = PackageMetadata::SECTION_NAME;
/// What the name of a section for one package begins with; the package follows.
pub(crate) const PREFIX: &str = "package-docs:";
/// The format's version; 0 differs in what this reads leniently anyway.
const VERSION: u8 = 1;
/// The name that decoders give a component's world.
const ROOT: &str = "root";

/// Why docs could not be put into a component.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The component itself cannot be read.
    #[error("the component {0}")]
    Read(#[from] ReadError),
    /// The WIT cannot be read, or has no such world.
    #[error("the WIT: {0}")]
    Wit(String),
}

/// All docs found so far, bounded.
#[derive(Default)]
pub(crate) struct Docs {
    own: Option<Package>,
    packages: BTreeMap<String, Package>,
    used: std::cell::Cell<usize>,
    pub(crate) notes: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Package {
    docs: Option<String>,
    worlds: BTreeMap<String, World>,
    interfaces: BTreeMap<String, Interface>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct World {
    docs: Option<String>,
    #[serde(rename = "interfaces")]
    interfaces_either: BTreeMap<String, Interface>,
    interface_exports: BTreeMap<String, Interface>,
    #[serde(rename = "funcs")]
    funcs_either: BTreeMap<String, Item>,
    func_exports: BTreeMap<String, Item>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Interface {
    funcs: BTreeMap<String, Item>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Plain(Option<String>),
    Full {
        #[serde(default)]
        docs: Option<String>,
    },
}

impl Docs {
    /// Takes one section in. One that does not parse is noted and left out.
    pub(crate) fn add(&mut self, name: &str, data: &[u8]) {
        let package = match data.split_first() {
            Some((&(0 | VERSION), json)) => serde_json::from_slice::<Package>(json).map_err(|error| error.to_string()),
            _ => Err("its version is not known".into()),
        };
        match (package, name.strip_prefix(PREFIX)) {
            (Ok(package), None) => self.own = Some(package),
            (Ok(package), Some(of)) if self.packages.len() < 100 => {
                self.packages.insert(of.to_owned(), package);
            }
            (Ok(_), Some(_)) => {}
            (Err(error), _) if self.notes.len() < 10 => {
                self.notes.push(format!("docs left out: {}", error.chars().take(100).collect::<String>()));
            }
            (Err(_), _) => {}
        }
    }

    /// The doc comment of the module: its world's, else its package's.
    pub(crate) fn module(&self) -> Option<String> {
        let own = self.own.as_ref()?;
        let doc = self.world().and_then(|world| world.docs.as_ref()).or(own.docs.as_ref());
        self.bounded(doc)
    }

    /// The doc comment of a function by its way in the component.
    pub(crate) fn function(&self, export: &[String]) -> Option<String> {
        let item = match export {
            [name] => {
                let world = self.world()?;
                world.func_exports.get(name).or_else(|| world.funcs_either.get(name))
            }
            [interface, name] => self.interface(interface).and_then(|interface| interface.funcs.get(name)),
            _ => None,
        };
        let (Item::Plain(doc) | Item::Full { docs: doc }) = item?;
        self.bounded(doc.as_ref())
    }

    fn world(&self) -> Option<&World> {
        let worlds = &self.own.as_ref()?.worlds;
        // Others write the world's own name, which the component does not know; a package of one world is clear enough.
        worlds.get(ROOT).or_else(|| if worlds.len() == 1 { worlds.values().next() } else { None })
    }

    fn interface(&self, export: &str) -> Option<&Interface> {
        let Some((package, rest)) = export.split_once('/') else {
            let world = self.world()?;
            return world.interface_exports.get(export).or_else(|| world.interfaces_either.get(export));
        };
        let (name, version) = rest.split_once('@').unwrap_or((rest, ""));
        let package = if version.is_empty() { package.to_owned() } else { format!("{package}@{version}") };
        match self.packages.get(&package) {
            Some(package) => package.interfaces.get(name),
            None => self.own.as_ref()?.interfaces.get(name),
        }
    }

    fn bounded(&self, doc: Option<&String>) -> Option<String> {
        let doc = doc?.trim_end();
        let mut end = doc.len().min(MAX_DOC);
        while !doc.is_char_boundary(end) {
            end -= 1;
        }
        let used = self.used.get() + end;
        if end == 0 || used > MAX_DOCS {
            return None;
        }
        self.used.set(used);
        // Docs are printed on terminals: no control characters but line breaks.
        Some(doc[..end].chars().filter(|c| *c == '\n' || !c.is_control()).collect())
    }
}

/// A copy whose sections of docs have another name of the same length, so that nothing moves.
pub(crate) fn hide_sections<'a>(wasm: &'a [u8], names: &[usize]) -> Cow<'a, [u8]> {
    let mut wasm = Cow::Borrowed(wasm);
    for &offset in names {
        if let Some(first) = wasm.to_mut().get_mut(offset) {
            *first = b'_';
        }
    }
    wasm
}

/// Puts the doc comments of a world into a component that was built from it; sections of docs already there are
/// replaced. `wit` are folders or files as for wit-bindgen, dependencies first; the world is looked up in the last one.
pub fn embed_docs<P: AsRef<Path>>(wasm: &[u8], wit: &[P], world: Option<&str>) -> Result<Vec<u8>, EmbedError> {
    let info = crate::read(wasm)?;
    let mut resolve = Resolve::default();
    let mut main = None;
    for path in wit {
        main = Some(resolve.push_path(path).map_err(wit_error)?.0);
    }
    let main = main.ok_or_else(|| EmbedError::Wit("no folder was given".into()))?;
    let id = resolve.select_world(&[main], world).map_err(wit_error)?;

    let exports: BTreeSet<&[String]> = info.functions.iter().map(|function| function.export.as_slice()).collect();
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
    // The package's version does not survive either, where the world exports functions at its root.
    if let (None, Some(version)) = (&info.version, &resolve.packages[main].name.version) {
        use wasm_encoder::Section;
        let (name, data) = (crate::version::SECTION.into(), version.to_string().into_bytes().into());
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

/// The component without its own sections of docs. It has been read before, so its sections are well formed.
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
