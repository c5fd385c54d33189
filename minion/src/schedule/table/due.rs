//! What fires now.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brine_protocol::value::Value;
use brine_schedule::{Fire, Missed, Now, Verdict};
use tracing::{debug, info};

use super::super::journal::Note;
use super::super::whose::Rights;
use super::{Start, Table};

/// Upper bound on the entries that fire in one step, so that others get the lock.
const MAX_AT_ONCE: usize = 200;

impl Table {
    /// Says which jobs an earlier process started and did not end. `is_kept` says whether the return of a job is there: then it did end.
    pub(in super::super) fn tell_cut_off(&mut self, is_kept: &dyn Fn(&str) -> bool) {
        let open = self.journal.open_jobs();
        for (_, name, due) in open.iter().filter(|(jid, ..)| !is_kept(jid)) {
            self.lost.add(name, Missed { first: *due, count: 1 }, "the minion ended while it ran");
        }
        self.lost.tell();
        open.iter().for_each(|(jid, ..)| self.journal.ended(jid));
    }

    /// Begins to fire.
    pub(in super::super) fn begin(&mut self, now: &Now) {
        self.firing = true;
        self.before = Some(now.clone());
    }

    /// The jobs that are to start now; some at once. What was lost is said first, then each is noted, then it is returned.
    pub(in super::super) fn due(&mut self, now: &Now, jid: &dyn Fn() -> String) -> Vec<Start> {
        self.look_at_clock(now);
        let mut starts = Vec::new();
        let mut notes = Vec::new();
        for (name, asker) in std::mem::take(&mut self.asked) {
            let Some(live) = self.live.get_mut(&name) else { continue };
            let Ok(entry) = &live.entry else { continue };
            if entry.maxrunning.is_some_and(|most| live.running.load(Ordering::Relaxed) >= most) {
                info!(
                    "the job {name:?} of the schedule does not run now: {} run already",
                    live.running.load(Ordering::Relaxed)
                );
                continue;
            }
            live.running.fetch_add(1, Ordering::Relaxed);
            starts.push(Start {
                entry: entry.clone(),
                function: entry.function.clone(),
                of_pillar: false,
                rights: Rights::Asker(asker),
                jid: jid(),
                due: now.wall,
                running: Arc::clone(&live.running),
            });
        }
        let by_pillar = self.skips_by_pillar();
        for _ in 0..MAX_AT_ONCE {
            let Some((fire, name)) = self.take_due(now) else { break };
            let Some(live) = self.live.get_mut(&name) else { continue };
            let Ok(entry) = &live.entry else { continue };
            let due = fire.on_wall(now);
            let free = std::mem::take(&mut live.free);
            let verdict = if !entry.enabled {
                Verdict::Skip("disabled")
            } else if entry.is_too_late(fire, now) {
                self.lost.add(&name, Missed { first: due, count: 1 }, "its time had passed");
                Verdict::Skip("missed")
            } else if free {
                Verdict::Run
            } else {
                entry.gates.judge(now.local())
            };
            let verdict = match (verdict, entry.maxrunning) {
                (Verdict::Run | Verdict::Instead(_), Some(most)) if live.running.load(Ordering::Relaxed) >= most => {
                    info!("the job {name:?} of the schedule does not run at {due}: it runs already");
                    Verdict::Skip("maxrunning")
                }
                (verdict, _) => verdict,
            };
            let function = match &verdict {
                Verdict::Run => Some(entry.function.clone()),
                Verdict::Instead(function) => Some(function.clone()),
                Verdict::Skip(_) => None,
            };
            let of_pillar = by_pillar && matches!(verdict, Verdict::Instead(_));
            live.skipped = None;
            let mut job = None;
            match (verdict, function) {
                (_, Some(_)) if entry.dry_run => debug!("the job {name:?} of the schedule would run (dry_run)"),
                (_, Some(function)) => {
                    let jid = jid();
                    live.running.fetch_add(1, Ordering::Relaxed);
                    live.last_run = Some(now.wall);
                    starts.push(Start {
                        entry: entry.clone(),
                        function,
                        of_pillar,
                        rights: live.place.rights(&live.raw),
                        jid: jid.clone(),
                        due,
                        running: Arc::clone(&live.running),
                    });
                    job = Some((jid, due));
                }
                (Verdict::Skip(why), None) => {
                    debug!("the job {name:?} of the schedule is skipped: {why}");
                    live.skipped = Some((why, now.wall));
                }
                (_, None) => {}
            }
            if let Some(missed) = live.passed_over.filter(|_| entry.enabled) {
                self.lost.add(&name, missed, "its splay reached beyond them");
            }
            let armed = entry.after(fire, now, rand::random());
            (live.fire, live.passed_over) = (armed.fire, armed.passed_over);
            if let Some(missed) = armed.missed {
                self.lost.add(&name, missed, "the clock went on, or the machine slept");
            }
            self.place(&name, armed.fire);
            notes.push(Note { name, settled: armed.settled.unwrap_or(due), job });
        }
        self.lost.tell();
        self.journal.note(notes);
        starts
    }

    fn take_due(&mut self, now: &Now) -> Option<(Fire, String)> {
        if self.by_up.first().is_some_and(|(at, _)| *at <= now.up) {
            return self.by_up.pop_first().map(|(at, name)| (Fire::Up(at), name));
        }
        if self.by_wall.first().is_some_and(|(at, _)| *at <= now.wall) {
            return self.by_wall.pop_first().map(|(at, name)| (Fire::Wall(at), name));
        }
        None
    }

    /// Says when the clock on the wall was set, and finds the firings anew if it was wrong by more than a day before.
    fn look_at_clock(&mut self, now: &Now) {
        const SAID: Duration = Duration::from_secs(5);
        const DAY: Duration = Duration::from_secs(86_400);
        let Some(before) = self.before.replace(now.clone()) else { return };
        let passed = now.up.saturating_sub(before.up);
        let Ok(expected) = before.wall.checked_add(passed) else { return };
        let step = now.wall.duration_since(expected);
        if step.unsigned_abs() < SAID {
            return;
        }
        let back = step.is_negative();
        let (way, by) = (if back { "back" } else { "on" }, step.unsigned_abs());
        info!("the clock was set {way} by {by:?}; times of the schedule that have fired do not fire again");
        if back && by > DAY {
            // The times that wait were found by a clock that was wrong.
            let waiting: Vec<String> = self.by_wall.iter().map(|(_, name)| name.clone()).collect();
            self.by_wall.clear();
            for name in waiting {
                let Some(live) = self.live.get_mut(&name) else { continue };
                let armed = live.entry.as_ref().ok().map(|entry| entry.at_start(Some(now.wall), now, rand::random()));
                live.fire = armed.and_then(|armed| armed.fire);
                live.passed_over = armed.and_then(|armed| armed.passed_over);
                let fire = live.fire;
                self.place(&name, fire);
            }
        }
    }

    /// How long nothing is to be done; none is for ever.
    pub(in super::super) fn wait(&self, now: &Now) -> Option<Duration> {
        let up = self.by_up.first().map(|(at, _)| at.saturating_sub(now.up));
        let wall = self.by_wall.first().map(|(at, _)| {
            let left = at.duration_since(now.wall);
            if left.is_negative() { Duration::ZERO } else { left.unsigned_abs() }
        });
        up.into_iter().chain(wall).min()
    }

    /// Notes that a job has ended.
    pub(in super::super) fn ended(&mut self, jid: &str) {
        self.journal.ended(jid);
    }

    /// The data of an event about firings that were lost since the last one.
    pub(in super::super) fn take_lost(&mut self) -> Option<Value> {
        self.lost.take_event()
    }
}
