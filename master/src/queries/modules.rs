//! `modules`: the modules that the master serves, and those that minions reported, with their grants. Right: as for
//! `fleet`, and of the reports only those of minions that the caller may see.

use std::collections::BTreeMap;
use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt as _, list, map};

use super::page::{self, Page};
use super::sandboxes::{self, Group, Served, field};
use super::{Answer, Asked, blocking};
use crate::sandbox_reports;

/// Bound on the versions of one module that are shown, and on the grants of one version: those of the most minions.
const SHOWN_MAX: usize = 20;
/// Bound on the bytes of the versions of one module, and on those of the grants of one version.
const MODULE_BYTES_MAX: usize = 1 << 20;
const GRANTS_BYTES_MAX: usize = 256 << 10;

/// The versions of one module by their packed entries, and of each the grants by theirs.
#[derive(Default)]
struct Found {
    versions: BTreeMap<Vec<u8>, Version>,
    drift: usize,
    held: usize,
}

struct Version {
    shown: Value,
    minions: Group,
    grants: BTreeMap<Vec<u8>, (Value, Group)>,
}

pub(super) async fn answer(asked: Asked) -> Answer {
    let (words, page) = (asked.args.words("q")?, Page::new(&asked.args)?);
    let sight = asked.sight().await?;
    let parts = Arc::clone(&asked.parts);
    blocking(move || {
        let ids: Vec<MinionId> =
            parts.keys.list(KeyState::Accepted)?.iter().filter(|id| sight.has(id)).cloned().collect();
        let served = Served::now(&parts);
        let (groups, unknown) = parts.reports.by_report(&ids);
        let fits = |name: &str| words.as_ref().is_none_or(|words| words.fit(name, []));
        let mut found: BTreeMap<String, Found> = BTreeMap::new();
        for module in served.all().filter(|module| fits(&module.name)) {
            found.entry(module.name.clone()).or_default();
        }
        for (report, ids) in &groups {
            let report = sandbox_reports::read(report);
            for module in sandboxes::modules(&report) {
                let Some(name) = module.get_text("name").filter(|name| fits(name)) else { continue };
                found.entry(name.to_owned()).or_default().add(module, ids, &served);
            }
            for held in sandboxes::held(&report) {
                let Some(name) = held.get_text("name").filter(|name| fits(name)) else { continue };
                found.entry(name.to_owned()).or_default().held += ids.len();
            }
        }
        let (items, next) =
            page.of(found.into_iter().collect(), false, |(name, _): &(String, Found)| (String::new(), name.clone()));
        let item = |(name, found): (String, Found)| ((String::new(), name.clone()), found.item(&name, &served));
        let mut answer = page::bounded(items.into_iter().map(item).collect(), next.as_ref());
        answer.insert("minions", ids.len() - unknown.len());
        answer.insert("unknown", unknown.len());
        Ok(answer)
    })
    .await
}

impl Found {
    fn add(&mut self, module: &Value, ids: &[&MinionId], served: &Served) {
        let drifts = served.drifts(module);
        self.drift += if drifts { ids.len() } else { 0 };
        let mut shown =
            map(["version", "sha256", "origin", "signed_by", "usable", "asks"].map(|key| (key, field(module, key))));
        shown.insert("served", !drifts && served.sha256(module).is_some());
        let version = self.versions.entry(msgpack::encode_disk(&shown)).or_insert_with(|| Version {
            shown,
            minions: Group::default(),
            grants: BTreeMap::new(),
        });
        version.minions.add(ids);
        let grants = map(["has", "missing"].map(|key| (key, field(module, key))));
        let (_, group) =
            version.grants.entry(msgpack::encode_disk(&grants)).or_insert_with(|| (grants, Group::default()));
        group.add(ids);
    }

    fn item(self, name: &str, served: &Served) -> Value {
        let mut at_master: Vec<_> = served.all().filter(|module| module.name == name).collect();
        at_master.sort_by(|a, b| a.env.cmp(&b.env));
        let at_master = at_master.into_iter().map(|module| {
            map([
                ("env", Value::from(module.env.as_str())),
                ("sha256", module.sha256.as_deref().map_or(Value::Nil, Value::from)),
                ("size", Value::from(module.size)),
                ("signed", Value::from(module.signed)),
            ])
        });
        let mut versions: Vec<Version> = self.versions.into_values().collect();
        versions.sort_by_key(|version| std::cmp::Reverse(version.minions.count));
        map([
            ("name", Value::from(name)),
            ("served", list(at_master)),
            ("versions", page::within(versions.into_iter().take(SHOWN_MAX).map(Version::item), MODULE_BYTES_MAX)),
            ("drift", Value::from(self.drift)),
            ("held", Value::from(self.held)),
        ])
    }
}

impl Version {
    fn item(self) -> Value {
        let mut item = self.shown;
        self.minions.tell(&mut item);
        let mut grants: Vec<(Value, Group)> = self.grants.into_values().collect();
        grants.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        let grants = grants.into_iter().take(SHOWN_MAX).map(|(mut grants, group)| {
            group.tell(&mut grants);
            grants
        });
        item.insert("grants", page::within(grants, GRANTS_BYTES_MAX));
        item
    }
}
