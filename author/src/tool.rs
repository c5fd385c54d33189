//! Runs programs that build modules, and installs pinned tools.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use brine_cli::commandline::user_cache;

use crate::failure::Failure;

/// Upper bound on the kept bytes of a program's output. Cargo's messages are the longest.
const MAX_OUTPUT: u64 = 64 << 20;
/// Upper bound on the lines of a quiet program's output that are shown after a failure.
const MAX_LINES: usize = 30;
/// Upper bound on their bytes, counted from the end.
const MAX_SAID: u64 = 16 << 10;
/// Time limit of a quiet program, which may fetch a hundred megabytes over a slow line.
const LIMIT: Duration = Duration::from_secs(1_800);

/// How to install Python, with which tools are installed.
pub(crate) const PYTHON_HINT: &str = "on Debian: `apt-get install python3 python3-venv`";

/// Returns the command of a program that is looked up in `PATH`.
#[expect(clippy::disallowed_methods, reason = "the author's own compilers, on the author's own machine")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Runs a program whose errors the author sees at once. Returns its output. `hint` says how to get the program.
pub(crate) fn run(name: &str, command: &mut Command, hint: &str) -> Result<String, Failure> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| no_program(name, command, &error, hint))?;
    let mut text = Vec::new();
    let stdout = child.stdout.take().map(|out| out.take(MAX_OUTPUT));
    let read = stdout.map(|mut out| out.read_to_end(&mut text)).transpose();
    let ended = child.wait().and_then(|status| read.map(|_| status));
    let status = ended.map_err(|error| Failure::failed(format!("{name} cannot be waited for: {error}")))?;
    if !status.success() {
        return Err(Failure::failed(format!("{name} failed: what it said is above")));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Runs a program whose output is shown only if it fails. Returns the end of its output. `hint` says how to get the
/// program. The limit is half an hour.
pub(crate) fn quiet(name: &str, command: &mut Command, hint: &str) -> Result<String, Failure> {
    within(LIMIT, name, command, hint)
}

fn within(limit: Duration, name: &str, command: &mut Command, hint: &str) -> Result<String, Failure> {
    let unusable = |error: io::Error| Failure::failed(format!("{name} cannot be waited for: {error}"));
    // Files and not pipes: a background process that keeps a pipe open would block the reader.
    let (out, err) = (tempfile::tempfile().map_err(unusable)?, tempfile::tempfile().map_err(unusable)?);
    let copies = (out.try_clone().map_err(unusable)?, err.try_clone().map_err(unusable)?);
    let started = command.stdin(Stdio::null()).stdout(copies.0).stderr(copies.1).spawn();
    let mut child = started.map_err(|error| no_program(name, command, &error, hint))?;
    let end = Instant::now() + limit;
    let status: Option<ExitStatus> = loop {
        match child.try_wait().map_err(unusable)? {
            Some(status) => break Some(status),
            None if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            // Polls, because there is nothing else to do.
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let (out, err) = (end_of(out).map_err(unusable)?, end_of(err).map_err(unusable)?);
    let why = match status {
        Some(status) if status.success() => return Ok(out),
        Some(status) => status.to_string(),
        None => format!("it took more than {limit:?} and was ended"),
    };
    let lines: Vec<&str> = out.lines().chain(err.lines()).collect();
    let said = lines[lines.len().saturating_sub(MAX_LINES)..].join("\n  ");
    Err(Failure::failed(format!("{name} failed ({why}):\n  {said}")))
}

fn end_of(mut file: File) -> io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_SAID)))?;
    let mut said = Vec::new();
    file.take(MAX_SAID).read_to_end(&mut said)?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn no_program(name: &str, command: &Command, error: &io::Error, hint: &str) -> Failure {
    let program = Path::new(command.get_program()).display();
    Failure::failed(match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {name} here ({program}); {hint}"),
        _ => format!("{name} ({program}) cannot be started: {error}; {hint}"),
    })
}

/// Returns the folder of a pinned tool, `${XDG_CACHE_HOME:-~/.cache}/brine/tools/NAME-VERSION`. If the folder is
/// missing, prints a message with its size (`size`, in words) and runs `install` to fill it, one process at a time. An
/// incomplete folder is made again.
pub(crate) fn installed(
    name: &str,
    version: &str,
    size: &str,
    install: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<PathBuf, Failure> {
    let tools = user_cache().map(|cache| cache.join("tools")).ok_or_else(|| {
        Failure::usage("no folder for tools: set HOME or XDG_CACHE_HOME, and they go into brine/tools/ there")
    })?;
    let dir = tools.join(format!("{name}-{version}"));
    // The marker is beside the folder, because the folder's content is the tool's own.
    let ready = tools.join(format!("{name}-{version}.ready"));
    if ready.exists() && dir.is_dir() {
        return Ok(dir);
    }
    std::fs::create_dir_all(&tools).map_err(|error| Failure::unwritable(&tools, error))?;
    let lock = tools.join(format!("{name}-{version}.lock"));
    let unwritable = |error: io::Error| Failure::unwritable(&lock, error);
    let held = File::create(&lock).map_err(unwritable)?;
    held.lock().map_err(unwritable)?;
    if ready.exists() && dir.is_dir() {
        return Ok(dir);
    }
    brine_cli::print::stderr(&format!("salt-module: installing {name} {version} ({size}) into {}", dir.display()));
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(|error| Failure::unwritable(&dir, error))?;
    }
    std::fs::create_dir_all(&dir).map_err(|error| Failure::unwritable(&dir, error))?;
    install(&dir)?;
    File::create(&ready).map_err(|error| Failure::unwritable(&ready, error))?;
    Ok(dir)
}

/// Installs packages of PyPI into `lib` in a tool's folder, verified by the hashes in `requirements`. The environment
/// in which pip runs is removed afterwards; the author's own packages and pip's cache stay unchanged.
pub(crate) fn pip(dir: &Path, requirements: &str) -> Result<(), Failure> {
    let (environment, list) = (dir.join("venv"), dir.join("requirements.txt"));
    std::fs::write(&list, requirements).map_err(|error| Failure::unwritable(&list, error))?;
    let mut venv = command("python3");
    venv.args(["-m", "venv"]).arg(&environment);
    quiet("python3 -m venv", &mut venv, PYTHON_HINT)
        .map_err(|failure| Failure::failed(format!("{failure}\n  on Debian: `apt-get install python3-venv`")))?;
    let mut pip = command(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"]);
    pip.args(["--only-binary=:all:", "--require-hashes", "--target"]).arg(dir.join("lib")).arg("-r").arg(&list);
    quiet("pip", &mut pip, PYTHON_HINT).map_err(|failure| {
        Failure::failed(format!("{failure}\n  is pypi.org, or the index that pip.conf names, within reach?"))
    })?;
    std::fs::remove_dir_all(&environment).map_err(|error| Failure::unwritable(&environment, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_programs() {
        let shell = |line: &str, limit| match within(limit, "it", command("sh").args(["-c", line]), "get it") {
            Ok(said) => said,
            Err(failure) => failure.to_string(),
        };
        assert_eq!(shell("echo out; echo err >&2", LIMIT), "out\n");
        assert_eq!(shell("echo err >&2; echo out; false", LIMIT), "it failed (exit status: 1):\n  out\n  err");
        assert_eq!(shell("echo why; exit 3", LIMIT), "it failed (exit status: 3):\n  why");
        let late = shell("echo begun; exec sleep 60", Duration::from_millis(300));
        assert_eq!(late, "it failed (it took more than 300ms and was ended):\n  begun");
        assert_eq!(shell("yes | head -c 100000", LIMIT).len(), 16 << 10);
        let none = quiet("it", &mut command("/nonexistent/program"), "get it").unwrap_err();
        assert_eq!(none.to_string(), "there is no it here (/nonexistent/program); get it");
    }
}
