//! Batches and the other options of `salt` that choose minions: the same commands with Python's `salt` and its master,
//! with ours and our master, and with Python's and our master. Also minions of both kinds that get one jid in several
//! publications.

use brine_tests::salt::{Kind, Master, line};

use crate::pythons;

/// Returns the output in sorted order, because the order of minions and returns is random on both sides.
fn printed(text: &str) -> Vec<String> {
    let line = |line: &str| match line.strip_prefix("Executing run on ") {
        Some(ids) => format!("Executing run on {} minions", ids.matches('\'').count() / 2),
        None => without_jid(line),
    };
    let mut lines: Vec<String> = text.lines().map(line).collect();
    lines.sort();
    lines
}

/// Replaces jids, which are texts of twenty digits.
fn without_jid(line: &str) -> String {
    let is_digit = |c: char| c.is_ascii_digit();
    match line.split_once(is_digit) {
        Some((before, _)) if line[before.len()..].chars().take_while(|c| is_digit(*c)).count() == 20 => {
            format!("{before}JID{}", &line[before.len() + 20..])
        }
        _ => line.to_owned(),
    }
}

#[test]
fn the_options_that_choose_minions_do_what_pythons_do() {
    let config = "timeout: 10\nnodegroups: {pair: 'a* or N@more', more: [b1]}";
    let python = Master::start_kind(Kind::Python, &format!("worker_threads: 3\n{config}"));
    // For Python's `salt` on its host.
    let framing = if line() == 3006 { "prefixed" } else { "bare" };
    let brine = Master::start(&format!("event_publisher_framing: {framing}\n{config}"));
    // Brine minions start fast and are the same on both sides, so only the master and `salt` differ.
    let _minions = [&python, &brine].map(|master| ["a1", "a2", "b1"].map(|id| master.minion_kind(Kind::Brine, id, "")));
    let mut commands: Vec<&[&str]> = vec![
        &["-b", "1", "*", "test.ping"],
        &["-b", "50%", "--out=json", "*", "test.ping"],
        &["-b", "2", "a*", "test.nope"],
        &["-b", "1", "--failhard", "a1", "test.retcode", "3"],
        &["-b", "1", "nobody", "test.ping"],
        &["-b", "2", "-L", "a1,gone", "test.ping"],
        &["-b", "2", "-C", "N@pair and not a1", "test.ping"],
        &["-b", "2", "--batch-wait", "0.5", "*", "test.ping"],
        &["-b", "2", "--static", "*", "test.ping"],
        &["--batch-safe-limit", "2", "--batch-safe-size", "1", "a*", "test.ping"],
        &["--batch-safe-limit", "9", "a*", "test.ping"],
        &["--subset", "1", "b1", "test.ping"],
        &["--subset", "1", "*", "test.nope"],
        &["--preview-target", "*"],
        &["--preview-target", "-N", "pair", "test.ping"],
        &["--preview-target", "-G", "id:a*"],
        &["--preview-target", "nobody"],
        &["-E", "(?!a).*", "test.ping"],
        &["-E", "(", "test.ping"],
        &["-R", "%x", "test.ping"],
        &["-G", "id|a1", "--delimiter=|", "test.ping"],
        &["-S", "0.0.0.0/0", "test.ping"],
    ];
    if line() >= 3008 {
        // Earlier lines print the retcodes of several functions as one.
        commands.push(&["-b", "2", "*", "test.ping,test.echo", ",hi"]);
    }
    let words = |args: &[&str]| ["salt"].iter().chain(args).map(|word| (*word).to_owned()).collect();
    let all: Vec<Vec<String>> = commands.iter().map(|args| words(args)).collect();
    for (args, theirs) in commands.into_iter().zip(pythons(&python, &all, 1)) {
        let ours = brine.salt(args);
        assert_eq!(
            (printed(&ours.stdout), ours.code),
            (printed(&theirs.stdout), theirs.code),
            "{args:?}\n{theirs:?}\n{ours:?}"
        );
    }
    let commands = [
        &["-b", "1", "*", "test.ping"][..],
        &["-b", "1", "--failhard", "a1", "test.retcode", "3"],
        &["--subset", "1", "b1", "test.ping"],
        &["--preview-target", "-C", "a* or b1"],
        &["-C", "N@pair and not a1", "test.ping"],
    ];
    let all: Vec<Vec<String>> = commands.iter().map(|args| words(args)).collect();
    for (args, theirs) in commands.into_iter().zip(pythons(&brine, &all, 1)) {
        let ours = brine.salt(args);
        assert_eq!(
            (printed(&ours.stdout), ours.code),
            (printed(&theirs.stdout), theirs.code),
            "{args:?}\n{theirs:?}\n{ours:?}"
        );
    }
    let stopped = brine.salt(&["-b", "1", "--failhard", "*", "test.retcode", "3"]);
    assert_eq!((stopped.code, stopped.stdout.matches("Executing run on").count()), (3, 1), "{stopped:?}");
    let subset = brine.salt(&["--subset", "2", "*", "test.ping"]).exits(0);
    assert_eq!(subset.stdout.matches("True").count(), 2, "{subset:?}");
    // For an invalid target, our command reports the reason.
    assert!(brine.salt(&["-E", "(", "test.ping"]).stderr.contains("is not a pcre target: missing )"));
}

/// All publications of a batch have the same jid (in 3008's `salt` and in ours). No minion runs another's publication,
/// or drops its own as a repetition.
#[test]
fn one_jid_published_several_times_reaches_minions_of_both_kinds() {
    let master = Master::start("timeout: 20");
    let _python = master.minion_kind(Kind::Python, "python", "");
    let _brine = ["brine1", "brine2"].map(|id| master.minion(id));
    let events = master.events();
    let done = master.salt(&["-b", "1", "*", "test.ping"]).exits(0);
    for id in ["python", "brine1", "brine2"] {
        assert!(done.stdout.contains(&format!("{id}:\n    True")), "{done:?}");
        assert!(done.stdout.contains(&format!("Executing run on ['{id}']")), "{done:?}");
    }
    let jids: Vec<&str> = done.stdout.lines().filter(|line| line.trim().len() == 20).map(str::trim).collect();
    let one = jids.iter().find(|text| text.bytes().all(|b| b.is_ascii_digit())).expect("a jid");
    assert_eq!(events.count(&format!("salt/job/{one}/new")), 3);
    let found = master.command("salt-run", &["--out=json", "jobs.lookup_jid", one]).exits(0).json();
    assert_eq!(found, serde_json::json!({"python": true, "brine1": true, "brine2": true}));
}
