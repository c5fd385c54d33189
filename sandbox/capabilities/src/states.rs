//! `states`: run states of other modules, each in an instance of its own with the grants of the state's module.

use crate::functions::FunctionsOp;
use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    // It compiles and runs what the master's SLS files say; each state runs with the grants of its own module.
    standard: &[("state", Standard::All)],
    reported_for_all: true,
    ..Declaration::new("states", "run states", &["brine:host/states"], Kind::Names)
};

/// Upper bound on the bytes of a tag, an id, or the name of an SLS file. Salt's tags have the name, which may be a
/// whole script.
const MAX_TEXT: usize = 256 << 10;
/// Upper bound on the changed states that one state is told of.
const MAX_CHANGED: usize = 10_000;
/// Upper bound on the milliseconds of one wait: a day.
const MAX_WAIT: u64 = 86_400_000;

/// `brine:host/states`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatesOp {
    /// Returns whether a module has this state.
    Exists {
        /// `file.managed`
        state: String,
    },
    /// Runs a state. Returns its result, a map.
    Run(Chunk),
    /// Starts a state. Returns its number.
    Start(Chunk),
    /// Waits for a started state. Returns nil, or an array of number and result.
    Wait {
        /// The longest time.
        milliseconds: u64,
    },
    /// Calls a function. Returns what the operation of `functions` returns.
    Call(FunctionsOp),
    /// Returns a map of `minion` and `master`.
    Settings,
    /// Takes the pillar of the run, for all of its job. Returns nil.
    UsePillar {
        /// A MessagePack map.
        pillar: ByteBuf,
    },
    /// Keeps a result. Returns nil.
    Keep {
        /// The key in the return.
        tag: String,
        /// A MessagePack map.
        result: ByteBuf,
    },
}

/// A state to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// `file.managed`
    pub state: String,
    /// The key of the result in the return.
    pub tag: String,
    /// A MessagePack map with text keys.
    pub arguments: ByteBuf,
    /// `__id__`
    pub id: String,
    /// `__sls__`
    pub sls: String,
    /// `__env__`
    pub saltenv: String,
    /// `__run_num__`
    pub run_number: u32,
    /// The watched states that changed, as `MODULE: ID`.
    pub changed: Vec<String>,
    /// Whether the state only reports.
    pub test: bool,
}

impl Chunk {
    /// Its texts that are no names of anything, each with its name.
    fn texts(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let own =
            [("the tag", &self.tag), ("the id", &self.id), ("the SLS", &self.sls), ("the environment", &self.saltenv)];
        own.into_iter().chain(self.changed.iter().map(|text| ("a changed state", text)))
    }
}

impl Operation for StatesOp {
    const INTERFACE: &'static str = "brine:host/states";

    fn size(&self) -> Size {
        match self {
            Self::Exists { state } => Size::names(state.len()),
            // Tags and ids are content: a name may be a script.
            Self::Run(chunk) | Self::Start(chunk) => Size {
                names: chunk.state.len(),
                content: chunk.texts().map(|(_, text)| text.len() + Size::NAME).sum::<usize>() + chunk.arguments.len(),
                ..Size::default()
            },
            Self::Call(call) => call.size(),
            Self::Wait { .. } | Self::Settings => Size::default(),
            Self::UsePillar { pillar } => Size { content: pillar.len(), ..Size::default() },
            Self::Keep { tag, result } => Size { content: tag.len() + result.len(), ..Size::default() },
        }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        match &self {
            Self::Exists { state } => forms::function(state)?,
            Self::Run(chunk) | Self::Start(chunk) => {
                let state = &chunk.state;
                forms::function(state)?;
                for (what, text) in chunk.texts() {
                    forms::size(what, text.len(), MAX_TEXT)?;
                }
                if chunk.changed.len() > MAX_CHANGED {
                    return Err(forms::malformed("the list of changed states", "is too long"));
                }
                forms::size("the arguments", chunk.arguments.len(), forms::MAX_BULK)?;
                granted.permit_name(Capability::States, state, format_args!("run the state {state}"))?;
            }
            Self::Wait { milliseconds } => {
                if *milliseconds > MAX_WAIT {
                    return Err(forms::malformed("the time", "is longer than a day"));
                }
            }
            // The broker checks the function's name, because a refusal is only an error for the run.
            Self::Call(_) | Self::Settings => {}
            Self::UsePillar { pillar } => forms::size("the pillar", pillar.len(), forms::MAX_BULK)?,
            Self::Keep { tag, result } => {
                forms::size("the tag", tag.len(), MAX_TEXT)?;
                forms::size("the result", result.len(), forms::MAX_BULK)?;
            }
        }
        Ok(self)
    }

    /// The states and functions that it runs are in the same job, so their own operations are recorded.
    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }
}
