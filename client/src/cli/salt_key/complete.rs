//! What can stand at the cursor of `salt-key`: the ids that an action could be about.

use brine_protocol::commandline::{self, Candidates, Line};
use clap::{Command, CommandFactory as _};

use super::args::SaltKeyArgs;
use crate::cli::complete::ids;
use crate::keys::Status;

pub(super) fn answer() {
    let pending: Candidates = |command, line| of(command, line, &[Status::Pending]);
    let undecided: Candidates = |command, line| of(command, line, &[Status::Pending, Status::Accepted]);
    let all: Candidates = |command, line| of(command, line, &Status::ALL);
    let kinds: Candidates = |_, _| ["accepted", "all", "denied", "pre", "rejected"].map(str::to_owned).into();
    let values =
        [("accept", pending), ("reject", undecided), ("delete", all), ("print", all), ("finger", all), ("list", kinds)];
    commandline::answer(&SaltKeyArgs::command(), &values);
}

fn of(command: &Command, line: &Line, statuses: &[Status]) -> Vec<String> {
    let loaded = line.parse::<SaltKeyArgs>(command).and_then(|args| args.config.load().ok());
    loaded.map(|(_, opts)| ids(&opts, statuses)).unwrap_or_default()
}
