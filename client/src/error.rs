//! Errors between a client and its master. The texts are Salt's where Salt has one, because operators and scripts know
//! them.

use std::path::PathBuf;

/// Why a request to the master failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No process listens on the master's event bus.
    #[error("The salt master could not be contacted. Is master running?")]
    MasterDown {
        /// The socket.
        socket: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// This user may not open the master's event bus.
    #[error(
        "Permission denied: the master's event bus {} may not be opened by this user: run this as root or as the user that the master \
         runs as.", .0.display()
    )]
    NotPermitted(PathBuf),
    /// The request got no reply.
    #[error(
        "Salt request timed out. The master is not responding. You may need to run your command with `--async` in order \
         to bypass the congested event bus. With `--async`, the CLI tool will print the job id (jid) and exit \
         immediately without listening for responses. You can then use `salt-run jobs.lookup_jid` to look up the results \
         of the job in the job cache later."
    )]
    Timeout(#[source] brine_zmtp::RequestError),
    /// The key, token or password was refused; `reason` adds what this side knows.
    #[error("{message}")]
    Authentication {
        /// The master's text.
        message: String,
        /// Why the key could not be read, if that is known.
        reason: Option<String>,
    },
    /// The caller is not permitted to do this.
    #[error("{0}")]
    Authorization(String),
    /// The master refused for another reason.
    #[error("{0}")]
    Refused(String),
    /// The target matched no minion, so no job was made. A master that could not parse the target gives the reason.
    #[error("No minions matched the target. No command was sent, no jid was assigned.")]
    NoMatch {
        /// The error in the target.
        why: Option<String>,
    },
    /// The reply is malformed.
    #[error("the master's reply makes no sense: {0}")]
    Reply(String),
    /// The configured address of the master is invalid.
    #[error("the master's address {address} (interface, ret_port) is not valid: {reason}")]
    Address {
        /// The configured address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The event bus closed before the result came.
    #[error("the master closed its event bus before the result came; it may have stopped")]
    BusClosed,
    /// A result did not come in time.
    #[error("no result within {0} seconds; it may come later: salt-run jobs.lookup_jid {1}")]
    NoResult(u64, String),
}

impl ClientError {
    /// Whether the master understood the request and refused it.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Authentication { .. } | Self::Authorization(_) | Self::Refused(_))
    }

    /// One line of advice for the operator beyond the error's own text.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::MasterDown { socket, source } => {
                use std::io::ErrorKind::{ConnectionRefused, NotFound};
                let socket = socket.display();
                Some(match source.kind() {
                    NotFound | ConnectionRefused => format!(
                        "No master has its event bus at {socket}: start salt-master, or name its configuration folder with -c."
                    ),
                    _ => format!("The master's event bus {socket} cannot be opened: {source}."),
                })
            }
            Self::Timeout(source) => Some(source.to_string()),
            Self::Authentication { reason, .. } => reason.clone(),
            Self::NoMatch { why } => why.clone(),
            _ => None,
        }
    }
}
