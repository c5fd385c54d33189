//! Seccomp alone, without the other walls: a child raises only this wall and tries operations that landlock and its
//! user would refuse too.
#![allow(unsafe_code, reason = "attacks are raw system calls")]
#![allow(clippy::disallowed_methods, reason = "the test's own program, again")]

use std::ffi::c_long;
use std::process::Command;

use super::*;

/// The environment variable that tells the child to try.
const CHILD: &str = "BRINE_WALLS_SECCOMP";

#[test]
fn alone() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "seccomp::tests::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, "try")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let results: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    assert_eq!(
        results,
        [
            "before: 0 0 0",
            "signal: 1",
            "signal a thread: 1",
            "signal by thread: 1",
            "own thread: 0",
            "slow down: 1",
            "slow itself down: 0",
            "open as a file: 1",
            "read a file: 1",
            "listen: 1",
            "connect: 1",
            "start: 1",
            "a thread: 7",
        ],
        "{said}"
    );
}

/// Makes a system call with numbers as arguments and returns its result.
fn call(number: c_long, arguments: [i32; 3]) -> i32 {
    // SAFETY: none of the arguments is a pointer.
    let answer = unsafe { libc::syscall(number, arguments[0], arguments[1], arguments[2]) };
    if answer == -1 { std::io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

/// The child's part; not a test by itself.
#[test]
fn child() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let parent = std::os::unix::process::parent_id().cast_signed();
    let own = std::process::id().cast_signed();
    let signals = || {
        [
            call(libc::SYS_kill, [parent, 0, 0]),
            call(libc::SYS_tkill, [parent, 0, 0]),
            call(libc::SYS_tgkill, [parent, parent, 0]),
        ]
    };
    let [kill, tkill, tgkill] = signals();
    // An unconfined process of the same user may do this.
    println!("\n> before: {kill} {tkill} {tgkill}");
    let mut walls = Walls::default();
    restrict(&Spec::executor(), &mut walls);
    assert!(walls.seccomp, "{walls:?}");
    let [kill, tkill, tgkill] = signals();
    println!("> signal: {kill}\n> signal a thread: {tkill}\n> signal by thread: {tgkill}");
    println!("> own thread: {}", call(libc::SYS_tgkill, [own, own, 0]));
    println!("> slow down: {}", call(libc::SYS_setpriority, [0, parent, 1]));
    println!("> slow itself down: {}", call(libc::SYS_setpriority, [0, 0, 1]));
    println!("> open as a file: {}", call(libc::SYS_pidfd_open, [parent, 0, 0]));
    let error = |result: std::io::Result<()>| result.err().and_then(|error| error.raw_os_error()).unwrap_or_default();
    println!("> read a file: {}", error(std::fs::read("/etc/passwd").map(drop)));
    println!("> listen: {}", error(std::net::TcpListener::bind("127.0.0.1:0").map(drop)));
    println!("> connect: {}", error(std::net::TcpStream::connect("127.0.0.1:1").map(drop)));
    println!("> start: {}", error(Command::new("/bin/true").status().map(drop)));
    println!("> a thread: {}", std::thread::spawn(|| 7).join().unwrap());
}
