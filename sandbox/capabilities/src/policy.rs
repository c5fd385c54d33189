//! `policy`: read the owner's grants for modules. Changes need the owner and the module `sandbox`.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[(DECIDES, Standard::All)],
    ..Declaration::new("policy", "see what is granted to which module", &["brine:host/policy"], Kind::Flag)
};

/// The module for decisions of the owner and the operator, and its function that only the owner may use.
const DECIDES: &str = "sandbox";
const APPROVE: &str = "sandbox.approve";
/// The functions that change the owner's configuration, and that only the owner may use.
const GRANT: &str = "sandbox.grant";
const REVOKE: &str = "sandbox.revoke";
/// Upper bound on the bytes of a line of configuration.
const MAX_LINE: usize = 16 << 10;
/// Upper bound on an age: a hundred years in seconds.
const MAX_AGE: u64 = 3_155_760_000;

/// `brine:host/policy`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyOp {
    /// Returns a map of module names to shorter forms of the result of `Show`.
    List,
    /// Returns a map: version, sha256, signer, imports, grants, missing grants. Nil if there is no such module.
    Show {
        /// The module.
        name: String,
    },
    /// Returns a map: the walls in force and what the kernel lacks, grants that name something missing, and users who
    /// may write the configuration.
    Check,
    /// Returns a map: what a held update adds and removes, and how the owner admits it.
    Diff {
        /// The module.
        name: String,
    },
    /// Approves a content of a module with all that it asks for. Only for a call of `sandbox.approve` on this host.
    /// Returns a map: its grants now, and configuration lines that are still needed.
    Approve {
        /// The module.
        name: String,
        /// The content, in hex.
        sha256: String,
    },
    /// Returns a list of maps: the jobs that run, and what their calls use of their limits.
    Running,
    /// Returns a list of maps: what was refused on this host, the last first.
    Refusals,
    /// Returns a list of maps: the lines of configuration that would have let refused calls be, and why.
    Suggest {
        /// Only what was refused within this many seconds.
        since_s: Option<u64>,
        /// Only of this module.
        module: Option<String>,
    },
    /// Writes a line of configuration into the owner's file. Only for a call of `sandbox.grant` on this host. Returns a map: what
    /// changed.
    Grant {
        /// `cmd: {process: [/usr/bin/uptime]}`
        line: String,
    },
    /// Takes a line back. Only for a call of `sandbox.revoke` on this host. Returns a map: what changed.
    Revoke {
        /// As for `Grant`.
        line: String,
    },
    /// Restores the last good version. Only for the module `sandbox`. Returns a map: both versions.
    Rollback {
        /// The module.
        name: String,
    },
}

impl Operation for PolicyOp {
    const INTERFACE: &'static str = "brine:host/policy";

    fn size(&self) -> Size {
        match self {
            Self::List | Self::Check | Self::Running | Self::Refusals => Size::default(),
            Self::Suggest { module, .. } => Size::names(module.as_ref().map_or(0, String::len)),
            Self::Grant { line } | Self::Revoke { line } => Size::names(line.len()),
            Self::Show { name } | Self::Diff { name } | Self::Rollback { name } => Size::names(name.len()),
            Self::Approve { name, sha256 } => Size::names(name.len() + sha256.len()),
        }
    }

    fn check(self, who: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        match &self {
            Self::List | Self::Check | Self::Running | Self::Refusals => Ok(self),
            Self::Suggest { since_s, module } => {
                if since_s.is_some_and(|age| age > MAX_AGE) {
                    return Err(forms::malformed("the age", "is more than a hundred years"));
                }
                module.as_deref().map_or(Ok(()), forms::module).map(|()| self)
            }
            Self::Grant { line } => typed(who, GRANT, line).map(|()| self),
            Self::Revoke { line } => typed(who, REVOKE, line).map(|()| self),
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
                // Reading grants does not include changing what runs.
                if who.module == DECIDES {
                    return Ok(self);
                }
                let module = who.module;
                Err(Refusal::Never(format!("module {module} may not change other modules; `{DECIDES}.rollback` does")))
            }
        }
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        match self {
            Self::Approve { name, .. } => Planned::Stop(format!("approve module {name}")),
            Self::Rollback { name } => Planned::Stop(format!("go back to the version of {name} before")),
            // In test mode these say what they would change.
            look => Planned::Look(look),
        }
    }
}

/// The owner alone changes the configuration, by a call that was typed on this host.
fn typed(who: &Asker<'_>, function: &str, line: &str) -> Result<(), Refusal> {
    forms::text("the line", line, MAX_LINE, Form::Line)?;
    if who.is_typed_here(function) {
        return Ok(());
    }
    Err(Refusal::Never(format!(
        "the configuration of this host is changed on the host itself, not by a master nor from within another function; its owner can \
         run `salt-call --local {function}` there"
    )))
}
