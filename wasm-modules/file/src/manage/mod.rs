//! What `file.managed` makes of its arguments: the content that a file is to have, and the file.
//!
//! - `source.rs`   where content comes from; `sums.rs` the hashes that it must have; `get.rs` the content with its hash
//! - `body.rs`     content that is not read before it has to be
//! - `contents.rs` content that is said in the state; `template.rs` content that is rendered
//! - `check.rs`    what would change; `file.rs` the change
//! - `command.rs`  a program that judges the content before

pub(crate) mod body;
pub(crate) mod check;
pub(crate) mod command;
pub(crate) mod contents;
pub(crate) mod file;
pub(crate) mod functions;
pub(crate) mod get;
pub(crate) mod source;
pub(crate) mod sums;
pub(crate) mod template;

/// Why there is no content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A sentence of Salt's `file.get_managed`.
    Said(String),
    /// What is Salt's `CommandExecutionError`.
    Failed(String),
    /// Another exception.
    Raised(String),
}

impl Trouble {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Said(text) | Self::Failed(text) | Self::Raised(text) => text,
        }
    }
}
