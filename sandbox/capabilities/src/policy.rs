//! `policy`: see what the owner granted to which module. To change it is for the owner, and for the module `sandbox`.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[(DECIDES, Standard::All)],
    ..Declaration::new("policy", "see what is granted to which module", &["brine:host/policy"], Kind::Flag)
};

/// The module of what the owner and the operator decide, and its function that is the owner's alone.
const DECIDES: &str = "sandbox";
const APPROVE: &str = "sandbox.approve";

/// `brine:host/policy`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyOp {
    /// Answered by a map of module name to what `Show` answers, shorter.
    List,
    /// Answered by a map: version, sha256, signer, what it asks, what it has, what is missing; nil where there is none.
    Show {
        /// The module.
        name: String,
    },
    /// Answered by a map: the walls in force and what the kernel lacks, grants that name what is not there, who may write the
    /// configuration.
    Check,
    /// Answered by a map: what an update that is held adds and removes, and how the owner lets it in.
    Diff {
        /// The module.
        name: String,
    },
    /// Lets a content of a module in with all that it asks for; only for who called `sandbox.approve` on this host. Answered by a
    /// map: what it has now and what is still to be written.
    Approve {
        /// The module.
        name: String,
        /// The content, in hex.
        sha256: String,
    },
    /// Goes back to the last version that was good; only for the module `sandbox`. Answered by a map: both versions.
    Rollback {
        /// The module.
        name: String,
    },
}

impl Operation for PolicyOp {
    const INTERFACE: &'static str = "brine:host/policy";

    fn size(&self) -> Size {
        match self {
            Self::List | Self::Check => Size::default(),
            Self::Show { name } | Self::Diff { name } | Self::Rollback { name } => Size::names(name.len()),
            Self::Approve { name, sha256 } => Size::names(name.len() + sha256.len()),
        }
    }

    fn check(self, who: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        match &self {
            Self::List | Self::Check => Ok(self),
            Self::Show { name } | Self::Diff { name } => forms::module(name).map(|()| self),
            Self::Approve { name, sha256 } => {
                forms::module(name)?;
                forms::text("the sha256", sha256, forms::MAX_WORD, Form::Line)?;
                if who.is_typed_here(APPROVE) {
                    return Ok(self);
                }
                Err(Refusal::Never(format!(
                    "what modules may do on this host is approved on the host itself, not by a master nor from within another \
                     function; its owner can run `salt-call --local {APPROVE} {name} {sha256}` there"
                )))
            }
            Self::Rollback { name } => {
                forms::module(name)?;
                // To see what is granted is another thing than to change what runs.
                if who.module == DECIDES {
                    return Ok(self);
                }
                let module = who.module;
                Err(Refusal::Never(format!("module {module} may not change other modules; `{DECIDES}.rollback` does")))
            }
        }
    }
}
