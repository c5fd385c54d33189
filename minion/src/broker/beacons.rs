//! `brine:host/beacons`: the beacons of this minion, as `beacons.list` shows and `beacons.add` changes them.

use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, bytes, list, map};
use brine_sandbox::{BeaconEdit, BeaconsOp, Caller, HostError};

use super::events::decode;
use super::{MinionBroker, Perform};

/// Bounds on the configuration of one beacon.
const CONFIG: Limits = Limits { max_bytes: 64 << 10, max_depth: 16, max_items: 5_000 };

impl Perform<BeaconsOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: BeaconsOp) -> Result<Value, HostError> {
        match op {
            BeaconsOp::List { pillar, configuration } => {
                self.beacons.list(pillar, configuration).map_err(HostError::Failed)
            }
            BeaconsOp::Available => self.beacons.available().await.map(list).map_err(HostError::Failed),
            BeaconsOp::Validate { name, config } => {
                let config = decode(&config, &CONFIG)?;
                let master = caller.job.master.as_deref();
                let (valid, words) = self.beacons.validate(&name, &config, master).await;
                Ok(Value::Array(vec![Value::from(valid), Value::from(words)]))
            }
            BeaconsOp::Change(edit) => {
                if let BeaconEdit::Put { config, .. } = &edit {
                    decode(config, &CONFIG)?;
                }
                let (done, beacons) = self.beacons.edit(edit);
                let (complete, comment) = match done {
                    Ok(()) => (true, String::new()),
                    Err(why) => (false, why),
                };
                Ok(map([
                    ("complete", Value::from(complete)),
                    ("comment", Value::from(comment)),
                    ("beacons", bytes(msgpack::encode_network(&beacons))),
                ]))
            }
            BeaconsOp::Save => {
                let saved = self.beacons.save().await;
                let written = saved.inspect_err(|why| tracing::warn!("beacons cannot be saved: {why}")).is_ok();
                let path = self.beacons.saved_in();
                Ok(map([("path", Value::from(path.to_string_lossy().into_owned())), ("written", Value::from(written))]))
            }
        }
    }
}
