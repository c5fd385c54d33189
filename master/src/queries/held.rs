//! `held`: the updates that minions hold until their owner approves them. Right: as for `modules`.

use std::collections::BTreeMap;
use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt as _};
use sha2::{Digest as _, Sha256};

use super::page::{self, Page};
use super::sandboxes::{self, Group};
use super::{Answer, Asked, blocking};
use crate::sandbox_reports;

pub(super) async fn answer(asked: Asked) -> Answer {
    let page = Page::new(&asked.args)?;
    let sight = asked.sight().await?;
    let parts = Arc::clone(&asked.parts);
    blocking(move || {
        let ids: Vec<MinionId> =
            parts.keys.list(KeyState::Accepted)?.iter().filter(|id| sight.has(id)).cloned().collect();
        let (groups, unknown) = parts.reports.by_report(&ids);
        // By name, and what tells equal updates from others.
        let mut found: BTreeMap<(String, String), (Value, Group)> = BTreeMap::new();
        for (report, ids) in &groups {
            for held in sandboxes::held(&sandbox_reports::read(report)) {
                let name = held.get_text("name").unwrap_or_default().to_owned();
                let content = hex::encode(Sha256::digest(msgpack::encode_disk(held)));
                found.entry((name, content)).or_insert_with(|| (held.clone(), Group::default())).1.add(ids);
            }
        }
        let (items, next) = page.of(found.into_iter().collect(), false, |(place, _)| place.clone());
        let item = |(place, (mut held, group)): (_, (Value, Group))| {
            group.tell(&mut held);
            (place, held)
        };
        let mut answer = page::bounded(items.into_iter().map(item).collect(), next.as_ref());
        answer.insert("unknown", unknown.len());
        Ok(answer)
    })
    .await
}
