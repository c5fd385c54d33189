//! Completion candidates of `salt-key`: the ids to which an action can apply.

use crate::commandline::{self, Candidates, Line};
use brine_protocol::keys::KeyState;
use clap::{Command, CommandFactory as _};

use super::args::SaltKeyArgs;
use crate::commands::candidates::ids;

pub(super) fn complete_or_document() {
    let pending: Candidates = |command, line| list_ids(command, line, &[KeyState::Pending]);
    let undecided: Candidates = |command, line| list_ids(command, line, &[KeyState::Pending, KeyState::Accepted]);
    let all: Candidates = |command, line| list_ids(command, line, &KeyState::ALL);
    let kinds: Candidates = |_, _| ["accepted", "all", "denied", "pre", "rejected"].map(str::to_owned).into();
    let values =
        [("accept", pending), ("reject", undecided), ("delete", all), ("print", all), ("finger", all), ("list", kinds)];
    commandline::complete_or_document(&SaltKeyArgs::command(), &values);
}

fn list_ids(command: &Command, line: &Line, statuses: &[KeyState]) -> Vec<String> {
    let loaded = line.parse::<SaltKeyArgs>(command).and_then(|args| args.config.load().ok());
    loaded.map(|(_, opts)| ids(&opts, statuses)).unwrap_or_default()
}
