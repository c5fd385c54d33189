//! The masters of this minion: which connection a request goes to. There is one master, or none for `salt-call --local`.

use std::sync::Arc;

use super::channel::Channel;
use super::error::ChannelError;

/// The connections to the masters. Clones share them.
#[derive(Clone)]
pub struct Masters {
    only: Option<Arc<Channel>>,
}

impl Masters {
    /// One master behind this connection, or no master.
    pub fn new(only: Option<Arc<Channel>>) -> Self {
        Self { only }
    }

    /// The master to ask where no job decides it: for the pillar, modules, files, the mine and the minion's own events.
    ///
    /// # Errors
    /// [`ChannelError::NoMaster`] for `salt-call --local`.
    pub fn preferred(&self) -> Result<&Arc<Channel>, ChannelError> {
        self.only.as_ref().ok_or(ChannelError::NoMaster)
    }

    /// The master that asked for a job: the one whose key has this fingerprint. A job of this host has no fingerprint and uses
    /// the preferred master.
    ///
    /// # Errors
    /// [`ChannelError::NoMaster`], or [`ChannelError::NotSignedIn`] when the minion is not signed in at that master.
    pub fn asker(&self, master: Option<&str>) -> Result<&Arc<Channel>, ChannelError> {
        let channel = self.preferred()?;
        match master {
            Some(fingerprint) if channel.current_sign_in().is_none_or(|live| *live.master != *fingerprint) => {
                Err(ChannelError::NotSignedIn)
            }
            _ => Ok(channel),
        }
    }
}
