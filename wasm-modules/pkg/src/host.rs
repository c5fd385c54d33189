//! The host: programs, files, grains.

use brine_apt::dpkg::Architecture;
use brine_guest::Result;
use brine_guest::host::{changes, grains, log};
use brine_guest::program::{Output, Program};

use crate::wasi::clocks::monotonic_clock;

/// How to run a program.
#[derive(Default)]
pub(crate) struct How {
    pub stdin: Option<Vec<u8>>,
    pub timeout_ms: Option<u64>,
}

/// What keeps the programs of Debian from asking questions.
const QUIET: [(&str, &str); 4] = [
    ("APT_LISTBUGS_FRONTEND", "none"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("UCF_FORCE_CONFFOLD", "1"),
];
/// Tries while another program holds apt's lock, which wait twice as long each time, beginning with 2 s.
const MAX_TRIES: u32 = 10;

/// Runs a program whose words are known.
///
/// # Errors
/// When the program cannot be run, or says more than the host keeps.
pub(crate) fn run(argv: &[&str], how: How) -> Result<Output> {
    run_words(argv.iter().map(|word| word.to_string()).collect(), how)
}

pub(crate) fn run_words(argv: Vec<String>, how: How) -> Result<Output> {
    let mut program = Program::new(argv);
    for (name, value) in QUIET {
        program = program.env(name, value);
    }
    if let Some(stdin) = how.stdin {
        program = program.stdin(stdin);
    }
    if let Some(milliseconds) = how.timeout_ms {
        program = program.timeout(milliseconds);
    }
    program.run()
}

/// Runs a program of apt, again while another one holds the lock.
pub(crate) fn run_apt(argv: Vec<String>, how: How) -> Result<Output> {
    let again = || How { stdin: how.stdin.clone(), timeout_ms: how.timeout_ms };
    let mut done = run_words(argv.clone(), again())?;
    for tries in 1..=MAX_TRIES {
        if !done.stderr.contains("Could not get lock") {
            break;
        }
        log::write(
            log::Level::Warning,
            &format!("another program holds the lock of packages: try {tries} of {MAX_TRIES}"),
        );
        monotonic_clock::subscribe_duration(1_000_000_000 << tries).block();
        done = run_words(argv.clone(), again())?;
    }
    Ok(done)
}

/// Logs an error.
pub(crate) fn log_error(text: &str) {
    log::write(log::Level::Error, text);
}

/// A grain as text; empty if there is no such grain.
pub(crate) fn grain(name: &str) -> String {
    grains::get(name, None).and_then(|data| data.value().ok()).map(|value| value.to_text()).unwrap_or_default()
}

pub(crate) fn architecture() -> Architecture {
    Architecture { os: grain("osarch"), cpu: grain("cpuarch") }
}

/// # Errors
/// When this host has no packages of Debian.
pub(crate) fn check_family() -> Result<()> {
    match grain("os_family") == "Debian" {
        true => Ok(()),
        false => Err("The pkg module could not be loaded: unsupported OS family".into()),
    }
}

/// Bytes of a file that are read at once, and of a file in all.
const PIECE: u32 = 1 << 20;
const MAX_FILE: u64 = 16 << 20;

/// Reads a file; none if it is not there.
pub(crate) fn read(path: &str) -> Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    loop {
        let offset = content.len() as u64;
        if offset > MAX_FILE {
            return Err(format!("{path} is larger than {MAX_FILE} bytes"));
        }
        match changes::read(path, offset, PIECE)? {
            None if offset == 0 => return Ok(None),
            Some(part) if !part.is_empty() => content.extend(part),
            _ => return Ok(Some(content)),
        }
    }
}

/// Writes a file. A new one gets `mode`, or 0644; one that is there keeps its own unless there is one.
pub(crate) fn write(path: &str, content: Vec<u8>, mode: Option<u32>) -> Result<()> {
    let owner = changes::Owner { user: None, group: None };
    let options = changes::PutOptions { owner, mode, backup: false, follow: true, expect: None };
    changes::put(path, &changes::Content::Bytes(content), &options).map(drop)
}

/// The names in a directory, sorted; empty if it is not there.
pub(crate) fn names(path: &str) -> Result<Vec<changes::Name>> {
    let path = path.trim_end_matches('/');
    if !is_directory(path)? {
        return Ok(Vec::new());
    }
    let mut all: Vec<changes::Name> = Vec::new();
    loop {
        let after = all.last().map(|last| last.name.clone());
        let more = changes::list(path, after.as_deref())?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

/// Whether a path leads to a directory.
pub(crate) fn is_directory(path: &str) -> Result<bool> {
    Ok(changes::look(path.trim_end_matches('/'), true, false)?
        .is_some_and(|entry| entry.kind == changes::Kind::Directory))
}

/// Whether a path leads to a file.
pub(crate) fn is_file(path: &str) -> Result<bool> {
    Ok(changes::look(path, true, false)?.is_some_and(|entry| entry.kind == changes::Kind::Regular))
}
