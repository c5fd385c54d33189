//! `--preview-target`: the minions that should match, by the keys and the cached data on the master's disk.

use brine_protocol::config::{Config, settings};
use brine_protocol::exit;
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyState, KeyStore};
use brine_protocol::target::{Nodegroups, Target, TargetType};
use brine_protocol::value;

use super::args::SaltArgs;
use super::call::Call;
use crate::print::{Printer, stderr};
use brine_client::ClientOpts;

/// The ids of the matching minions. The error says why they are unknown.
pub(super) fn minions(
    args: &SaltArgs,
    call: &Call,
    tgt_type: &str,
    config: &Config,
    opts: &ClientOpts,
) -> Result<Vec<String>, String> {
    let groups = config.value(settings::NODEGROUPS.row.name).map(Nodegroups::new).unwrap_or_default();
    let target = tgt_type
        .parse::<TargetType>()
        .and_then(|kind| Target::parse_with(kind, &call.tgt, &args.target.delimiter, &groups))
        .map_err(|error| error.to_string())?;
    let accepted = KeyStore::new(&opts.pki_dir).list(KeyState::Accepted).map_err(|error| error.to_string())?;
    let matched = if target.needs_data() && !opts.minion_data_cache {
        accepted
    } else {
        target.resolve_known(&accepted, &opts.cachedir).matched
    };
    Ok(matched.into_iter().map(MinionId::into_string).collect())
}

/// Prints the ids.
pub(super) fn show(printer: &mut Printer, minions: Result<Vec<String>, String>) -> i32 {
    let minions = minions.unwrap_or_else(|why| {
        tracing::error!("{why}");
        Vec::new()
    });
    let is_empty = minions.is_empty();
    printer.show(&value::list(minions), "", 0);
    if is_empty {
        stderr("ERROR: No return received");
        return exit::STATE_FAILURE;
    }
    exit::OK
}
