//! `doc.*`: documentation of functions.

use brine_protocol::value::{ValueExt as _, empty_map};

use super::ask::{self, Question};
use super::function::{Function, Outcome, Run, functions};
use super::{RUNNERS, documentation, wheel};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Asks all minions for the documentation of their functions, and returns all of it.
    "doc.execution()" => execution,
    /// Returns the documentation of the runners.
    "doc.runner()" => |_| async { Ok(documentation(RUNNERS, "salt-run ", "")) },
    /// Returns the documentation of the wheel functions.
    "doc.wheel()" => |_| async { Ok(documentation(wheel::FUNCTIONS, "", "")) },
};

async fn execution(run: Run) -> Outcome {
    let answers = ask::minions(&run.parts, Question::all("sys.doc")).await?;
    let mut docs = empty_map();
    for (_, of_minion) in answers.results() {
        for (name, doc) in of_minion.entries().unwrap_or_default() {
            if let Some(name) = name.text() {
                docs.insert(name, doc.clone());
            }
        }
    }
    Ok(docs)
}
