//! The imports that a module may use: the interfaces of every module, and those of the call's grants. Each set of
//! grants has one linker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use brine_sandbox_wire::Run;
use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime_wasi::p2::bindings::sockets::tcp;

use crate::guest::Guest;
use crate::host::bindings::brine::host as wit;
use crate::host::{GRANTABLE, recorded, wasi};

/// Interfaces that every module may import, beside WASI's.
const ALWAYS: [&str; 3] = ["brine:host/types", "brine:host/log", "brine:host/job"];

/// The interface of sockets.
const TCP: &str = "wasi:sockets/tcp";

/// Upper bound on the characters of import names in a message.
const MAX_NAMES: usize = 300;

/// A set of granted interfaces: one bit for each of [`GRANTABLE`], in that order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct InterfaceSet(u64);

const _: () = {
    let (mut interfaces, mut capability) = (0, 0);
    while capability < GRANTABLE.len() {
        interfaces += GRANTABLE[capability].len();
        capability += 1;
    }
    assert!(interfaces <= u64::BITS as usize, "there are more interfaces than bits in `InterfaceSet`");
};

impl InterfaceSet {
    /// The set of these names, with or without `@version`. Names that this executor does not know grant nothing.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self(names.iter().filter_map(|name| bit(unversioned(name))).fold(0, |set, bit| set | bit))
    }

    /// Whether one of the grants gives access to directories.
    #[must_use]
    pub fn sees_files(self) -> bool {
        self.has("wasi:filesystem/preopens") || self.has("brine:host/metadata")
    }

    /// Whether it asks the minion about files that it was not granted.
    #[must_use]
    pub fn asks_about_files(self) -> bool {
        self.has("brine:host/metadata")
    }

    fn has(self, interface: &str) -> bool {
        bit(interface).is_some_and(|bit| self.0 & bit != 0)
    }
}

/// The imports of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Imports {
    /// The granted interfaces.
    pub grants: InterfaceSet,
    /// Whether the call is recorded or replayed.
    pub recorded: bool,
    /// Whether the call has sockets but no address to connect to.
    pub unconnected: bool,
}

impl Imports {
    /// Those of a call with these grants.
    #[must_use]
    pub fn of(grants: InterfaceSet, run: &Run) -> Self {
        let recorded = run.record.is_some();
        let unconnected = !recorded && run.direct.network.is_empty() && grants.has(TCP);
        Self { grants, recorded, unconnected }
    }
}

impl From<InterfaceSet> for Imports {
    fn from(grants: InterfaceSet) -> Self {
        Self { grants, recorded: false, unconnected: false }
    }
}

fn bit(interface: &str) -> Option<u64> {
    GRANTABLE.iter().copied().flatten().position(|(name, _)| *name == interface).map(|index| 1 << index)
}

fn unversioned(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

/// The linkers, each made at its first use.
pub struct Linkers {
    engine: Engine,
    linkers: Mutex<HashMap<Imports, Arc<Linker<Guest>>>>,
}

impl Linkers {
    /// Starts without linkers.
    #[must_use]
    pub fn new(engine: &Engine) -> Self {
        Self { engine: engine.clone(), linkers: Mutex::default() }
    }

    /// Links a component with its grants.
    ///
    /// # Errors
    /// One line for the operator, when the component imports something that was not granted or does not exist.
    pub fn link(&self, module: &str, component: &Component, imports: Imports) -> Result<InstancePre<Guest>, String> {
        let grants = imports.grants;
        let linker = self.linker(imports).map_err(|error| format!("the executor's linker is broken: {error:#}"))?;
        let (mut withheld, mut unknown) = (Vec::new(), Vec::new());
        for (name, import) in component.component_type().imports(&self.engine) {
            let interface = unversioned(name);
            let asks = match &import.ty {
                ComponentItem::ComponentInstance(instance) => {
                    instance.exports(&self.engine).any(|(_, export)| !matches!(export.ty, ComponentItem::Type(_)))
                }
                ComponentItem::Type(_) => false,
                _ => true,
            };
            let given = ALWAYS.contains(&interface)
                || grants.has(interface)
                || wasi::PACKAGES.iter().any(|package| interface.starts_with(package));
            if asks && !given {
                let grantable = bit(interface).is_some() || interface.starts_with("wasi:");
                if grantable { &mut withheld } else { &mut unknown }.push(interface.to_owned());
            }
        }
        let names = |names: &[String]| brine_text::short(&names.join(", "), MAX_NAMES);
        match (withheld.as_slice(), unknown.as_slice()) {
            ([], []) => linker.instantiate_pre(component).map_err(|error| {
                let why = brine_text::short(&format!("{error:#}"), MAX_NAMES);
                format!("module '{module}' imports what this minion has in another form: {why}")
            }),
            (withheld, []) => Err(format!("module '{module}' was not granted {}, which it imports", names(withheld))),
            (_, unknown) => {
                Err(format!("module '{module}' imports {}, which this minion does not have", names(unknown)))
            }
        }
    }

    fn linker(&self, imports: Imports) -> wasmtime::Result<Arc<Linker<Guest>>> {
        let mut linkers = self.linkers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linker) = linkers.get(&imports) {
            return Ok(Arc::clone(linker));
        }
        let linker = Arc::new(self.make(imports)?);
        linkers.insert(imports, Arc::clone(&linker));
        Ok(linker)
    }

    fn make(&self, Imports { grants, recorded, unconnected }: Imports) -> wasmtime::Result<Linker<Guest>> {
        let mut linker = Linker::new(&self.engine);
        if recorded {
            recorded::link(&mut linker)?
        } else {
            wasi::link(&mut linker)?
        }
        wit::types::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest)?;
        wit::log::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest)?;
        wit::job::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest)?;
        for (name, add) in GRANTABLE.iter().copied().flatten() {
            if *name == TCP && unconnected {
                tcp::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest)?;
            } else if grants.has(name) {
                match recorded::granted(name).filter(|_| recorded) {
                    Some(add) => add(&mut linker)?,
                    None => add(&mut linker)?,
                }
            }
        }
        Ok(linker)
    }
}

#[cfg(test)]
mod tests {
    use brine_capabilities::Capability;

    use super::*;

    #[test]
    fn each_capability_links_the_interfaces_that_it_declares() {
        for (capability, links) in Capability::ALL.into_iter().zip(GRANTABLE) {
            let mut linked: Vec<&str> = links.iter().map(|(name, _)| *name).collect();
            let mut declared = capability.interfaces().to_vec();
            linked.sort_unstable();
            declared.sort_unstable();
            assert_eq!(linked, declared, "{capability:?}");
        }
    }
}
