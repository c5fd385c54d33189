//! `salt-run` and the wheel with a Brine master and a Python master. Both masters have the same configuration, files
//! and (Brine) minions, and get the same commands in the same order. Their output must be the same except for jids,
//! times and folders; each row with another difference states it.

mod rows;
mod wheel;

use brine_kit::process::Output;
use brine_tests::salt::{Kind, Master, Minion, line};
use rows::{Row, rows};

use crate::pythons;

const CONFIG: &str = "id: the_master\ntimeout: 15\ngather_job_timeout: 15\nworker_threads: 3\nauto_accept: True\n\
                      fileserver_list_cache_time: 0\nnodegroups: {web: 'L@one'}";

/// A master with everything that the commands need.
struct World {
    master: Master,
    _minions: [Minion; 2],
    /// Jids by their names in the rows.
    jids: Vec<(&'static str, String)>,
}

impl World {
    fn new(kind: Kind) -> Self {
        let mut master = Master::prepare(kind, CONFIG);
        let dir = master.folder.path();
        let folders = ["srv/salt/folder/deep", "srv/salt/empty", "srv/dev", "srv/pillar"];
        folders.iter().for_each(|folder| std::fs::create_dir_all(dir.join(folder)).expect("our own folder"));
        std::fs::remove_dir(dir.join("srv/salt/_modules")).expect("our own folder");
        for (path, content) in
            [("srv/salt/folder/served.txt", "content"), ("srv/salt/top.sls", "x: 1\n"), ("srv/dev/d.txt", "d\n")]
        {
            std::fs::write(dir.join(path), content).expect("our own folder");
        }
        std::os::unix::fs::symlink("folder/served.txt", dir.join("srv/salt/link")).expect("our own folder");
        let more = format!(
            "file_roots: {{base: [{0}/srv/salt], dev: [{0}/srv/dev]}}\npillar_roots: {{base: [{0}/srv/pillar]}}\n",
            dir.display()
        );
        std::fs::create_dir_all(dir.join("conf/master.d")).expect("our own folder");
        std::fs::write(dir.join("conf/master.d/roots.conf"), more).expect("our own folder");
        master.up();
        let minions = [("one", "web"), ("two", "db")]
            .map(|(id, role)| master.minion_kind(Kind::Brine, id, &format!("grains: {{role: {role}}}")));
        let mut world = Self { master, _minions: minions, jids: Vec::new() };
        for (name, words, ids) in [
            ("ECHO", &["one", "test.echo", "hello"][..], &["one"][..]),
            ("PING", &["*", "test.ping"], &["one", "two"]),
            ("ARG", &["--metadata", "{ticket: 7}", "two", "test.arg", "1", "a=b"], &["two"]),
            ("NOPE", &["one", "test.nope"], &["one"]),
        ] {
            let events = world.master.events();
            let jid = world.master.start_job(words);
            ids.iter().for_each(|id| drop(events.wait_return(&jid, id)));
            world.jids.push((name, jid));
        }
        world
    }

    /// Returns the words of a row, with this master's jids.
    fn words(&self, row: &Row) -> Vec<String> {
        let mut words: Vec<String> = row.words.iter().map(|word| (*word).to_owned()).collect();
        for (name, jid) in &self.jids {
            words.iter_mut().filter(|word| *word == name).for_each(|word| word.clone_from(jid));
        }
        words
    }

    /// Removes jids, times and folders from a text.
    fn normal(&self, text: &str) -> String {
        normal(&text.replace(&self.master.folder.path().display().to_string(), "ROOT"))
    }
}

/// Replaces the digits of jids and times by `#`, so that the texts of two runs can be equal.
fn normal(text: &str) -> String {
    let shapes = [
        "dddddddddddddddddddd",
        "dddd-dd-ddTdd:dd:dd.dddddd+00:00",
        "dddd-dd-ddTdd:dd:dd.dddddd",
        "dddd, www dd dd:dd:dd.dddddd",
    ];
    let fits = |text: &str, shape: &str| {
        text.len() >= shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, of)| match of {
                b'd' => byte.is_ascii_digit(),
                b'w' => byte.is_ascii_alphabetic(),
                other => byte == other,
            })
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = shapes.iter().find(|shape| fits(rest, shape)).map_or(first.len_utf8(), |shape| {
            out.push('#');
            shape.len()
        });
        if length == first.len_utf8() {
            out.push(first);
        }
        rest = &rest[length..];
    }
    out
}

#[test]
fn commands() {
    if line() != 3008 {
        // The expected texts are those of 3008.
        return;
    }
    // Two hosts, as it were: neither waits for the other.
    let (brine, salt) = std::thread::scope(|scope| {
        let brine = scope.spawn(|| World::new(Kind::Brine));
        let salt = World::new(Kind::Python);
        (brine.join().expect("no panic"), salt)
    });
    let rows = rows();
    let words = |row| [vec!["salt-run".to_owned()], salt.words(row)].concat();
    let calls: Vec<Vec<String>> = rows.iter().map(words).collect();
    let run = |row: &Row| {
        let words = brine.words(row);
        brine.master.command("salt-run", &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (ours, expected) = std::thread::scope(|scope| {
        let expected = scope.spawn(|| pythons(&salt.master, &calls, 1));
        let ours: Vec<Output> = rows.iter().map(run).collect();
        (ours, expected.join().expect("no panic"))
    });
    let mut wrong = String::new();
    for ((row, own), Output { stdout: text, code, .. }) in rows.iter().zip(ours).zip(expected) {
        let Output { stdout, stderr, code: own, .. } = own;
        if let Err(why) = row.compare((&brine.normal(&stdout), own), (&salt.normal(&text), code)) {
            wrong.push_str(&format!("---- {:?}: {why}\n{stderr}", row.words));
        }
    }
    wrong.push_str(&wheel::compare(&brine.master, &salt.master));
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn digits_of_jids_and_times_are_taken_out() {
    assert_eq!(normal("a 20261120134740245008 b"), "a # b");
    assert_eq!(normal("2026, Nov 20 13:47:40.245008"), "#");
    assert_eq!(normal("x: 2026-11-20T13:47:40.245008+00:00, 2026"), "x: #, 2026");
}
