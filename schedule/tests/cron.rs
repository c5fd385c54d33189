//! Ten thousand random cron expressions against what Python's croniter says (`tools/cron-cases.py` wrote it down).

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

use brine_schedule::cron::Cron;
use jiff::ToSpan;
use jiff::civil::date;

#[test]
fn cron_means_what_it_means_to_croniter() {
    let epoch = date(2026, 1, 1).at(0, 0, 0, 0);
    let (mut count, mut wrong) = (0, Vec::new());
    for line in include_str!("data/cron.txt").lines() {
        let [text, start, expected] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let start = epoch.checked_add(start.parse::<i64>().unwrap().seconds()).unwrap();
        let answer = match Cron::parse(text) {
            Err(_) => "wrong".to_owned(),
            Ok(cron) => cron.next(start).map_or("never".to_owned(), |next| {
                next.since((jiff::Unit::Second, epoch)).unwrap().get_seconds().to_string()
            }),
        };
        count += 1;
        if answer != expected {
            wrong.push(format!("{text} after {start}: {answer}, not {expected}"));
        }
    }
    assert_eq!(count, 10_000);
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
