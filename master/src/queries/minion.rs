//! `minion`: one minion. Right: as for `fleet`; `key.finger` for the fingerprint.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::presence::Connected;
use brine_protocol::value::{Value, ValueExt as _, empty_map};

use super::fleet::Row;
use super::grains::{self, Listed};
use super::sandboxes::{self, Counted, Served};
use super::{Answer, Asked, blocking, keys};

pub(super) async fn answer(asked: Asked) -> Answer {
    let sight = asked.sight().await?;
    let Some(Ok(id)) = asked.args.text("id")?.map(MinionId::try_from) else { return Ok(Value::Nil) };
    let all_keys = asked.may_call("wheel", keys::RIGHT);
    let fingers = asked.may_call("wheel", "key.finger");
    let parts = Arc::clone(&asked.parts);
    blocking(move || {
        let is_there = |state| parts.keys.find(state, &id).map(|key| key.is_some());
        let mut key = None;
        for state in [KeyState::Accepted, KeyState::Pending, KeyState::Rejected, KeyState::Denied] {
            let visible = if state == KeyState::Accepted { sight.has(&id) } else { all_keys };
            if key.is_none() && visible && is_there(state)? {
                key = Some(state);
            }
        }
        let Some(key) = key else { return Ok(Value::Nil) };
        let accepted = key == KeyState::Accepted;
        let known = if accepted { grains::of_one(&parts.cachedir, &id) } else { None };
        let connected =
            accepted.then(|| known.as_ref().is_some_and(|grains| Connected::to(parts.presence.port).has(grains)));
        let listed = known.as_ref().map(Listed::of).unwrap_or_default();
        let mut item = Row { id: id.clone(), key, connected, grains: listed }
            .item(&parts, &mut Counted::new(&Served::now(&parts)));
        item.insert("grains", known.as_ref().map_or_else(empty_map, grains::further));
        item.insert("fingerprint", if fingers { keys::fingerprint(&parts, key, &id) } else { Value::Nil });
        item.insert("sandbox", if accepted { sandboxes::of_one(&parts, &id) } else { Value::Nil });
        Ok(item)
    })
    .await
}
