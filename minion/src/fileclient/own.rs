//! The files of a minion without a master: those under its own `file_roots`.

use std::sync::Arc;

use brine_fileserver::{FileRequest, FileTree, TreeOpts};
use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::value::{Value, ValueExt};

use super::FileError;
use crate::connection::ChannelError;

/// The files, and the answers that a master would give about them.
#[derive(Clone)]
pub(crate) struct OwnFiles(Arc<FileTree>);

impl OwnFiles {
    /// The files that the configuration names.
    ///
    /// # Errors
    /// When a setting of the files is wrong.
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let config = config.as_masters();
        let tree = FileTree::new(&TreeOpts::from_config(&config)?);
        let wrong = |_| config.wrong(settings::FILE_IGNORE_REGEX.row.name, "a list of regular expressions");
        tree.map(|tree| Self(Arc::new(tree))).map_err(wrong)
    }

    /// Answers a request as a master does. Nobody takes a file that is pushed.
    pub(super) async fn answer(&self, load: Value) -> Result<Value, FileError> {
        let Some(what) = load.get_text("cmd").and_then(FileRequest::parse) else {
            return Err(ChannelError::NoMaster.into());
        };
        let tree = Arc::clone(&self.0);
        let answer = tokio::task::spawn_blocking(move || tree.answer(what, &load)).await;
        answer.map_err(|_| FileError::Malformed("a request about its own files"))
    }
}
