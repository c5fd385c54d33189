//! Collects the facts about this host.

use std::time::Instant;

use brine_protocol::SALT_RELEASE;
use brine_protocol::value::Value;

use super::layers::Layers;
use super::map::Grains;
use super::{boot, core, devices, environment, names, network, os_release, resolver, routes, systemd, virtualization};
use crate::config::MinionOpts;

/// What `salt-call --skip-grains` sets.
pub(crate) const SKIP: &str = "skip_grains";
/// Collects the grains that need no sandbox: all but those of modules.
pub fn collect(opts: &MinionOpts) -> Value {
    if is_skipped(opts) {
        return Value::Map(Vec::new());
    }
    let mut layers = Layers::new(opts);
    let began = Instant::now();
    layers.host = host(opts);
    tracing::debug!(us = began.elapsed().as_micros(), "this host's grains were collected");
    layers.combine(opts)
}

/// Whether the command line wants no grains.
pub(super) fn is_skipped(opts: &MinionOpts) -> bool {
    opts.config.value(SKIP) == Some(&Value::from(true))
}

/// The grains of this host and this program.
pub(super) fn host(opts: &MinionOpts) -> Grains {
    let mut grains = Grains::default();
    for collect in [
        core::collect,
        boot::collect,
        virtualization::collect,
        devices::collect,
        network::collect,
        names::collect,
        routes::collect,
        resolver::collect,
        os_release::collect,
        systemd::collect,
        environment::collect,
    ] {
        collect(&mut grains);
    }
    collect_identity(&mut grains, opts);
    grains
}

fn collect_identity(grains: &mut Grains, opts: &MinionOpts) {
    use sha2::{Digest, Sha256};
    grains.text("id", opts.id.as_str());
    grains.text("master", opts.master.host.as_str());
    // int(sha256(id), 16) % 2**31
    let digest = Sha256::digest(opts.id.as_str().as_bytes());
    let low = u32::from_be_bytes([digest[28], digest[29], digest[30], digest[31]]);
    grains.set("server_id", Value::from(low & 0x7fff_ffff));
    grains.text("saltversion", &SALT_RELEASE.map(|part| part.to_string()).join("."));
    grains.set("saltversioninfo", Value::Array(SALT_RELEASE.map(Value::from).to_vec()));
    grains.text("brineversion", env!("CARGO_PKG_VERSION"));
}
