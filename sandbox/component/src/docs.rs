//! The sections of doc comments.
//!
//! wit-parser writes `package-docs` into WIT packages and reads it from components (`PackageMetadata`: a version byte
//! and JSON). Tools that decode a component expect its world to be named `root` there and every name in it to exist, so
//! this code writes it that way. The section has no place for interfaces of other packages; they go into sections
//! `package-docs:NAMESPACE:PACKAGE@VERSION` in the same format. The reader uses what is valid and ignores the rest,
//! because no decision depends on docs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use wit_parser::PackageMetadata;

use crate::{MAX_DOC, MAX_DOCS};

/// The section for the component's own world.
pub(crate) const SECTION: &str = PackageMetadata::SECTION_NAME;
/// Prefix of the name of a section for one package; the package follows.
pub(crate) const PREFIX: &str = "package-docs:";
/// The version of the format. Version 0 differs only in details that this code reads leniently anyway.
pub(crate) const VERSION: u8 = 1;
/// The name of a component's world in decoders.
pub(crate) const ROOT: &str = "root";

/// All docs found so far, within bounds.
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
    /// Adds one section. An invalid section is noted and left out.
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

    /// Returns the module's doc comment: its world's, or else its package's.
    pub(crate) fn module(&self) -> Option<String> {
        let own = self.own.as_ref()?;
        let doc = self.world().and_then(|world| world.docs.as_ref()).or(own.docs.as_ref());
        self.bounded(doc)
    }

    /// Returns a function's doc comment by the function's path in the component.
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
        // Other tools write the world's own name, which the component does not know. A package with a single world is
        // unambiguous.
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
        // Docs are printed on terminals, so control characters other than line breaks are removed.
        Some(doc[..end].chars().filter(|c| *c == '\n' || !c.is_control()).collect())
    }
}

/// Renames the sections of docs to another name of the same length, so that no offset changes.
pub(crate) fn hide_sections<'a>(wasm: &'a [u8], names: &[usize]) -> Cow<'a, [u8]> {
    let mut wasm = Cow::Borrowed(wasm);
    for &offset in names {
        if let Some(first) = wasm.to_mut().get_mut(offset) {
            *first = b'_';
        }
    }
    wasm
}
