//! The error of a request that cannot be answered properly.

/// A reason for the log. The sender gets only Salt's general text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Fault(String);

impl Fault {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

macro_rules! from_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Self(error.to_string())
            }
        }
    )*};
}

from_errors!(
    brine_protocol::keys::KeyError,
    brine_protocol::job::JobError,
    crate::keys::MinionKeyError,
    crate::jobs::StoreError
);
