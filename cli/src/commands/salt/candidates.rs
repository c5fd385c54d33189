//! Completion candidates of `salt`.

use crate::commandline::Line;
use brine_protocol::config::settings;
use brine_protocol::keys::KeyState;
use brine_protocol::target::Nodegroups;
use clap::Command;

use super::args::SaltArgs;
use crate::commands::candidates::{after_comma, functions, ids};

/// A target comes first, then a function. There are no candidates for arguments.
pub(super) fn candidates(command: &Command, line: &Line) -> Vec<String> {
    let Some(args) = line.parse::<SaltArgs>(command) else { return Vec::new() };
    let Ok((config, opts)) = args.config.load() else { return Vec::new() };
    match args.words.as_slice() {
        [] => match args.tgt_type() {
            Ok("list") => after_comma(&line.current, ids(&opts, &[KeyState::Accepted])),
            Ok("glob" | "pcre" | "compound") => ids(&opts, &[KeyState::Accepted]),
            Ok("nodegroup") => {
                let groups = config.value(settings::NODEGROUPS.row.name).map(Nodegroups::new).unwrap_or_default();
                groups.names().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        },
        [target] if args.doc => {
            let mut names = functions(&opts, target);
            let modules: Vec<String> =
                names.iter().filter_map(|name| Some(name.split_once('.')?.0.to_owned())).collect();
            names.extend(modules);
            names
        }
        [target] => after_comma(&line.current, functions(&opts, target)),
        _ => Vec::new(),
    }
}
