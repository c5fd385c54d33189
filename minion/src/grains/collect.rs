//! Collects all grains.

use brine_protocol::msgpack;
use brine_protocol::value::Value;
use tracing::{error, warn};

use super::map::Grains;
use super::{
    boot, core, custom, devices, environment, names, network, os_release, resolver, routes, systemd, virtualization,
};
use crate::config::MinionOpts;

/// Upper bound on the grains: they travel with every `_pillar` request, so they stay far below a master's bound on requests.
pub const MAX_GRAINS_BYTES: usize = 1024 * 1024;
/// What `salt-call --skip-grains` sets.
pub(crate) const SKIP: &str = "skip_grains";
/// The Salt version that this minion behaves like; states compare it.
const SALT_LINE: u64 = 3008;

/// Collects all grains: the core ones, then the grains file, then the `grains` setting. Later ones win.
///
/// A broken grains file is logged and left out, so that the minion can still be reached to repair it.
pub fn collect(opts: &MinionOpts) -> Value {
    if opts.config.value(SKIP) == Some(&Value::from(true)) {
        return Value::Map(Vec::new());
    }
    let mut grains = core_grains(opts);
    match custom::load(&opts.grains_file) {
        Ok(Some(entries)) => grains.merge(entries),
        Ok(None) => {}
        Err(e) => error!("{e}; the grains of this file are left out"),
    }
    match &opts.grains {
        Value::Map(entries) => grains.merge(entries.clone()),
        Value::Nil => {}
        _ => warn!("the setting `grains` is not a mapping; it is left out"),
    }

    let value = grains.into_value();
    let size = msgpack::encode_network(&value).len();
    if size > MAX_GRAINS_BYTES {
        error!(
            "the grains take {size} bytes, more than the {MAX_GRAINS_BYTES} there may be; those of the grains file and of \
             the setting `grains` are left out"
        );
        return core_grains(opts).into_value();
    }
    value
}

/// The grains of this host and this program.
fn core_grains(opts: &MinionOpts) -> Grains {
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
    grains.text("saltversion", &SALT_LINE.to_string());
    grains.set("saltversioninfo", Value::Array(vec![Value::from(SALT_LINE)]));
    grains.text("brineversion", env!("CARGO_PKG_VERSION"));
}
