//! Output: what all of Salt's commands share, with the failures of those here.

pub use brine_protocol::commandline::output::{Printer, stderr, stdout};

use brine_protocol::commandline::output::OutputError;
use brine_protocol::exit;

use super::Failure;

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::new(exit::USAGE, error.to_string())
    }
}
