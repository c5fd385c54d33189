//! `jobs`: the jobs of the embedded store, newest first. Right: jobs that the caller could have started; under other
//! names the runner `jobs.list_jobs` besides.

use std::ops::ControlFlow;

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, ValueExt as _, map, to_json};

use super::args::{Words, wrong};
use super::page::{self, Page, Place};
use super::started::MaySee;
use super::{Answer, Asked, Refusal};
use crate::jobs::{JobPlace, Walked, now_ms};

/// The runner that lists others' jobs.
pub(super) const OF_OTHERS: &str = "jobs.list_jobs";
/// Bound on the jobs that one page looks at.
const LOOKED_AT_MAX: usize = 5_000;
/// Bound on the bytes of these jobs.
const LOOKED_AT_BYTES_MAX: usize = 64 << 20;
/// A job that is older does not count as running.
const RUNNING_MAX_MS: i64 = 24 * 3_600 * 1_000;
/// Largest arguments that are shown, in bytes of JSON.
const ARGS_BYTES_MAX: usize = 4 << 10;
/// The job that clients send by themselves.
const FIND_JOB: &str = "saltutil.find_job";

/// What is asked for.
struct Filter {
    fun: Option<Words>,
    target: Option<Words>,
    minion: Option<MinionId>,
    user: Option<String>,
    state: &'static str,
    find_job: bool,
}

/// The numbers of a job's returns.
struct Counts {
    expected: i64,
    returned: i64,
    failed: i64,
}

/// The page as far as it is made.
#[derive(Default)]
struct Made {
    items: Vec<Value>,
    looked_at: usize,
    bytes: usize,
    last: Option<JobPlace>,
    more: bool,
}

/// The entries of a job that lists and its own page show.
pub(super) fn head(jid: Value, fun: &str, user: &str, target: (&str, &str), started_ms: i64, load: &Value) -> Value {
    let args = load.get("arg").cloned().unwrap_or(Value::Nil);
    let args = if to_json(&args).to_string().len() > ARGS_BYTES_MAX { Value::Nil } else { args };
    map([
        ("jid", jid),
        ("fun", Value::from(fun)),
        ("args", args),
        ("user", Value::from(user)),
        ("target", Value::from(target.0)),
        ("target_type", Value::from(target.1)),
        ("start", seconds(started_ms)),
    ])
}

/// Milliseconds as seconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "times of this age are exact")]
pub(super) fn seconds(ms: i64) -> Value {
    Value::from(ms as f64 / 1_000.0)
}

impl Filter {
    fn fits(&self, job: &Walked<'_>) -> bool {
        let target = |words: &Words| words.fit(&job.tgt, []);
        (self.find_job || job.fun != FIND_JOB)
            && self.fun.as_ref().is_none_or(|fun| matches!(fun, Words::Part(_)) || fun.fit(&job.fun, []))
            && self.user.as_ref().is_none_or(|user| *user == job.user)
            && self.target.as_ref().is_none_or(target)
            && self.minion.as_ref().is_none_or(|id| job.minions().contains(id))
    }

    fn fits_counts(&self, job: &Walked<'_>, counts: &Counts) -> bool {
        match self.state {
            "failed" => counts.failed > 0,
            "running" => counts.returned < counts.expected && now_ms() - job.started_ms < RUNNING_MAX_MS,
            _ => true,
        }
    }
}

impl Counts {
    fn of(job: &Walked<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            expected: i64::try_from(job.expected()).unwrap_or(i64::MAX),
            returned: job.returned()?,
            failed: job.failed()?,
        })
    }
}

pub(super) async fn answer(asked: Asked) -> Answer {
    let args = &asked.args;
    let page = Page::new(args)?;
    let after = page.after.as_ref().map(place).transpose()?;
    let minion =
        args.text("minion")?.map(|id| MinionId::try_from(id).map_err(|_| wrong("minion", "the id of a minion")));
    let filter = Filter {
        fun: args.words("fun")?,
        target: args.words("target")?,
        minion: minion.transpose()?,
        user: args.text("user")?.map(str::to_owned),
        state: args.word("state", &["all", "failed", "running"])?,
        find_job: args.word("find_job", &["0", "1"])? == "1",
    };
    let one_fun = args.text("fun")?.filter(|_| matches!(filter.fun, Some(Words::Part(_)))).map(str::to_owned);
    let may_see = MaySee::of(&asked, OF_OTHERS).await;
    let limit = page.limit;
    let visit = move |made: &mut Made, job: Walked<'_>| {
        if made.items.len() == limit || made.looked_at == LOOKED_AT_MAX || made.bytes > LOOKED_AT_BYTES_MAX {
            made.more = true;
            return Ok(ControlFlow::Break(()));
        }
        made.looked_at += 1;
        made.bytes += job.bytes();
        made.last = Some((job.started_ms, job.jid.to_string()));
        if filter.fits(&job) && may_see.job(&job.user, || job.load(), || job.minions()) {
            let counts = Counts::of(&job)?;
            if filter.fits_counts(&job, &counts) {
                made.items.push(item(&job, &counts));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    let made = asked.parts.jobs.local().walk(after, one_fun, Made::default(), visit).await?;
    let next = made.last.filter(|_| made.more).map(|(at, jid)| (at.to_string(), jid));
    Ok(page::entries(made.items, next.as_ref()))
}

fn place((at, jid): &Place) -> Result<JobPlace, Refusal> {
    let at = at.parse().map_err(|_| wrong("cursor", "the next of a page before"))?;
    Ok((at, jid.clone()))
}

fn item(job: &Walked<'_>, counts: &Counts) -> Value {
    let target = (job.tgt.as_str(), job.tgt_type.as_str());
    let mut item = head(Value::from(&job.jid), &job.fun, &job.user, target, job.started_ms, &job.load());
    item.insert("expected", counts.expected);
    item.insert("returned", counts.returned);
    item.insert("failed", counts.failed);
    item
}
