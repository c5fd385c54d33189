//! Entries as users write them: when they fire, what was missed, and what is refused.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

use std::time::Duration;

use brine_schedule::{Entry, Fire, Globals, Missed, Now, Verdict};
use brine_values::{Value, ValueExt, empty_map, list, map};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

fn now(local: &str, zone: &str, up: u64) -> Now {
    let zone = TimeZone::get(zone).unwrap();
    let local: DateTime = local.parse().unwrap();
    let wall = brine_schedule::trigger::instant(local, &zone).unwrap();
    Now { wall, zone, up: Duration::from_secs(up) }
}

fn read_with(data: &[(&str, Value)], globals: &Globals) -> Result<Entry, String> {
    let mut entry = map([("function", "test.ping")]);
    data.iter().for_each(|(key, value)| entry.insert(key, value.clone()));
    let named = |name: &str| (name == "tea").then(|| "5:00pm".to_owned());
    Entry::read("job1", &entry, globals, jiff::civil::date(2026, 11, 24), named)
}

fn read(data: &[(&str, Value)]) -> Result<Entry, String> {
    read_with(data, &Globals::default())
}

fn entry(data: &[(&str, Value)]) -> Entry {
    read(data).unwrap()
}

/// The local times at which an entry fires, from a start on.
fn fires(entry: &Entry, start: &str, zone: &str, count: usize) -> Vec<String> {
    let mut at = now(start, zone, 0);
    let mut armed = entry.at_start(None, &at, 0);
    let mut found = Vec::new();
    while let Some(fire) = armed.fire
        && found.len() < count
    {
        let wall = fire.on_wall(&at);
        let passed = wall.duration_since(at.wall).unsigned_abs();
        at = Now { wall, zone: at.zone, up: at.up + passed };
        found.push(at.wall.to_zoned(at.zone.clone()).strftime("%m-%d %H:%M %:z").to_string());
        armed = entry.after(fire, &at, 0);
    }
    found
}

#[test]
fn what_cannot_be_used_is_refused_with_its_name() {
    let text = Value::from;
    for (bad, why) in [
        (vec![("seconds", Value::from(0))], "An interval is from 1 second to ten years, not 0 seconds"),
        (vec![("seconds", Value::from(-5))], "not -5 seconds"),
        (vec![("days", Value::from(i64::MAX))], "An interval is from 1 second"),
        (vec![("hours", text("soon"))], "hours must be a number"),
        (vec![], "It says nothing of when"),
        (vec![("cron", text("99 * * * *"))], "Invalid cron string. Ignoring job job1."),
        (
            vec![("cron", text("* * * * *")), ("when", text("5pm"))],
            "Unable to use \"when\", \"cron\", \"once\" options together",
        ),
        (vec![("cron", text("* * * * *")), ("seconds", 5.into())], "Unable to use \"seconds\""),
        (vec![("when", text("whenever"))], "Invalid date string whenever. Ignoring job job1."),
        (
            vec![("once", text("2026-13-01"))],
            "Date string could not be parsed: 2026-13-01, %Y-%m-%dT%H:%M:%S. Ignoring job job1.",
        ),
        (vec![("seconds", 5.into()), ("range", text("x"))], "Invalid, range must be specified as a dictionary."),
        (
            vec![("seconds", 5.into()), ("range", map([("start", "8pm"), ("end", "5pm")]))],
            "end must be larger than start",
        ),
        (
            vec![("seconds", 5.into()), ("range", map([("start", "8pm"), ("end", "x")]))],
            "Invalid date string for end. Ignoring job job1.",
        ),
        (
            vec![("seconds", 5.into()), ("skip_during_range", map([("start", "x"), ("end", "5pm")]))],
            "Invalid date string for start in skip_during_range",
        ),
        (vec![("seconds", 5.into()), ("splay", map([("start", 9), ("end", 3)]))], "Invalid Splay"),
        (vec![("seconds", 5.into()), ("args", text("x"))], "args must be a list"),
        (vec![("seconds", 5.into()), ("kwargs", text("x"))], "kwargs must be a dictionary"),
        (vec![("seconds", 5.into()), ("maxrunning", (-1).into())], "maxrunning must be a whole number"),
        (vec![("seconds", 5.into()), ("function", text("a\nb"))], "Invalid function"),
        (
            vec![("seconds", 5.into()), ("skip_explicit", list([map([("time", "x")])]))],
            "could not be parsed in skip_explicit",
        ),
    ] {
        let error = read(&bad).unwrap_err();
        assert!(error.contains(why), "{bad:?}: {error}");
    }
    let none = |name: &str, data: &Value| {
        Entry::read(name, data, &Globals::default(), jiff::civil::date(2026, 1, 1), |_| None).unwrap_err()
    };
    for name in ["", "a\nb", &"x".repeat(300)] {
        assert!(none(name, &empty_map()).contains("is one line"), "{name}");
    }
    assert!(none("../../x", &Value::from(5)).contains("should have a dict value"));
    // A year, and what Python's `int` takes.
    assert!(read(&[("days", 365.into())]).is_ok() && read(&[("seconds", text("3600"))]).is_ok());
}

#[test]
fn an_interval_counts_from_its_last_time() {
    let job = entry(&[("minutes", 1.into()), ("seconds", 30.into())]);
    let at = now("2026-11-24T12:00:00", "UTC", 1_000);
    let up = |seconds| Some(Fire::Up(Duration::from_secs(seconds)));
    assert_eq!(job.at_start(None, &at, 0).fire, up(1_000));
    assert_eq!(entry(&[("seconds", 90.into()), ("run_on_start", false.into())]).at_start(None, &at, 0).fire, up(1_090));
    // It ran 30 s ago, by an earlier process: not twice in a period.
    let ago = |seconds: i64| Some(Timestamp::from_second(at.wall.as_second() - seconds).unwrap());
    let armed = job.at_start(ago(30), &at, 0);
    assert_eq!((armed.fire, armed.missed), (up(1_060), None));
    // One that was due is made up for, more are said to be missed.
    let armed = job.at_start(ago(100), &at, 0);
    assert_eq!((armed.fire, armed.missed), (up(1_000), None));
    let armed = job.at_start(ago(300), &at, 0);
    assert_eq!((armed.fire, armed.missed), (up(1_000), Some(Missed { first: ago(210).unwrap(), count: 2 })));
    // What was said to be missed is not said again, and what is made up for now still is.
    assert_eq!(armed.settled, ago(120));
    let again = job.at_start(armed.settled, &at, 0);
    assert_eq!((again.fire, again.missed, again.settled), (up(1_000), None, None));
    // Noted by a clock that was wrong.
    assert_eq!(job.at_start(ago(-30), &at, 0).fire, up(1_090));
    assert_eq!(job.at_start(ago(-90_000), &at, 0).fire, up(1_000));
    // The machine slept for an hour: once, and the others are missed. A step of the clock is nothing to an interval.
    let later = Now { up: at.up + Duration::from_secs(3_600), ..at.clone() };
    let armed = job.after(Fire::Up(Duration::from_secs(1_000)), &later, 0);
    assert_eq!((armed.fire, armed.missed.unwrap().count), (up(4_690), 40));
    // A start after that runs it no second time.
    let woken = Now { wall: at.wall.saturating_add(Duration::from_secs(3_600)).unwrap(), ..later };
    let restarted = job.at_start(job.after(Fire::Up(at.up), &woken, 0).settled, &woken, 0);
    assert_eq!((restarted.fire, restarted.missed), (up(4_600 + 90), None));
    let splayed = entry(&[("seconds", 10.into()), ("splay", map([("start", 5), ("end", 7)]))]);
    let next: Vec<_> = (0..4).map(|random| splayed.after(Fire::Up(at.up), &at, random).fire).collect();
    assert_eq!(next, [up(1_015), up(1_016), up(1_017), up(1_015)]);
}

/// A minion that is started again more often than the interval still gets to run it.
#[test]
fn a_wait_goes_on_over_restarts() {
    for more in [("run_on_start", Value::from(false)), ("splay", 40.into())] {
        let job = entry(&[("hours", 1.into()), more]);
        let at = |minutes: u64| {
            let start = now("2026-11-24T12:00:00", "UTC", 0);
            let passed = Duration::from_secs(60 * minutes);
            Now { wall: start.wall.saturating_add(passed).unwrap(), up: passed, ..start }
        };
        let mut last = Some(at(0).wall);
        if !job.run_on_start {
            last = job.at_start(None, &at(0), 0).settled;
        }
        let mut due = None;
        for start in (10..90).step_by(10) {
            let armed = job.at_start(last, &at(start), 39);
            assert_eq!((armed.missed, armed.settled), (None, None), "{start}");
            due = due.or(armed.fire.filter(|fire| fire.is_due(&at(start))).map(|_| start));
        }
        assert_eq!(due, Some(if job.run_on_start { 70 } else { 60 }));
    }
}

/// A date to which a job was postponed is one of its times.
#[test]
fn a_date_of_run_explicit_is_missed_as_others_are() {
    let explicit = list([map([("time", "2026-11-24T11:15:00"), ("time_fmt", "%Y-%m-%dT%H:%M:%S")])]);
    let last = now("2026-11-24T11:00:00", "UTC", 0).wall;
    let later = now("2026-11-24T11:30:00", "UTC", 5);
    for when in [("hours", Value::from(1)), ("cron", "0 * * * *".into())] {
        let job = entry(&[when, ("run_explicit", explicit.clone())]);
        let missed = job.at_start(Some(last), &later, 0).missed.unwrap();
        assert_eq!((missed.first.to_string().as_str(), missed.count), ("2026-11-24T11:15:00Z", 1));
    }
}

#[test]
fn days_of_23_and_25_hours_have_each_time_once() {
    let berlin = "Europe/Berlin";
    let daily = entry(&[("cron", "30 2 * * *".into())]);
    // 29 March 2026 has no 02:30, 25 October has two.
    assert_eq!(fires(&daily, "2026-03-28T12:00:00", berlin, 2), ["03-29 03:30 +02:00", "03-30 02:30 +02:00"]);
    assert_eq!(fires(&daily, "2026-10-24T12:00:00", berlin, 2), ["10-25 02:30 +02:00", "10-26 02:30 +01:00"]);
    let halves = entry(&[("cron", "*/30 1-3 * * *".into())]);
    assert_eq!(
        fires(&halves, "2026-03-29T01:10:00", berlin, 4),
        ["03-29 01:30 +01:00", "03-29 03:00 +02:00", "03-29 03:30 +02:00", "03-30 01:00 +02:00"]
    );
    assert_eq!(
        fires(&halves, "2026-10-25T02:10:00", berlin, 3),
        ["10-25 02:30 +02:00", "10-25 03:00 +01:00", "10-25 03:30 +01:00"]
    );
    // An interval knows no days.
    let hourly = entry(&[("hours", 1.into()), ("run_on_start", false.into())]);
    assert_eq!(
        fires(&hourly, "2026-10-25T01:30:00", berlin, 3),
        ["10-25 02:30 +02:00", "10-25 02:30 +01:00", "10-25 03:30 +01:00"]
    );
}

#[test]
fn dates_come_once_or_again() {
    let teas = entry(&[("when", list(["tea", "Monday 9:00am"]))]);
    assert_eq!(
        fires(&teas, "2026-11-29T16:00:00", "UTC", 3),
        ["11-29 17:00 +00:00", "11-30 09:00 +00:00", "11-30 17:00 +00:00"]
    );
    let once = entry(&[("once", "24.12.2026".into()), ("once_fmt", "%d.%m.%Y".into())]);
    assert_eq!(fires(&once, "2026-11-29T16:00:00", "UTC", 3), ["12-24 00:00 +00:00"]);
    assert!(fires(&once, "2026-12-25T00:00:00", "UTC", 3).is_empty());
    let both = entry(&[
        ("once", "2026-12-24T10:00:00".into()),
        ("run_explicit", list([map([("time", "2026-12-24T09:00:00"), ("time_fmt", "%Y-%m-%dT%H:%M:%S")])])),
    ]);
    assert_eq!(fires(&both, "2026-12-24T08:00:00", "UTC", 3), ["12-24 09:00 +00:00", "12-24 10:00 +00:00"]);
}

#[test]
fn what_passed_while_nothing_ran_is_missed() {
    let last = now("2026-11-24T10:00:00", "UTC", 0).wall;
    let later = now("2026-11-24T12:30:00", "UTC", 0);
    let hourly = entry(&[("cron", "0 * * * *".into())]);
    let armed = hourly.at_start(Some(last), &later, 0);
    assert_eq!(armed.missed.unwrap().count, 2);
    assert_eq!(armed.fire.unwrap().on_wall(&later).to_string(), "2026-11-24T13:00:00Z");
    let once = entry(&[("once", "2026-11-24T11:00:00".into())]);
    let armed = once.at_start(Some(last), &later, 0);
    assert_eq!((armed.fire, armed.missed.unwrap().count), (None, 1));
    // The clock went on by two hours while it waited.
    let due = Fire::Wall(now("2026-11-24T11:00:00", "UTC", 0).wall);
    assert!(once.is_too_late(due, &later) && !hourly.is_too_late(due, &later));
    let armed = hourly.after(due, &later, 0);
    assert_eq!(
        (armed.fire.unwrap().on_wall(&later).to_string().as_str(), armed.missed.unwrap().count),
        ("2026-11-24T13:00:00Z", 1)
    );
    // It went back: what fired does not fire again.
    let back = now("2026-11-24T10:30:00", "UTC", 0);
    assert_eq!(hourly.after(due, &back, 0).fire.unwrap().on_wall(&back).to_string(), "2026-11-24T12:00:00Z");
    // The end of time is no harm.
    let never = entry(&[("cron", "0 0 30 2 *".into())]);
    assert_eq!(never.at_start(Some(last), &later, 0).fire, None);
}

#[test]
fn dates_that_a_splay_reaches_beyond_are_known() {
    let start = now("2026-11-24T10:30:00", "UTC", 0);
    let hourly = |more: &[(&str, Value)]| {
        let splay = ("splay", map([("start", 9_000), ("end", 9_000)]));
        entry(&[&[("cron", "0 * * * *".into()), splay], more].concat())
    };
    // 11:00 comes at 13:30, after 12:00 and 13:00.
    let every = hourly(&[]);
    let armed = every.at_start(None, &start, 0);
    let fire = armed.fire.unwrap();
    assert_eq!(fire.on_wall(&start).to_string(), "2026-11-24T13:30:00Z");
    let noon = now("2026-11-24T12:00:00", "UTC", 0).wall;
    assert_eq!(armed.passed_over, Some(Missed { first: noon, count: 2 }));
    // Between that firing and the next, 14:00 at 16:30: none is counted twice, and none left out.
    let armed = every.after(fire, &now("2026-11-24T13:30:00", "UTC", 0), 0);
    let three = now("2026-11-24T15:00:00", "UTC", 0).wall;
    assert_eq!((armed.missed, armed.passed_over), (None, Some(Missed { first: three, count: 2 })));
    // A date of `run_explicit` comes first: 11:00 and 12:00 give way.
    let time = map([("time", "2026-11-24T12:30:00"), ("time_fmt", "%Y-%m-%dT%H:%M:%S")]);
    let armed = hourly(&[("run_explicit", list([time]))]).at_start(None, &start, 0);
    assert_eq!(armed.fire.unwrap().on_wall(&start).to_string(), "2026-11-24T12:30:00Z");
    let eleven = now("2026-11-24T11:00:00", "UTC", 0).wall;
    assert_eq!(armed.passed_over, Some(Missed { first: eleven, count: 2 }));
    // Without a splay, or with one that is short, there are none.
    for splay in [Value::Nil, map([("start", 0), ("end", 3_599)])] {
        let entry = entry(&[("cron", "0 * * * *".into()), ("splay", splay)]);
        assert_eq!(entry.at_start(None, &start, 3_599).passed_over, None);
    }
}

#[test]
fn gates_hold_back() {
    let range = |start: &str, end: &str| map([("start", start), ("end", end)]);
    let at = |text: &str| -> DateTime { text.parse().unwrap() };
    let judge = |gates: &[(&str, Value)], time: &str| {
        let mut all = vec![("seconds", Value::from(5))];
        all.extend(gates.iter().cloned());
        entry(&all).gates.judge(at(&format!("2026-11-24T{time}:00")))
    };
    let mut inverted = range("8:00am", "5:00pm");
    inverted.insert("invert", true);
    let explicit = list([map([("time", "2026-11-24T09:00:00"), ("time_fmt", "%Y-%m-%dT%H:%M:%S")])]);
    for (key, value, time, expected) in [
        ("range", range("8:00am", "5:00pm"), "09:00", Verdict::Run),
        ("range", range("8:00am", "5:00pm"), "17:00", Verdict::Run),
        ("range", range("8:00am", "5:00pm"), "17:01", Verdict::Skip("not_in_range")),
        ("range", inverted.clone(), "09:00", Verdict::Skip("in_skip_range")),
        ("range", inverted, "17:00", Verdict::Run),
        ("skip_during_range", range("8:00am", "5:00pm"), "09:00", Verdict::Skip("in_skip_range")),
        ("skip_during_range", range("8:00am", "5:00pm"), "07:00", Verdict::Run),
        ("until", "2026-11-24 09:00".into(), "08:59", Verdict::Run),
        ("until", "2026-11-24 09:00".into(), "09:00", Verdict::Skip("until_passed")),
        ("after", "2026-11-24 09:00".into(), "09:00", Verdict::Skip("after_not_passed")),
        ("after", "2026-11-24 09:00".into(), "09:01", Verdict::Run),
        ("skip_explicit", explicit.clone(), "09:00", Verdict::Skip("skip_explicit")),
        ("skip_explicit", explicit, "09:01", Verdict::Run),
    ] {
        assert_eq!(judge(&[(key, value.clone())], time), expected, "{key} {value} {time}");
    }
    let globals = Globals {
        skip_function: Some("test.echo".into()),
        skip_during_range: Some(range("8:00am", "5:00pm")),
        ..Globals::default()
    };
    let job = read_with(&[("seconds", 5.into())], &globals).unwrap();
    assert_eq!(job.gates.judge(at("2026-11-24T09:00:00")), Verdict::Instead("test.echo".into()));
}
