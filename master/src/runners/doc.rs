//! `doc.*`: documentation of functions.

use brine_protocol::value::{ValueExt as _, empty_map};

use super::ask::{self, Question};
use super::function::{Function, Outcome, Run};
use super::{RUNNERS, documentation, wheel};

/// The functions of this module.
pub(super) const FUNCTIONS: [Function; 3] = [
    Function {
        name: "doc.execution",
        parameters: &[],
        doc: "Asks all minions for the documentation of their functions, and returns all of it.",
        run: |run| Box::pin(execution(run)),
    },
    Function {
        name: "doc.runner",
        parameters: &[],
        doc: "Returns the documentation of the runners.",
        run: |_| Box::pin(async { Ok(documentation(RUNNERS, "salt-run ", "")) }),
    },
    Function {
        name: "doc.wheel",
        parameters: &[],
        doc: "Returns the documentation of the wheel functions.",
        run: |_| Box::pin(async { Ok(documentation(wheel::FUNCTIONS, "", "")) }),
    },
];

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
