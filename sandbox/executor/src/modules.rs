//! A loaded module: its code, its functions with their types, and the instances-to-be of it, one for each set of grants.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre};

use crate::guest::Guest;
use crate::links::{Grants, Links};
use crate::params::Kinds;
use crate::value::signature::{Param, Signature};
use crate::value::ty::{MAX_TYPES, Ty, snake};

/// Functions of one module; the compiler's cage refuses more.
const MAX_FUNCTIONS: usize = 1_000;

/// Types of functions that the next one is compared with.
const KNOWN_TYPES: usize = 8;

/// Names of functions in a message, in characters.
const MAX_NAMES: usize = 300;

/// One function.
pub struct Function {
    /// Its name, parameters and result.
    pub signature: Signature,
    /// Where it is in an instance.
    pub export: ComponentExportIndex,
    /// Whether it can be called without dynamic values.
    pub shape: Option<Shape>,
}

/// How a function is called with static types: what is dear as a dynamic value is what it may return, and the simplest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// What it takes.
    pub takes: Kinds,
    /// What it returns.
    pub returns: Returns,
    /// Whether it is `result<…, string>`.
    pub fails: bool,
}

/// Result of a [`Shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// `bool`
    Bool,
    /// `string`
    Text,
    /// `list<u8>`
    Bytes,
    /// `data`
    Data,
}

impl Shape {
    /// The shape of a function, where it has one.
    #[must_use]
    pub fn of(signature: &Signature) -> Option<Self> {
        let (result, fails) = match signature.result.as_deref()? {
            Ty::Result(Some(ok), Some(err)) if **err == Ty::Text => (&**ok, true),
            ty => (ty, false),
        };
        let returns = match result {
            Ty::Bool => Returns::Bool,
            Ty::Text => Returns::Text,
            Ty::Bytes => Returns::Bytes,
            Ty::Data => Returns::Data,
            _ => return None,
        };
        Some(Self { takes: Kinds::of(signature)?, returns, fails })
    }
}

/// The types of a module's functions as they are read. Those of the same type share it, and it counts once.
struct Types {
    left: usize,
    /// The last ones: exports of one type stand side by side.
    known: VecDeque<FunctionType>,
}

/// Parameters and result.
type FunctionType = (Arc<[Param]>, Option<Arc<Ty>>);

impl Types {
    /// None where they are too large.
    fn read(&mut self, function: &ComponentFunc) -> Option<FunctionType> {
        // What is the same as another's costs nothing in the end; the component's own bound keeps the reading short.
        let mut left = MAX_TYPES;
        let params = function.params().map(|(name, ty)| Some(Param::new(name, Ty::read(&ty, &mut left)?)));
        let params = params.collect::<Option<Vec<_>>>()?;
        let result = match function.results().next() {
            Some(ty) => Some(Ty::read(&ty, &mut left)?),
            None => None,
        };
        let same = self.known.iter().find(|known| *known.0 == *params && known.1.as_deref() == result.as_ref());
        if let Some(known) = same {
            return Some(known.clone());
        }
        self.left = self.left.checked_sub(MAX_TYPES - left)?;
        if self.known.len() == KNOWN_TYPES {
            self.known.pop_front();
        }
        self.known.push_back((params.into(), result.map(Arc::new)));
        self.known.back().cloned()
    }
}

/// Ready to be instantiated, or why not.
type Linked = Result<InstancePre<Guest>, String>;

/// One module.
pub struct Module {
    /// What operators call it.
    pub name: Arc<str>,
    component: Component,
    functions: BTreeMap<String, Arc<Function>>,
    linked: Mutex<Vec<(Grants, Linked)>>,
}

impl Module {
    /// Reads a component's functions: those at its root, then those of its exported interfaces, where names are free.
    ///
    /// # Errors
    /// One line: its types are too large.
    pub fn new(engine: &Engine, name: &str, component: Component) -> Result<Self, String> {
        let mut module = Self { name: name.into(), component, functions: BTreeMap::new(), linked: Mutex::default() };
        let mut types = Types { left: MAX_TYPES, known: VecDeque::new() };
        let exports = module.component.component_type();
        for (export, item) in exports.exports(engine) {
            if let ComponentItem::ComponentFunc(function) = &item.ty {
                let index = module.component.get_export_index(None, export);
                module.add(export, function, index, &mut types)?;
            }
        }
        for (export, item) in exports.exports(engine) {
            let ComponentItem::ComponentInstance(interface) = &item.ty else { continue };
            let Some(index) = module.component.get_export_index(None, export) else { continue };
            for (export, item) in interface.exports(engine) {
                if let ComponentItem::ComponentFunc(function) = &item.ty {
                    let index = module.component.get_export_index(Some(&index), export);
                    module.add(export, function, index, &mut types)?;
                }
            }
        }
        Ok(module)
    }

    fn add(
        &mut self,
        export: &str,
        function: &ComponentFunc,
        index: Option<ComponentExportIndex>,
        types: &mut Types,
    ) -> Result<(), String> {
        let Some(index) = index else { return Ok(()) };
        // `[method]…` and the like belong to resources, which no job can have.
        if export.starts_with('[') || function.async_() {
            return Ok(());
        }
        if self.functions.len() >= MAX_FUNCTIONS {
            return Err(format!("it exports more than {MAX_FUNCTIONS} functions"));
        }
        let name = snake(export);
        let read = types.read(function);
        let (params, result) = read.ok_or_else(|| format!("the types of {name} are too large"))?;
        let signature = Signature { name: format!("{}.{name}", self.name), params, result };
        if let Entry::Vacant(free) = self.functions.entry(name) {
            let shape = Shape::of(&signature);
            free.insert(Arc::new(Function { signature, export: index, shape }));
        }
        Ok(())
    }

    /// A function by its name without the module's. The error is Salt's line for it, and what there is.
    pub fn function(&self, name: &str) -> Result<Arc<Function>, String> {
        self.functions.get(name).map(Arc::clone).ok_or_else(|| {
            let known: Vec<&str> = self.functions.keys().map(String::as_str).collect();
            let known = brine_text::short(&known.join(", "), MAX_NAMES);
            format!("'{}.{}' is not available. {} has: {known}", self.name, brine_text::short(name, 60), self.name)
        })
    }

    /// Ready to be instantiated with these grants. The error is the operator's line.
    pub fn linked(&self, links: &Links, grants: Grants) -> Linked {
        let mut linked = self.linked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, result)) = linked.iter().find(|(known, _)| *known == grants) {
            return result.clone();
        }
        let result = links.link(&self.name, &self.component, grants);
        linked.push((grants, result.clone()));
        result
    }
}
