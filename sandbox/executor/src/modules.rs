//! A loaded module: its code, its functions with their types, and one pre-linked instance (`InstancePre`) for each set
//! of grants.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre};

use crate::guest::Guest;
use crate::links::{Imports, Linkers};
use crate::params::Kinds;
use crate::value::signature::{Signature, TypedParam};
use crate::value::ty::{MAX_TYPES, Ty, snake};

/// Upper bound on the functions of one module; the compiler refuses more.
const MAX_FUNCTIONS: usize = 1_000;

/// Number of function types that the next one is compared with.
const KNOWN_TYPES: usize = 8;

/// Upper bound on the characters of function names in a message.
const MAX_NAMES: usize = 300;

/// One function.
pub struct LoadedFunction {
    /// The name, parameters and result.
    pub signature: Signature,
    /// The export's index in an instance.
    pub export: ComponentExportIndex,
    /// The static types for a call; none if the call needs dynamic values.
    pub shape: Option<Shape>,
}

/// How to call a function with static types. This exists for the results that are expensive as dynamic values, and for
/// the simplest ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The types of the parameters.
    pub takes: Kinds,
    /// The type of the result.
    pub returns: Returns,
    /// Whether the result is `result<…, string>`.
    pub fails: bool,
}

/// The result of a [`Shape`].
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
    /// The shape of a function; none if its types are not supported.
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

/// Reads the types of a module's functions. Functions of the same type share it, and the type counts once.
struct Types {
    left: usize,
    /// The last types read: exports of the same type are adjacent.
    known: VecDeque<FunctionType>,
}

/// Parameters and result.
type FunctionType = (Arc<[TypedParam]>, Option<Arc<Ty>>);

impl Types {
    /// Reads a function's type; none if the types are too large.
    fn read(&mut self, function: &ComponentFunc) -> Option<FunctionType> {
        // A type that equals a known one counts nothing in the end, so it is read with the full bound. The component's
        // own size bounds the reading.
        let mut left = MAX_TYPES;
        let params = function.params().map(|(name, ty)| Some(TypedParam::new(name, Ty::read(&ty, &mut left)?)));
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

/// An instance ready to be made, or why there is none.
type Linked = Result<InstancePre<Guest>, String>;

/// Exported interfaces whose functions no job calls, and the beginning of these functions' names, as brine-component has
/// it: `states.managed` is the state `managed`.
const GROUPS: [&str; 2] = ["states", "beacons"];

/// The group that the functions of an exported interface are in: `states` of `brine:file/states@1.0.0`.
fn exported_group(export: &str) -> Option<&'static str> {
    let name = export.split('@').next().unwrap_or_default();
    let name = name.rsplit('/').next()?;
    GROUPS.into_iter().find(|group| *group == name)
}

/// One module.
pub struct LoadedModule {
    /// The name that operators use.
    pub name: Arc<str>,
    component: Component,
    functions: BTreeMap<String, Arc<LoadedFunction>>,
    linked: Mutex<Vec<(Imports, Linked)>>,
}

impl LoadedModule {
    /// Reads a component's functions: those at its root, then those of its exported interfaces whose names are not
    /// taken.
    ///
    /// # Errors
    /// One line, when the types are too large.
    pub fn new(engine: &Engine, name: &str, component: Component) -> Result<Self, String> {
        let mut module = Self { name: name.into(), component, functions: BTreeMap::new(), linked: Mutex::default() };
        let mut types = Types { left: MAX_TYPES, known: VecDeque::new() };
        let exports = module.component.component_type();
        for (export, item) in exports.exports(engine) {
            if let ComponentItem::ComponentFunc(function) = &item.ty {
                let index = module.component.get_export_index(None, export);
                module.add(snake(export), function, index, &mut types)?;
            }
        }
        for (export, item) in exports.exports(engine) {
            let ComponentItem::ComponentInstance(interface) = &item.ty else { continue };
            let Some(index) = module.component.get_export_index(None, export) else { continue };
            let group = exported_group(export);
            for (export, item) in interface.exports(engine) {
                if let ComponentItem::ComponentFunc(function) = &item.ty {
                    let index = module.component.get_export_index(Some(&index), export);
                    let name = group.map_or_else(|| snake(export), |group| format!("{group}.{}", snake(export)));
                    module.add(name, function, index, &mut types)?;
                }
            }
        }
        Ok(module)
    }

    fn add(
        &mut self,
        name: String,
        function: &ComponentFunc,
        index: Option<ComponentExportIndex>,
        types: &mut Types,
    ) -> Result<(), String> {
        let Some(index) = index else { return Ok(()) };
        // `[method]…` and similar names belong to resources, which jobs cannot pass.
        if name.contains('[') || function.async_() {
            return Ok(());
        }
        if self.functions.len() >= MAX_FUNCTIONS {
            return Err(format!("it exports more than {MAX_FUNCTIONS} functions"));
        }
        let read = types.read(function);
        let (params, result) = read.ok_or_else(|| format!("the types of {name} are too large"))?;
        let signature = Signature { name: format!("{}.{name}", self.name), params, result };
        if let Entry::Vacant(free) = self.functions.entry(name) {
            let shape = Shape::of(&signature);
            free.insert(Arc::new(LoadedFunction { signature, export: index, shape }));
        }
        Ok(())
    }

    /// Finds a function by its name without the module's name.
    ///
    /// # Errors
    /// Salt's line about an unknown function, with the names of the known ones.
    pub fn function(&self, name: &str) -> Result<Arc<LoadedFunction>, String> {
        self.functions.get(name).map(Arc::clone).ok_or_else(|| {
            let known: Vec<&str> = self.functions.keys().map(String::as_str).collect();
            let known = brine_text::short(&known.join(", "), MAX_NAMES);
            format!("'{}.{}' is not available. {} has: {known}", self.name, brine_text::short(name, 60), self.name)
        })
    }

    /// Links the module with these imports, once for each set. The error is one line for the operator.
    pub fn linked(&self, links: &Linkers, imports: Imports) -> Linked {
        let mut linked = self.linked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, result)) = linked.iter().find(|(known, _)| *known == imports) {
            return result.clone();
        }
        let result = links.link(&self.name, &self.component, imports);
        linked.push((imports, result.clone()));
        result
    }
}
