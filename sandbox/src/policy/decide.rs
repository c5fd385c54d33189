//! From imports, functions and the owner's word to what each function may do.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use brine_capabilities::{Grants, Names};
use brine_sandbox_wire::DirectGrants;

use super::always;
use super::{Capability, Entry, Explain, Grant, Policy, Refused, Signers, Subject};
use crate::broker::Remedy;

/// What the functions of a module may do, for each master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleGrants {
    interfaces: BTreeSet<&'static str>,
    general: OfMaster,
    /// Of masters that the policy says something about.
    masters: HashMap<String, OfMaster>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OfMaster {
    /// Of functions that the policy says nothing about.
    rest: Decided,
    functions: HashMap<String, Decided>,
}

/// What one function was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The grants.
    pub grants: Arc<Grants>,
    /// For errors: how the owner would grant more.
    pub(crate) explain: Arc<Explain>,
}

/// Or the line that says why the function cannot be called at all.
type Decided = Result<Granted, Arc<str>>;

impl Granted {
    /// What says how the owner would grant more.
    pub fn remedy(&self) -> Arc<dyn Remedy> {
        self.explain.clone()
    }
}

impl ModuleGrants {
    /// What a function may do in a job of this master; none: a job of this host's own. The error is one line.
    pub fn of(&self, function: &str, master: Option<&str>) -> Result<Granted, String> {
        let of_master = master.and_then(|master| self.masters.get(master)).unwrap_or(&self.general);
        let decided = of_master.functions.get(function).unwrap_or(&of_master.rest);
        decided.clone().map_err(|why| why.to_string())
    }

    /// The interfaces to link: what any function may use for any master.
    pub fn interfaces(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.interfaces.iter().copied()
    }

    /// What its functions reach themselves: each set once.
    pub fn directs(&self) -> BTreeSet<&DirectGrants> {
        self.each().map(|(_, _, grants)| &grants.direct).collect()
    }

    /// Every answer there is: of a master or in general, of a function or of the others.
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
    /// Decides on a module by what it imports (`brine:host/grains@1.0.0`) and which functions it has.
    pub fn decide<F: AsRef<str>>(
        &self,
        subject: &Subject<'_>,
        imports: &[String],
        functions: &[F],
    ) -> Result<ModuleGrants, Box<Refused>> {
        self.decide_on(subject, imports, functions, false)
    }

    /// The same of a content that the owner may have approved: then it is granted the least of what it asks for, where no entry says
    /// anything else.
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
        // Where every function is named, what holds for "the others" holds for none.
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

    /// Whether any entry is about this function alone.
    fn names_function(&self, subject: &Subject<'_>, function: &str) -> bool {
        let key = (subject.name.clone(), function.to_owned());
        std::iter::once(&self.general).chain(self.masters.values()).any(|rules| rules.functions.contains_key(&key))
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
            let grant = self.grant(subject, &entries, *capability, approved);
            if grant != Grant::No {
                grants.put(*capability, interfaces.iter().copied(), grant, &self.host);
            }
        }
        Ok(Granted { grants: Arc::new(grants), explain: self.explain(subject, function, master).into() })
    }

    /// The word that counts.
    fn grant(
        &self,
        subject: &Subject<'_>,
        entries: &[Option<&Entry>; 6],
        capability: Capability,
        approved: bool,
    ) -> Grant {
        let said = entries.iter().flatten().find_map(|entry| entry.answer(subject.sha256, subject.signers, capability));
        let comes_with = || if subject.standard { capability.standard(subject.name.as_str()) } else { None };
        let by_approval = || approved.then(|| capability.least());
        // Refused to a standard module, of which it is one function among others: linked with nothing behind it, so that a call of that
        // function is the error, and `test.ping` answers.
        let said = match said {
            Some(Grant::No) if matches!(comes_with(), Some(Grant::Names(Names::Only(_)))) => Some(capability.least()),
            said => said.cloned(),
        };
        said.or_else(comes_with).or_else(by_approval).or_else(|| capability.by_default()).unwrap_or(Grant::No)
    }

    /// Whether the module is signed as the most particular word on signatures wants it.
    fn signed(
        &self,
        subject: &Subject<'_>,
        entries: &[Option<&Entry>; 6],
        function: Option<&str>,
        master: Option<&str>,
    ) -> Result<(), Arc<str>> {
        let named = if subject.standard { 4 } else { entries.len() };
        let demand = entries[..named].iter().enumerate().find_map(|(level, entry)| {
            let signers = entry.as_ref()?.signed_by.as_ref()?;
            // That it need not be signed is a permission, and bound to the content as all of them.
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
