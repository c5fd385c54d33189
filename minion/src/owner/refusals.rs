//! What was refused on this host: counted in memory, appended to the journal once a second at most.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use brine_protocol::text;
use brine_protocol::value::{Value, ValueExt as _, map};
use brine_sandbox::{Learn, RefusedCall, Tell};
use tokio::runtime::Handle;

use super::journal::{Entry, Journal, LeftOut};
use crate::events::Events;

/// Time between two writes.
const PAUSE: Duration = Duration::from_secs(1);
/// Different refusals that are counted between two writes; further ones are only counted. One module has a part of them.
const AT_ONCE: usize = 256;
const AT_ONCE_EACH: usize = 64;
/// Characters of what was wanted, and of a function's name.
const WHAT_MAX: usize = 500;
const NAME_MAX: usize = 128;
/// How often a refusal is asked for its line, in case that it has others too.
const SEVERAL: u64 = 8;
/// Bytes of a line. A longer one is not one that a person would read before he grants it.
const LINE_MAX: usize = 4 << 10;
/// Jobs that are kept of each, where the owner has the host learn.
pub(super) const JOBS_MAX: usize = 20;
/// Time between two events for the master, and entries of one.
const EVENT_PAUSE: Duration = Duration::from_secs(10);
const EVENT_MAX: usize = 20;
/// Entries of an answer.
const ANSWER_MAX: usize = 1_000;

/// The refusals of this host, as this process knows them.
pub(crate) struct Refusals {
    journal: Journal,
    learn: Learn,
    tell: Tell,
    /// Sends events to the master; only the daemon does.
    events: OnceLock<Arc<Events>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Not written yet. By function and by what was wanted, of each master.
    new: HashMap<(Option<String>, String, String), Vec<Entry>>,
    /// How many of them, and of each module.
    count: usize,
    of_each: HashMap<String, usize>,
    /// Refusals that were more than could be kept between two writes.
    left_out: LeftOut,
    /// A task will write soon.
    awaited: bool,
    /// Written, and the master was not told yet.
    untold: Vec<Entry>,
    more: u64,
    told: Option<Instant>,
}

impl Refusals {
    pub(crate) fn new(cachedir: &Path, learn: Learn, tell: Tell) -> Arc<Self> {
        let journal = Journal::new(cachedir);
        Arc::new(Self { journal, learn, tell, events: OnceLock::new(), state: Mutex::default() })
    }

    /// Has the master told by events from now on.
    pub(crate) fn attach_events(&self, events: Arc<Events>) {
        let _ = self.events.set(events);
    }

    /// Takes note of one.
    pub(crate) fn note(self: &Arc<Self>, refused: &RefusedCall<'_>) {
        let job = refused.job;
        let key = (job.master.clone(), text::short(&job.function, NAME_MAX), text::short(refused.what, WHAT_MAX));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut state = self.state();
        let line = || (refused.line)().filter(|line| line.len() <= LINE_MAX && text::line(line) == line.as_str());
        if let Some(known) = state.new.get_mut(&key) {
            // A module wants the same again and again: then its line is not made again. What was left out may lack several lines.
            let at = if known.len() > 1 || known[0].times < SEVERAL {
                let line = line();
                known.iter().position(|entry| entry.line == line)
            } else {
                Some(0)
            };
            if let Some(entry) = at.map(|at| &mut known[at]) {
                entry.times += 1;
                entry.last = now;
                if entry.jids.first() != Some(&job.jid) {
                    let most = self.most_jobs(&entry.module);
                    entry.jids.retain(|jid| *jid != job.jid);
                    entry.jids.insert(0, job.jid.clone());
                    entry.jids.truncate(most);
                }
                return;
            }
        }
        let of_module = state.of_each.get(refused.module).copied().unwrap_or_default();
        if state.count >= AT_ONCE || of_module >= AT_ONCE_EACH {
            state.left_out.count(key.0.as_deref(), now, now, 1);
            return;
        }
        let entry = Entry {
            first: now,
            last: now,
            times: 1,
            master: key.0.clone(),
            module: text::short(refused.module, NAME_MAX),
            function: key.1.clone(),
            what: key.2.clone(),
            line: line(),
            jids: vec![text::short(&job.jid, NAME_MAX)],
        };
        state.count += 1;
        *state.of_each.entry(refused.module.to_owned()).or_default() += 1;
        state.new.entry(key).or_default().push(entry);
        if !std::mem::replace(&mut state.awaited, true) {
            drop(state);
            self.write_later();
        }
    }

    fn write_later(self: &Arc<Self>) {
        let this: Weak<Self> = Arc::downgrade(self);
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            tokio::time::sleep(PAUSE).await;
            let Some(this) = this.upgrade() else { return };
            let writes = Arc::clone(&this);
            let _ = tokio::task::spawn_blocking(move || writes.write()).await;
            let Some(events) = this.events.get() else { return };
            // Refusals that come meanwhile are written by other tasks, and told by this one or one of theirs.
            let Some(wait) = this.until_told() else { return };
            tokio::time::sleep(wait).await;
            if let Some(event) = this.event() {
                events.send_own("sandbox/refused", event).await;
            }
        });
    }

    /// The time until the master may be told. None if there is nothing to tell, or another task will.
    fn until_told(&self) -> Option<Duration> {
        let mut state = self.state();
        if state.untold.is_empty() {
            return None;
        }
        let next = state.told.map_or_else(Instant::now, |told| told + EVENT_PAUSE).max(Instant::now());
        // Who waits takes the place; others that come before then find it taken.
        if state.told.is_some_and(|told| told > Instant::now()) {
            return None;
        }
        state.told = Some(next);
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// The event of what was not told yet.
    fn event(&self) -> Option<Value> {
        let (untold, more) = {
            let mut state = self.state();
            (std::mem::take(&mut state.untold), std::mem::take(&mut state.more))
        };
        if untold.is_empty() {
            return None;
        }
        let full = self.tell == Tell::Full;
        let refused = untold.iter().map(|entry| {
            let mut one = map([
                ("module", Value::from(entry.module.as_str())),
                ("function", Value::from(entry.function.as_str())),
                ("jid", Value::from(entry.jids.first().map_or("", String::as_str))),
                ("times", Value::from(entry.times)),
            ]);
            if full {
                one.insert("what", entry.what.as_str());
                one.insert("line", entry.line.as_deref().map_or(Value::Nil, Value::from));
            }
            one
        });
        Some(map([("refused", Value::Array(refused.collect())), ("more", Value::from(more))]))
    }

    /// Writes what is new. Blocks on the disk.
    fn write(&self) {
        let (new, left_out) = {
            let mut state = self.state();
            state.awaited = false;
            state.count = 0;
            state.of_each.clear();
            (std::mem::take(&mut state.new), state.left_out.take())
        };
        let mut new: Vec<Entry> = new.into_values().flatten().collect();
        let unlisted: u64 = left_out.iter().map(|entry| entry.times).sum();
        if unlisted > 0 {
            tracing::warn!("{unlisted} refusals are not listed: they were too many different ones at once");
        }
        if self.tell != Tell::Nothing && self.events.get().is_some() {
            let mut state = self.state();
            let room = EVENT_MAX.saturating_sub(state.untold.len()).min(new.len());
            state.untold.extend_from_slice(&new[..room]);
            state.more += (new.len() - room) as u64 + unlisted;
        }
        new.extend(left_out);
        if !new.is_empty()
            && let Err(error) = self.journal.append(&new, JOBS_MAX)
        {
            tracing::error!("what was refused is not kept: {error}");
            // The next write has at least their number.
            let mut state = self.state();
            new.iter().for_each(|entry| state.left_out.add(entry));
        }
    }

    /// All that is kept, the last first; for a master, only of its own jobs: what another master or the owner wanted is nothing for it.
    /// Blocks on the disk.
    pub(super) fn all(&self, for_master: Option<&str>) -> Vec<Entry> {
        self.write();
        let mut all = self.journal.read(JOBS_MAX);
        all.retain(|entry| for_master.is_none() || entry.master.as_deref() == for_master);
        all
    }

    /// The answer of `sandbox.refusals`, for a master or for who calls on this host. Blocks on the disk.
    pub(crate) fn list(&self, for_master: Option<&str>) -> Value {
        let (unlisted, mut all): (Vec<Entry>, Vec<Entry>) =
            self.all(for_master).into_iter().partition(Entry::is_left_out);
        let mut left_out = LeftOut::default();
        unlisted.iter().chain(all.iter().skip(ANSWER_MAX)).for_each(|entry| left_out.add(entry));
        all.truncate(ANSWER_MAX);
        Value::Array(all.iter().chain(&left_out.take()).map(shown).collect())
    }

    /// How many different ones are listed, how often something was refused, and how often of that it was left out of the list. Blocks on the disk.
    pub(crate) fn counts(&self, for_master: Option<&str>) -> Value {
        let all = self.all(for_master);
        let (unlisted, listed): (Vec<&Entry>, Vec<&Entry>) = all.iter().partition(|entry| entry.is_left_out());
        let times = |of: &[&Entry]| of.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.times));
        let left_out = times(&unlisted);
        map([
            ("different", Value::from(listed.len() as u64)),
            ("times", Value::from(times(&listed).saturating_add(left_out))),
            ("left_out", Value::from(left_out)),
        ])
    }

    fn most_jobs(&self, module: &str) -> usize {
        if self.learn.has(module) { JOBS_MAX } else { 1 }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        self.write();
    }
}

fn shown(entry: &Entry) -> Value {
    map([
        ("time", time(entry.last)),
        ("first", time(entry.first)),
        ("times", Value::from(entry.times)),
        ("master", entry.master.as_deref().map_or(Value::Nil, Value::from)),
        ("jid", Value::from(entry.jids.first().map_or("", String::as_str))),
        ("module", Value::from(entry.module.as_str())),
        ("function", Value::from(entry.function.as_str())),
        ("what", Value::from(entry.what.as_str())),
        ("line", entry.line.as_deref().map_or(Value::Nil, Value::from)),
    ])
}

/// A time in UTC for people.
pub(super) fn time(seconds: u64) -> Value {
    let at = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    at.map_or(Value::Nil, |at| Value::from(at.strftime("%Y-%m-%d %H:%M:%S").to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_sandbox::JobContext;

    fn job(function: &str, jid: &str, master: Option<&str>) -> JobContext {
        JobContext {
            function: function.into(),
            jid: jid.into(),
            master: master.map(str::to_owned),
            ..brine_kit_sandbox::job(jid, function)
        }
    }

    fn note(refusals: &Arc<Refusals>, job: &JobContext, what: &str, line: Option<&str>) {
        let line = || line.map(str::to_owned);
        refusals.note(&RefusedCall { job, module: "cmd", what, line: &line });
    }

    #[test]
    fn refusals_are_counted_and_kept_over_restarts() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..3 {
            let refusals = Refusals::new(dir.path(), Learn::No, Tell::Brief);
            for nth in 0..4 {
                note(
                    &refusals,
                    &job("cmd.run", &format!("{round}{nth}"), None),
                    "run /bin/x",
                    Some("cmd: {process: [/bin/x]}"),
                );
            }
            note(&refusals, &job("cmd.run", "9", Some("aa:bb")), "run /bin/x", Some("cmd: {process: [/bin/x]}"));
        }
        let list = Refusals::new(dir.path(), Learn::No, Tell::Brief).list(None);
        let list = list.list().unwrap();
        assert_eq!(list.len(), 2);
        let own = list.iter().find(|one| one.get("master") == Some(&Value::Nil)).unwrap();
        assert_eq!((own.get_u64("times"), own.get_text("jid")), (Some(12), Some("23")));
        assert_eq!(own.get_text("line"), Some("cmd: {process: [/bin/x]}"));
    }

    #[test]
    fn a_flood_of_refusals_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let refusals = Refusals::new(dir.path(), Learn::All, Tell::Brief);
        for nth in 0..10_000 {
            note(&refusals, &job("cmd.run", "1", None), &format!("run /bin/{nth}"), Some("x: {y: true}"));
        }
        let quiet = job("file.read", "2", None);
        refusals.note(&RefusedCall { job: &quiet, module: "file", what: "read /x", line: &|| None });
        // Another module's refusal of the same second has its place, and what has none is counted.
        assert_eq!(refusals.all(None).len(), AT_ONCE_EACH + 2);
        let left_out = 10_000 - AT_ONCE_EACH as u64;
        let counts = [("different", AT_ONCE_EACH as u64 + 1), ("times", 10_001), ("left_out", left_out)]
            .map(|(k, v)| (k, Value::from(v)));
        assert_eq!(refusals.counts(None), map(counts));
        for round in 0..100 {
            for nth in 0..AT_ONCE {
                note(
                    &refusals,
                    &job("cmd.run", "1", None),
                    &format!("{round} {nth}{}", "w".repeat(9_000)),
                    Some(&"l".repeat(1_000)),
                );
            }
            refusals.write();
        }
        let bytes: u64 =
            std::fs::read_dir(dir.path()).unwrap().map(|item| item.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes < 12 << 20, "{bytes}");
        let list = refusals.list(None);
        let list = list.list().unwrap();
        assert_eq!(list.len(), ANSWER_MAX + 1);
        let times: u64 = list.iter().filter_map(|one| one.get_u64("times")).sum();
        assert_eq!(times, 10_001 + 100 * AT_ONCE as u64);
        assert_eq!(refusals.counts(None).get_u64("times"), Some(times));
    }

    #[test]
    fn what_the_disk_does_not_take_is_counted_with_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let refusals = Refusals::new(&dir.path().join("missing"), Learn::No, Tell::Brief);
        for nth in 0..3 {
            note(&refusals, &job("cmd.run", "1", None), &format!("run /bin/{nth}"), None);
        }
        refusals.write();
        std::fs::create_dir(dir.path().join("missing")).unwrap();
        note(&refusals, &job("cmd.run", "1", None), "run /bin/x", None);
        let counts = [("different", 1), ("times", 4), ("left_out", 3)].map(|(k, v)| (k, Value::from(v)));
        assert_eq!(refusals.counts(None), map(counts));
    }

    /// A module that is refused ten thousand times a second takes a small part of that second, and of the memory.
    #[test]
    fn ten_thousand_refusals_cost_little() {
        let dir = tempfile::tempdir().unwrap();
        let refusals = Refusals::new(dir.path(), Learn::All, Tell::Brief);
        let line = format!("cmd: {{process: [{}]}}", vec!["/usr/bin/x"; 100].join(", "));
        let began = Instant::now();
        for nth in 0..10_000 {
            // The same again and again, others each time, and the same of ever other jobs.
            note(&refusals, &job("cmd.run", "1", None), "run /bin/x", Some(&line));
            note(&refusals, &job("cmd.run", "1", None), &format!("run /bin/{nth}"), Some(&line));
            note(&refusals, &job("cmd.run", &nth.to_string(), None), "run /bin/y", Some(&line));
        }
        let took = began.elapsed();
        let state = refusals.state();
        let kept: usize = state.new.values().flatten().map(|entry| entry.jids.len()).sum();
        assert!(state.count <= AT_ONCE_EACH && kept <= AT_ONCE_EACH * JOBS_MAX, "{} {kept}", state.count);
        drop(state);
        let began = Instant::now();
        refusals.write();
        // Debug code on a busy machine: of the order of microseconds each.
        assert!(took < Duration::from_secs(3) && began.elapsed() < Duration::from_secs(2), "{took:?}");
    }

    /// What a hostile module wants is shown so that it drives no terminal, and is granted by no line.
    #[test]
    fn hostile_texts_are_shown_escaped_and_granted_by_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let refusals = Refusals::new(dir.path(), Learn::No, Tell::Brief);
        for (nth, line) in ["a: {b: [\"x\ny\"]}", "a: {b: [\u{202e}]}", &"l".repeat(5_000)].into_iter().enumerate() {
            note(
                &refusals,
                &job("cmd.run\u{1b}[2J", &nth.to_string(), None),
                &format!("{nth}\n\u{1b}]0;x\u{7}"),
                Some(line),
            );
        }
        let list = refusals.list(None);
        for one in list.list().unwrap() {
            assert_eq!(one.get("line"), Some(&Value::Nil));
            for key in ["what", "function"] {
                assert!(!one.get_text(key).unwrap().contains(|c: char| c.is_control()), "{one}");
            }
        }
        assert_eq!(list.list().unwrap().len(), 3);
    }

    #[test]
    fn what_lacks_several_lines_has_each_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let refusals = Refusals::new(dir.path(), Learn::No, Tell::Brief);
        for jid in ["1", "2", "3"] {
            for line in ["m: {grains: true}", "m.f: {process: [/bin/x]}"] {
                note(&refusals, &job("m.f", jid, None), "use it", Some(line));
            }
        }
        let list = refusals.list(None);
        let times: Vec<Option<u64>> = list.list().unwrap().iter().map(|one| one.get_u64("times")).collect();
        assert_eq!(times, [Some(3), Some(3)], "{list}");
    }

    #[test]
    fn a_master_is_shown_its_own_alone() {
        let dir = tempfile::tempdir().unwrap();
        let refusals = Refusals::new(dir.path(), Learn::No, Tell::Brief);
        for (jid, master) in [("1", None), ("2", Some("aa:bb")), ("3", Some("cc:dd"))] {
            note(&refusals, &job("cmd.run", jid, master), "run /bin/x", None);
        }
        let jids = |of: Option<&str>| -> Vec<String> {
            let list = refusals.list(of);
            list.list().unwrap().iter().map(|one| one.get_text("jid").unwrap().to_owned()).collect()
        };
        assert_eq!(jids(None).len(), 3);
        assert_eq!((jids(Some("aa:bb")), jids(Some("ee:ff"))), (vec!["2".to_owned()], vec![]));
        assert_eq!(refusals.counts(Some("cc:dd")).get_u64("times"), Some(1));
    }

    #[test]
    fn a_broken_journal_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let refusals = Refusals::new(dir.path(), Learn::No, Tell::Brief);
        note(&refusals, &job("cmd.run", "1", None), "x", None);
        refusals.write();
        let path = dir.path().join("refusals.jsonl");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.splice(0..0, b"{\"first\":1}\n\xff\n".iter().copied());
        bytes.extend_from_slice(b"{\"first\": 12, \"la");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(refusals.list(None).list().unwrap().len(), 1);
    }

    #[test]
    fn where_the_host_learns_the_jobs_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for (learn, most) in [(Learn::No, 1), (Learn::All, 20), (Learn::Modules(["cmd".parse().unwrap()].into()), 20)] {
            let refusals = Refusals::new(&dir.path().join(most.to_string()), learn, Tell::Brief);
            std::fs::create_dir_all(dir.path().join(most.to_string())).unwrap();
            for nth in 0..30 {
                note(&refusals, &job("cmd.run", &nth.to_string(), None), "x", None);
            }
            assert_eq!(refusals.all(None)[0].jids.len(), most);
        }
    }
}
