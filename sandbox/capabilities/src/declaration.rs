//! What the declaration of a capability has in it.

use crate::check::{Asker, Refusal};
use crate::grants::{Grant, Grants};
use crate::names::Names;
use crate::programs::ProcessGrant;

/// What is said of a capability as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its key in the configuration.
    pub key: &'static str,
    /// What it lets a module do, for people: `module m may not …`.
    pub words: &'static str,
    /// The interfaces it opens, without version.
    pub interfaces: &'static [&'static str],
    /// What a grant of it is made of.
    pub kind: Kind,
    /// Whether it is granted unless the owner says otherwise.
    pub by_default: bool,
    /// Standard modules that come with some of it.
    pub standard: &'static [(&'static str, Standard)],
    /// What is wrong with a name in a list of the owner's.
    pub wrong_name: fn(&str) -> Option<String>,
    /// Whether `sandbox.check` reports a grant of it to every module.
    pub reported_for_all: bool,
}

impl Declaration {
    /// Of a capability that nobody has before the owner grants it, and whose names may be any.
    pub const fn new(key: &'static str, words: &'static str, interfaces: &'static [&'static str], kind: Kind) -> Self {
        Self {
            key,
            words,
            interfaces,
            kind,
            by_default: false,
            standard: &[],
            wrong_name: |_| None,
            reported_for_all: false,
        }
    }
}

/// What a grant of a capability is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true`
    Flag,
    /// `any` or some names.
    Names,
    /// Programs.
    Process,
    /// Directories.
    Directories,
    /// Hosts and ports.
    Network,
    /// `true` for what is public, some names with that, or `any`.
    Settings,
}

impl Kind {
    pub(crate) fn least(self) -> Grant {
        match self {
            Self::Flag | Self::Settings => Grant::Yes,
            Self::Names => Grant::Names(Names::default()),
            Self::Process => Grant::Process(ProcessGrant::default()),
            Self::Directories => Grant::Directories(Vec::new()),
            Self::Network => Grant::Network(Vec::new()),
        }
    }
}

/// What a standard module comes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standard {
    /// All of it, where it is a flag or names.
    All,
    /// The least of it: linked, and nothing behind it, so that the error of a call says what it needs.
    Least,
    /// These names.
    Names(&'static [&'static str]),
}

impl Standard {
    pub(crate) fn grant(self, kind: Kind) -> Grant {
        match self {
            Self::All if kind == Kind::Names => Grant::Names(Names::Any),
            Self::All | Self::Least => kind.least(),
            Self::Names(names) => Grant::Names(Names::only(names)),
        }
    }
}

/// The operations of one interface.
pub trait Operation: Sized {
    /// The interface, without version: `brine:host/grains`.
    const INTERFACE: &'static str;

    /// What its message is made of. The executor bounds each part before it sends it.
    fn size(&self) -> Size;

    /// Checks the form of each argument and the names in it, once the interface was found granted. Comes back as it is to be done.
    ///
    /// # Errors
    /// Why it is refused.
    fn check(self, who: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal>;

    /// What of its answer is the module's to see.
    fn shown(&self) -> Shown {
        Shown::All
    }
}

/// What an answer is cut down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    All,
    /// Of a dict, the granted keys of the pillar and what is below them.
    Pillar,
    /// Of a list, the granted paths.
    Files,
    /// Of a list of folders, those that may have granted paths in them.
    Folders,
}

/// What the message of an operation is made of, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Keys, names, paths.
    pub names: usize,
    /// A command's arguments and variables.
    pub command: usize,
    /// A program's input, a body, a part of a file, arguments of a function.
    pub content: usize,
}

impl Size {
    /// What each name counts beside its text, so that empty ones are bounded too.
    pub const NAME: usize = 8;

    /// Only names.
    pub fn names(names: usize) -> Self {
        Self { names, ..Self::default() }
    }

    /// A list of names.
    pub fn list(texts: &[String]) -> usize {
        texts.iter().map(|text| text.len() + Self::NAME).sum()
    }

    /// A list of names with their values.
    pub fn pairs(pairs: &[(String, String)]) -> usize {
        pairs.iter().map(|(name, value)| name.len() + value.len() + 2 * Self::NAME).sum()
    }

    /// A name that may be missing.
    pub fn optional(text: Option<&String>) -> usize {
        text.map_or(0, String::len)
    }
}
