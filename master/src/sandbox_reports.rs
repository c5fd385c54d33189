//! What minions report of their modules (`sandbox` in `_pillar`): checked and bounded here, once, as minions may be
//! hostile. In memory, because a minion reports again after each connection; a minion that has not is unknown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::ids::MinionId;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt as _, empty_map, list, map};

/// Largest report of a minion in bytes.
const REPORT_BYTES_MAX: usize = 128 << 10;
/// Bound on the bytes of all different reports. Minions with the same modules and grants have one together.
const ALL_BYTES_MAX: usize = 64 << 20;
/// Bounds on a report's modules and held updates.
const MODULES_MAX: usize = 512;
const HELD_MAX: usize = 64;
/// Bound on the texts of one list, and on one text in bytes.
const TEXTS_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 2 << 10;
/// Bound on the grants of one module in bytes.
const GRANTS_BYTES_MAX: usize = 16 << 10;
/// Values that a report's grants nest at most.
const GRANTS_DEPTH_MAX: u32 = 6;

/// A checked report, packed.
pub(crate) type Report = Arc<[u8]>;

/// The last report of each minion.
#[derive(Debug, Default)]
pub(crate) struct SandboxReports(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    of: HashMap<MinionId, Report>,
    /// Each different report, with the number of its minions.
    all: HashMap<Report, usize>,
    bytes: usize,
}

impl SandboxReports {
    /// Keeps the report of a minion.
    ///
    /// # Errors
    /// If it is too large, or there are too many.
    pub(crate) fn keep(&self, id: &MinionId, report: &Value) -> Result<(), &'static str> {
        let checked = msgpack::encode_disk(&checked(report));
        let mut known = self.known();
        known.forget(id);
        if checked.len() > REPORT_BYTES_MAX {
            return Err("it is too large");
        }
        let report = match known.all.get_key_value(checked.as_slice()) {
            Some((same, _)) => Arc::clone(same),
            None if known.bytes + checked.len() > ALL_BYTES_MAX => {
                return Err("the reports of all minions are too large");
            }
            None => {
                known.bytes += checked.len();
                Report::from(checked)
            }
        };
        *known.all.entry(Arc::clone(&report)).or_default() += 1;
        known.of.insert(id.clone(), report);
        Ok(())
    }

    /// Forgets a minion.
    pub(crate) fn forget(&self, id: &MinionId) {
        self.known().forget(id);
    }

    /// Returns the report of a minion.
    pub(crate) fn of(&self, id: &MinionId) -> Option<Report> {
        self.known().of.get(id).cloned()
    }

    /// Returns the minions of `ids` by their report, and those without one.
    pub(crate) fn by_report<'a>(&self, ids: &'a [MinionId]) -> (Vec<(Report, Vec<&'a MinionId>)>, Vec<&'a MinionId>) {
        let known = self.known();
        let (mut groups, mut unknown): (HashMap<&Report, Vec<&MinionId>>, _) = (HashMap::new(), Vec::new());
        for id in ids {
            match known.of.get(id) {
                Some(report) => groups.entry(report).or_default().push(id),
                None => unknown.push(id),
            }
        }
        let mut groups: Vec<_> = groups.into_iter().map(|(report, ids)| (Arc::clone(report), ids)).collect();
        groups.sort_by(|(_, a), (_, b)| a.first().cmp(&b.first()));
        (groups, unknown)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn forget(&mut self, id: &MinionId) {
        let Some(report) = self.of.remove(id) else { return };
        let Some(minions) = self.all.get_mut(&report) else { return };
        *minions -= 1;
        if *minions == 0 {
            self.all.remove(&report);
            self.bytes -= report.len();
        }
    }
}

/// Reads a kept report.
pub(crate) fn read(report: &Report) -> Value {
    msgpack::decode(report, &Limits::REQUEST).unwrap_or_else(|_| empty_map())
}

/// Takes what is known of a report, and nothing else.
fn checked(report: &Value) -> Value {
    let modules = report.get_list("modules").unwrap_or_default().iter().take(MODULES_MAX).filter_map(module);
    let held = report.get_list("held").unwrap_or_default().iter().take(HELD_MAX).filter_map(held);
    map([("modules", Value::Array(modules.collect())), ("held", Value::Array(held.collect()))])
}

fn module(given: &Value) -> Option<Value> {
    Some(map([
        ("name", name(given)?),
        ("usable", Value::from(given.get_bool("usable").unwrap_or_default())),
        ("version", text(given, "version")),
        ("sha256", sha256(given)),
        ("origin", text(given, "origin")),
        ("signed_by", texts(given, "signed_by")),
        ("asks", texts(given, "asks")),
        ("has", bounded(given.get("has"))),
        ("missing", texts(given, "missing")),
    ]))
}

fn held(given: &Value) -> Option<Value> {
    let version = |key: &str| match given.get(key) {
        Some(version @ Value::Map(_)) => map([
            ("version", text(version, "version")),
            ("sha256", sha256(version)),
            ("size", version.get_u64("size").map_or(Value::Nil, Value::from)),
            ("origin", text(version, "origin")),
            ("signed_by", texts(version, "signed_by")),
            ("signed", text(version, "signed")),
        ]),
        _ => Value::Nil,
    };
    let group = |key: &str, names: &[&'static str]| {
        let of = given.get(key).cloned().unwrap_or(Value::Nil);
        map(names.iter().map(|name| {
            (
                *name,
                match of.get(name) {
                    Some(Value::Map(_)) => words(of.get(name)),
                    _ => texts(&of, name),
                },
            )
        }))
    };
    Some(map([
        ("name", name(given)?),
        ("why", text(given, "why")),
        ("in_use", version("in_use")),
        ("held", version("held")),
        ("functions", group("functions", &["added", "removed", "changed"])),
        ("permissions", group("permissions", &["added", "removed"])),
        ("lines", text(given, "lines")),
        ("approve", text(given, "approve")),
    ]))
}

/// A module's name: what may be the name of a file and of a Python module.
fn name(given: &Value) -> Option<Value> {
    let is_name = |text: &&str| {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    given.get_text("name").filter(is_name).map(Value::from)
}

fn sha256(given: &Value) -> Value {
    let is_hash = |text: &&str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    given.get_text("sha256").filter(is_hash).map_or(Value::Nil, Value::from)
}

fn text(given: &Value, key: &str) -> Value {
    given.get_text(key).map_or(Value::Nil, short)
}

fn short(text: &str) -> Value {
    Value::from(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)])
}

fn texts(given: &Value, key: &str) -> Value {
    let items = given.get_list(key).unwrap_or_default().iter().filter_map(Value::as_str);
    list(items.take(TEXTS_MAX).map(short))
}

/// A map of texts.
fn words(given: Option<&Value>) -> Value {
    let entries = given.and_then(|given| given.entries()).unwrap_or_default().iter().take(TEXTS_MAX);
    map(entries.filter_map(|(key, value)| Some((short(key.as_str()?), short(value.as_str()?)))))
}

/// Grants: maps, lists, texts, numbers and flags, or nothing if they are too large or anything else.
fn bounded(given: Option<&Value>) -> Value {
    fn is_plain(value: &Value, depth: u32) -> bool {
        match value {
            Value::Map(entries) => {
                depth > 0 && entries.iter().all(|(key, value)| key.is_str() && is_plain(value, depth - 1))
            }
            Value::Array(items) => depth > 0 && items.iter().all(|item| is_plain(item, depth - 1)),
            Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::String(_) => true,
            _ => false,
        }
    }
    let plain = given.filter(|given| is_plain(given, GRANTS_DEPTH_MAX));
    plain.filter(|given| msgpack::encode_disk(given).len() <= GRANTS_BYTES_MAX).cloned().unwrap_or(Value::Nil)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> MinionId {
        text.parse().unwrap()
    }

    fn report(version: &str) -> Value {
        let sha256 = "ab".repeat(32);
        let module = map([
            ("name", Value::from("tool")),
            ("usable", true.into()),
            ("version", version.into()),
            ("sha256", sha256.as_str().into()),
            ("origin", "base".into()),
            ("signed_by", list(["key"])),
            ("asks", list(["http"])),
            ("has", map([("all", map([("http", list(["https://x/"]))]))])),
            ("missing", list::<Value>([])),
        ]);
        map([("modules", list([module])), ("held", list::<Value>([]))])
    }

    #[test]
    fn a_report_is_kept_as_it_is() {
        let reports = SandboxReports::default();
        for minion in ["a", "b"] {
            reports.keep(&id(minion), &report("1")).unwrap();
        }
        assert_eq!(read(&reports.of(&id("a")).unwrap()), report("1"));
        let ids = ["a", "b", "c"].map(id);
        let (groups, unknown) = reports.by_report(&ids);
        assert_eq!((groups.len(), groups[0].1.len(), unknown), (1, 2, vec![&ids[2]]));
        reports.keep(&id("a"), &report("2")).unwrap();
        assert_eq!(reports.by_report(&ids).0.len(), 2);
        reports.forget(&id("a"));
        reports.forget(&id("b"));
        let known = reports.known();
        assert!(known.all.is_empty() && known.bytes == 0 && known.of.is_empty());
    }

    /// Of a hostile minion's report, only what is known and small is taken.
    #[test]
    fn a_hostile_report_is_cut() {
        let wild = |value: Value| map([("modules", list([map([("name", Value::from("tool")), ("has", value)])]))]);
        let deep = (0..50).fold(Value::Nil, |value, _| list([value]));
        for grants in [deep, Value::Binary(vec![0]), Value::from("x".repeat(GRANTS_BYTES_MAX))] {
            assert_eq!(checked(&wild(grants)).traverse("modules:0:has", ":"), Some(&Value::Nil));
        }
        for name in ["", "../x", "X", "a b", "<b>", &"x".repeat(65)] {
            let report = map([("modules", list([map([("name", name)])]))]);
            assert_eq!(checked(&report).get_list("modules").unwrap().len(), 0, "{name}");
        }
        let long =
            map([("modules", list([map([("name", "tool"), ("version", &"ä".repeat(9_999)), ("sha256", "x")])]))]);
        let module = checked(&long).traverse("modules:0", ":").unwrap().clone();
        assert_eq!(module.get_text("version").map(str::len), Some(TEXT_BYTES_MAX));
        assert_eq!(module.get("sha256"), Some(&Value::Nil));
        for none in [Value::Nil, Value::from("x"), map([("modules", 1), ("held", 2)]), map([("modules", list([1]))])] {
            assert_eq!(checked(&none), map([("modules", list::<Value>([])), ("held", list::<Value>([]))]));
        }
        let reports = SandboxReports::default();
        reports.keep(&id("a"), &report("1")).unwrap();
        let many = list((0..MODULES_MAX * 2).map(|n| map([("name", format!("m{n}")), ("version", "x".repeat(2_000))])));
        assert!(reports.keep(&id("a"), &map([("modules", many)])).is_err());
        assert!(reports.of(&id("a")).is_none(), "what was known is not true any more");
    }
}
