//! A refused module: what is missing, in one line, with the configuration that would grant it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use brine_sandbox_wire::Sha256Hex;

use super::line::Line;
use super::{Capability, Entry, Quorum, Signers, Subject};
use crate::ModuleName;
use crate::sentence::join_names;

/// A module that imports something it was not granted, or lacks a required signature. Displays as one line with the
/// exact configuration that would grant it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The module.
    pub module: ModuleName,
    /// Its content.
    pub sha256: Sha256Hex,
    /// Missing imports that the owner can grant.
    pub missing: BTreeMap<String, Capability>,
    /// Imports that are not interfaces of Brine.
    pub unknown: Vec<String>,
    /// The reason why its signature, the lack of one, or its content prevents its use, whatever is granted.
    pub unsigned: Option<String>,
    /// The configuration entries that would grant what is missing.
    lines: Vec<Line>,
}

impl Refused {
    pub(super) fn new(subject: &Subject<'_>) -> Self {
        Self {
            module: subject.name.clone(),
            sha256: subject.sha256,
            missing: BTreeMap::new(),
            unknown: Vec::new(),
            unsigned: None,
            lines: Vec::new(),
        }
    }

    pub(super) fn lack(
        &mut self,
        capability: Capability,
        interfaces: &BTreeSet<&'static str>,
        imports: &[String],
        line: Line,
    ) {
        let name = |import: &str| import.split('@').next().is_some_and(|name| interfaces.contains(name));
        self.missing.extend(imports.iter().filter(|import| name(import)).map(|import| (import.clone(), capability)));
        match self.lines.iter_mut().find(|known| known.place() == line.place()) {
            Some(known) => known.and(capability, capability.least()),
            None => self.lines.push(line),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unknown.is_empty() && self.unsigned.is_none()
    }

    /// Returns the configuration lines that would grant what is missing. None if no line can.
    pub fn lines(&self) -> Option<String> {
        self.granting().map(Line::file)
    }

    /// Returns each of these lines alone.
    pub(crate) fn each_line(&self) -> Vec<String> {
        self.granting().unwrap_or_default().iter().map(Line::text).collect()
    }

    /// What was wanted and not granted, without the remedy.
    pub(crate) fn wanted(&self) -> String {
        let words: BTreeSet<&str> = self.missing.values().map(|capability| capability.words()).collect();
        match (&self.unsigned, words.is_empty()) {
            (Some(unsigned), _) => unsigned.clone(),
            (None, false) => join_names(&words.into_iter().collect::<Vec<_>>()),
            (None, true) => format!("use {}", join_names(&self.unknown.iter().map(String::as_str).collect::<Vec<_>>())),
        }
    }

    fn granting(&self) -> Option<&[Line]> {
        (self.unknown.is_empty() && self.unsigned.is_none()).then_some(&*self.lines)
    }
}

/// Returns why a module without the required signatures is refused.
pub(super) fn unsigned(
    subject: &Subject<'_>,
    entry: &Entry,
    level: usize,
    function: Option<&str>,
    master: Option<&str>,
) -> String {
    let name = subject.name;
    let key = match level {
        0 | 1 => format!("{name}.{}", function.unwrap_or_default()),
        2 | 3 => format!("{name}.{}", function.and_then(brine_component::group).unwrap_or_default()),
        4 | 5 => name.to_string(),
        _ => "*".to_owned(),
    };
    let of_master = match master {
        Some(master) if level.is_multiple_of(2) => format!("masters:{master}:"),
        _ => String::new(),
    };
    let (have, ask) = match &entry.signed_by {
        Some(Signers::Needed(quorum)) => (quorum.signed_by(subject.signers), asked(quorum)),
        _ => (0, String::new()),
    };
    let what = match (subject.signers, have) {
        ([], _) => "is not signed".to_owned(),
        (_, 0) => "is signed by another key".to_owned(),
        (_, have) => format!("is signed by {have} of the keys that are asked for"),
    };
    format!(
        "module {name} {what}, and sandbox:{of_master}modules:{key}:signed_by asks for {ask}; have it signed with `salt-module sign \
         {name}.wasm` and put {name}.wasm.minisig beside it"
    )
}

/// Describes the required signatures.
fn asked(quorum: &Quorum) -> String {
    let signatures = match quorum.at_least {
        0 | 1 => "a signature of".to_owned(),
        several => format!("signatures of {several} of"),
    };
    if quorum.any {
        return format!(
            "{signatures} {} in the owner's folder of keys",
            if quorum.at_least > 1 { "the keys" } else { "a key" }
        );
    }
    let written: Vec<&str> = quorum.of.iter().map(|signer| signer.written.as_str()).collect();
    format!("{signatures} {}", join_names(&written))
}

/// Returns why a module with a revoked content is refused.
pub(super) fn revoked(subject: &Subject<'_>) -> String {
    format!(
        "module {} is refused: the owner of this host revoked this content (sha256 {}, by sandbox:revoked:sha256); install another \
         version of it",
        subject.name, subject.sha256
    )
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(unsigned) = &self.unsigned {
            return f.write_str(unsigned);
        }
        write!(f, "module {} imports ", self.module)?;
        let missing: Vec<&str> = self.missing.keys().map(String::as_str).collect();
        let mut parts = Vec::new();
        if !missing.is_empty() {
            let are = if missing.len() == 1 { "is" } else { "are" };
            parts.push(format!("{}, which {are} not granted to it", join_names(&missing)));
        }
        if !self.unknown.is_empty() {
            let are = if self.unknown.len() == 1 { "is no interface" } else { "are no interfaces" };
            parts.push(format!("{}, which {are} of Brine", join_names(&self.unknown)));
        }
        f.write_str(&parts.join("; and "))?;
        match self.granting() {
            Some(lines) => f.write_str(&Line::sentence(lines)),
            None => Ok(()),
        }
    }
}
