//! Decides from imports, functions and the owner's configuration what each function may do.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use brine_capabilities::{Grants, Names};
use brine_sandbox_wire::DirectGrants;

use super::always;
use super::{Capability, Explain, Grant, Levels, MODULE, Policy, Refused, Rules, Signers, Subject};
use crate::kernel::broker::Remedy;

/// The grants of a module's functions, for each master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleGrants {
    interfaces: BTreeSet<&'static str>,
    general: OfMaster,
    /// Masters with rules of their own.
    masters: HashMap<String, OfMaster>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OfMaster {
    /// The decision for functions without entries of their own.
    rest: Decided,
    functions: HashMap<String, Decided>,
}

/// The grants of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The grants.
    pub grants: Arc<Grants>,
    /// For errors: which configuration would grant more.
    pub(crate) explain: Arc<Explain>,
}

/// A decision, or one line that says why the function cannot be called at all.
type Decided = Result<Granted, Arc<str>>;

impl Granted {
    /// Returns the object that explains how the owner would grant more.
    pub fn remedy(&self) -> Arc<dyn Remedy> {
        self.explain.clone()
    }
}

impl ModuleGrants {
    /// Returns the grants of a function in a job of this master, or of this host if `master` is None.
    ///
    /// # Errors
    ///
    /// Returns one line that says why the function cannot be called.
    pub fn of(&self, function: &str, master: Option<&str>) -> Result<Granted, String> {
        let of_master = master.and_then(|master| self.masters.get(master)).unwrap_or(&self.general);
        let decided = of_master.functions.get(function).unwrap_or(&of_master.rest);
        decided.clone().map_err(|why| why.to_string())
    }

    /// Returns the interfaces to link: those that any function may use for any master.
    pub fn interfaces(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.interfaces.iter().copied()
    }

    /// Returns the distinct sets of direct grants of its functions.
    pub fn directs(&self) -> BTreeSet<&DirectGrants> {
        self.each().map(|(_, _, grants)| &grants.direct).collect()
    }

    /// Returns all grants, each with its master (None: in general) and its function (None: the others).
    pub fn each(&self) -> impl Iterator<Item = (Option<&str>, Option<&str>, &Arc<Grants>)> {
        self.answers()
            .filter_map(|(master, function, decided)| Some((master, function, &decided.as_ref().ok()?.grants)))
    }

    fn answers(&self) -> impl Iterator<Item = (Option<&str>, Option<&str>, &Decided)> {
        let masters = self.masters.iter().map(|(master, of)| (Some(master.as_str()), of));
        std::iter::once((None, &self.general)).chain(masters).flat_map(|(master, of)| {
            let functions = of.functions.iter().map(|(function, decided)| (Some(function.as_str()), decided));
            std::iter::once((None, &of.rest))
                .chain(functions)
                .map(move |(function, decided)| (master, function, decided))
        })
    }
}

impl Policy {
    /// Decides on a module by its imports (`brine:host/grains@1.0.0`) and its functions.
    ///
    /// # Errors
    ///
    /// The module lacks a grant or a signature, or is revoked.
    pub fn decide<F: AsRef<str>>(
        &self,
        subject: &Subject<'_>,
        imports: &[String],
        functions: &[F],
    ) -> Result<ModuleGrants, Box<Refused>> {
        self.decide_on(subject, imports, functions, false)
    }

    /// Like [`Policy::decide`], for a content that the owner may have approved. An approved content gets the least of
    /// each capability that it asks for, unless an entry says otherwise.
    pub(crate) fn decide_on<F: AsRef<str>>(
        &self,
        subject: &Subject<'_>,
        imports: &[String],
        functions: &[F],
        approved: bool,
    ) -> Result<ModuleGrants, Box<Refused>> {
        let mut refused = Refused::new(subject);
        if self.revoked.sha256.contains(&subject.sha256) {
            refused.unsigned = Some(super::refused::revoked(subject));
            return Err(Box::new(refused));
        }
        let mut known: BTreeMap<Capability, BTreeSet<&'static str>> = BTreeMap::new();
        let mut unknown = Vec::new();
        for import in imports {
            let interface = import.split_once('@').map_or(import.as_str(), |(interface, _)| interface);
            match Capability::of(interface) {
                _ if always(interface) => {}
                Some((capability, interface)) => {
                    known.entry(capability).or_default().insert(interface);
                }
                None => unknown.push(import.clone()),
            }
        }
        refused.unknown = unknown;
        let named: BTreeSet<&str> =
            functions.iter().map(AsRef::as_ref).filter(|function| self.names_function(subject, function)).collect();
        // If every function has an entry, there are no other functions to decide on.
        let others = functions.is_empty() || named.len() < functions.len();
        let of_master = |master: Option<&str>| OfMaster {
            rest: self.decide_one(subject, &known, None, (master, approved)),
            functions: named
                .iter()
                .map(|function| {
                    ((*function).to_owned(), self.decide_one(subject, &known, Some(function), (master, approved)))
                })
                .collect(),
        };
        let grants = ModuleGrants {
            interfaces: BTreeSet::new(),
            general: of_master(None),
            masters: self.masters.keys().map(|master| (master.clone(), of_master(Some(master)))).collect(),
        };
        let counts = |function: Option<&str>| others || function.is_some();
        let mut unsigned = None;
        let mut callable = None;
        let mut interfaces = BTreeSet::new();
        for (master, function, decided) in grants.answers().filter(|(_, function, _)| counts(*function)) {
            match decided {
                Ok(granted) => {
                    callable = callable.or(Some((function, master)));
                    interfaces.extend(granted.grants.interfaces());
                }
                Err(why) => unsigned = unsigned.or(Some(why)),
            }
        }
        let Some((function, master)) = callable else {
            refused.unsigned = unsigned.map(ToString::to_string);
            return Err(Box::new(refused));
        };
        for (capability, wanted) in &known {
            if !wanted.iter().all(|interface| interfaces.contains(interface)) {
                let explain = self.explain(subject, function, master);
                refused.lack(*capability, wanted, imports, explain.lifting(*capability, capability.least()));
            }
        }
        if refused.is_empty() { Ok(ModuleGrants { interfaces, ..grants }) } else { Err(Box::new(refused)) }
    }

    /// Checks whether an entry is about this function, or about its group, and not about the
    /// module: the owner's, or a profile's if the module is a standard one.
    fn names_function(&self, subject: &Subject<'_>, function: &str) -> bool {
        let key = |function: &str| (subject.name.clone(), function.to_owned());
        let keys = [Some(key(function)), brine_component::group(function).map(key)];
        let named = |rules: &Rules| keys.iter().flatten().any(|key| rules.functions.contains_key(key));
        std::iter::once(&self.general).chain(self.masters.values()).any(named)
            || subject.standard && self.profile_names(subject.name, function)
    }

    fn decide_one(
        &self,
        subject: &Subject<'_>,
        known: &BTreeMap<Capability, BTreeSet<&'static str>>,
        function: Option<&str>,
        (master, approved): (Option<&str>, bool),
    ) -> Decided {
        let entries = self.entries(subject.name, function, master);
        self.signed(subject, &entries, function, master)?;
        let mut grants = Grants::default();
        let user = entries.iter().flatten().filter(|entry| entry.binds(subject.sha256, subject.signers));
        grants.user = user.filter_map(|entry| entry.user.clone()).next();
        for (capability, interfaces) in known {
            let (mut grant, _) = self.grant(subject, &entries, (function, *capability), approved);
            if let Grant::Process(process) = &mut grant
                && subject.standard
            {
                process.own_looks = brine_capabilities::standard_looks(subject.name.as_str());
            }
            if grant != Grant::No {
                grants.put(*capability, interfaces.iter().copied(), grant, &self.host);
            }
        }
        // What runs states calls functions too, for templates and conditions: by the grant of functions, if it has one.
        if known.contains_key(&Capability::States) && !known.contains_key(&Capability::Functions) {
            let (grant, _) = self.grant(subject, &entries, (function, Capability::Functions), approved);
            if grant != Grant::No {
                let interfaces = Capability::Functions.interfaces().iter().copied();
                grants.put(Capability::Functions, interfaces, grant, &self.host);
            }
        }
        Ok(Granted { grants: Arc::new(grants), explain: self.explain(subject, function, master).into() })
    }

    /// Returns the profile that gives a function this capability. None if it is granted by something else, or not.
    pub(crate) fn profile_of(
        &self,
        subject: &Subject<'_>,
        function: Option<&str>,
        master: Option<&str>,
        capability: Capability,
    ) -> Option<String> {
        let entries = self.entries(subject.name, function, master);
        self.grant(subject, &entries, (function, capability), false).1
    }

    /// Returns the grant that applies to a capability of a function, and the profile that it comes from, if it comes
    /// from one.
    fn grant(
        &self,
        subject: &Subject<'_>,
        entries: &Levels<'_>,
        (function, capability): (Option<&str>, Capability),
        approved: bool,
    ) -> (Grant, Option<String>) {
        let said = entries.iter().flatten().find_map(|entry| entry.answer(subject.sha256, subject.signers, capability));
        let comes_with = || if subject.standard { capability.standard(subject.name.as_str()) } else { None };
        let by_approval = || approved.then(|| capability.least());
        // A standard module to which a capability is refused gets the least grant, because only some of its functions
        // need the capability. The interface is linked, calls of it fail, and functions such as `test.ping` still work.
        let said = match said {
            Some(Grant::No) if matches!(comes_with(), Some(Grant::Names(Names::Only(_)))) => Some(capability.least()),
            said => said.cloned(),
        };
        let by_profile = || {
            let granted = self.granted_by_profiles(subject.name, function, capability).filter(|_| subject.standard);
            granted.map(|(grant, profiles)| (grant, Some(profiles)))
        };
        if let Some(granted) = said.is_none().then(by_profile).flatten() {
            return granted;
        }
        let other = said.or_else(comes_with).or_else(by_approval).or_else(|| capability.by_default());
        (other.unwrap_or(Grant::No), None)
    }

    /// Checks the module's signatures against the most specific requirement.
    fn signed(
        &self,
        subject: &Subject<'_>,
        entries: &Levels<'_>,
        function: Option<&str>,
        master: Option<&str>,
    ) -> Result<(), Arc<str>> {
        let named = if subject.standard { MODULE + 1 } else { entries.len() };
        let demand = entries[..named].iter().enumerate().find_map(|(level, entry)| {
            let signers = entry.as_ref()?.signed_by.as_ref()?;
            // An exemption from signatures is a permission, so it is bound to the entry's content.
            let counts = *signers != Signers::NotNeeded || entry.is_some_and(|entry| entry.binds(subject.sha256, &[]));
            counts.then_some((level, *entry.as_ref()?))
        });
        match demand {
            Some((level, entry)) if !entry.signed(subject.signers) => {
                Err(super::refused::unsigned(subject, entry, level, function, master).into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn explain(&self, subject: &Subject<'_>, function: Option<&str>, master: Option<&str>) -> Explain {
        Explain::new(self, subject, function, master)
    }
}
