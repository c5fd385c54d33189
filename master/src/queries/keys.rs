//! `keys`: the keys by state, with fingerprints. Right: the wheel's `key.list_all`; `key.finger` for fingerprints of
//! minions, `key.finger_master` for the master's.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::value::{Value, ValueExt as _, map};

use super::page::{self, Page};
use super::{Answer, Asked, Queries, Refusal, blocking};

/// The right that it needs.
pub(super) const RIGHT: &str = "key.list_all";
/// Those that wait for a decision first.
const ORDER: [KeyState; 4] = [KeyState::Pending, KeyState::Denied, KeyState::Rejected, KeyState::Accepted];

/// The name of a state in answers.
pub(super) const fn state_name(state: KeyState) -> &'static str {
    match state {
        KeyState::Accepted => "accepted",
        KeyState::Pending => "pending",
        KeyState::Rejected => "rejected",
        KeyState::Denied => "denied",
    }
}

/// Returns the fingerprint of a minion's key.
pub(super) fn fingerprint(parts: &Queries, state: KeyState, id: &MinionId) -> Value {
    let key = parts.keys.find(state, id).ok().flatten();
    key.map_or(Value::Nil, |key| finger(parts, &key.pem))
}

fn finger(parts: &Queries, pem: &str) -> Value {
    brine_protocol::keys::fingerprint_by(parts.hash_type.name(), pem).map_or(Value::Nil, Value::from)
}

/// Counts keys by state; nil for all that the caller may not know.
pub(super) fn counts(parts: &Queries, shown: impl Fn(KeyState) -> bool) -> Result<Value, Refusal> {
    let mut counts = Vec::new();
    for state in ORDER {
        let count = if shown(state) { Value::from(parts.keys.list(state)?.len()) } else { Value::Nil };
        counts.push((state_name(state), count));
    }
    Ok(map(counts))
}

pub(super) async fn answer(asked: Asked) -> Answer {
    if !asked.may_call("wheel", RIGHT) {
        return Err(Refusal::NotPermitted(format!("this needs the wheel's {RIGHT}")));
    }
    let state = asked.args.word("state", &["all", "accepted", "pending", "rejected", "denied"])?;
    let (words, page) = (asked.args.words("q")?, Page::new(&asked.args)?);
    let fingers = asked.may_call("wheel", "key.finger");
    let masters = asked.may_call("wheel", "key.finger_master");
    let parts = Arc::clone(&asked.parts);
    blocking(move || {
        let mut found: Vec<(usize, KeyState, MinionId)> = Vec::new();
        for (rank, of) in ORDER.into_iter().enumerate().filter(|(_, of)| state == "all" || state == state_name(*of)) {
            let ids = parts.keys.list(of)?;
            let meant = ids.iter().filter(|id| words.as_ref().is_none_or(|words| words.fit(id.as_str(), [])));
            found.extend(meant.map(|id| (rank, of, id.clone())));
        }
        let total = found.len();
        let (items, next) = page.of(found, false, |(rank, _, id)| (rank.to_string(), id.to_string()));
        let item = |(_, state, id): (usize, KeyState, MinionId)| {
            let finger = if fingers { fingerprint(&parts, state, &id) } else { Value::Nil };
            map([("id", Value::from(&id)), ("state", Value::from(state_name(state))), ("fingerprint", finger)])
        };
        let mut answer = page::entries(items.into_iter().map(item).collect(), next.as_ref());
        answer.insert("total", total);
        answer.insert("counts", counts(&parts, |_| true)?);
        answer.insert("master", if masters { finger(&parts, &parts.master_key) } else { Value::Nil });
        Ok(answer)
    })
    .await
}
