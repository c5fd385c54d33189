//! Programs: arguments, environment, directory, user, and leftover processes.

use std::time::Duration;

use brine_kit::files::set_mode;
use brine_kit::wait::Deadline;
use brine_protocol::value::Value;

use crate::asks::NOTHING;
use crate::rig::{AT_ONCE, Gets, Rig, fails, hostile, returns, text, texts};

const LINE: &str = "; the owner of this host grants it by this line under sandbox: modules: in the minion's configuration: hostile: {…}";

fn denied(what: &str) -> Gets {
    fails(format!("hostile.run was stopped: process.run was refused: module hostile may not {what}{LINE}"))
}

fn failed(what: &str) -> Gets {
    fails(format!("…{what}…"))
}

/// An attack: the command, its options, the result.
type Case = (&'static [&'static str], Vec<(&'static str, Value)>, Gets);

fn pairs(pairs: &[(&str, &str)]) -> Value {
    Value::Array(pairs.iter().map(|(name, value)| texts(&[name, value])).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_beyond_the_grant() {
    let programs =
        "process: {programs: [/usr/bin/printf, /usr/bin/env, \"{dir}/link\"], env: [APP_*], cwd: [\"{dir}/work\"]}";
    let granted = NOTHING.replace("process: []", programs);
    let rig = Rig::start(&format!("  limits: {{wall: 2s}}\n  modules:\n    hostile: {granted}\n")).await;
    rig.install("hostile", &hostile()).await;
    let work = rig.dir.join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("printf"), "#!/bin/sh\necho another printf\n").unwrap();
    // A granted path that now leads to another program.
    std::os::unix::fs::symlink("/bin/sh", rig.dir.join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", work.join("out")).unwrap();
    set_mode(&work, 0o755);
    let dir = |path: &str| text(rig.dir.join(path).to_str().unwrap());
    let cases: Vec<Case> = vec![
        (&["printf", "%s", "fine"], vec![], returns("0: fine")),
        // There is no shell, so shell syntax is plain text.
        (
            &["printf", "%s|", "$(id)", "`id`", ";id", "|id", "&&", ">x", "*", "$HOME", "\n"],
            vec![],
            returns("0: $(id)|`id`|;id||id|&&|>x|*|$HOME|\n|"),
        ),
        (&["printf", "a\0b"], vec![], failed("NUL")),
        (&["printf\0"], vec![], failed("the program")),
        (&[], vec![], failed("the command has no program")),
        (&[""], vec![], failed("the program")),
        (&["."], vec![], failed("the program is a folder")),
        (&["./printf"], vec![], failed("the program")),
        (&["../bin/printf"], vec![], failed("the program")),
        (&["/usr/bin/../bin/sh"], vec![], failed("the program")),
        (&["/usr/bin//printf"], vec![], failed("the program")),
        (&["/usr/bin/printf/"], vec![], failed("the program")),
        (&["printf;id"], vec![], denied("run …")),
        (&["sh", "-c", "id"], vec![], denied("run …/sh")),
        (&["/bin/sh", "-c", "id"], vec![], denied("run /bin/sh")),
        (&["/proc/self/exe"], vec![], denied("run /proc/self/exe")),
        (&["/tmp/printf"], vec![], denied("run /tmp/printf")),
        // The path is granted, but it is a link: whoever made the link would decide what runs. Here it was root.
        (&["PRINTF"], vec![], denied("run …PRINTF")),
        // Environment variables.
        (
            &["/usr/bin/env"],
            vec![("env", pairs(&[("APP_X", "1")])), ("clean_env", true.into())],
            returns("0: APP_X=1\n"),
        ),
        (&["printf"], vec![("env", pairs(&[("LD_PRELOAD", "/tmp/x.so")]))], denied("set the variable LD_PRELOAD")),
        (&["printf"], vec![("env", pairs(&[("PATH", "/tmp")]))], denied("set the variable PATH")),
        (&["printf"], vec![("env", pairs(&[("BASH_ENV", "/tmp/x")]))], denied("set the variable BASH_ENV")),
        (&["printf"], vec![("env", pairs(&[("APP_X=1\0LD_PRELOAD", "x")]))], failed("the name of a variable")),
        (&["printf"], vec![("env", pairs(&[("", "x")]))], failed("the name of a variable")),
        (&["printf"], vec![("env", pairs(&[("APP_X", "1"), ("APP_X", "2")]))], failed("is there twice")),
        (&["printf"], vec![("env", pairs(&[("APP_X", "a\0b")]))], failed("NUL")),
        (&["printf"], vec![("env", pairs(&[("LANG", "../../tmp/locale")]))], denied("set the variable LANG")),
        (&["printf"], vec![("env", pairs(&[("TZ", "/etc/shadow")]))], denied("set the variable TZ")),
        // Working directories.
        (&["env", "printf", "x"], vec![("cwd", dir("work"))], returns("0: x")),
        (&["printf"], vec![("cwd", text("/root"))], denied("run programs in /root")),
        (&["printf"], vec![("cwd", dir("work/../.."))], failed("the directory to start in")),
        (&["printf"], vec![("cwd", text("work"))], failed("the directory to start in")),
        (&["printf"], vec![("cwd", dir("work/out"))], failed("")),
        (&["printf"], vec![("cwd", dir("workx"))], denied("run programs in …workx")),
        // Users.
        (&["printf"], vec![("run_as", text("nobody"))], denied("run programs as user nobody")),
        (&["printf"], vec![("run_as", text("65534"))], denied("run programs as user 65534")),
        (&["printf"], vec![("run_as", text("nobody:x\n"))], failed("the user is neither a name nor a number")),
        (&["printf"], vec![("group", text("shadow"))], denied("run programs as group shadow")),
        (&["printf"], vec![("umask", 0o4777.into())], failed("the umask")),
    ];
    for (argv, beside, gets) in cases {
        let kwargs = beside.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        rig.attack_with("hostile.run", vec![texts(argv)], kwargs, AT_ONCE, &gets).await;
    }
    for (name, gets) in [
        ("sh", fails("hostile.which was stopped: process.which was refused: module hostile may not run …")),
        ("../sh", failed("the program")),
        ("printf", returns("/usr/bin/printf")),
    ] {
        rig.attack("hostile.which", vec![text(name)], AT_ONCE, &gets).await;
    }
    rig.attack("hostile.shell", vec![], AT_ONCE, &returns("none")).await;
    rig.attack("hostile.shell", vec![text("/bin/sh")], AT_ONCE, &returns("none")).await;
    rig.end().await;
}

/// A granted program may do what its owner chose. It still ends with its job and within its limits.
#[tokio::test(flavor = "multi_thread")]
async fn programs_end_with_their_job() {
    let granted = NOTHING.replace("process: []", "process: any");
    let rig = Rig::start(&format!("  limits: {{wall: 2s}}\n  modules:\n    hostile: {granted}\n")).await;
    rig.install("hostile", &hostile()).await;
    let mark = format!("31.4159{}", std::process::id());
    let sh = |line: &str| vec![texts(&["/bin/sh", "-c", &line.replace("MARK", &mark)])];
    let wall = || fails("hostile.run was stopped: its wall clock limit of 2 s is used up");
    // The guest's limit, and the time that its program gets to end.
    let wall_limit = Duration::from_secs(2);
    let late = wall_limit + Duration::from_millis(200);
    rig.attack("hostile.run", sh("sleep MARK"), late, &wall()).await;
    gone(&mark).await;
    rig.attack("hostile.run", sh("trap '' TERM HUP INT; while :; do sleep MARK; done"), late, &wall()).await;
    gone(&mark).await;
    // A child that continues in the background.
    rig.attack("hostile.run", sh("sleep MARK & echo started"), AT_ONCE, &returns("0: started\n")).await;
    gone(&mark).await;
    rig.attack(
        "hostile.run",
        sh("setsid sh -c 'setsid sleep MARK & setsid sleep MARK & exec sleep MARK' & sleep MARK"),
        late,
        &wall(),
    )
    .await;
    gone(&mark).await;
    // The child's parent has ended, so that no chain of parents leads to the program.
    for hidden in [
        "setsid -f sleep MARK </dev/null >/dev/null 2>&1; sleep MARK",
        "(setsid sh -c 'sleep MARK & sleep MARK' &); sleep MARK",
        "f() { f & }; f & f & f & f & exec sleep MARK",
    ] {
        rig.attack("hostile.run", sh(hidden), late, &wall()).await;
        gone(&mark).await;
    }
    rig.attack("hostile.run", sh("setsid -f sleep MARK </dev/null >/dev/null 2>&1; exit 3"), AT_ONCE, &returns("3: "))
        .await;
    gone(&mark).await;
    // The program forks as often as it can while its job lasts, here with a bound to spare this machine.
    rig.attack("hostile.run", sh("i=0; while [ $i -lt 200 ]; do sleep MARK & i=$((i+1)); done; wait"), late, &wall())
        .await;
    gone(&mark).await;
    // Endless output: the kept part is bounded, and the rest is counted.
    let flood = vec![("max_output".to_owned(), Value::from(1000)), ("timeout_ms".to_owned(), Value::from(500))];
    rig.attack_with("hostile.run", sh("exec yes"), flood, late, &returns("timed out: …")).await;
    rig.attack("hostile.run", sh("head -c 20000000 /dev/zero"), late, &returns("0: 1048576 and 18951424")).await;
    rig.end().await;
}

/// Waits until no process has this in its command line.
async fn gone(mark: &str) {
    let left = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.contains(mark)).count()
    };
    Duration::from_secs(5).until("all processes of the attack are gone", || left() == 0).await;
}
