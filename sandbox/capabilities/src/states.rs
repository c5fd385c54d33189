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
    /// Calls a function of a state module that is no state. Returns what it returns.
    Ask {
        /// `pkg.mod_init`
        function: String,
        /// A MessagePack map with text keys.
        arguments: ByteBuf,
        /// Whether it may change nothing.
        test: bool,
    },
    /// Fires an event about a result. Returns true.
    Fire {
        /// The end of the event's tag.
        name: String,
        /// A MessagePack map.
        result: ByteBuf,
    },
    /// Returns nil, or a MessagePack value in an array.
    Recall {
        /// `pauses/JID` or `requests`.
        name: String,
    },
    /// Keeps a value, or forgets it. Returns nil.
    Remember {
        /// `pauses/JID` or `requests`.
        name: String,
        /// A MessagePack value.
        value: Option<ByteBuf>,
    },
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
    /// The bytes that it takes while it is kept.
    pub fn bytes(&self) -> usize {
        self.state.len() + self.content()
    }

    fn content(&self) -> usize {
        // Tags and ids are content: a name may be a script.
        self.texts().map(|(_, text)| text.len() + Size::NAME).sum::<usize>() + self.arguments.len()
    }

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
            Self::Run(chunk) | Self::Start(chunk) => {
                Size { names: chunk.state.len(), content: chunk.content(), ..Size::default() }
            }
            Self::Call(call) => call.size(),
            Self::Ask { function, arguments, .. } => {
                Size { names: function.len(), content: arguments.len(), ..Size::default() }
            }
            Self::Recall { name } => Size::names(name.len()),
            Self::Remember { name, value } => {
                Size { names: name.len(), content: value.as_ref().map_or(0, |value| value.len()), ..Size::default() }
            }
            Self::Wait { .. } | Self::Settings => Size::default(),
            Self::Fire { name, result } => Size { names: name.len(), content: result.len(), ..Size::default() },
            Self::UsePillar { pillar } => Size { content: pillar.len(), ..Size::default() },
            Self::Keep { tag, result } => Size { content: tag.len() + result.len(), ..Size::default() },
        }
    }

    fn check(self, who: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        if let Some(what) = self.of_runs().filter(|_| !who.runs_states) {
            let module = who.module;
            return Err(Refusal::Never(format!(
                "module {module} may not {what}; the module `state` of this host does"
            )));
        }
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
            Self::Ask { function, arguments, .. } => {
                forms::function(function)?;
                forms::size("the arguments", arguments.len(), forms::MAX_BULK)?;
                granted.permit_name(Capability::States, function, format_args!("call {function} of its states"))?;
            }
            Self::Fire { result, .. } => forms::size("the result", result.len(), forms::MAX_BULK)?,
            Self::Recall { name } => drop(remembered(name)?),
            Self::Remember { name, value } => {
                let most = remembered(name)?;
                forms::size("the value", value.as_ref().map_or(0, |value| value.len()), most)?;
            }
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
        match self {
            Self::Remember { name, .. } => Planned::Done(format!("remember: {name}"), Answer::Nothing),
            Self::Fire { name, .. } => {
                Planned::Done(format!("fire the event salt/state_result/*/{name}"), Answer::True)
            }
            other => Planned::Look(other),
        }
    }
}

impl StatesOp {
    /// What of it acts on the job's return, on other runs or on what all runs share, and is checked by no name: no grant
    /// gives it to a module that merely runs states.
    fn of_runs(&self) -> Option<&'static str> {
        Some(match self {
            Self::Exists { .. }
            | Self::Run(_)
            | Self::Start(_)
            | Self::Wait { .. }
            | Self::Call(_)
            | Self::Ask { .. } => {
                return None;
            }
            Self::Settings => "read the settings of runs of states",
            Self::Fire { .. } => "tell the master what a state came to",
            Self::Recall { .. } => "see which runs of states are paused or requested",
            Self::Remember { .. } => "pause or request runs of states",
            Self::UsePillar { .. } => "choose the pillar of a run of states",
            Self::Keep { .. } => "say what a state came to",
        })
    }
}

/// Upper bound on the bytes of the pauses of a run: a few words about some of its ids.
pub const MAX_PAUSE_BYTES: usize = 64 << 10;
/// Upper bound on the bytes of the runs that were requested: what their dry runs came to is among them.
pub const MAX_REQUESTS_BYTES: usize = 1 << 20;

/// Checks a name of something remembered: `requests`, or `pauses/` and a job's id. Returns the most bytes of its value.
fn remembered(name: &str) -> Result<usize, Refusal> {
    let is_jid = |jid: &str| (1..=30).contains(&jid.len()) && jid.bytes().all(|c| c.is_ascii_digit() || c == b'_');
    if name == "requests" {
        return Ok(MAX_REQUESTS_BYTES);
    }
    if name.strip_prefix("pauses/").is_some_and(is_jid) {
        return Ok(MAX_PAUSE_BYTES);
    }
    Err(forms::malformed("the name", "is neither `requests` nor `pauses/` and a job's id"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Names;

    fn remember(name: &str, bytes: usize) -> StatesOp {
        StatesOp::Remember { name: name.into(), value: Some(ByteBuf::from(vec![0; bytes])) }
    }

    fn of_runs() -> [StatesOp; 8] {
        let (data, name) = (ByteBuf::from(vec![0x80]), "pauses/20260102030405678901".to_owned());
        [
            StatesOp::Settings,
            StatesOp::Fire { name: "a".into(), result: data.clone() },
            StatesOp::Recall { name: name.clone() },
            StatesOp::Remember { name: name.clone(), value: None },
            remember(&name, 1),
            remember("requests", 1),
            StatesOp::UsePillar { pillar: data.clone() },
            StatesOp::Keep { tag: "a".into(), result: data },
        ]
    }

    fn granted(names: Names) -> Grants {
        let mut grants = Grants::default();
        grants.set_names(Capability::States, names);
        grants
    }

    /// They are checked by no name, so neither the least grant nor the largest opens them.
    #[test]
    fn runs_are_steered_by_the_module_that_runs_them_alone() {
        let state = Asker { module: "state", runs_states: true, ..Asker::default() };
        for names in [Names::Only(Vec::new()), Names::Any] {
            let grants = granted(names);
            for module in ["m", "state"] {
                let other = Asker { module, ..Asker::default() };
                for op in of_runs() {
                    let refused = op.clone().check(&other, &grants);
                    assert!(matches!(refused, Err(Refusal::Never(_))), "{module}: {op:?}");
                    assert!(op.clone().check(&state, &grants).is_ok(), "{op:?}");
                }
                let looks = [StatesOp::Exists { state: "a.b".into() }, StatesOp::Wait { milliseconds: 1 }];
                for op in looks {
                    assert!(op.clone().check(&other, &grants).is_ok(), "{op:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_remembered_is_small() {
        let (state, grants) = (Asker { runs_states: true, ..Asker::default() }, granted(Names::Any));
        for (name, most) in [("pauses/20260102030405678901", 64 << 10), ("requests", 1 << 20)] {
            let may = |bytes| remember(name, bytes).check(&state, &grants).is_ok();
            assert!(may(most) && !may(most + 1), "{name}");
        }
    }
}
