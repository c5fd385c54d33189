//! Events of failed states (§8.2): for each chunk with a false `result` in a `state.sls` or `state.highstate` with a
//! non-zero return code, one event, and Salt's older `<state>.<function>` beside it.

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::ReturnLoad;
use brine_protocol::value::{Value, ValueExt};

use super::ReturnIntake;
use crate::access::Principal;
use crate::minion_events;
use crate::quotas::QuotaKind;

/// The functions that return chunks.
const STATES: [&str; 2] = ["state.highstate", "state.sls"];
/// The separator in a chunk's name.
const PARTS: &str = "_|-";
/// Bound on the chunks of one return that get events.
const CHUNKS_MAX: usize = 1_024;

impl ReturnIntake {
    /// Fires the events. Their tags contain the minion's own text, so they are checked like all tags of the minion.
    pub(super) fn tell_failed_states(&self, by: &Principal, events: Vec<(String, Value)>) {
        let Principal::Minion(id) = by else { return };
        for (tag, data) in events {
            // Without these events nothing is lost, because the return itself is on the bus already.
            if !self.throttle.admit_now(id, "an event of a failed state", QuotaKind::Event, (1, 0)) {
                return;
            }
            match minion_events::check_tag(&tag, id) {
                Ok(()) => self.bus.fire_by(by.clone(), tag, data),
                Err(why) => tracing::debug!("a failed state of {id} has no event: {why}"),
            }
        }
    }
}

/// Returns the events of a return. Most returns have none.
pub(super) fn events(id: &MinionId, jid: &Jid, ret: &ReturnLoad) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    let funs = ret.get("fun").map(|fun| fun.list().unwrap_or(std::slice::from_ref(fun))).unwrap_or_default();
    let several = ret.get("fun").and_then(ValueExt::list).is_some();
    for (at, fun) in funs.iter().enumerate() {
        let Some(fun) = fun.text().filter(|fun| STATES.contains(fun)) else { continue };
        // A return of several functions has a list or a map with the results of each function.
        let of_fun = |name: &str| match ret.get(name)? {
            Value::Array(all) if several => all.get(at),
            all @ Value::Map(_) if several => all.get(fun),
            one => Some(one),
        };
        let Some(retcode) = of_fun("retcode").filter(|retcode| retcode.truthy()) else { continue };
        let chunks = of_fun("return").and_then(ValueExt::entries).unwrap_or_default();
        let failed = chunks.iter().filter(|(_, chunk)| chunk.get("result") == Some(&Value::from(false)));
        for (name, chunk) in failed.take(CHUNKS_MAX) {
            let name = name.python_str();
            let (state, function) =
                (name.split(PARTS).next().unwrap_or_default(), name.rsplit(PARTS).next().unwrap_or_default());
            let old = format!("{state}.{function}");
            let mut data = chunk.clone();
            data.insert("retcode", retcode.clone());
            events.push((old.clone(), data.clone()));
            data.insert("jid", jid.as_str());
            data.insert("id", id.as_str());
            data.insert("success", false);
            data.insert("return", format!("Error: {old}"));
            data.insert("fun", fun);
            if let Some(user) = ret.get("user") {
                data.insert("user", user.clone());
            }
            events.push((format!("salt/job/{jid}/sub/{id}/error/{fun}"), data));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{list, map, text};

    fn chunks() -> Value {
        let chunk = |result: bool| map([("result", Value::from(result)), ("comment", text("c"))]);
        map([("file_|-a_|-/etc/a_|-managed", chunk(false)), ("pkg_|-b_|-b_|-installed", chunk(true))])
    }

    fn id() -> MinionId {
        "web1".parse().unwrap()
    }

    fn tags(load: &Value) -> Vec<String> {
        let jid = Jid::try_from("20261120134740245008").unwrap();
        events(&id(), &jid, &ReturnLoad::parse(load.clone(), &id())).into_iter().map(|(tag, _)| tag).collect()
    }

    #[test]
    fn failed_chunks_have_salts_events() {
        let load = |fun: &str, retcode: i64| {
            map([
                ("fun", text(fun)),
                ("retcode", retcode.into()),
                ("return", chunks()),
                ("user", text("root")),
                ("id", text("db1")),
            ])
        };
        let jid = Jid::try_from("20261120134740245008").unwrap();
        let all = events(&id(), &jid, &ReturnLoad::parse(load("state.sls", 2), &id()));
        assert_eq!(all[0].0, "file.managed");
        assert_eq!(all[1].0, "salt/job/20261120134740245008/sub/web1/error/state.sls");
        let data = &all[1].1;
        for (name, value) in [
            ("id", "web1"),
            ("fun", "state.sls"),
            ("return", "Error: file.managed"),
            ("user", "root"),
            ("comment", "c"),
        ] {
            assert_eq!(data.get_text(name), Some(value), "{name}");
        }
        assert_eq!((data.get_i64("retcode"), data.get("success"), all.len()), (Some(2), Some(&Value::from(false)), 2));
        for (fun, retcode) in [("state.sls", 0), ("state.apply", 2), ("test.ping", 1)] {
            assert!(tags(&load(fun, retcode)).is_empty(), "{fun} {retcode}");
        }
    }

    #[test]
    fn of_several_functions_each_has_its_own() {
        let funs = || list([text("test.ping"), text("state.highstate")]);
        let ordered =
            map([("fun", funs()), ("retcode", list([0, 2])), ("return", list([Value::from(true), chunks()]))]);
        let named = map([
            ("fun", funs()),
            ("retcode", map([("test.ping", 0), ("state.highstate", 2)])),
            ("return", map([("test.ping", Value::from(true)), ("state.highstate", chunks())])),
        ]);
        for load in [ordered, named] {
            assert_eq!(tags(&load).len(), 2);
            assert!(tags(&load)[1].ends_with("/error/state.highstate"));
        }
        for odd in [map([("fun", funs())]), map([("fun", funs()), ("retcode", 1.into()), ("return", text("x"))])] {
            assert!(tags(&odd).is_empty());
        }
    }
}
