//! What goes wrong in work on data.

/// Why an execution function gives nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// `CommandExecutionError` or `SaltInvocationError`; otherwise, an exception of Python.
    pub refused: bool,
    /// Its text.
    pub message: String,
}

impl CallError {
    /// An exception of Python: `TypeError`, `KeyError` and the like.
    pub fn python(message: impl Into<String>) -> Self {
        Self { refused: false, message: message.into() }
    }

    /// `CommandExecutionError` or `SaltInvocationError`.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { refused: true, message: message.into() }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CallError {}
