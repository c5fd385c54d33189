//! All processes that a program started end with the program, whatever they do. The tests detect the end by a pipe to
//! which all the processes write: reading ends when no process has the other end.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]
#![allow(unsafe_code, reason = "programs that fork as fast as they can")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brine_spawn::{Directory, Ended, Left, Program, Running, start};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

/// Enough time for a busy machine. The tests wait for an end that comes at once or never.
const DEADLINE: Duration = Duration::from_secs(30);

/// The pipe to which all processes of a program write.
struct Output(BufReader<File>);

impl Output {
    /// Whether no process can write to the pipe any more.
    fn is_over(&mut self, within: Duration) -> bool {
        let end = Instant::now() + within;
        let mut bytes = [0; 4096];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
            let mut poll_fd = [PollFd::new(self.0.get_ref(), PollFlags::IN)];
            if poll(&mut poll_fd, Some(&timeout)).unwrap() == 0 {
                return false;
            }
            if self.0.read(&mut bytes).unwrap() == 0 {
                return true;
            }
        }
    }
}

fn program(path: &str, args: &[&str], env: &[(&str, &str)]) -> (Program, Output) {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let program = Program {
        probe: None,
        path: path.into(),
        name: path.into(),
        args: args.iter().map(Into::into).collect(),
        env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        directory: Directory::OrRoot("/".into()),
        identity: None,
        umask: None,
        file_size: None,
        detach: false,
        group: None,
        stdin: None,
        stderr: theirs.try_clone().unwrap(),
        stdout: theirs,
    };
    (program, Output(BufReader::new(ours.into())))
}

fn sh(script: &str) -> (Program, Output) {
    program("/bin/sh", &["-c", script], &[("PATH", "/usr/bin:/bin")])
}

fn started((program, output): (Program, Output)) -> (Running, Output) {
    (start(program, drop).unwrap(), output)
}

/// Starts this test program again as one of the attackers below.
fn attacker(which: &str) -> (Program, Output) {
    let own = std::env::current_exe().unwrap();
    let args = ["--exact", "attack", "--ignored", "--nocapture", "--test-threads=1"];
    program(own.to_str().unwrap(), &args, &[("ATTACK", which)])
}

/// The attackers. This is not a test by itself; other tests start it.
#[test]
#[ignore = "a program of the tests here"]
fn attack() {
    // SAFETY: only system calls; the children run no code of the test.
    unsafe {
        match std::env::var("ATTACK").unwrap_or_default().as_str() {
            // Each process forks once and ends, so no parent leads to it, and its pid changes all the time.
            "comets" => {
                for _ in 0..8 {
                    if libc::fork() == 0 {
                        loop {
                            libc::setsid();
                            if libc::fork() != 0 {
                                libc::_exit(0);
                            }
                        }
                    }
                }
            }
            // Many processes at once, each in a session of its own; each is replaced when it ends.
            "crowd" => {
                for _ in 0..60 {
                    if libc::fork() == 0 {
                        libc::setsid();
                        for _ in 0..4 {
                            if libc::fork() == 0 {
                                libc::setsid();
                            }
                        }
                        loop {
                            libc::pause();
                        }
                    }
                }
            }
            // Children whose end sends no signal, and which are siblings of this process.
            "siblings" => {
                for _ in 0..20 {
                    if libc::syscall(libc::SYS_clone, libc::CLONE_PARENT, 0, 0, 0, 0) == 0 {
                        libc::setsid();
                        loop {
                            libc::pause();
                        }
                    }
                }
            }
            // A process that is a subreaper itself.
            "reaper" => {
                libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
                libc::prctl(libc::PR_SET_PDEATHSIG, 0);
                if libc::fork() == 0 {
                    libc::setsid();
                    libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
                    for _ in 0..20 {
                        if libc::fork() == 0 {
                            if libc::fork() == 0 {
                                loop {
                                    libc::pause();
                                }
                            }
                            libc::_exit(0);
                        }
                    }
                    loop {
                        libc::pause();
                    }
                }
            }
            // A process that starts programs and is killed.
            "minion" => {
                let (mut program, _) = sh("setsid sleep 1000 & (setsid sleep 1000 &); echo ready; sleep 1000");
                program.stdout = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
                let _running = start(program, drop).unwrap();
                libc::pause();
            }
            _ => return,
        }
        println!("ready");
        if std::env::var("LEAVE").is_ok() {
            libc::_exit(0);
        }
        libc::pause();
    }
}

/// The records follow the output of the test harness.
fn ready(output: &mut Output) {
    loop {
        let mut line = String::new();
        // Only the record of the end has no line break.
        assert_ne!(output.0.read_line(&mut line).unwrap(), 0, "it is over");
        if line.trim_end().ends_with("ready") {
            return;
        }
    }
}

#[test]
fn what_a_program_started_ends_with_it_however_it_hides() {
    for which in ["comets", "crowd", "siblings", "reaper"] {
        for leaves in [false, true] {
            let (mut program, output) = attacker(which);
            if leaves {
                program.env.push(("LEAVE".into(), "1".into()));
            }
            let (mut running, mut output) = started((program, output));
            ready(&mut output);
            let begin = Instant::now();
            if !leaves {
                running.control().end();
            }
            let ended = running.wait().unwrap();
            println!("{which}, leaves {leaves}: {:?} after {:?}", ended.left, begin.elapsed());
            running.finish().unwrap();
            assert_eq!(ended.status.code().is_some(), leaves, "{which}");
            // The state holds when the report arrives.
            assert!(output.is_over(Duration::ZERO) || ended.left == Left::Stuck, "{which} {leaves}");
            assert!(output.is_over(DEADLINE), "{which} {leaves}");
        }
    }
}

#[test]
fn one_that_kills_or_stops_its_supervisor_ends_all_the_same() {
    let (program, mut output) = sh("setsid sleep 1000 & echo ready; kill -KILL $PPID; sleep 1000");
    // The program may do this before the supervisor reports its start.
    if let Ok(mut running) = start(program, drop) {
        assert!(running.wait().is_err());
    }
    ready(&mut output);
    assert!(output.is_over(DEADLINE));
    // The supervisor is killed before it can report that the program runs.
    let (program, mut output) = sh("setsid sleep 1000 & kill -STOP $PPID; echo ready; sleep 1000");
    let (tell, told) = std::sync::mpsc::channel();
    let starts = std::thread::spawn(move || start(program, |control| tell.send(control).unwrap()));
    ready(&mut output);
    told.recv().unwrap().end();
    assert!(output.is_over(DEADLINE));
    drop(starts.join().unwrap());
}

#[test]
fn a_minion_that_is_killed_leaves_no_program() {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let mut output = Output(BufReader::new(ours.into()));
    let mut minion = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attack", "--ignored", "--nocapture", "--test-threads=1"])
        .env("ATTACK", "minion")
        .stdout(Stdio::from(theirs))
        .spawn()
        .unwrap();
    ready(&mut output);
    minion.kill().unwrap();
    assert_eq!(minion.wait().unwrap().signal(), Some(9));
    assert!(output.is_over(DEADLINE));
}

/// Only a process with a session of its own may stay, and only if its program ended with 0.
#[test]
fn what_detaches_stays_only_where_it_may() {
    // The substitution ends when both have their session: only then they leave its output.
    let script = "exec 3>&1; : $(setsid sh -c 'exec sleep 1000 >&3' & setsid -f sh -c 'exec sleep 1000 >&3')
        sleep 1000 & (sleep 1000 &); echo ready; exit $CODE";
    for (detach, code, stays) in [(true, 0, true), (true, 3, false), (false, 0, false)] {
        let (mut program, output) = sh(script);
        program.detach = detach;
        program.env.push(("CODE".into(), code.to_string().into()));
        let (mut running, mut output) = started((program, output));
        ready(&mut output);
        let ended = running.wait().unwrap();
        running.finish().unwrap();
        let left = if stays { Left::Detached } else { Left::Swept };
        assert_eq!(ended, Ended { status: std::process::ExitStatus::from_raw(code << 8), left });
        assert_eq!(output.is_over(Duration::ZERO), !stays, "{detach} {code}");
        if stays {
            let left = sessions_with(&output);
            assert_eq!(left.len(), 2, "{left:?}");
            left.iter().for_each(|pid| {
                rustix::process::kill_process(*pid, rustix::process::Signal::KILL).unwrap();
            });
            assert!(output.is_over(DEADLINE));
        }
    }
}

/// The processes that have the other end of the pipe.
fn sessions_with(output: &Output) -> Vec<rustix::process::Pid> {
    let pipe = format!("pipe:[{}]", rustix::fs::fstat(output.0.get_ref()).unwrap().st_ino);
    let own = std::process::id().to_string();
    let has = |pid: &str| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|to| to.to_str() == Some(&pipe))
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| *name != own && has(name));
    all.filter_map(|name| rustix::process::Pid::from_raw(name.parse().ok()?)).collect()
}
