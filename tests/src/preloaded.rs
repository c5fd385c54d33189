//! Python's commands without their start: to load Salt takes a processor a second, which is most of the time of a command. One process of
//! each test program loads it, and every command is a fork of that.

#![allow(clippy::disallowed_methods, reason = "it starts the process that has Salt loaded")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use brine_kit::process::Output;
use serde_json::json;
use tempfile::NamedTempFile;

const SERVER: &str = include_str!("preloaded.py");
/// The commands that the server has loaded.
const COMMANDS: [&str; 4] = ["salt", "salt-cp", "salt-key", "salt-run"];

static OFF: AtomicBool = AtomicBool::new(false);

/// Has each command start by itself from now on, for who measures how long that takes.
pub fn off() {
    OFF.store(true, Ordering::Relaxed);
}

/// Runs a command of the Salt that this interpreter has. None if it has to be started by itself.
pub(crate) fn command(python: &Path, name: &str, args: &[&str]) -> Option<Output> {
    if OFF.load(Ordering::Relaxed) || !COMMANDS.contains(&name) {
        return None;
    }
    run(python, &[&[name], args].concat())
}

/// Runs a script to its end, with these arguments.
pub fn script(python: &Path, script: &str, args: &[&str]) -> Output {
    run(python, &[&["-c", script], args].concat()).expect("a Python with Salt")
}

fn run(python: &Path, words: &[&str]) -> Option<Output> {
    static RUNNING: OnceLock<Option<Child>> = OnceLock::new();
    let name = format!("brine-preloaded-{}", std::process::id());
    // It ends with its standard input, which this process has open to its end.
    RUNNING.get_or_init(|| start(python, &name)).as_ref()?;
    let start = Instant::now();
    let [mut out, mut err] = [(); 2].map(|()| NamedTempFile::new().expect("a temporary file"));
    let address = SocketAddr::from_abstract_name(&name).expect("a short name");
    let mut connection = UnixStream::connect_addr(&address).expect("the server listens");
    writeln!(connection, "{}", json!([words, out.path(), err.path()])).expect("the server reads");
    let mut code = String::new();
    BufReader::new(connection).read_line(&mut code).expect("the server answers");
    let text = |file: &mut NamedTempFile| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("our own file");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (stdout, stderr) = (text(&mut out), text(&mut err));
    // As for a command that a signal ended, which has a negative number here.
    let code = code.trim().parse().ok().filter(|code| *code >= 0).unwrap_or(-1);
    Some(Output { stdout, stderr, code, elapsed: start.elapsed() })
}

fn start(python: &Path, name: &str) -> Option<Child> {
    let mut child = Command::new(python)
        .args(["-c", SERVER, name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
    (line.trim_end() == "ready").then_some(child)
}
