//! `fleet`: the minions. Right: a permission for jobs, and only the minions that it reaches; keys that are not accepted
//! need the wheel's `key.list_all`.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::presence::Connected;
use brine_protocol::value::{Value, ValueExt as _, map};

use super::args::{Args, Words};
use super::grains::{self, Listed};
use super::keys::{self, state_name};
use super::page::{self, Page, Place};
use super::sandboxes::{Counted, Served};
use super::{Answer, Asked, Queries, Refusal, Sight, blocking};

const STATES: &[&str] = &["accepted", "pending", "rejected", "denied", "all", "connected", "away"];
const SORTS: &[&str] = &["id", "os", "version", "state", "-id", "-os", "-version", "-state"];

/// A minion of the list.
pub(super) struct Row {
    pub(super) id: MinionId,
    pub(super) key: KeyState,
    /// None for keys that are not accepted.
    pub(super) connected: Option<bool>,
    pub(super) grains: Listed,
}

/// What is asked for.
struct Filter {
    words: Option<Words>,
    state: &'static str,
    by: &'static str,
    backwards: bool,
}

impl Filter {
    fn new(args: &Args) -> Result<Self, Refusal> {
        let sort = args.word("sort", SORTS)?;
        let (by, backwards) = sort.strip_prefix('-').map_or((sort, false), |by| (by, true));
        Ok(Self { words: args.words("q")?, state: args.word("state", STATES)?, by, backwards })
    }

    fn wants_key(&self, key: KeyState) -> bool {
        match self.state {
            "all" => true,
            "connected" | "away" => key == KeyState::Accepted,
            state => state == state_name(key),
        }
    }

    fn fits(&self, row: &Row) -> bool {
        let connected = match self.state {
            "connected" => row.connected == Some(true),
            "away" => row.connected == Some(false),
            _ => true,
        };
        connected && self.words.as_ref().is_none_or(|words| words.fit(row.id.as_str(), row.grains.searched()))
    }

    fn place(&self, row: &Row) -> Place {
        let by = match self.by {
            "os" => row.grains.os().to_owned(),
            "version" => row.grains.version().to_owned(),
            "state" => row.rank().to_owned(),
            _ => String::new(),
        };
        (by, row.id.to_string())
    }
}

impl Row {
    /// The order of states.
    const fn rank(&self) -> &'static str {
        match (self.key, self.connected) {
            (KeyState::Accepted, Some(true)) => "0",
            (KeyState::Accepted, _) => "1",
            (KeyState::Pending, _) => "2",
            (KeyState::Rejected, _) => "3",
            (KeyState::Denied, _) => "4",
        }
    }

    pub(super) fn item(&self, parts: &Queries, counted: &mut Counted<'_>) -> Value {
        let mut item = map([
            ("id", Value::from(&self.id)),
            ("key", Value::from(state_name(self.key))),
            ("connected", self.connected.map_or(Value::Nil, Value::from)),
        ]);
        let accepted = self.key == KeyState::Accepted;
        item.insert("reported", if accepted { grains::reported(&parts.cachedir, &self.id) } else { Value::Nil });
        for (key, value) in self.grains.entries() {
            item.insert(key, value);
        }
        item.insert("modules", if accepted { counted.of(parts, &self.id) } else { Value::Nil });
        item
    }
}

pub(super) async fn answer(asked: Asked) -> Answer {
    let (filter, page) = (Filter::new(&asked.args)?, Page::new(&asked.args)?);
    let sight = asked.sight().await?;
    let all_keys = asked.may_call("wheel", keys::RIGHT);
    let parts = Arc::clone(&asked.parts);
    blocking(move || look(&parts, &filter, &page, &sight, all_keys)).await
}

fn look(parts: &Queries, filter: &Filter, page: &Page, sight: &Sight, all_keys: bool) -> Answer {
    let accepted: Vec<MinionId> =
        parts.keys.list(KeyState::Accepted)?.iter().filter(|id| sight.has(id)).cloned().collect();
    let mut counts = keys::counts(parts, |state| all_keys && state != KeyState::Accepted)?;
    counts.insert("accepted", accepted.len());
    let mut rows = Vec::new();
    let mut connected = 0_usize;
    let there = Connected::to(parts.presence.port);
    parts.presence.data.each_grains(&grains::for_list(), &accepted, |id, grains| {
        let is_there = grains.is_some_and(|grains| there.has(grains));
        connected += usize::from(is_there);
        if filter.wants_key(KeyState::Accepted) {
            let grains = grains.map(Listed::of).unwrap_or_default();
            rows.push(Row { id: id.clone(), key: KeyState::Accepted, connected: Some(is_there), grains });
        }
    });
    counts.insert("connected", connected);
    for key in [KeyState::Pending, KeyState::Rejected, KeyState::Denied] {
        if all_keys && filter.wants_key(key) {
            let ids = parts.keys.list(key)?;
            rows.extend(ids.iter().map(|id| Row { id: id.clone(), key, connected: None, grains: Listed::default() }));
        }
    }
    rows.retain(|row| filter.fits(row));
    rows.sort_by_cached_key(|row| filter.place(row));
    if filter.backwards {
        rows.reverse();
    }
    let total = rows.len();
    let (rows, next) = page.of(rows, filter.backwards, |row| filter.place(row));
    let served = Served::now(parts);
    let mut counted = Counted::new(&served);
    let mut answer = page::entries(rows.iter().map(|row| row.item(parts, &mut counted)).collect(), next.as_ref());
    answer.insert("total", total);
    answer.insert("counts", counts);
    Ok(answer)
}
