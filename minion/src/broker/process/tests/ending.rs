//! Ending a program with all its descendants.

use super::*;

#[tokio::test]
async fn the_timeout_ends_all_of_it() {
    let dir = folder();
    let file = dir.path().join("pid");
    let text = format!("echo early; sleep 1000 & echo $! > {}; wait", file.display());
    let before = Instant::now();
    let done = run(ProcessRun { timeout_ms: Some(300), ..sh(&text) }).await;
    assert_eq!(done.get("timed_out"), Some(&Value::from(true)));
    assert_eq!((number(&done, "signal"), stdout(&done).as_str()), (Some(15), "early\n"));
    assert!(before.elapsed() < Duration::from_secs(5));
    let (grandchild, pid) = (read_pid(&file).unwrap(), number(&done, "pid").unwrap() as i32);
    SOON.until("the program is reaped", || !exists(pid)).await;
    SOON.until("the grandchild ends", || !lives(grandchild)).await;
}

#[tokio::test]
async fn one_that_ignores_sigterm_is_killed() {
    let text = "trap '' TERM; echo ready; while :; do sleep 1000; done";
    let done = run(ProcessRun { timeout_ms: Some(1_000), ..sh(text) }).await;
    assert_eq!((number(&done, "signal"), stdout(&done).as_str()), (Some(9), "ready\n"));
    assert_eq!(done.get("timed_out"), Some(&Value::from(true)));
    // A program that cleans up has time for it, and a stopped program is ended too.
    let text = "trap 'echo tidy; exit 5' TERM; kill -STOP $$; while :; do sleep 0.01; done";
    let done = run(ProcessRun { timeout_ms: Some(1_000), ..sh(text) }).await;
    assert_eq!((number(&done, "code"), stdout(&done).as_str()), (Some(5), "tidy\n"));
}

#[tokio::test]
async fn dropped_it_is_gone_at_once_with_all_that_it_started() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let text = format!(
        "trap '' TERM HUP INT; echo $$ > {}; sleep 1000 & echo $! > {}; (sleep 1000 & echo $! > {}) & wait",
        at("leader").display(),
        at("child").display(),
        at("daemon").display(),
    );
    let caller = caller(ANY());
    let processes = Processes::at_most(1);
    {
        let running = processes.answer(&caller, ProcessOp::Run(Box::new(sh(&text))));
        tokio::pin!(running);
        tokio::select! {
            done = &mut running => panic!("{done:?}"),
            () = SOON.until("it runs", || ["leader", "child", "daemon"].iter().all(|name| read_pid(&at(name)).is_some())) => {}
        }
    }
    let dropped = Instant::now();
    let pids: Vec<i32> = ["leader", "child", "daemon"].iter().map(|name| read_pid(&at(name)).unwrap()).collect();
    SOON.until("all end", || !pids.iter().any(|pid| lives(*pid))).await;
    SOON.until("the leader is reaped", || !exists(pids[0])).await;
    println!("ended and reaped after {:?}", dropped.elapsed());
    // Its place is free again.
    SOON.until("the place is free", || processes.places.free() == 1).await;
    processes.answer(&caller, ProcessOp::Run(Box::new(argv(&["true"])))).await.unwrap();
}

#[tokio::test]
async fn dropped_before_it_started_it_leaves_nothing() {
    let caller = caller(ANY());
    let processes = Processes::new();
    for _ in 0..200 {
        let running = processes.answer(&caller, ProcessOp::Run(Box::new(argv(&["sleep", "1717"]))));
        // Polled once.
        let _ = tokio::time::timeout(Duration::ZERO, running).await;
    }
    SOON.until("all places are free", || processes.places.free() == super::super::MAX_PROGRAMS).await;
    assert_eq!(processes_named("sleep\x001717\0"), 0);
}

fn processes_named(cmdline: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.ends_with(cmdline.as_bytes())))
        .count()
}

/// This includes processes with a session of their own, as long as the parent lives.
#[tokio::test]
async fn a_tree_is_ended_whole() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let names = ["outer", "inner", "plain"];
    let text = format!(
        "setsid sh -c 'echo $$ > {}; setsid sleep 1000 & echo $! > {}; wait' & sleep 1000 & echo $! > {}; wait",
        at("outer").display(),
        at("inner").display(),
        at("plain").display(),
    );
    let there = || names.iter().all(|name| read_pid(&at(name)).is_some());
    for timeout_ms in [None, Some(400)] {
        names.iter().for_each(|name| drop(fs::remove_file(at(name))));
        let asked = ProcessRun { timeout_ms, ..sh(&text) };
        let running = run(asked);
        tokio::pin!(running);
        match timeout_ms {
            None => tokio::select! {
                done = &mut running => panic!("{done:?}"),
                () = SOON.until("it runs", there) => {}
            },
            Some(_) => assert_eq!(running.as_mut().await.get("timed_out"), Some(&Value::from(true))),
        }
        let pids = names.map(|name| read_pid(&at(name)).unwrap());
        if timeout_ms.is_none() {
            // Drops the running future.
            running.set(run(argv(&["true"])));
        }
        SOON.until("all end", || !pids.iter().any(|pid| lives(*pid))).await;
    }
}

/// Every process is waited for.
#[tokio::test]
async fn no_zombies() {
    let mut pids = Vec::new();
    for _ in 0..20 {
        pids.push(number(&run(sh("sleep 0 & true")).await, "pid").unwrap() as i32);
    }
    SOON.until("all are reaped", || !pids.iter().any(|pid| exists(*pid))).await;
}

/// Processes in the program's group, after two forks, and in a group of their own made by a shell with job control.
#[tokio::test]
async fn what_it_left_behind_is_ended() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    for (name, text) in [
        ("child", format!("sleep 1000 & echo $! > {}", at("child").display())),
        ("daemon", format!("(sleep 1000 > /dev/null 2>&1 & echo $! > {}) & true", at("daemon").display())),
        ("job", format!("set -m; sleep 1000 & echo $! > {}", at("job").display())),
    ] {
        let before = Instant::now();
        let done = run(sh(&format!("{text}; while ! test -s {}; do :; done; echo done", at(name).display()))).await;
        assert_eq!((number(&done, "code"), stdout(&done).as_str()), (Some(0), "done\n"), "{name}");
        assert!(before.elapsed() < Duration::from_secs(5));
        let pid = read_pid(&at(name)).unwrap();
        SOON.until(name, || !lives(pid)).await;
    }
}

/// With a control group if the host has them, and without.
fn both() -> [Processes; 2] {
    let mut without = Processes::new();
    without.groups = Arc::new(super::super::cgroup::Groups::below(None));
    [Processes::new(), without]
}

fn detach() -> ProcessGrant {
    let mut grant = ANY();
    grant.detach = true;
    grant
}

/// An argument of `sleep` that no other process has.
fn mark(which: usize) -> String {
    format!("27{which}.{}", std::process::id())
}

/// The processes with this text in their command line. An ended process has no command line.
fn marked(mark: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

/// A process that lost its parent, made a session of its own and ignores signals has ended when the job gets its
/// result.
#[tokio::test]
async fn a_daemonised_program_ends_with_its_job() {
    let hides = [
        "setsid -f sleep MARK </dev/null >/dev/null 2>&1",
        "(setsid sh -c 'sleep MARK & sleep MARK' &)",
        "setsid setsid -f sh -c 'trap \"\" TERM HUP INT; (sleep MARK &); while :; do sleep MARK; done' </dev/null >/dev/null 2>&1",
        "nohup setsid sh -c 'setsid sh -c \"(setsid sleep MARK &); (sleep MARK &)\" &' >/dev/null 2>&1 & true",
    ];
    for (which, processes) in both().into_iter().enumerate() {
        let mark = mark(which);
        for hide in hides {
            for (end, code, timeout_ms) in
                [("exit 3", Some(3), None), ("true", Some(0), None), ("sleep MARK; true", None, Some(600))]
            {
                // Waits until `sleep` itself runs, because what has not left its session yet cannot be left behind. The
                // pattern does not match the command itself; in a command line, a point stands for the zero byte.
                let there =
                    format!("until grep -qsa '^sleep.{}' /proc/[0-9]*/cmdline; do :; done", mark.replace('.', "[.]"));
                let text = format!("{hide}; {there}; {end}").replace("MARK", &mark);
                let asked = ProcessRun { timeout_ms, ..sh(&text) };
                for grant in [ANY(), detach()] {
                    let stays = grant.detach && end == "true";
                    let done = processes.answer(&caller(grant), ProcessOp::Run(Box::new(asked.clone()))).await.unwrap();
                    assert_eq!(number(&done, "code"), code, "{text}: {done:?}");
                    assert_eq!(marked(&mark).is_empty(), !stays, "{text}: {:?}", marked(&mark));
                    if stays {
                        end_marked(&mark).await;
                    }
                }
            }
        }
    }
}

async fn end_marked(mark: &str) {
    SOON.until("what was left is ended", || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let left = all.filter(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(mark)
        });
        let pids = left.filter_map(|entry| rustix::process::Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        pids.filter(|pid| rustix::process::kill_process(*pid, rustix::process::Signal::KILL).is_ok()).count() == 0
    })
    .await;
}

/// The job ends before the program.
#[tokio::test]
async fn a_daemon_is_gone_when_its_job_is_dropped() {
    for (which, processes) in both().into_iter().enumerate() {
        let mark = mark(10 + which);
        for grant in [ANY(), detach()] {
            let text = format!("(setsid sleep {mark} &); setsid -f sleep {mark}; sleep {mark}");
            let caller = caller(grant);
            {
                let running = processes.answer(&caller, ProcessOp::Run(Box::new(sh(&text))));
                tokio::pin!(running);
                tokio::select! {
                    done = &mut running => panic!("{done:?}"),
                    () = SOON.until("it runs", || marked(&mark).iter().filter(|line| line.starts_with("sleep")).count() == 3) => {}
                }
            }
            SOON.until("all end", || marked(&mark).is_empty()).await;
            SOON.until("the place is free", || processes.places.free() == super::super::MAX_PROGRAMS).await;
        }
    }
}

#[tokio::test]
async fn a_thousand_five_hundred_forks_end_with_their_program() {
    for (which, processes) in both().into_iter().enumerate() {
        let mark = mark(20 + which);
        let text = format!("i=0; while [ $i -lt 1500 ]; do (sleep {mark} &) ; i=$((i+1)); done; echo forked; exit 3");
        let done = processes.answer(&caller(ANY()), ProcessOp::Run(Box::new(sh(&text)))).await.unwrap();
        assert_eq!((number(&done, "code"), stdout(&done).as_str()), (Some(3), "forked\n"));
        assert_eq!(marked(&mark), Vec::<String>::new());
    }
}

/// Each process starts the next one and ends, so there is never a parent that leads to it, and never more than a few.
#[tokio::test]
async fn what_forks_as_fast_as_it_can_ends_with_its_program() {
    for (which, processes) in both().into_iter().enumerate() {
        let mark = mark(30 + which);
        let text = format!(": {mark}; f() {{ f & }}; f & f & f & f & f & f & f & f & echo ready; exec sleep {mark}");
        let asked = ProcessRun { timeout_ms: Some(300), ..sh(&text) };
        let done = processes.answer(&caller(ANY()), ProcessOp::Run(Box::new(asked))).await.unwrap();
        assert_eq!((done.get("timed_out"), stdout(&done).as_str()), (Some(&Value::from(true)), "ready\n"));
        assert_eq!(marked(&mark), Vec::<String>::new());
    }
}

/// A detached process keeps the output open, but that does not delay the job.
#[tokio::test]
async fn a_daemon_that_may_stay_holds_nobody() {
    let dir = folder();
    let file = dir.path().join("pid");
    let text = format!(
        "setsid sleep 1000 & echo $! > {}; until grep -q sleep /proc/$!/comm; do :; done; echo done",
        file.display()
    );
    let before = Instant::now();
    let done = run_with(detach(), sh(&text)).await.unwrap();
    assert_eq!(stdout(&done), "done\n");
    assert!(before.elapsed() < Duration::from_secs(5));
    let pid = read_pid(&file).unwrap();
    assert!(lives(pid));
    let stat = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(!stat.contains("detach-"), "{stat}");
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_and_one_more_is_busy() {
    const MOST: usize = super::super::MAX_PROGRAMS;
    const OF_ONE: usize = MOST / 4 * 3;
    let processes = Processes::new();
    let mut grants = Grants::default();
    grants.process = ANY();
    let other = brine_kit_sandbox::caller(job("20260101000000000001", "other.run"), "other", grants);
    let caller = caller(ANY());
    let dir = folder();
    let go = dir.path().join("go");
    let text = format!("until test -e {}; do read x < /dev/null; sleep 0.01; done; echo $0", go.display());
    let run = |by, number: usize| {
        let asked = argv(&["/bin/sh", "-c", &text, &number.to_string()]);
        processes.answer(by, ProcessOp::Run(Box::new(asked)))
    };
    let busy = async |by| {
        let busy = processes.answer(by, ProcessOp::Run(Box::new(argv(&["true"])))).await.unwrap_err();
        let said = "busy: 64 programs of jobs run on this minion, or three quarters of that many of this module; try again later";
        assert_eq!(busy.to_string(), said);
    };
    let all = async |by, numbers: std::ops::Range<usize>| {
        let all = futures_util::future::join_all(numbers.clone().map(|number| run(by, number))).await;
        for (number, done) in numbers.zip(all) {
            assert_eq!(stdout(&done.unwrap()), format!("{number}\n"));
        }
    };
    let rest = async {
        SOON.until("all of one module run", || processes.places.free() == MOST - OF_ONE).await;
        busy(&caller).await;
        let others = all(&other, OF_ONE..MOST);
        let one_more = async {
            SOON.until("all run", || processes.places.free() == 0).await;
            busy(&other).await;
            fs::write(&go, "").unwrap();
        };
        tokio::join!(others, one_more);
    };
    tokio::join!(all(&caller, 0..OF_ONE), rest);
    assert_eq!(processes.places.free(), MOST);
}
