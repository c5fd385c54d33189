//! Python's `salt` and `salt-cp` and ours, on the host of one Brine master, with the same words: output, written files
//! and exit codes. The minion `lost` has a key and never returns.

use brine_kit::files::set_mode;
use brine_kit::process::Output;
use brine_tests::salt::{Kind, Master, Minion, line};

use super::{all_same, masked};
use crate::pythons;

/// Seconds until a minion is asked whether it still runs the job, and until a silent minion is given up.
const WAITS: &str = "timeout: 20\ngather_job_timeout: 10";

/// A value with everything that outputters format in a special way.
const DATA: &str =
    "{text: ž, lines: \"a\\nb\", none: null, flag: true, n: -1, f: 1.5, list: [1, [2, {deep: x}]], empty: {}}";

/// Starts a Brine master with these minions, which return, and `lost`, which does not.
fn fleet(config: &str, minions: &[(&str, Kind)]) -> (Master, Vec<Minion>) {
    let framing = if line() == 3006 { "prefixed" } else { "bare" };
    let master = Master::start(&format!("event_publisher_framing: {framing}\n{WAITS}\n{config}"));
    let there = master.path("there");
    std::fs::create_dir_all(&there).expect("our own folder");
    for dir in [master.folder.path(), &there] {
        set_mode(dir, 0o777);
    }
    let grant = format!("sandbox: {{modules: {{cp: {{filesystem: {{{}: rw}}}}}}}}", there.display());
    let minions: Vec<Minion> = minions.iter().map(|(id, kind)| master.minion_kind(*kind, id, &grant)).collect();
    let key = std::fs::read(master.path("pki/minions/one")).expect("an accepted key");
    std::fs::write(master.path("pki/minions/lost"), key).expect("our own folder");
    (master, minions)
}

/// The result of a call: exit code, output, and the content of the file OUT.
#[derive(Debug, PartialEq)]
struct Said {
    code: i32,
    stdout: String,
    file: Option<String>,
}

impl Said {
    /// Sorts the lines, because returns arrive in any order.
    fn sorted(mut self) -> Self {
        self.stdout = sorted(&self.stdout);
        self.file = self.file.as_deref().map(sorted);
        self
    }
}

fn sorted(text: &str) -> String {
    // A comma in JSON means that another line follows, which also depends on the order.
    let mut lines: Vec<&str> = text.lines().map(|line| line.strip_suffix(',').unwrap_or(line)).collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Makes calls in both, with the same words except for the file `OUT`, `at_a_time` at once because most of the time is
/// spent waiting for silent minions. Returns the differences. The order of lines counts if only one minion is
/// addressed.
fn differ(master: &Master, name: &str, calls: &[&[&str]], at_a_time: usize) -> Vec<String> {
    differ_but_for(master, name, calls, at_a_time, |own, theirs| own == theirs)
}

/// Like [`differ`], with another comparison.
fn differ_but_for(
    master: &Master,
    name: &str,
    calls: &[&[&str]],
    at_a_time: usize,
    alike: impl Fn(&Said, &Said) -> bool,
) -> Vec<String> {
    let file = |kind: Kind, at: usize| master.path(&format!("out-{kind:?}-{at}"));
    let words = |kind: Kind, at: usize| -> Vec<String> {
        let out = file(kind, at).display().to_string();
        calls[at].iter().map(|word| word.replace("OUT", &out)).collect()
    };
    let said = |kind: Kind, at: usize, output: &Output| {
        let file = std::fs::read_to_string(file(kind, at)).ok();
        let said = Said { code: output.code, stdout: masked(&output.stdout), file: file.map(|text| masked(&text)) };
        if calls[at].contains(&"one") { said } else { said.sorted() }
    };
    let brine = |at: usize| {
        let words = words(Kind::Brine, at);
        master.command(name, &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let all: Vec<usize> = (0..calls.len()).collect();
    let pythons_words: Vec<Vec<String>> =
        all.iter().map(|at| [vec![name.to_owned()], words(Kind::Python, *at)].concat()).collect();
    let some_of_ours = |some: &[usize]| {
        std::thread::scope(|scope| {
            let running: Vec<_> = some.iter().map(|at| scope.spawn(|| brine(*at))).collect();
            running.into_iter().map(|call| call.join().expect("no panic")).collect::<Vec<_>>()
        })
    };
    let pythons = || pythons(master, &pythons_words, at_a_time);
    let ours = || all.chunks(at_a_time).flat_map(some_of_ours).collect::<Vec<Output>>();
    let (ours, pythons) = match at_a_time {
        1 => (ours(), pythons()),
        _ => std::thread::scope(|scope| {
            let pythons = scope.spawn(pythons);
            (ours(), pythons.join().expect("no panic"))
        }),
    };
    let mut wrong = Vec::new();
    for (at, (ours, pythons)) in ours.into_iter().zip(pythons).enumerate() {
        let (own, theirs) = (said(Kind::Brine, at, &ours), said(Kind::Python, at, &pythons));
        if !alike(&own, &theirs) {
            wrong.push(format!(
                "{name} {:?}:\n  {own:?}\n     {:?}\n  Python:\n  {theirs:?}\n     {:?}",
                calls[at], ours.stderr, pythons.stderr
            ));
        }
    }
    wrong
}

#[test]
fn salt_prints_what_a_minion_returned() {
    let (master, _minions) = fleet("", &[("one", Kind::Brine)]);
    let mut outs = vec!["nested", "json", "yaml", "txt", "raw", "pprint", "table", "highstate", "no_return"];
    if line() < 3008 {
        outs.extend(["newline_values_only", "quiet"]);
    }
    let outs: Vec<String> = outs.into_iter().map(|out| format!("--out={out}")).collect();
    let outs: Vec<[&str; 4]> = outs.iter().map(|out| [out, "one", "test.echo", DATA]).collect();
    let mut calls: Vec<&[&str]> = outs.iter().map(<[_; 4]>::as_slice).collect();
    calls.extend([
        &["one", "test.ping"][..],
        &["one", "test.echo", DATA],
        &["--force-color", "one", "test.echo", DATA],
        &["--out=json", "--out-indent=-1", "one", "test.echo", DATA],
        &["--out=json", "--out-indent=2", "one", "test.echo", DATA],
        &["--out=yaml", "--out-indent=4", "one", "test.echo", DATA],
        &["--out=pprint", "--out-indent=3", "one", "test.echo", DATA],
        &["--out-indent=3", "one", "test.echo", DATA],
        &["--out=nosuch", "one", "test.ping"],
        &["--out=json", "--static", "one", "test.ping"],
        &["--static", "one", "test.echo", DATA],
        &["--out-file=OUT", "one", "test.echo", DATA],
        &["--out-file=OUT", "--out=json", "one", "test.echo", DATA],
        &["--out-file=OUT", "-v", "--summary", "one", "test.ping"],
        &["--summary", "one", "test.ping"],
        &["--summary", "--out=json", "one", "test.ping"],
        &["-v", "one", "test.ping"],
        &["--show-jid", "one", "test.ping"],
        &["-v", "--show-jid", "--summary", "one", "test.ping"],
        &["--async", "one", "test.ping"],
        &["--async", "-v", "--out=json", "one", "test.ping"],
        &["--async", "nosuch", "test.ping"],
        &["-b", "1", "one", "test.ping"],
        &["-b", "1", "--out=json", "one", "test.ping"],
        // Errors of the function, its arguments or its result.
        &["one", "nosuch.function"],
        &["one", "test.nosuch"],
        &["one", "test.exception", "went wrong"],
        &["one", "test.retcode", "3"],
        &["one", "test.false"],
        &["--static", "one", "test.false"],
        &["--summary", "-v", "one", "test.exception", "went wrong"],
        &["--out=json", "one", "test.exception", "went wrong"],
        &["one", "cmd.run", "id"],
        &["one", "test.ping", "too", "many"],
        &["one", "test.ping,test.echo,nosuch.function", ",", "a b", ","],
        &["--out=json", "one", "test.ping,test.false", ","],
        // Documentation.
        &["-d", "one", "test.nosuch"],
        &["-d", "one", "test.ping"],
        &["-d", "--out=json", "one", "test.ping"],
        &["one", "sys.doc", "test.ping"],
        // No minions.
        &["nosuch", "test.ping"],
        &["--out=json", "nosuch", "test.ping"],
        &["--static", "nosuch", "test.ping"],
        &["--summary", "nosuch", "test.ping"],
        &["-d", "nosuch"],
        &["-N", "nosuch", "test.ping"],
        &["-L", "nosuch", "test.ping"],
    ]);
    all_same(&differ(&master, "salt", &calls, 1));
}

#[test]
fn salt_says_who_did_not_return() {
    let (master, _minions) = fleet("", &[("one", Kind::Python), ("two", Kind::Python)]);
    let mut calls = vec![
        &["*", "test.ping"][..],
        &["--out=json", "*", "test.ping"],
        &["--out=json", "--static", "-L", "one,two", "test.ping"],
        &["--out=txt", "*", "test.ping"],
        &["--hide-timeout", "-v", "*", "test.ping"],
        &["--summary", "*", "test.ping"],
        &["--summary", "-v", "*", "test.echo", "x"],
        &["--show-jid", "lost", "test.ping"],
        &["-L", "one,nosuch", "test.ping"],
        &["-v", "-L", "one,nosuch", "test.ping"],
        &["--static", "--hide-timeout", "*", "test.ping"],
        &["--out-file=OUT", "*", "test.ping"],
        &["-b", "2", "*", "test.ping"],
        &["-d", "*", "test.ping"],
    ];
    // 3008 shows them anyway.
    if line() < 3008 {
        calls.extend([&["--hide-timeout", "*", "test.ping"][..], &["--hide-timeout", "lost", "test.ping"]]);
    }
    all_same(&differ(&master, "salt", &calls, calls.len()));
}

#[test]
fn salt_cp() {
    let (master, _minions) = fleet("salt_cp_chunk_size: 1000", &[("one", Kind::Brine), ("two", Kind::Python)]);
    let here = |name: &str| master.path(name).display().to_string();
    let there = |name: &str| master.path("there").join(name).display().to_string();
    std::fs::write(master.path("text"), "žluť\n".repeat(400)).expect("our own folder");
    std::fs::create_dir_all(master.path("tree/sub/empty")).expect("our own folder");
    std::fs::write(master.path("tree/a"), "a").expect("our own folder");
    let [text, tree, gone] = ["text", "tree", "nosuch"].map(here);
    let [plain, chunked, into, nowhere, folder] = ["plain", "chunked", "trees", "no/such/place", ""].map(there);
    let [text, tree, gone, plain, chunked, into, nowhere, folder] =
        [&text, &tree, &gone, &plain, &chunked, &into, &nowhere, &folder].map(String::as_str);
    let calls = [
        &["one", text, plain][..],
        &["--out=json", "one", text, plain],
        &["-L", "one,two", text, plain],
        &["one", text, folder],
        &["-C", "one", text, chunked],
        &["-C", "-n", "one", text, chunked],
        &["-C", "-L", "one,two", text, chunked],
        &["-C", "one", tree, into],
        &["one", tree, into],
        &["-C", "one", gone, plain],
    ];
    let mut wrong = differ(&master, "salt-cp", &calls, 1);
    // A failure has a nonzero exit code.
    let texts = [&["-t", "20", "*", text, plain][..], &["one", text, nowhere], &["nosuch", text, plain]];
    // Older lines print `False` for minions that did not return.
    let texts = &texts[usize::from(line() < 3008)..];
    let ended = differ_but_for(&master, "salt-cp", texts, 4, |own, theirs| {
        theirs.code == 0 && own.code != 0 && own.stdout == theirs.stdout
    });
    wrong.extend(ended);
    all_same(&wrong);
}
