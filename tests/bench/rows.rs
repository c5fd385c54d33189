//! The measurements of both sides with their units and goals.

use std::collections::BTreeMap;

use crate::table::{Better, Figure, Row};

/// The key of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Cold,
    Client,
    PythonClient,
    Rate1,
    Rate10,
    Rate100,
    Cpu1,
    Cpu100,
    CpuNoReceipt,
    Receipt,
    Recording,
    MinionIdle,
    MasterIdle,
    MinionAfter,
    MasterAfter,
    MinionBusy,
    MasterBusy,
    FirstStart,
    Start,
    LargeFile,
    SmallFiles,
    Events,
    DriftMinion,
    DriftExecutor,
    ApiIdle,
    ApiLocal,
    ApiLocalP99,
    ApiAsync,
    ApiWheel,
    ApiWheelP99,
    ApiStreams,
    ApiStreamsLost,
    Pillars,
    PillarsP99,
    PillarsMemory,
    Render,
    StatesCompile,
    StatesManaged,
    StatesNop,
    StatesPeak,
    Reaction,
    Matching,
    IdleCpu,
    IdleMemory,
}

/// The figures of one side.
pub(crate) type Figures = BTreeMap<Key, Figure>;

use Better::{Less, More};

/// Key, description, unit, direction, goal of Brine's figure, goal of the ratio.
type Line = (Key, &'static str, &'static str, Better, Option<f64>, Option<f64>);

const LINES: &[Line] = &[
    (Key::Cold, "`salt '*' test.ping`, a new process each time", "ms", Less, None, Some(120.0)),
    (Key::Client, "`LocalClient` kept, `test.ping`: Rust's, Python's", "ms", Less, Some(0.9), Some(150.0)),
    (Key::PythonClient, "Python's `LocalClient` against either master", "ms", Less, None, None),
    (Key::Rate1, "jobs/s of one minion, 1 at a time", "1/s", More, None, None),
    (Key::Rate10, "jobs/s of one minion, 10 at a time", "1/s", More, None, None),
    (Key::Rate100, "jobs/s of one minion, 100 at a time", "1/s", More, Some(3000.0), Some(400.0)),
    (Key::Cpu1, "CPU of minion and executor a job, 1 at a time", "ms", Less, Some(0.2), None),
    (Key::Cpu100, "CPU of minion and executor a job, 100 at a time", "ms", Less, Some(0.2), None),
    (
        Key::CpuNoReceipt,
        "CPU of minion and executor a job with `receipts: False`, 100 at a time",
        "ms",
        Less,
        None,
        None,
    ),
    (Key::Receipt, "CPU of minion and executor for the receipt of a job", "µs", Less, Some(80.0), None),
    (Key::Recording, "the same for a recording of a job, `record: on`", "µs", Less, None, None),
    (Key::MinionIdle, "minion with executor, idle, PSS", "MiB", Less, Some(10.0), None),
    (Key::MasterIdle, "master, idle, PSS", "MiB", Less, Some(9.0), None),
    (Key::MinionAfter, "minion after 10,000 jobs, PSS (Python: after all its jobs above)", "MiB", Less, None, None),
    (Key::MasterAfter, "master after 10,000 jobs, PSS (Python: the same)", "MiB", Less, None, None),
    (Key::MinionBusy, "minion with 50 jobs at once, PSS", "MiB", Less, None, None),
    (Key::MasterBusy, "master with 50 jobs at once, PSS", "MiB", Less, None, None),
    (
        Key::FirstStart,
        "minion's first start to its start event: keys made, accepted by `salt-key`",
        "s",
        Less,
        Some(0.8),
        None,
    ),
    (Key::Start, "minion's later starts to its start event", "s", Less, Some(0.04), None),
    (Key::LargeFile, "`cp.cache_file` of 100 MB", "s", Less, None, Some(10.0)),
    (Key::SmallFiles, "`cp.cache_dir` of 5,000 files of 1 KB", "s", Less, None, Some(50.0)),
    (Key::Events, "events/s to 8 subscribers, none lost", "1/s", More, None, None),
    (Key::DriftMinion, "minion's RSS, growth over so many jobs as below", "MiB", Less, Some(2.0), None),
    (Key::DriftExecutor, "executor's RSS, growth over the same", "MiB", Less, Some(2.0), None),
    (Key::ApiIdle, "salt-api, idle, PSS", "MiB", Less, Some(12.0), None),
    (Key::ApiLocal, "salt-api with TLS, 50 clients: `local` `test.ping`", "1/s", More, Some(1000.0), Some(50.0)),
    (Key::ApiLocalP99, "the same, 99th percentile of a call", "ms", Less, Some(100.0), None),
    (Key::ApiAsync, "salt-api with TLS, 50 clients: `local_async` `test.ping`", "1/s", More, Some(1500.0), None),
    (Key::ApiWheel, "salt-api with TLS, 50 clients: `wheel` `key.list_all`", "1/s", More, Some(3000.0), None),
    (Key::ApiWheelP99, "the same, 99th percentile of a call", "ms", Less, Some(30.0), None),
    (
        Key::ApiStreams,
        "100 events/s to 1,000 streams (Python: 50), from bus to reader, 99th percentile",
        "ms",
        Less,
        Some(250.0),
        None,
    ),
    (Key::ApiStreamsLost, "events lost on the way to them", "", Less, Some(0.0), None),
    (
        Key::Pillars,
        "pillars of 40 files, for 2,000 minions at once (with --quick 1,000; Python: 100)",
        "1/s",
        More,
        None,
        Some(10.0),
    ),
    (Key::PillarsP99, "the same, 99th percentile from request to pillar", "ms", Less, None, None),
    (Key::PillarsMemory, "the same, PSS of the master above idle", "MiB", Less, Some(64.0), None),
    (Key::Render, "rendering a chain of maps, 500 lines", "ms", Less, None, Some(10.0)),
    (
        Key::StatesCompile,
        "`state.show_low_sls` of a suite of 134 states, from job to return",
        "ms",
        Less,
        None,
        Some(10.0),
    ),
    (Key::StatesManaged, "`state.apply` of 500 `file.managed` that are in order", "ms", Less, None, None),
    (Key::StatesNop, "`state.apply` of 200 `test.nop`, each", "ms", Less, Some(0.5), None),
    (Key::StatesPeak, "minion while it runs these, largest PSS", "MiB", Less, None, Some(2.0)),
    (
        Key::Reaction,
        "from an event to the return of the job that its reaction starts",
        "ms",
        Less,
        Some(3.0),
        Some(50.0),
    ),
    (
        Key::Matching,
        "5,000 events/s beside 500 globs of reactions, CPU time of the master (Python: from 300 events)",
        "% of a core",
        Less,
        Some(20.0),
        None,
    ),
    (
        Key::IdleCpu,
        "100 scheduled jobs, 10 beacons that look each second, no events: CPU of minion and executor above one without",
        "% of a core",
        Less,
        Some(0.2),
        None,
    ),
    (Key::IdleMemory, "the same, PSS", "MiB", Less, Some(2.0), None),
];

/// Returns the rows of both sides.
pub(crate) fn rows(brine: &Figures, python: &Figures) -> Vec<Row> {
    let row = |&(key, what, unit, better, goal, times): &Line| {
        let (brine, python) = (brine.get(&key).copied(), python.get(&key).copied());
        let row = Row { what, unit, better, goal, times, brine, python };
        (brine.is_some() || python.is_some()).then_some(row)
    };
    LINES.iter().filter_map(row).collect()
}

/// Returns the figures of repeated measurements as one.
pub(crate) fn repeated(all: &[Figures]) -> Figures {
    let keys = all.iter().flat_map(BTreeMap::keys);
    let of = |key: &Key| {
        let figures: Vec<Figure> = all.iter().filter_map(|figures| figures.get(key).copied()).collect();
        (*key, Figure::repeated(&figures))
    };
    keys.map(of).collect()
}

/// Returns the figures as JSON, by what they measure.
pub(crate) fn to_json(figures: &Figures) -> serde_json::Value {
    let figure = |figure: &Figure| serde_json::json!([figure.median, figure.p99, figure.runs]);
    let lines = LINES.iter().filter_map(|line| Some((line.1.to_owned(), figure(figures.get(&line.0)?))));
    serde_json::Value::Object(lines.collect())
}

/// Reads the figures that [`to_json`] wrote.
pub(crate) fn from_json(json: &serde_json::Value) -> Figures {
    let figure = |value: &serde_json::Value| {
        let runs = usize::try_from(value[2].as_u64()?).ok()?;
        Some(Figure { p99: value[1].as_f64(), runs, ..Figure::one(value[0].as_f64()?) })
    };
    LINES.iter().filter_map(|line| Some((line.0, figure(json.get(line.1)?)?))).collect()
}

/// Returns what both have measured: what, unit, direction, and the figures.
pub(crate) fn pairs(a: &Figures, b: &Figures) -> Vec<(&'static str, &'static str, Better, Figure, Figure)> {
    let pair = |&(key, what, unit, better, ..): &Line| Some((what, unit, better, *a.get(&key)?, *b.get(&key)?));
    LINES.iter().filter_map(pair).collect()
}
