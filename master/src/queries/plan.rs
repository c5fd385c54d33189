//! `plan`: whom a call would reach, and what its module may do there. Right: a permission for jobs, and only minions on
//! which the caller may run this very call. Nothing is published.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::job::PublishRequest;
use brine_protocol::msgpack;
use brine_protocol::presence::Connected;
use brine_protocol::value::{Value, ValueExt, list, map};

use super::args::wrong;
use super::sandboxes::{self, Group, field};
use super::{Answer, Asked, Refusal, Sight, blocking, grains, page};
use crate::sandbox_reports;

/// Ids that are shown.
const SOME: usize = 100;
/// Bound on the groups that are shown: those of the most minions.
const GROUPS_MAX: usize = 50;
/// Bound on the bytes of these groups. Minions wrote their content.
const GROUPS_BYTES_MAX: usize = 2 << 20;

pub(super) async fn answer(asked: Asked) -> Answer {
    // The right to ask at all.
    asked.sight().await?;
    let fun = asked.args.text("fun")?.ok_or_else(|| wrong("fun", "a function"))?.to_owned();
    let module = fun.split_once('.').map(|(module, _)| module.to_owned());
    let module = module.ok_or_else(|| wrong("fun", "a function, as in test.ping"))?;
    let tgt = asked.args.value("tgt").cloned().ok_or_else(|| wrong("tgt", "a target"))?;
    let tgt_type = asked.args.text("tgt_type")?.unwrap_or("glob");
    let arg = asked.args.value("arg").map_or(Some([].as_slice()), ValueExt::list);
    let arg = arg.ok_or_else(|| wrong("arg", "a list"))?.to_vec();
    let targets = &asked.parts.targets;
    let target = targets.parse(tgt_type, &tgt, ":").map_err(|error| Refusal::Wrong(error.to_string()))?;
    let matched = targets.resolve(target).await?.matched;
    let request = PublishRequest::new(Value::from(fun.as_str()), arg, tgt, tgt_type, asked.caller.name());
    let calls = request.calls();
    let resolve = |target| targets.permitted(target);
    let allowed = !asked.parts.access.is_blocked(&asked.caller, None, &calls)
        && asked.caller.may_publish(&calls, &matched, resolve).await.is_some();
    let mut seen: Option<HashSet<MinionId>> = None;
    for (fun, arg) in &calls {
        match Sight::of(&asked.parts, asked.caller.reach_of(fun, arg)).await {
            Some(Sight::All) => {}
            Some(Sight::These(ids)) => seen = Some(ids),
            None => seen = Some(HashSet::new()),
        }
    }
    let shown: Vec<MinionId> =
        matched.into_iter().filter(|id| seen.as_ref().is_none_or(|seen| seen.contains(id))).collect();
    let parts = Arc::clone(&asked.parts);
    blocking(move || {
        let there = Connected::to(parts.presence.port);
        let mut connected = 0_usize;
        parts.presence.data.each_grains(&grains::for_list(), &shown, |_, grains| {
            connected += usize::from(grains.is_some_and(|grains| there.has(grains)));
        });
        let mut plan = map([
            ("allowed", Value::from(allowed)),
            ("fun", Value::from(fun.as_str())),
            ("module", Value::from(module.as_str())),
            ("expected", Value::from(shown.len())),
            ("connected", Value::from(connected)),
            ("away", Value::from(shown.len() - connected)),
            ("some", list(shown.iter().take(SOME).map(Value::from))),
        ]);
        let (reports, unknown) = parts.reports.by_report(&shown);
        let mut groups: BTreeMap<Vec<u8>, (Value, Group)> = BTreeMap::new();
        let mut without = 0;
        for (report, ids) in &reports {
            let report = sandbox_reports::read(report);
            let found = sandboxes::modules(&report).iter().find(|known| known.get_text("name") == Some(&module));
            let Some(found) = found else {
                without += ids.len();
                continue;
            };
            let keys = ["usable", "version", "sha256", "asks", "has", "missing"];
            let mut shown = map(keys.map(|key| (key, field(found, key))));
            shown.insert("held", sandboxes::held_sha256(&report, &module));
            groups.entry(msgpack::encode_disk(&shown)).or_insert_with(|| (shown, Group::default())).1.add(ids);
        }
        let mut groups: Vec<(Value, Group)> = groups.into_values().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        let groups = groups.into_iter().take(GROUPS_MAX).map(|(mut shown, group)| {
            group.tell(&mut shown);
            shown
        });
        plan.insert("groups", page::within(groups, GROUPS_BYTES_MAX));
        plan.insert("without", without);
        plan.insert("unknown", unknown.len());
        Ok(plan)
    })
    .await
}
