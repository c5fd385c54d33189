//! Completion candidates of `salt-key`: the ids to which an action can apply.

use crate::commandline::{self, Candidates, Line};
use brine_protocol::keys::{KeyKind, KeyState};
use clap::{Command, CommandFactory as _};

use super::args::SaltKeyArgs;
use crate::commands::candidates::ids_of;

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
    let Some(args) = line.parse::<SaltKeyArgs>(command) else { return Vec::new() };
    let kind = if args.nodes { KeyKind::Nodes } else { KeyKind::Minions };
    args.config.load().map(|(_, opts)| ids_of(kind, &opts, statuses)).unwrap_or_default()
}
