//! The parts of a capability's declaration.

use crate::check::{Asker, Refusal};
use crate::grants::{Grant, Grants};
use crate::names::Names;
use crate::programs::ProcessGrant;

/// The properties of a capability.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its key in the configuration.
    pub key: &'static str,
    /// Describes, for people, what it lets a module do: `module m may not …`.
    pub words: &'static str,
    /// Its interfaces, without version.
    pub interfaces: &'static [&'static str],
    /// The kind of its grant.
    pub kind: Kind,
    /// Whether it is granted unless the owner says otherwise.
    pub by_default: bool,
    /// Standard modules that come with a grant of it.
    pub standard: &'static [(&'static str, Standard)],
    /// Returns what is wrong with a name in the configuration.
    pub wrong_name: fn(&str) -> Option<String>,
    /// Whether `sandbox.check` reports a grant of it to every module.
    pub reported_for_all: bool,
}

impl Declaration {
    /// Returns the declaration of a capability that is not granted by default and accepts any name.
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

/// The kind of a capability's grant.
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
    /// Directories that the minion changes for the module.
    Changes,
    /// Hosts and ports.
    Network,
    /// `true` for public settings, a list for these and further ones, or `any`.
    Settings,
}

impl Kind {
    pub(crate) fn least(self) -> Grant {
        match self {
            Self::Flag | Self::Settings => Grant::Yes,
            Self::Names => Grant::Names(Names::default()),
            Self::Process => Grant::Process(ProcessGrant::default()),
            Self::Directories => Grant::Directories(Vec::new()),
            Self::Changes => Grant::Changes(Vec::new()),
            Self::Network => Grant::Network(Vec::new()),
        }
    }
}

/// The grant that comes with a standard module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standard {
    /// All of it, for a flag or names.
    All,
    /// The least grant: the interface is linked, but every call fails with an error that says what it needs.
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

/// What becomes of an operation in plan mode: in a job with `test=True`, which changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planned<Op> {
    /// It only looks, so it is performed.
    Look(Op),
    /// It is recorded with these words, and the module is answered as if it had been done.
    Done(String, Answer),
    /// It is recorded with these words, and this operation, which only looks, is performed in its place.
    Instead(String, Op),
    /// It is recorded with these words, and it ends the call: the module cannot go on without its effect.
    Stop(String),
}

impl<Op> Planned<Op> {
    /// Wraps the operation.
    pub(crate) fn map<To>(self, to: impl FnOnce(Op) -> To) -> Planned<To> {
        match self {
            Self::Look(op) => Planned::Look(to(op)),
            Self::Done(what, answer) => Planned::Done(what, answer),
            Self::Instead(what, op) => Planned::Instead(what, to(op)),
            Self::Stop(what) => Planned::Stop(what),
        }
    }
}

/// The answer to an operation that was recorded and not performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// `true`
    True,
    /// An empty array.
    Nothing,
}

/// The operations of one interface.
pub trait Operation: Sized {
    /// The interface, without version: `brine:host/grains`.
    const INTERFACE: &'static str;

    /// Returns the sizes of the message's parts. The executor bounds each part before it sends the message.
    fn size(&self) -> Size;

    /// Returns the calls that it counts as among a job's `host_calls`: more than one if it does the work of several.
    fn calls(&self) -> u32 {
        1
    }

    /// Checks the form of each argument and the names in it, after the interface was found granted. Returns the
    /// operation in the form to perform.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    fn check(self, who: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal>;

    /// Returns what becomes of the operation in plan mode, after [`Operation::check`] has allowed it. There is no
    /// default: whoever adds an operation decides whether it changes something.
    fn planned(self, granted: &Grants) -> Planned<Self>;

    /// Returns how to filter the answer for the module.
    fn shown(&self) -> Shown {
        Shown::All
    }

    /// Whether its answer may be handed over with a call, before the module asks, if earlier calls asked for it. Only for a
    /// pure look that is cheap, whose answer is small and has no secrets.
    fn is_foreseeable(&self) -> bool {
        false
    }
}

/// The part of an answer that the module may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    All,
    /// The granted keys of a pillar dict, and everything below them.
    Pillar,
    /// The granted paths of a list.
    Files,
    /// The folders of a list that may contain granted paths.
    Folders,
}

/// The sizes of a message's parts, in bytes.
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
    /// Added to each name's length, so that the number of empty names is bounded too.
    pub const NAME: usize = 8;

    /// Returns the size of a message that consists of names.
    pub fn names(names: usize) -> Self {
        Self { names, ..Self::default() }
    }

    /// Returns the size of a list of names.
    pub fn list(texts: &[String]) -> usize {
        texts.iter().map(|text| text.len() + Self::NAME).sum()
    }

    /// Returns the size of a list of names with values.
    pub fn pairs(pairs: &[(String, String)]) -> usize {
        pairs.iter().map(|(name, value)| name.len() + value.len() + 2 * Self::NAME).sum()
    }

    /// Returns the size of an optional name.
    pub fn optional(text: Option<&String>) -> usize {
        text.map_or(0, String::len)
    }
}
