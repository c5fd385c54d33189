//! What is known of the jobs and runs that events are about: who started them, and what they are.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::value::{Value, ValueExt as _};

use super::subject::Subject;
use crate::access::Principal;
use crate::bus::BusEvent;

/// Upper bound on the starts in memory; those of jobs are in the job store as well.
const STARTS_MAX: usize = 10_000;
/// Upper bound on the bytes of the events that they come from.
const BYTES_MAX: usize = 16 << 20;
/// A jid is of the present if it is no further from it than this. A client may give a job a jid of its own, even that of
/// another user's job; of a jid of the present, no start of before this master began is missing here.
const PRESENT: Duration = Duration::from_secs(60);

/// A start of a job, a run, or a call of the wheel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Start {
    pub(super) user: String,
    pub(super) work: Work,
    /// Whether no earlier start of the same jid can have been forgotten.
    pub(super) is_first: bool,
}

/// What was started.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    Job { calls: Vec<(String, Vec<Value>)>, minions: Vec<MinionId> },
    Run { fun: String, args: Vec<Value>, kwargs: Vec<(String, Value)> },
    Wheel,
}

/// The starts in memory.
#[derive(Debug, Default)]
pub(super) struct Starts(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    of: HashMap<Subject, Vec<Arc<Start>>>,
    order: VecDeque<(Subject, usize)>,
    bytes: usize,
    /// The newest jid of a job that was forgotten. Whoever publishes much decides when that is so.
    forgotten: Option<jiff::Timestamp>,
}

impl Starts {
    /// Learns from the first event of a job or run. Only the master's own events count.
    pub(super) fn learn(&self, event: &BusEvent) {
        if !matches!(event.by, Principal::Master) || !event.event.tag.ends_with("/new") {
            return;
        }
        let subject = Subject::of(&event.event.tag);
        let data = &event.event.data;
        let work = match &subject {
            Subject::Job(_) => job(data),
            Subject::Run(_) => Some(run(data)),
            Subject::Wheel(_) => Some(Work::Wheel),
            Subject::Other => None,
        };
        let Some(work) = work else { return };
        let is_first = match &subject {
            Subject::Job(jid) => is_present(jid),
            _ => true,
        };
        let user = data.get_text("user").unwrap_or_default().to_owned();
        self.keep(subject, Start { user, work, is_first }, event.size());
    }

    fn keep(&self, subject: Subject, mut start: Start, bytes: usize) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        start.is_first &= !known.may_have_forgotten(&subject);
        known.of.entry(subject.clone()).or_default().push(Arc::new(start));
        known.order.push_back((subject, bytes));
        known.bytes += bytes;
        while (known.order.len() > STARTS_MAX || known.bytes > BYTES_MAX) && known.order.len() > 1 {
            let Some((oldest, bytes)) = known.order.pop_front() else { break };
            known.bytes -= bytes;
            known.of.remove(&oldest);
            if let Subject::Job(jid) = &oldest {
                known.forgotten = known.forgotten.max(jid.timestamp());
            }
        }
    }

    /// Returns the starts of a jid, the first first.
    pub(super) fn of(&self, subject: &Subject) -> Vec<Arc<Start>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).of.get(subject).cloned().unwrap_or_default()
    }
}

impl Known {
    /// Whether an earlier start of the same jid may have been forgotten.
    fn may_have_forgotten(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Job(jid) => self.forgotten.is_some_and(|newest| jid.timestamp().is_none_or(|at| at <= newest)),
            _ => false,
        }
    }
}

fn is_present(jid: &Jid) -> bool {
    let Some(at) = jid.timestamp() else { return false };
    let now = std::time::SystemTime::now();
    let at = std::time::SystemTime::from(at);
    now.duration_since(at).or_else(|_| at.duration_since(now)).is_ok_and(|apart| apart < PRESENT)
}

/// Reads a published job: of its event, or of its load in the store.
pub(super) fn job(data: &Value) -> Option<Work> {
    let minions = data.get_list("minions").unwrap_or_default().iter();
    let minions = minions.map(|id| MinionId::try_from(id.text()?).ok()).collect::<Option<Vec<_>>>()?;
    let arg = data.get_list("arg").unwrap_or_default();
    let calls = match data.get("fun")? {
        Value::Array(funs) => {
            let of = |at: usize| arg.get(at).and_then(|arg| arg.list()).unwrap_or_default().to_vec();
            let calls = funs.iter().enumerate().map(|(at, fun)| Some((fun.text()?.to_owned(), of(at))));
            calls.collect::<Option<Vec<_>>>()?
        }
        fun => vec![(fun.text()?.to_owned(), arg.to_vec())],
    };
    Some(Work::Job { calls, minions })
}

fn run(data: &Value) -> Work {
    let fun = data.get_text("fun").unwrap_or_default();
    let mut args = data.get_list("fun_args").unwrap_or_default().to_vec();
    // The keywords are the last one.
    let kwargs = match args.last() {
        Some(Value::Map(entries)) => {
            entries.iter().filter_map(|(name, value)| Some((name.text()?.to_owned(), value.clone()))).collect()
        }
        _ => Vec::new(),
    };
    if !kwargs.is_empty() {
        args.pop();
    }
    Work::Run { fun: fun.strip_prefix("runner.").unwrap_or(fun).to_owned(), args, kwargs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::Bus;
    use brine_protocol::event::Framing;
    use brine_protocol::value::{list, map};

    fn event(by: Principal, tag: &str, user: &str) -> Arc<BusEvent> {
        let data = map([
            ("user", Value::from(user)),
            ("fun", Value::from("test.ping")),
            ("arg", Value::Array(Vec::new())),
            ("minions", list(["m1"])),
        ]);
        Bus::new(Framing::Bare, 1 << 20).encode_by(by, tag.to_owned(), data, &[])
    }

    #[test]
    fn only_the_master_says_who_started_a_job() {
        let starts = Starts::default();
        let jid = Jid::now();
        let tag = format!("salt/job/{jid}/new");
        starts.learn(&event(Principal::Minion("m1".parse().unwrap()), &tag, "joe"));
        starts.learn(&event(Principal::local_program(), &tag, "joe"));
        starts.learn(&event(Principal::nobody("joe", crate::access::Address::Here), &tag, "joe"));
        assert_eq!(starts.of(&Subject::Job(jid.clone())), []);
        starts.learn(&event(Principal::Master, &tag, "ann"));
        starts.learn(&event(Principal::Master, &tag, "joe"));
        let users: Vec<String> = starts.of(&Subject::Job(jid)).iter().map(|start| start.user.clone()).collect();
        assert_eq!(users, ["ann", "joe"], "the first is the owner");
    }

    /// The owner of a job may have been forgotten when another user publishes a job with the same jid.
    #[test]
    fn an_old_jid_has_no_owner_here() {
        let starts = Starts::default();
        let old = Jid::at(1_000_000_000_000).unwrap();
        starts.learn(&event(Principal::Master, &format!("salt/job/{old}/new"), "joe"));
        assert!(!starts.of(&Subject::Job(old))[0].is_first);
    }

    /// A user who publishes much, and then with the jid of a job that is forgotten by that, is not its owner.
    #[test]
    fn whoever_pushes_a_start_out_does_not_take_its_place() {
        let starts = Starts::default();
        let job = |user: &str| Start {
            user: user.to_owned(),
            work: Work::Job { calls: Vec::new(), minions: Vec::new() },
            is_first: true,
        };
        let of = |nth: u8| Subject::Job(Jid::at(1_795_000_000_000 + i64::from(nth) * 1_000).unwrap());
        starts.keep(of(0), job("ann"), 100);
        starts.keep(of(1), job("joe"), BYTES_MAX);
        assert_eq!(starts.of(&of(0)), []);
        starts.keep(of(0), job("joe"), 100);
        assert!(!starts.of(&of(0))[0].is_first, "ann's was the first");
        starts.keep(of(2), job("ann"), 100);
        assert!(starts.of(&of(2))[0].is_first, "it is newer than all that was forgotten");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let starts = Starts::default();
        for _ in 0..STARTS_MAX + 10 {
            let start = Start { user: String::new(), work: Work::Wheel, is_first: true };
            starts.keep(Subject::Wheel(Jid::now()), start, 100);
        }
        assert_eq!(starts.0.lock().unwrap().of.len(), STARTS_MAX);
        let start = Start { user: String::new(), work: Work::Wheel, is_first: true };
        starts.keep(Subject::Wheel(Jid::now()), start, BYTES_MAX);
        assert_eq!(starts.0.lock().unwrap().of.len(), 1);
    }

    #[test]
    fn keywords_of_a_run_come_last() {
        let data = map([
            ("fun", Value::from("runner.jobs.list_jobs")),
            ("fun_args", Value::Array(vec![Value::from(1), map([("a", 2)])])),
        ]);
        let Work::Run { fun, args, kwargs } = run(&data) else { panic!("a run") };
        assert_eq!((fun.as_str(), args, kwargs), ("jobs.list_jobs", vec![1.into()], vec![("a".to_owned(), 2.into())]));
    }
}
