//! Why the minion is not signed in, and why a request has no answer.

use brine_protocol::auth::AuthError;
use brine_protocol::exit;
use brine_protocol::keys::KeyError;
use brine_protocol::request::ReplyError;
use brine_zmtp::RequestError;

use crate::pki::PkiError;

/// Why the minion is not signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// An operator has to accept the key.
    #[error(
        "the master at {master} has the minion's key but has not accepted it; accept it there with: salt-key -a {id}"
    )]
    Pending {
        /// The master.
        master: String,
        /// This minion.
        id: String,
        /// The master bears being asked again at once.
        again_soon: bool,
    },
    /// An operator rejected the key, or another minion has this id.
    #[error(
        "the master at {master} rejected the minion's key; if that was not meant, delete the key there (salt-key -d {id}) and start this minion again"
    )]
    Rejected {
        /// The master.
        master: String,
        /// This minion.
        id: String,
    },
    /// `max_minions`
    #[error("the master at {master} has as many minions as it may (its setting max_minions)")]
    Full {
        /// The master.
        master: String,
    },
    /// The master did not reply.
    #[error("the master does not answer: {0}")]
    Silent(#[from] RequestError),
    /// The master's reply cannot be trusted.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The files of the keys cannot be used.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The minion's own key cannot be used.
    #[error("the minion's key cannot be used: {0}")]
    Key(#[from] KeyError),
}

impl SignInError {
    /// Salt's exit code for a minion that gives up because of this.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Rejected { .. } => exit::NO_PERMISSION,
            Self::Auth(e) if e.is_permanent() => exit::OPTION,
            Self::Pki(_) | Self::Key(_) => exit::GENERIC,
            _ => exit::STATE_FAILURE, // the code of a salt-call that is not accepted
        }
    }

    /// Whether another try needs a change on this host first.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Auth(e) => e.is_permanent(),
            Self::Pki(_) | Self::Key(_) => true,
            _ => false,
        }
    }
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// `salt-call --local`
    #[error("there is no master to ask: this runs without one (--local, file_client)")]
    NoMaster,
    /// The minion has not signed in yet.
    #[error("not signed in at the master yet")]
    NotSignedIn,
    /// The master did not reply.
    #[error(transparent)]
    Network(#[from] RequestError),
    /// The master refused the request, also after authenticating again.
    #[error("the master refused it: {0}")]
    Refused(String),
    /// The reply cannot be used.
    #[error(transparent)]
    Reply(ReplyError),
    /// Authenticating again failed.
    #[error(transparent)]
    SignIn(#[from] SignInError),
    /// The minion's key cannot be used.
    #[error("the minion's key cannot be used: {0}")]
    Key(#[from] KeyError),
}
