//! The pillar: asked for at start and after each connection, with the grains that the master compiles it by (§6.4).

use std::sync::Arc;

use brine_protocol::value::{Value, empty_map, map};
use tracing::{debug, warn};

use crate::config::MinionOpts;
use crate::connection::{Channel, ChannelError};
use crate::facts::{GrainsStore, PillarStore};

/// Asks for the pillar and keeps it. The master stores the grains that come with the question, for targeting.
pub async fn refresh(
    opts: &MinionOpts,
    channel: &Channel,
    grains: &GrainsStore,
    pillar: &PillarStore,
) -> Result<(), ChannelError> {
    let setting = |key: &str| opts.config.value(key).cloned().unwrap_or(Value::Nil);
    let load = map([
        ("cmd", Value::from("_pillar")),
        ("id", Value::from(&opts.id)),
        ("grains", Value::clone(&grains.now())),
        ("saltenv", setting("saltenv")),
        ("pillarenv", setting("pillarenv")),
        ("pillar_override", empty_map()),
        ("extra_minion_data", empty_map()),
        ("ver", Value::from("2")),
    ]);
    let answer = channel.request_pillar(load).await?;
    match answer {
        Value::Map(_) => pillar.replace(answer),
        _ => warn!("the master's pillar is not a mapping; the last one stays"),
    }
    Ok(())
}

/// As [`refresh`]; a failure is logged and the last pillar stays.
pub(crate) async fn refresh_or_log(
    opts: &Arc<MinionOpts>,
    channel: &Channel,
    grains: &GrainsStore,
    pillar: &PillarStore,
) {
    match refresh(opts, channel, grains, pillar).await {
        Ok(()) => debug!("the pillar is here"),
        Err(e) => warn!("the pillar could not be had: {e}"),
    }
}
