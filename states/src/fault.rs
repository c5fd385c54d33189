//! What ends a compile or a run where Salt has no list of errors for it.

/// What Salt does not expect: Python raises an exception, or our bounds are reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An exception of Python, as a traceback ends with it.
    #[error("{class}: {message}")]
    Python {
        /// The name of its class.
        class: &'static str,
        /// Its text.
        message: String,
    },
    /// `SaltRenderError`, which the callers of a top file catch.
    #[error("SaltRenderError: {0}")]
    Render(String),
    /// More than [`Limits`](crate::Limits) allow.
    #[error("{0}")]
    Limit(String),
}

pub(crate) type Res<T> = Result<T, Fault>;

impl Fault {
    pub(crate) fn python(class: &'static str, message: impl Into<String>) -> Self {
        Self::Python { class, message: message.into() }
    }

    pub(crate) fn type_error(message: impl Into<String>) -> Self {
        Self::python("TypeError", message)
    }
}
