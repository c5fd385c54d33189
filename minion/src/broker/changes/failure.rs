//! Errors of operations, in the words of Python's `OSError`, which Salt's users know.

use rustix::io::Errno;

/// Why an operation was not performed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The system's error.
    System(Errno),
    /// A link leads to this path, which is not granted, or not for a change.
    NotGranted(String),
    /// No grant opens this.
    Denied(String),
    /// One line.
    Other(String),
}

/// The same, with the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::broker) enum Said {
    Failed(String),
    Denied(String),
    NotGranted(String),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => Self::System(errno),
            None => Self::Other(error.to_string()),
        }
    }
}

impl Failure {
    pub(super) fn at(self, path: &str) -> Said {
        match self {
            Self::System(error) => Said::Failed(system(error, path)),
            Self::Other(why) => Said::Failed(format!("{why}: '{path}'")),
            Self::Denied(why) => Said::Denied(why),
            Self::NotGranted(path) => Said::NotGranted(path),
        }
    }
}

fn system(error: Errno, path: &str) -> String {
    let text = std::io::Error::from(error).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("[Errno {}] {text}: '{path}'", error.raw_os_error())
}
