//! The schedule of a real minion: a configuration that changes, and crashes at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use brine_kit::wait::wait_for;
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master, Minion};
use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::{Value, json};

/// Waits for a return of this job of the schedule.
fn wait_fired(events: &Events, name: &str) {
    events.wait(&format!("a return of the job {name}"), |tag, data| {
        tag.starts_with("salt/job/") && tag.ends_with("/ret/web1") && data["schedule"] == name
    });
}

/// Replaces the schedule of a minion's configuration file.
fn write_schedule(minion: &Minion, schedule: &str) {
    let path = minion.path("conf/minion");
    let text = std::fs::read_to_string(&path).expect("written by this test");
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("schedule:")).collect();
    let line = format!("schedule: {schedule}");
    lines.push(&line);
    std::fs::write(&path, lines.join("\n") + "\n").expect("our own folder");
}

#[test]
fn a_minion_takes_up_its_changed_schedule_at_a_signal() {
    let master = Master::start("");
    let config = "schedule: {first: {function: test.echo, args: [x], hours: 1}, gone: {function: test.ping, hours: 1}}";
    let minion = master.minion_kind(Kind::Brine, "web1", config);
    let events = master.events();
    let listed = || master.json("web1", &["schedule.list", "show_all=True", "return_yaml=False"]);
    let names = || -> BTreeSet<String> { listed().as_object().expect("a dict").keys().cloned().collect() };
    let expected = || ["added", "first", "second"].map(str::to_owned).into();
    master.json("web1", &["schedule.add", "added", "function=test.ping", "hours=1", "persist=False"]);
    wait_fired(&events, "added");
    let next = |name: &str| master.json("web1", &["schedule.show_next_fire_time", name])["next_fire_time"].clone();
    let before = next("first");
    assert!(before.is_string(), "{before}");

    write_schedule(
        &minion,
        "{first: {function: test.echo, args: [x], hours: 1}, second: {function: test.echo, args: [y], hours: 1}}",
    );
    minion.running().signal(Signal::HUP);
    wait_fired(&events, "second");
    assert_eq!(names(), expected());
    assert_eq!(next("first"), before, "what did not change keeps its time");
    minion.running().wait_log("configuration read again: schedule changed");
    assert!(!minion.running().log_text().contains("count from the next start"));

    // What cannot be used changes nothing.
    let long = "x".repeat(300);
    write_schedule(&minion, &format!("{{{long}: {{function: test.echo, args: [z], hours: 1}}}}"));
    minion.running().signal(Signal::HUP);
    minion.running().wait_log("the schedule of the configuration is not taken up, the one before stays: ");
    assert_eq!(names(), expected());
}

/// What a master's pillar schedules and cannot be, or may not run here.
#[test]
fn what_is_wrong_in_the_schedule_of_the_pillar_is_said_once_and_harms_nothing() {
    let mut master = Master::prepare(Kind::Brine, "pillar_roots: {base: [../srv/pillar]}");
    let folder = master.path("srv/pillar");
    std::fs::create_dir_all(&folder).expect("our own folder");
    std::fs::write(folder.join("top.sls"), "base: {'*': [a]}\n").expect("our own folder");
    let entries = [
        "never: {function: test.ping, cron: '0 0 30 2 *'}",
        "no_cron: {function: test.ping, cron: 'every now and then'}",
        "zero: {function: test.ping, seconds: 0}",
        "year: {function: test.ping, days: 365, run_on_start: false}",
        "../etc: {function: test.ping, hours: 1}",
        "refused: {function: cmd.run, args: [id], seconds: 1}",
        "good: {function: test.echo, args: [x], seconds: 1}",
    ];
    let pillar = format!("schedule:\n  {}\n", entries.join("\n  "));
    std::fs::write(folder.join("a.sls"), pillar).expect("our own folder");
    master.up();
    let events = master.events();
    let minion = master.minion_kind(Kind::Brine, "web1", "");
    let returned = |name: &str| -> Vec<Value> {
        let all = events.all();
        let own = all.iter().filter(|(tag, data)| tag.ends_with("/ret/web1") && data["schedule"] == name);
        own.map(|(_, data)| data.clone()).collect()
    };
    // What the owner did not grant is refused each time that it is due, and those beside it run.
    wait_for("three refused jobs", || (returned("refused").len() >= 3 && returned("good").len() >= 3).then_some(()));
    for refused in returned("refused") {
        assert_eq!((&refused["success"], &refused["retcode"]), (&json!(false), &json!(1)), "{refused}");
        let why = refused["return"].as_str().unwrap_or_default();
        assert!(why.contains("cmd: {process: [") && why.contains("/id]}"), "{why}");
    }
    assert!(returned("good").iter().all(|good| good["return"] == "x"));
    for name in ["never", "no_cron", "zero", "year"] {
        assert!(returned(name).is_empty(), "{name}: {:?}", returned(name));
    }
    // The owner has one line of it, however often it came.
    let list = minion.salt_call(&["--local", "--out=json", "sandbox.refusals"]).exits(0).json();
    let lines = list["local"].to_string();
    assert_eq!(lines.matches("cmd: {process: [").count(), 1, "{lines}");
    let status = |name: &str| master.json("web1", &["schedule.job_status", name]);
    assert!(status("zero")["_error"].is_string(), "{}", status("zero"));
    assert!(status("no_cron")["_error"].is_string(), "{}", status("no_cron"));
    let next = |name: &str| master.json("web1", &["schedule.show_next_fire_time", name])["next_fire_time"].clone();
    assert!(next("never").is_null() || next("never") == "", "{}", next("never"));
    let year = next("year").as_str().map(str::to_owned).expect("a time");
    assert!(year.starts_with(&(jiff::Zoned::now().year() + 1).to_string()), "{year}");
}

/// Rounds of a start and a kill.
fn rounds() -> usize {
    if brine_tests::long() { 100 } else { 4 }
}

/// The time between two dates of the job `dates`.
const DATES_SECONDS: i64 = 2;

/// The jobs that have an interval, and its seconds.
const INTERVALS: [(&str, u64); 4] = [("one", 1), ("two", 2), ("three", 3), ("slow", 2)];

/// A configuration with these jobs, and one that has a date all two seconds from now on.
fn config(from: Timestamp) -> (String, BTreeSet<Timestamp>) {
    let from = from.as_second() / DATES_SECONDS * DATES_SECONDS;
    let dates = (1..=900).map(|n| Timestamp::from_second(from + n * DATES_SECONDS).expect("near"));
    let dates: BTreeSet<Timestamp> = dates.collect();
    let zone = jiff::tz::TimeZone::system();
    let local = dates.iter().map(|at| at.to_zoned(zone.clone()).strftime("'%Y-%m-%dT%H:%M:%S'").to_string());
    let local: Vec<String> = local.collect();
    // With a returner, the return has the jid of the job.
    let job = |name: &str, fun: &str, when: &str| format!("{name}: {{function: {fun}, returner: nowhere, {when}}}");
    let echo = "test.echo, args: [x]";
    let jobs = [
        job("one", echo, "seconds: 1"),
        job("two", echo, "seconds: 2"),
        job("three", echo, "seconds: 3, run_on_start: False"),
        job("slow", "test.sleep, args: [1]", "seconds: 2"),
        job("dates", echo, &format!("when: [{}]", local.join(", "))),
    ];
    (format!("schedule: {{{}}}", jobs.join(", ")), dates)
}

/// What the log says of one job.
#[derive(Debug, Default)]
struct Said {
    /// The jids that were started, and when each was due.
    started: Vec<(String, Timestamp)>,
    /// When it was due and did not run, because it ran already.
    running: Vec<Timestamp>,
    /// How many were missed, and the first of them.
    missed: Vec<(u64, Timestamp)>,
    /// When those were due that were started and did not end.
    cut_off: Vec<Timestamp>,
}

/// The text between two others.
fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

fn read_log(text: &str) -> BTreeMap<String, Said> {
    let mut all: BTreeMap<String, Said> = BTreeMap::new();
    let time = |text: &str| -> Timestamp { text.parse().unwrap_or_else(|e| panic!("{text}: {e}")) };
    for line in text.lines() {
        if let Some(name) = between(line, "the schedule starts the job \"", "\", due at ") {
            let jid = between(line, "jid=\"", "\"").expect("a jid").to_owned();
            let due = time(between(line, ", due at ", " ").expect("a time"));
            all.entry(name.to_owned()).or_default().started.push((jid, due));
        } else if let Some(name) = between(line, "the job \"", "\" of the schedule ") {
            let said = all.entry(name.to_owned()).or_default();
            if let Some(due) = between(line, " does not run at ", ": it runs already") {
                said.running.push(time(due));
            } else if let Some(count) = between(line, " missed ", " of its times") {
                let first = time(between(line, "the first at ", ": ").expect("a time"));
                match line.contains("ended while it ran") {
                    true => said.cut_off.push(first),
                    false => said.missed.push((count.parse().expect("a number"), first)),
                }
            }
        }
    }
    all
}

/// A time of the journal has no microseconds.
fn is_same(one: Timestamp, other: Timestamp) -> bool {
    one.as_millisecond() == other.as_millisecond()
}

/// Checks a job with an interval: it never runs twice within it, and each one without a run was said to be missed.
fn check_interval(name: &str, every: Duration, said: &Said) {
    let mut due: Vec<Timestamp> = said.started.iter().map(|(_, due)| *due).collect();
    // Noted and cut off before the line in the log, or held back.
    let more =
        said.cut_off.iter().chain(&said.running).filter(|at| !said.started.iter().any(|(_, due)| is_same(**at, *due)));
    due.extend(more);
    due.sort();
    let tolerance = Duration::from_millis(5);
    for pair in due.windows(2) {
        let passed = pair[1].duration_since(pair[0]).unsigned_abs();
        assert!(passed + tolerance >= every, "{name} ran twice in its interval: {pair:?}, {said:?}");
        // One that falls into the tolerance is the one that the second of the pair makes up for.
        let without = (passed.saturating_sub(tolerance).as_secs() / every.as_secs()).saturating_sub(1);
        let missed = said.missed.iter().filter(|(_, first)| pair[0] < *first && *first < pair[1]);
        let missed: u64 = missed.map(|(count, _)| count).sum();
        // To the time of a step between the two clocks, a whole interval may be missing or not.
        assert!(
            missed >= without,
            "{name}: {without} between {pair:?} did not run, {missed} are said to be missed: {said:?}"
        );
    }
}

/// Checks the job with dates: each ran once, or was said to be missed.
fn check_dates(dates: &BTreeSet<Timestamp>, from: Timestamp, said: &Said) {
    let mut runs: BTreeMap<Timestamp, usize> = BTreeMap::new();
    for (_, due) in &said.started {
        assert!(dates.contains(due), "{due} is no date of it");
        *runs.entry(*due).or_default() += 1;
    }
    assert!(runs.values().all(|runs| *runs == 1), "a date ran twice: {runs:?}");
    let mut named: BTreeSet<Timestamp> = said.cut_off.iter().chain(&said.running).copied().collect();
    for (count, first) in &said.missed {
        named.extend(dates.range(first..).take(usize::try_from(*count).expect("few")));
    }
    let last = *runs.keys().next_back().expect("it ran");
    for date in dates.range(from..last) {
        assert!(runs.contains_key(date) || named.contains(date), "{date} was lost in silence: {said:?}");
    }
}

/// A number that nobody chose.
fn random(below: u64) -> u64 {
    RandomState::new().build_hasher().finish() % below
}

/// Each time of a job has at most one run, and one without a run is in the log, whenever the minion is killed.
#[test]
fn a_minion_that_is_killed_at_any_moment_loses_no_firing_in_silence() {
    let mut master = Master::prepare(Kind::Brine, "");
    master.log_level = "info";
    master.up();
    let events = master.events();
    let (schedule, dates) = config(Timestamp::now());
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, &schedule);
    minion.log_level = "info";
    master.accept(&mut minion);
    let log = minion.path("minion.out");
    let text = || std::fs::read_to_string(&log).expect("our own file");
    let starts = || text().matches("the schedule starts the job").count();
    let rounds = rounds();
    for round in 0..rounds {
        if round > 0 {
            minion.up();
        }
        let before = starts();
        match random(3) {
            // Whatever it does: it may not have come to the schedule yet.
            0 if round > 0 => std::thread::sleep(Duration::from_millis(random(5_000))),
            // Some firings later.
            1 => {
                let more = 1 + usize::try_from(random(8)).expect("few");
                wait_for("jobs to start", || (starts() >= before + more).then_some(()));
            }
            // Soon after one.
            _ => {
                wait_for("a job to start", || (starts() > before).then_some(()));
                std::thread::sleep(Duration::from_micros(random(60_000)));
            }
        }
        minion.kill();
    }
    // The last start says what was cut off, and each job runs again.
    minion.up();
    let before = read_log(&text());
    let count = |said: &BTreeMap<String, Said>, name: &str| said.get(name).map_or(0, |said| said.started.len());
    let names = INTERVALS.map(|(name, _)| name).into_iter().chain(["dates"]);
    let names: Vec<&str> = names.collect();
    wait_for("each job to run again", || {
        let now = read_log(&text());
        names.iter().all(|name| count(&now, name) > count(&before, name)).then_some(())
    });
    minion.stop();
    // Without jobs, it still sends what it has.
    write_schedule(&minion, "{}");
    minion.up();
    check_returns(&events, || read_log(&text()));
    let all = read_log(&text());
    assert_eq!(all.keys().map(String::as_str).collect::<BTreeSet<_>>(), names.iter().copied().collect());
    for (name, seconds) in INTERVALS {
        check_interval(name, Duration::from_secs(seconds), &all[name]);
    }
    let begin = all["one"].started[0].1;
    check_dates(&dates, begin, &all["dates"]);
    let runs: usize = all.values().map(|said| said.started.len()).sum();
    let missed: u64 = all.values().flat_map(|said| &said.missed).map(|(count, _)| count).sum();
    let cut_off: usize = all.values().map(|said| said.cut_off.len()).sum();
    println!("{rounds} rounds: {runs} runs, {cut_off} cut off, {missed} missed");
}

/// The returns of jobs of the schedule, by jid: the job's name, and what it returned.
fn returns(events: &Events) -> BTreeMap<String, Vec<(String, Value)>> {
    let mut returns: BTreeMap<String, Vec<(String, Value)>> = BTreeMap::new();
    for (tag, data) in events.all() {
        let jid = tag.strip_prefix("salt/job/").and_then(|rest| rest.strip_suffix("/ret/web1"));
        if let (Some(jid), Some(name)) = (jid, data["schedule"].as_str()) {
            returns.entry(jid.to_owned()).or_default().push((name.to_owned(), data["return"].clone()));
        }
    }
    returns
}

/// Each job that was started has one return, or it was said that it was cut off; and there is no return of another.
fn check_returns(events: &Events, log: impl Fn() -> BTreeMap<String, Said>) {
    let what = "a return of each job that was started, or a line that it was cut off";
    let (all, returns) = wait_for(what, || {
        let (all, returns) = (log(), returns(events));
        let is_known = |said: &Said, jid: &String, due: &Timestamp| {
            returns.contains_key(jid) || said.cut_off.iter().any(|at| is_same(*at, *due))
        };
        let is_whole = |said: &Said| said.started.iter().all(|(jid, due)| is_known(said, jid, due));
        all.values().all(is_whole).then_some((all, returns))
    });
    let started = all.iter().flat_map(|(name, said)| said.started.iter().map(move |(jid, _)| (jid, name)));
    let started: BTreeMap<&String, &String> = started.collect();
    for (jid, returned) in &returns {
        assert_eq!(returned.len(), 1, "{jid} returned twice: {returned:?}");
        let (name, value) = &returned[0];
        let is_cut = value.as_str().is_some_and(|text| text.contains("ended"));
        assert!(is_cut || *value == json!("x") || *value == json!(true), "{jid}: {returned:?}");
        assert_eq!(started.get(jid), Some(&name), "{jid} was not started: {returned:?}");
    }
}
