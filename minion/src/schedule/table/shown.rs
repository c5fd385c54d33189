//! What `schedule.list` and its relatives show.

use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_schedule::Now;
use brine_schedule::dates::in_format;
use brine_schedule::trigger::Trigger;
use jiff::Timestamp;

use super::{FORMAT, From, GLOBAL, Table, pairs};

impl Table {
    pub(in super::super) fn list(&self, from: From, now: &Now) -> Value {
        let all: Vec<(&str, &Value)> = match from {
            From::All => self.merged().into_iter().map(|(name, entry, _)| (name, entry)).collect(),
            From::Opts => pairs(&self.opts).collect(),
            From::Pillar => pairs(&self.pillar).collect(),
        };
        map(all.into_iter().map(|(name, entry)| (name, self.shown(name, entry, FORMAT, now))))
    }

    pub(in super::super) fn status(&self, name: &str, format: &str, now: &Now) -> Value {
        match self.opts.get(name).or_else(|| self.pillar.get(name)) {
            Some(entry) => self.shown(name, entry, format, now),
            None => empty_map(),
        }
    }

    /// An entry with the keys that Salt adds to it.
    fn shown(&self, name: &str, entry: &Value, format: &str, now: &Now) -> Value {
        if GLOBAL.contains(&name) || entry.entries().is_none() {
            return entry.clone();
        }
        let mut shown = entry.clone();
        let Some(live) = self.live.get(name) else { return shown };
        let time = |at: Timestamp| in_format(now.zone.to_datetime(at), format).map_or(Value::Nil, Value::from);
        shown.insert("name", name);
        match &live.entry {
            Err(why) => shown.insert("_error", why.as_str()),
            Ok(entry) => {
                if let Trigger::Every(every) = &entry.trigger {
                    shown.insert("_seconds", every.as_secs());
                }
                shown.insert("_next_fire_time", live.fire.map_or(Value::Nil, |fire| time(fire.on_wall(now))));
                shown.insert("_splay", Value::Nil);
                shown.insert("_run_on_start", false);
                if shown.get("splay").is_none() {
                    shown.insert("splay", live.globals.splay.clone().unwrap_or(Value::Nil));
                }
            }
        }
        if let Some(at) = live.last_run {
            shown.insert("_last_run", time(at));
            shown.insert("run", true);
            if shown.get("jid_include").is_none_or(ValueExt::truthy) {
                shown.insert("jid_include", true);
                if shown.get("maxrunning").is_none() {
                    shown.insert("maxrunning", 1);
                }
            }
        }
        if let Some((why, at)) = live.skipped {
            shown.insert("_skip_reason", why);
            shown.insert("_skipped", true);
            shown.insert("_skipped_time", time(at));
        }
        shown
    }
}
