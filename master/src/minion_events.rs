//! `_minion_event` (§8.5): which events a minion may fire on the master's bus. The answer is false for a single event
//! that was refused, otherwise nil as in Salt.
//!
//! Salt lets a minion fire nearly any tag, and its reactor trusts the tag (CVE-2025-22239). Here Salt's own namespaces
//! are an allow-list that requires the sender's id in the tag. Other tags have the meaning that the operator gives
//! them.

use std::sync::Arc;

use brine_protocol::ids::{EventTag, Jid, MinionId};
use brine_protocol::value::{Value, ValueExt, map};

use crate::access::Principal;
use crate::bus::Bus;
use crate::lanes::Turn;
use crate::quotas::QuotaKind;
use crate::refusals::{Refusals, Who};
use crate::throttle::Throttle;

/// Bound on the events of one request.
const EVENTS_MAX: usize = 1_024;

/// Fires the events of minions.
pub(crate) struct MinionEvents {
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) bus: Bus,
    pub(crate) refusals: Arc<Refusals>,
}

impl MinionEvents {
    /// Fires the events of a request that the minion may fire.
    pub(crate) async fn accept(&self, id: &MinionId, load: &Value, bytes: u64, turn: &mut Turn) -> Value {
        let several = load.get_list("events").map_or(1, |events| events.len().clamp(1, EVENTS_MAX) as u64);
        // With a `pretag`, each event is fired twice.
        let several = if load.get("pretag").is_some_and(ValueExt::truthy) { 2 * several } else { several };
        if self.throttle.admit(id, "_minion_event", QuotaKind::Event, (several, bytes), turn).await.is_err() {
            return Value::from(false);
        }
        if let Some(events) = load.get_list("events") {
            let pretag = load.get_text("pretag").filter(|pretag| !pretag.is_empty());
            if events.len() > EVENTS_MAX {
                self.refuse(id, "", "there are too many events in one request");
            }
            for event in events.iter().take(EVENTS_MAX) {
                let Some(tag) = event.get_text("tag") else {
                    self.refuse(id, "", "an event has no tag");
                    continue;
                };
                let data = bound(id, tag, event.get("data").unwrap_or(event).clone());
                if let Some(pretag) = pretag {
                    self.fire(id, &format!("{pretag}/{tag}"), data.clone());
                }
                self.fire(id, tag, data);
            }
        } else if let Some(tag) = load.get_text("tag") {
            // The event of the single form has the whole load as data. Its `id` is the sender's, as checked with the
            // envelope.
            if tag == "_salt_error" {
                let message = load.get("data").and_then(|data| data.get_text("message")).unwrap_or_default();
                let said: String = message.chars().take(1_024).collect();
                if self.refusals.admits(Who::Minion(id)) {
                    tracing::error!("{id} reports an error: {said}");
                }
            }
            // Salt answers nil in both cases. A Brine minion reports the refusal to its module.
            if !self.fire(id, tag, load.clone()) {
                return Value::from(false);
            }
        } else {
            self.refuse(id, "", "the request has neither a tag nor events");
        }
        Value::Nil
    }

    fn fire(&self, id: &MinionId, tag: &str, data: Value) -> bool {
        let checked = check_tag(tag, id);
        match checked {
            Ok(()) => self.bus.fire_by(Principal::Minion(id.clone()), tag, data),
            Err(why) => self.refuse(id, tag, why),
        }
        checked.is_ok()
    }

    fn refuse(&self, id: &MinionId, tag: &str, why: &str) {
        let tag: String = tag.chars().take(128).collect();
        let said = format!("an event {tag:?} of {id} was refused: {why}");
        let data = map([("id", id.as_str()), ("tag", &tag), ("error", why)]);
        self.refusals.tell(Who::Minion(id), &said, format!("brine/refused/event/{id}"), data);
    }
}

/// Sets the `id` in the data of a batch to the sender's, because a reactor could take another id for the sender.
/// Removes `minions` from events of jobs, so that no minion adds ids to those that a client of the job waits for.
fn bound(id: &MinionId, tag: &str, mut data: Value) -> Value {
    if data.has("id") {
        data.insert("id", id.as_str());
    }
    if tag.starts_with("salt/job/") {
        data.remove("minions");
    }
    data
}

/// Checks whether the minion `id` may fire `tag`. The error is the reason.
pub(crate) fn check_tag(tag: &str, id: &MinionId) -> Result<(), &'static str> {
    EventTag::try_from(tag).map_err(|e| e.why)?;
    // A reader could take it for the tag without the slash.
    if tag.starts_with('/') {
        return Err("it starts with a slash");
    }
    let id = id.as_str();
    // An id contains no slash, so it can be compared with one part of a tag.
    let parts: Vec<&str> = tag.split('/').collect();
    let allowed = match parts.as_slice() {
        ["minion_start" | "minion_ping" | "_salt_error"] => true,
        ["salt", "minion" | "beacon", who, _, ..] => *who == id,
        ["salt", "job", jid, "prog" | "sub", who, _, ..] => *who == id && Jid::try_from(*jid).is_ok(),
        ["salt", "state_result", jid, who, _, ..] => *who == id && Jid::try_from(*jid).is_ok(),
        ["salt", "job", jid, "start", who] => *who == id && Jid::try_from(*jid).is_ok(),
        [first, ..] => !brine_tags::is_reserved(first) && Jid::try_from(*first).is_err(),
        [] => false,
    };
    if allowed { Ok(()) } else { Err("the tag is not one that this minion may fire") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_bound_to_their_sender() {
        let id = MinionId::try_from("web1").unwrap();
        for tag in [
            "minion_start",
            "minion_ping",
            "_salt_error",
            "salt/minion/web1/start",
            "salt/beacon/web1/load/",
            "salt/beacon/web1/inotify//etc",
            "salt/job/20261120134740245008/prog/web1/3",
            "salt/job/20261120134740245008/start/web1",
            "salt/state_result/20261120134740245008/web1/nginx",
            "deploy/done",
            "myapp",
            "salty/thing",
        ] {
            assert_eq!(check_tag(tag, &id), Ok(()), "{tag}");
        }
        for tag in [
            "",
            "salt",
            "salt/",
            "salt/auth",
            "salt/key",
            "key",
            "key/x",
            "salt/job/20261120134740245008/new",
            "salt/job/20261120134740245008/publish",
            "salt/job/20261120134740245008/ret/web1",
            "salt/job/20261120134740245008/ret/web2",
            "salt/job/20261120134740245008/prog/web2/3",
            "salt/job/../prog/web1/3",
            "salt/state_result/20261120134740245008/web2/nginx",
            "salt/state_result/../web1/nginx",
            "salt/job/20261120134740245008/start/web2",
            "salt/job/20261120134740245008/start/web1/../../new",
            "salt/minion/web2/start",
            "salt/minion/web1",
            "salt/beacon/web2/load",
            "salt/run/20261120134740245008/ret",
            "salt/wheel/20261120134740245008/new",
            "salt/cluster/x",
            "salt/presence/present",
            "salt/event/exit",
            "minion/refresh/web1",
            "syndic/web1/x",
            "brine/refused/event/web2",
            "20261120134740245008",
            "/salt/auth",
            "salt//auth",
            "a\nb",
            "a\n\nb",
            "x\0",
        ] {
            assert!(check_tag(tag, &id).is_err(), "{tag:?}");
        }
    }
}
