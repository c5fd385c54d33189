//! `make bench-guard`: how many instructions the hot paths take, by callgrind, compared with what `counts.txt` has of them. Not
//! clock dependent: a busy machine counts the same.
//!
//! The program runs itself under valgrind, a path at a time, with few and with many rounds; the difference is the rounds alone.
//! Counts differ between compilers and between versions of the crates below, so they are recorded anew, in a change of its own,
//! when those change: `make bench-guard RECORD=yes`.
#![allow(clippy::disallowed_methods, reason = "it starts valgrind")]

mod paths;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use brine_protocol::keys::PrivateKey;

/// Rounds of the two runs of a path.
const FEW: u32 = 5;
const MANY: u32 = 25;
/// How much more than recorded a path may take, percent. Random numbers and addresses make up to one.
const TOLERANCE: u64 = 5;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        [] => guard(),
        ["--record"] => record(),
        ["run", name, rounds] => run(name, rounds),
        _ => Err("usage: brine-guard [--record]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("guard: {why}");
            ExitCode::FAILURE
        }
    }
}

/// One run of a path, under valgrind.
fn run(name: &str, rounds: &str) -> Result<(), String> {
    let rounds = rounds.parse().map_err(|_| format!("{rounds} is no number"))?;
    let (_, path) = paths::PATHS.iter().find(|(own, _)| *own == name).ok_or_else(|| format!("no path {name}"))?;
    path(rounds);
    Ok(())
}

fn guard() -> Result<(), String> {
    let recorded = read(&file())?;
    let mut worse = Vec::new();
    println!("{:<28} {:>14} {:>14} {:>8}", "", "recorded", "now", "");
    for (name, now) in count_all()? {
        let Some(&before) = recorded.get(name) else {
            println!("{name:<28} {:>14} {now:>14}", "-");
            worse.push(format!("{name} is not recorded"));
            continue;
        };
        #[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
        let change = (now as f64 / before as f64 - 1.0) * 100.0;
        println!("{name:<28} {before:>14} {now:>14} {change:>+7.1}%");
        if now > before + before * TOLERANCE / 100 {
            worse.push(format!("{name} takes {change:.1}% more instructions than recorded"));
        } else if now + before * TOLERANCE / 100 < before {
            println!("{:<28} better than recorded: record it, so that it stays so", "");
        }
    }
    if worse.is_empty() {
        return Ok(());
    }
    let compiler = compiler();
    let head = std::fs::read_to_string(file()).unwrap_or_default();
    let other = if head.contains(&compiler) {
        String::new()
    } else {
        format!(" (and this is {compiler}, not what was recorded with)")
    };
    Err(format!("{}{other}; if that is right, record it: make bench-guard RECORD=yes", worse.join("; ")))
}

fn record() -> Result<(), String> {
    let mut text = format!(
        "# Instructions a round, by callgrind, of the release build; written by `make bench-guard RECORD=yes`.\n\
         # Made with {}; another compiler makes other counts.\n",
        compiler()
    );
    for (name, count) in count_all()? {
        let _ = writeln!(text, "{name} {count}");
    }
    print!("{text}");
    std::fs::write(file(), text).map_err(|e| format!("cannot write {}: {e}", file().display()))
}

fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    // `rustc 1.95.0 (…)`: the hash behind says no more.
    String::from_utf8_lossy(&output).split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guard/counts.txt")
}

fn read(path: &Path) -> Result<BTreeMap<String, u64>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let entry = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.trim().parse().ok()?))
    };
    Ok(text.lines().filter(|line| !line.starts_with('#')).filter_map(entry).collect())
}

fn count_all() -> Result<Vec<(&'static str, u64)>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let key = folder.path().join("key.pem");
    PrivateKey::generate(2048).and_then(|new| new.write_private(&key)).map_err(|e| e.to_string())?;
    paths::PATHS.iter().map(|(name, _)| Ok((*name, count(name, &key)?))).collect()
}

/// Instructions of one round.
fn count(name: &str, key: &Path) -> Result<u64, String> {
    let (few, many) = (instructions(name, FEW, key)?, instructions(name, MANY, key)?);
    Ok(many.saturating_sub(few) / u64::from(MANY - FEW))
}

fn instructions(name: &str, rounds: u32, key: &Path) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args(["run", name, &rounds.to_string()])
        .env(paths::KEY, key)
        .output()
        .map_err(|e| format!("valgrind does not start ({e}): tools/setup.sh guard installs it"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    // `==123== Collected : 1234567`
    let collected = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    collected.filter(|_| output.status.success()).ok_or_else(|| format!("{name} under valgrind failed: {said}"))
}
