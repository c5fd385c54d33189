//! Decides how long to wait for each minion (§9.4), without sockets and clocks: it takes events and the time, and
//! returns the next step.
//!
//! Returns are collected until every minion has returned. When the timeout passes before that, `saltutil.find_job` asks
//! the missing minions for `gather_job_timeout` whether they still run the job; a minion that does gets another
//! timeout. When no minion runs it any more and every minion's own time has passed, the rest did not return.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use brine_protocol::event::Event;
use brine_protocol::value::{Value, ValueExt};

use super::{MinionReturn, Published};

/// The next step.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Wait for events, at most until this time.
    Until(Instant),
    /// Ask these minions with `saltutil.find_job`, then call [`Waiter::probed`].
    Probe(Vec<String>),
    /// Every minion returned or was given up.
    Done,
}

/// The content of an event of the job.
#[derive(Debug)]
pub enum News {
    /// A minion's return.
    Return(MinionReturn),
    /// The master refused the job after all.
    Refused(String),
}

/// Decides how long to wait for the returns of one job.
#[derive(Debug)]
pub struct Waiter {
    prefix: String,
    probe_prefix: Option<String>,
    minions: BTreeSet<String>,
    /// The minions that have not returned. The set is kept up to date because it is read at each of ten thousand
    /// events.
    pending: BTreeSet<String>,
    /// Pending minions without a deadline yet.
    without_deadline: Vec<String>,
    /// The last deadline and its minion, as long as that minion is pending.
    last: Option<(Instant, String)>,
    /// Ids in the target that no minion has. They are reported but not waited for.
    unknown: Vec<String>,
    found: HashSet<String>,
    deadlines: HashMap<String, Instant>,
    timeout: Duration,
    gather: Duration,
    check_at: Instant,
    /// Whether only the given minions count, because other publications have the same jid.
    closed: bool,
    /// Whether a minion may still run the job; true at first, so that every minion is asked once.
    running: bool,
}

impl Waiter {
    /// Waits for the minions of this job, each for `timeout` after it last said that it runs the job.
    pub fn new(job: &Published, timeout: Duration, gather: Duration, now: Instant) -> Self {
        let minions: BTreeSet<String> = job.minions.iter().cloned().collect();
        Self {
            prefix: format!("salt/job/{}/", job.jid),
            probe_prefix: None,
            pending: minions.clone(),
            without_deadline: job.minions.clone(),
            last: None,
            minions,
            unknown: job.missing.clone(),
            found: HashSet::new(),
            deadlines: HashMap::new(),
            timeout,
            gather,
            check_at: now + timeout,
            closed: false,
            running: true,
        }
    }

    /// Restricts the waiter to the minions of this publication, for a jid that is published several times.
    #[must_use]
    pub fn for_these_only(self) -> Self {
        Self { closed: true, ..self }
    }

    /// Whether the waiter needs an event with this tag.
    pub fn wants(&self, tag: &str) -> bool {
        tag.starts_with(&self.prefix) || self.probe_prefix.as_deref().is_some_and(|prefix| tag.starts_with(prefix))
    }

    /// Handles an event.
    pub fn event(&mut self, event: Event, now: Instant) -> Option<News> {
        if let Some(rest) = event.tag.strip_prefix(&self.prefix) {
            let rest = rest.to_owned();
            return self.job_event(&rest, event.data);
        }
        let id =
            self.probe_prefix.as_deref().and_then(|prefix| event.tag.strip_prefix(prefix)?.strip_prefix("ret/"))?;
        let id = id.to_owned();
        self.probe_return(&id, &event.data, now);
        None
    }

    fn job_event(&mut self, rest: &str, data: Value) -> Option<News> {
        // the master makes the tag from the id that the channel proved; the id in the data proves nothing
        if let Some(id) = rest.strip_prefix("ret/") {
            let is_ours = !self.closed || self.minions.contains(id);
            if !is_ours || !data.has("return") || !self.found.insert(id.to_owned()) {
                return None;
            }
            self.pending.remove(id);
            return Some(News::Return(MinionReturn::from_event(id, data)));
        }
        if rest == "error" {
            return Some(News::Refused(data.get("error").map(ValueExt::python_str).unwrap_or_default()));
        }
        if self.closed || rest.starts_with("prog/") || rest.starts_with("start/") {
            return None;
        }
        // syndics report the minions to which they passed the job
        for id in data.get_list("minions").unwrap_or_default() {
            if let Some(id) = id.text() {
                self.expect(id);
            }
        }
        None
    }

    /// Waits for this minion too.
    fn expect(&mut self, id: &str) {
        if self.minions.insert(id.to_owned()) && !self.found.contains(id) {
            self.pending.insert(id.to_owned());
            self.without_deadline.push(id.to_owned());
        }
    }

    fn probe_return(&mut self, id: &str, data: &Value, now: Instant) {
        if data.get("retcode").and_then(Value::as_i64).is_some_and(|retcode| retcode > 0) {
            tracing::error!("saltutil returning errors on minion {id}");
            self.minions.remove(id);
            self.pending.remove(id);
            return;
        }
        if data.get("return").and_then(ValueExt::entries).is_some_and(|job| !job.is_empty()) {
            self.expect(id);
            self.deadlines.insert(id.to_owned(), now + self.timeout);
            self.last = None;
            self.running = true;
        }
    }

    /// Returns the next step at this time. All events that have arrived must be handled before.
    pub fn step(&mut self, now: Instant) -> Step {
        if self.pending.is_empty() {
            return Step::Done;
        }
        for id in std::mem::take(&mut self.without_deadline) {
            self.deadlines.entry(id).or_insert(now + self.timeout);
            self.last = None;
        }
        if now < self.check_at {
            return Step::Until(self.check_at);
        }
        if self.running {
            return Step::Probe(self.pending.iter().cloned().collect());
        }
        if self.last.as_ref().is_none_or(|(_, id)| !self.pending.contains(id)) {
            let deadlines = self.pending.iter().filter_map(|id| Some((*self.deadlines.get(id)?, id)));
            self.last = deadlines.max().map(|(last, id)| (last, id.clone()));
        }
        match self.last {
            Some((last, _)) if now < last => Step::Until(last),
            _ => Step::Done,
        }
    }

    /// Records the jid of the query to the minions; none if the query failed.
    pub fn probed(&mut self, jid: Option<&str>, now: Instant) {
        self.probe_prefix = jid.map(|jid| format!("salt/job/{jid}/"));
        self.running = false;
        self.check_at = now + self.gather;
    }

    /// The minions that did not return, after the wait.
    pub fn missing(&self) -> Vec<String> {
        let unknown = self.unknown.iter().filter(|id| !self.found.contains(*id) && !self.minions.contains(*id));
        self.pending.iter().chain(unknown).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::map;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);
    const GATHER: Duration = Duration::from_secs(10);

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn waiter(minions: &[&str], start: Instant) -> Waiter {
        let texts = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
        let job = Published { jid: "J".to_owned(), minions: texts(minions), missing: texts(&["unknown"]) };
        Waiter::new(&job, TIMEOUT, GATHER, start)
    }

    fn ret(jid: &str, id: &str, value: impl Into<Value>) -> Event {
        let data = map([("id", Value::from(id)), ("return", value.into()), ("retcode", Value::from(0))]);
        Event { tag: format!("salt/job/{jid}/ret/{id}"), data }
    }

    fn pending(waiter: &Waiter) -> Vec<&str> {
        waiter.pending.iter().map(String::as_str).collect()
    }

    fn returned(news: Option<News>) -> String {
        match news {
            Some(News::Return(ret)) => ret.id,
            other => panic!("not a return: {other:?}"),
        }
    }

    #[test]
    fn done_when_everyone_returned() {
        let start = Instant::now();
        let mut waiter = waiter(&["a", "b"], start);
        assert_eq!(waiter.step(start), Step::Until(at(start, 5)));
        assert_eq!(returned(waiter.event(ret("J", "a", true), start)), "a");
        assert_eq!(waiter.step(start), Step::Until(at(start, 5)));
        assert!(waiter.event(ret("J", "a", true), start).is_none(), "the second return of a minion is left out");
        assert_eq!(returned(waiter.event(ret("J", "b", true), start)), "b");
        assert_eq!(waiter.step(start), Step::Done);
    }

    #[test]
    fn a_silent_minion_costs_both_timeouts() {
        let start = Instant::now();
        let mut waiter = waiter(&["a"], start);
        waiter.step(start);
        assert_eq!(waiter.step(at(start, 5)), Step::Probe(vec!["a".to_owned()]));
        waiter.probed(Some("P"), at(start, 5));
        assert_eq!(waiter.step(at(start, 5)), Step::Until(at(start, 15)));
        assert_eq!(waiter.step(at(start, 15)), Step::Done);
        assert_eq!(waiter.missing(), ["a", "unknown"]);
    }

    #[test]
    fn who_still_runs_it_is_waited_for_again() {
        let start = Instant::now();
        let mut waiter = waiter(&["a"], start);
        waiter.step(start);
        for round in 0..3 {
            let now = at(start, 5 + round * 10);
            assert!(matches!(waiter.step(now), Step::Probe(_)), "round {round}");
            waiter.probed(Some("P"), now);
            assert!(waiter.wants("salt/job/P/ret/a"));
            assert!(waiter.event(ret("P", "a", map([("jid", "J")])), now).is_none());
        }
        let now = at(start, 35);
        assert!(matches!(waiter.step(now), Step::Probe(_)));
        waiter.probed(Some("P2"), now);
        // the job has just finished: the query finds nothing, and the return arrives a little later
        waiter.event(ret("P2", "a", Value::Map(vec![])), now);
        assert_eq!(waiter.step(now), Step::Until(at(start, 45)));
        assert_eq!(returned(waiter.event(ret("J", "a", 1), at(start, 36))), "a");
        assert_eq!(waiter.step(at(start, 36)), Step::Done);
    }

    #[test]
    fn a_failing_find_job_drops_the_minion() {
        let start = Instant::now();
        let mut waiter = waiter(&["a"], start);
        waiter.step(start);
        waiter.probed(Some("P"), at(start, 5));
        let data = map([("return", Value::from("no such function")), ("retcode", Value::from(254))]);
        waiter.event(Event { tag: "salt/job/P/ret/a".to_owned(), data }, at(start, 6));
        assert_eq!(waiter.step(at(start, 6)), Step::Done);
        assert!(waiter.pending.is_empty());
    }

    #[test]
    fn a_probe_that_could_not_be_sent_ends_the_wait() {
        let start = Instant::now();
        let mut waiter = waiter(&["a"], start);
        waiter.step(start);
        waiter.probed(None, at(start, 5));
        assert_eq!(waiter.step(at(start, 15)), Step::Done);
    }

    #[test]
    fn syndics_add_minions_but_minions_do_not() {
        let start = Instant::now();
        let mut waiter = waiter(&["a"], start);
        let event = |tag: &str| Event { tag: tag.to_owned(), data: map([("minions", Value::Array(vec!["x".into()]))]) };
        waiter.event(event("salt/job/J/prog/a/1"), start);
        waiter.event(event("salt/job/J/ret/a"), start);
        waiter.event(event("salt/job/J/start/a"), start);
        assert_eq!(pending(&waiter), ["a"]);
        waiter.event(event("salt/job/J/new"), start);
        assert_eq!(pending(&waiter), ["a", "x"]);
    }

    #[test]
    fn a_return_is_the_tags_and_not_the_datas() {
        let start = Instant::now();
        let mut waiter = waiter(&["a", "b"], start);
        let data = map([("id", Value::from("b")), ("return", Value::from(1))]);
        let news = waiter.event(Event { tag: "salt/job/J/ret/a".to_owned(), data }, start);
        assert_eq!(returned(news), "a");
    }

    #[test]
    fn one_publication_of_several_under_a_jid_minds_its_own_minions() {
        let start = Instant::now();
        let mut waiter = waiter(&["a"], start).for_these_only();
        let data = map([("minions", Value::Array(vec!["x".into()]))]);
        waiter.event(Event { tag: "salt/job/J/new".to_owned(), data }, start);
        assert!(waiter.event(ret("J", "x", true), start).is_none());
        assert_eq!(pending(&waiter), ["a"]);
        assert_eq!(returned(waiter.event(ret("J", "a", true), start)), "a");
        assert_eq!(waiter.step(start), Step::Done);
    }

    #[test]
    fn another_jobs_events_are_not_wanted() {
        let waiter = waiter(&["a"], Instant::now());
        assert!(waiter.wants("salt/job/J/ret/a"));
        assert!(!waiter.wants("salt/job/J2/ret/a"));
        assert!(!waiter.wants("salt/auth"));
    }

    #[test]
    fn an_error_event_is_a_refusal() {
        let mut waiter = waiter(&["a"], Instant::now());
        let event = Event { tag: "salt/job/J/error".to_owned(), data: map([("error", "no")]) };
        assert!(matches!(waiter.event(event, Instant::now()), Some(News::Refused(text)) if text == "no"));
    }
}
