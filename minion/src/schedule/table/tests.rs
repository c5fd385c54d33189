//! What a start, a change and a crash do to the next firings.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use brine_protocol::config::yaml;
use jiff::tz::TimeZone;
use tracing::span;

use super::super::journal::Journal;
use super::*;

fn value(text: &str) -> Value {
    yaml::load(text).unwrap()
}

/// So many seconds after a start at noon.
fn at(seconds: u64) -> Now {
    let up = Duration::from_secs(seconds);
    let noon: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
    Now { wall: noon.saturating_add(up).unwrap(), zone: TimeZone::UTC, up: up + Duration::from_secs(1_000) }
}

/// A table whose process has just started.
fn table(owners: &str, journal: &Path) -> Table {
    Table::new(value(owners), empty_map(), Journal::open(journal))
}

fn jid() -> String {
    brine_protocol::ids::Jid::now().to_string()
}

/// The names of the jobs that start then, with their jids.
fn step(table: &mut Table, now: &Now) -> Vec<(String, String)> {
    table.arm(now, &|_| None);
    let starts = table.due(now, &jid);
    starts.into_iter().map(|start| (start.entry.name, start.jid)).collect()
}

/// Steps, and ends what starts.
fn run(table: &mut Table, seconds: u64) -> Vec<String> {
    let started = step(table, &at(seconds));
    for (name, jid) in &started {
        table.live[name].running.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        table.ended(jid);
    }
    let mut names: Vec<String> = started.into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

/// What was lost since the last call: name, count, first, why.
fn lost(table: &mut Table) -> Vec<(String, u64, String, String)> {
    let Some(data) = table.take_lost() else { return Vec::new() };
    let of = |lost: &Value| {
        let text = |key| lost.get_text(key).unwrap().to_owned();
        (text("name"), lost.get_u64("count").unwrap(), text("first"), text("why"))
    };
    data.get_list("jobs").unwrap().iter().map(of).collect()
}

#[test]
fn a_changed_configuration_counts_and_what_jobs_changed_stays() {
    let dir = tempfile::tempdir().unwrap();
    let before = "{same: {function: a.b, hours: 1}, gone: {function: a.b, hours: 1}, other: {function: a.b, hours: 1}, \
                  mine: {function: a.b, hours: 1}, deleted: {function: a.b, hours: 1}}";
    let mut table = table(before, &dir.path().join("journal"));
    table.begin(&at(0));
    assert_eq!(run(&mut table, 0), ["deleted", "gone", "mine", "other", "same"]);
    table.change(Change::Modify("mine".into(), value("{function: c.d, hours: 2}")), Some("m")).unwrap();
    table.change(Change::Delete("deleted".into()), Some("m")).unwrap();
    table.change(Change::Add(value("{added: {function: a.b, hours: 3}}")), Some("m")).unwrap();
    assert_eq!(run(&mut table, 60), ["added", "mine"]);

    let after = "{same: {function: a.b, hours: 1}, other: {function: a.b, minutes: 30}, mine: {function: e.f, hours: 1}, \
                 deleted: {function: a.b, hours: 1}, new: {function: a.b, hours: 1}}";
    for bad in ["5", "[a]", "{\"a\\nb\": {function: a.b, hours: 1}}"] {
        table.take_owners(value(bad)).unwrap_err();
        assert_eq!(run(&mut table, 90), Vec::<String>::new(), "{bad}");
    }
    table.take_owners(value(after)).unwrap();
    assert_eq!(run(&mut table, 120), ["new", "other"]);
    let entry = |table: &Table, name: &str| table.opts.get(name).cloned();
    assert_eq!(entry(&table, "mine").unwrap().get_text("function"), Some("c.d"));
    assert_eq!((entry(&table, "deleted"), entry(&table, "gone")), (None, None));
    // Each has one timer, which is its own.
    assert_eq!(run(&mut table, 1_919), Vec::<String>::new());
    assert_eq!(run(&mut table, 1_920), ["other"]);
    assert_eq!(run(&mut table, 3_600), ["same"]);
    assert_eq!(run(&mut table, 3_720), ["new", "other"]);
    assert_eq!(lost(&mut table), []);
    // What is saved is what the files do not have; what jobs changed has the rights of their master.
    let saved = table.to_save();
    let names: Vec<&str> = pairs(&saved).map(|(name, _)| name).collect();
    assert_eq!(names, ["mine", "added"]);
    let place = |name: &str| table.live[name].place;
    assert_eq!((place("same"), place("mine"), place("added")), (Place::Owner, Place::Changed, Place::Changed));
    // The file says something else of what was deleted.
    table.take_owners(value("{deleted: {function: a.b, hours: 9}}")).unwrap();
    assert_eq!(run(&mut table, 3_800), ["deleted"]);
}

#[test]
fn a_change_replaces_the_timer() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = table("{job: {function: a.b, minutes: 1}}", &dir.path().join("journal"));
    table.begin(&at(0));
    assert_eq!(run(&mut table, 0), ["job"]);
    table.change(Change::Modify("job".into(), value("{function: a.b, minutes: 10}")), None).unwrap();
    assert_eq!(run(&mut table, 10), ["job"]);
    assert_eq!(run(&mut table, 60), Vec::<String>::new());
    table.take_pillar(Some(&value("{of-pillar: {function: a.b, minutes: 1}}")));
    assert_eq!(run(&mut table, 70), ["of-pillar"]);
    table.take_pillar(Some(&value("{of-pillar: {function: a.b, minutes: 2}}")));
    assert_eq!(run(&mut table, 130), Vec::<String>::new());
    assert_eq!(run(&mut table, 190), ["of-pillar"]);
    assert_eq!(lost(&mut table), []);
    // The same job once more is no reason to run it again, also not after a crash.
    table.change(Change::Add(value("{job: {function: a.b, minutes: 10}}")), None).unwrap();
    let settled = table.journal.settled("job");
    assert_eq!(settled, Some(at(10).wall));
}

#[test]
fn what_a_crash_cut_off_is_said_unless_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let config = "{twice: {function: a.b, seconds: 10, maxrunning: 2}, kept: {function: a.b, hours: 1}}";
    let mut first = table(config, &path);
    first.begin(&at(0));
    let started = step(&mut first, &at(0));
    let kept = started.iter().find(|(name, _)| name == "kept").unwrap().1.clone();
    assert_eq!(step(&mut first, &at(10)).len(), 1);
    drop(first);
    let mut second = table(config, &path);
    second.tell_cut_off(&|jid| jid == kept);
    let cut = |due: &str| ("twice".to_owned(), 1, due.to_owned(), "the minion ended while it ran".to_owned());
    assert_eq!(lost(&mut second), [cut("2026-11-24T12:00:00Z"), cut("2026-11-24T12:00:10Z")]);
    drop(second);
    // Once.
    let mut third = table(config, &path);
    third.tell_cut_off(&|_| false);
    assert_eq!(lost(&mut third), []);
    third.begin(&at(12));
    assert_eq!(run(&mut third, 12), Vec::<String>::new());
    assert_eq!(run(&mut third, 20), ["twice"]);
}

#[test]
fn dates_that_a_splay_reaches_beyond_are_said_when_they_have_passed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let owners = "{wide: {function: a.b, cron: '* * * * *', splay: {start: 150, end: 150}}, \
                  idle: {function: a.b, cron: '* * * * *', splay: {start: 150, end: 150}, enabled: false}}";
    let mut first = table(owners, &journal);
    first.begin(&at(0));
    // 12:01 runs at 12:03:30.
    for seconds in [0, 60, 120, 180, 209] {
        assert_eq!((run(&mut first, seconds), lost(&mut first)), (Vec::<String>::new(), Vec::new()), "{seconds}");
    }
    let said = |first: &str| ("wide".to_owned(), 2, first.to_owned(), "its splay reached beyond them".to_owned());
    assert_eq!((run(&mut first, 210), lost(&mut first)), (vec!["wide".to_owned()], vec![said("2026-11-24T12:02:00Z")]));
    // 12:04 at 12:06:30; what a change of something else leaves in place is still said.
    first.change(Change::Add(value("{other: {function: a.b, hours: 3}}")), Some("m")).unwrap();
    assert_eq!((run(&mut first, 211), lost(&mut first)), (vec!["other".to_owned()], Vec::new()));
    let mut changed = value(owners);
    changed.get_mut("wide").unwrap().insert("enabled", true);
    first.take_owners(changed).unwrap();
    assert_eq!((run(&mut first, 212), lost(&mut first)), (Vec::new(), Vec::new()));
    assert_eq!((run(&mut first, 390), lost(&mut first)), (vec!["wide".to_owned()], vec![said("2026-11-24T12:05:00Z")]));
    // A start does not say them again.
    let mut second = table(owners, &journal);
    second.begin(&at(391));
    assert_eq!((run(&mut second, 391), lost(&mut second)), (Vec::new(), Vec::new()));
}

#[test]
fn what_was_missed_is_said_at_the_next_start_and_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let config = "{often: {function: a.b, minutes: 1}, late: {function: a.b, minutes: 5, run_on_start: False}, \
                  dates: {function: a.b, when: ['2026-11-24T12:02:00', '2026-11-24T12:30:00']}}";
    let mut first = table(config, &path);
    first.begin(&at(0));
    assert_eq!(run(&mut first, 0), ["often"]);
    drop(first);
    for start in [250, 290] {
        let mut table = table(config, &path);
        table.begin(&at(start));
        let ran = run(&mut table, start);
        let said = |name: &str, count, first: &str| {
            (name.to_owned(), count, first.to_owned(), "the minion did not run".to_owned())
        };
        if start == 250 {
            assert_eq!(ran, ["often"]);
            let mut lost = lost(&mut table);
            lost.sort();
            assert_eq!(lost, [said("dates", 1, "2026-11-24T12:02:00Z"), said("often", 3, "2026-11-24T12:01:00Z")]);
        } else {
            assert_eq!((ran, lost(&mut table)), (Vec::new(), Vec::new()));
            // The wait of one that never ran goes on.
            assert_eq!(run(&mut table, 300), ["late"]);
        }
    }
}

/// Notes what the journal says at each line of the log.
struct AtLines {
    journal: PathBuf,
    seen: Arc<Mutex<Vec<String>>>,
}

impl tracing::Subscriber for AtLines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.seen.lock().unwrap().push(std::fs::read_to_string(&self.journal).unwrap());
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// A kill at any moment leaves a line in the log, or the journal as it was, from which the next start finds what was lost.
#[test]
fn what_is_lost_is_in_the_log_before_the_journal_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let config = "{date: {function: a.b, when: '2026-11-24T12:10:00'}, often: {function: a.b, minutes: 1}}";
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = AtLines { journal: path.clone(), seen: Arc::clone(&seen) };
    tracing::subscriber::with_default(lines, || {
        let mut first = table(config, &path);
        first.begin(&at(0));
        let running = step(&mut first, &at(0));
        assert_eq!(running.len(), 1);
        let journal = || std::fs::read_to_string(&path).unwrap();
        let before = journal();
        // The machine slept: the date passed, and an interval fires once for several times.
        first.before = None;
        first.live["often"].running.store(0, std::sync::atomic::Ordering::Relaxed);
        step(&mut first, &at(900));
        assert_ne!(journal(), before);
        assert_eq!(*seen.lock().unwrap(), [before.clone(), before]);
        drop(first);
        // Cut off, and not there for a while.
        seen.lock().unwrap().clear();
        let mut second = table(config, &path);
        let before = journal();
        second.tell_cut_off(&|_| false);
        assert_eq!(*seen.lock().unwrap(), [before.clone(), before.clone()]);
        let cut = journal();
        assert_ne!(cut, before);
        second.begin(&at(1_100));
        second.arm(&at(1_100), &|_| None);
        assert_eq!(seen.lock().unwrap().split_off(2), std::slice::from_ref(&cut));
        assert_ne!(journal(), cut);
    });
}

/// What runs in the place of a skipped job of the owner has the owner's rights where the owner says it, and never where a master does.
#[test]
fn who_says_what_runs_instead_gives_it_the_rights() {
    let dir = tempfile::tempdir().unwrap();
    let always = "skip_during_range: {start: '00:00', end: '23:59'}";
    let instead = |table: &mut Table, seconds| -> Vec<(String, bool, Rights)> {
        table.arm(&at(seconds), &|_| None);
        let starts = table.due(&at(seconds), &jid);
        for start in &starts {
            start.running.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        }
        starts.into_iter().map(|start| (start.function, start.of_pillar, start.rights)).collect()
    };
    let mut table = table("{job: {function: a.b, seconds: 10}}", &dir.path().join("journal"));
    table.begin(&at(0));
    assert_eq!(instead(&mut table, 0), [("a.b".to_owned(), false, Rights::Owner)]);
    table.take_pillar(Some(&value(&format!("{{skip_function: of.pillar, {always}}}"))));
    assert_eq!(instead(&mut table, 10), [("of.pillar".to_owned(), true, Rights::Owner)]);
    table.take_pillar(Some(&value(&format!("{{{always}}}"))));
    table.change(Change::Add(value("{skip_function: of.job}")), Some("weak")).unwrap();
    table.change(Change::Reload(value("{schedule: {skip_function: of.job}}")), Some("weak")).unwrap();
    assert_eq!(instead(&mut table, 20), []);
    let owners = format!("{{job: {{function: a.b, seconds: 10}}, skip_function: of.owner, {always}}}");
    table.take_owners(value(&owners)).unwrap();
    table.take_pillar(Some(&value(&format!("{{skip_function: of.pillar, {always}}}"))));
    assert_eq!(instead(&mut table, 30), [("of.owner".to_owned(), false, Rights::Owner)]);
}

#[test]
fn what_jobs_add_is_bounded_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = table("{}", &dir.path().join("journal"));
    let large =
        map([("function", Value::from("a.b")), ("hours", Value::from(1)), ("args", "x".repeat(3 << 20).into())]);
    let add =
        |table: &mut Table, nth: usize| table.change(Change::Add(map([(format!("j{nth}"), large.clone())])), None);
    let refused = (0..10).find_map(|nth| add(&mut table, nth).err()).unwrap();
    assert!(refused.starts_with("all jobs of the schedule together would take "), "{refused}");
    assert_eq!(pairs(&table.opts).count(), 5);
    // A date that is postponed counts too, and what makes it less does not.
    let times = || map([("time", Value::from("x".repeat(2 << 20)))]);
    assert!(table.change(Change::Postpone("j0".into(), times()), None).is_err());
    table.change(Change::Delete("j1".into()), None).unwrap();
    table.change(Change::Postpone("j0".into(), times()), None).unwrap();
}
