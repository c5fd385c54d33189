//! `salt.cmd`: runs a function of a standard module on the master's own host.
//!
//! The master runs no modules itself. It starts `salt-call --local`, which runs the function in its sandbox, with a
//! configuration that grants nothing, so that callers of runners get no access to the master's host.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use brine_protocol::value::{Value, from_json, to_json};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

use crate::files;
use crate::runners::Parts;
use crate::runners::function::{Failure, Outcome, Run};

/// Concurrent calls. Each has its own executor.
static TURNS: Semaphore = Semaphore::const_new(2);
/// Time limit, long enough to compile the standard modules at the first call.
const TIME: Duration = Duration::from_secs(300);
/// Time limit of grains.
const GRAINS_TIME: Duration = Duration::from_secs(30);
/// Bound on the bytes of a result.
const OUTPUT_MAX: u64 = 16 << 20;
/// Bound on the length of all arguments, because command lines are bounded.
const ARGUMENTS_MAX: usize = 64 << 10;
/// Exit code of `salt-call` for an unknown function.
const NO_FUNCTION: i32 = 255;

pub(super) async fn cmd(run: Run) -> Outcome {
    let fun = run
        .find_text("fun")
        .filter(|fun| is_function(fun))
        .ok_or_else(|| run.wrong("fun must be a function, such as test.ping"))?;
    let words = words(&run).ok_or_else(|| run.wrong("the arguments are too long"))?;
    let _turn = TURNS.acquire().await.map_err(|_| "the master is stopping")?;
    let program = program()?;
    let dir = prepare(&run.parts).await?;
    #[expect(clippy::disallowed_methods, reason = "salt-call, which runs the function in its sandbox")]
    let mut command = Command::new(program);
    command
        .arg("-c")
        .arg(dir.join("conf"))
        .args(["--local", "--for-others", "--out=json", "--no-color", "-l", "quiet", &fun])
        .args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(&dir).kill_on_drop(true);
    let child = command.spawn().map_err(|error| format!("salt-call cannot be started: {error}"))?;
    let done = tokio::time::timeout(TIME, output(child)).await;
    let (code, stdout, stderr) = done.map_err(|_| format!("{fun} took longer than {} s", TIME.as_secs()))??;
    if code == Some(NO_FUNCTION) {
        return Ok(Value::from(format!("'{fun}' is not available.")));
    }
    match serde_json::from_slice::<serde_json::Value>(&stdout) {
        Ok(answer) if answer.get("local").is_some() => Ok(from_json(&answer["local"])),
        _ => {
            let said = String::from_utf8_lossy(&stderr);
            let why = said.trim().lines().last().unwrap_or("salt-call said nothing").to_owned();
            Err(format!("salt.cmd runs functions in a sandbox to which nothing is granted. {why}").into())
        }
    }
}

/// Returns the grains of this host.
pub(in crate::runners) async fn grains(parts: &Parts) -> Result<Value, Failure> {
    let (program, dir) = (program()?, prepare(parts).await?);
    #[expect(clippy::disallowed_methods, reason = "salt-call, which reads the host's grains and runs no module")]
    let mut command = Command::new(program);
    command.arg("-c").arg(dir.join("conf")).args(["--local", "--grains", "--host-grains", "--out=json", "--no-color"]);
    command.args(["-l", "quiet"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(&dir).kill_on_drop(true);
    let child = command.spawn().map_err(|error| format!("salt-call cannot be started: {error}"))?;
    let done = tokio::time::timeout(GRAINS_TIME, output(child)).await;
    let (_, stdout, _) = done.map_err(|_| format!("the grains took longer than {} s", GRAINS_TIME.as_secs()))??;
    match serde_json::from_slice::<serde_json::Value>(&stdout) {
        Ok(answer) if answer["local"].is_object() => Ok(from_json(&answer["local"])),
        _ => Err("salt-call has no grains".into()),
    }
}

/// Returns the program's exit code, stdout and stderr.
async fn output(mut child: Child) -> Result<(Option<i32>, Vec<u8>, Vec<u8>), Failure> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let failed = |error: std::io::Error| format!("salt-call cannot be read: {error}");
    if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
        let (mut out, mut err) = (out.take(OUTPUT_MAX + 1), err.take(OUTPUT_MAX));
        tokio::try_join!(out.read_to_end(&mut stdout), err.read_to_end(&mut stderr)).map_err(failed)?;
    }
    if stdout.len() as u64 > OUTPUT_MAX {
        return Err(format!("the result has more than {} MiB", OUTPUT_MAX >> 20).into());
    }
    Ok((child.wait().await.map_err(failed)?.code(), stdout, stderr))
}

/// Finds `salt-call` in the folder of this program.
fn program() -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("salt-call")));
    beside.filter(|path| path.exists()).ok_or_else(|| "salt.cmd needs salt-call beside salt-master".into())
}

/// Makes a folder with a configuration that grants nothing.
async fn prepare(parts: &Parts) -> Result<PathBuf, Failure> {
    let dir = parts.opts.cachedir.join("salt_cmd");
    let (id, of) = (parts.opts.id.clone(), dir.clone());
    let made = tokio::task::spawn_blocking(move || configure(&of, &id)).await;
    made.map_err(|_| "the folder was not made".to_owned())?.map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

fn configure(dir: &Path, id: &str) -> std::io::Result<()> {
    files::make_private_dir(&dir.join("conf"))?;
    let quoted = |text: &str| to_json(&Value::from(text)).to_string();
    let root = quoted(&dir.to_string_lossy());
    let below = |name: &str| quoted(&dir.join(name).to_string_lossy());
    let text = format!(
        "id: {}\nroot_dir: {root}\npki_dir: {}\ncachedir: {}\nsock_dir: {}\nlog_file: {}\nfile_client: local\nsandbox: {{}}\n",
        quoted(id),
        below("pki"),
        below("cache"),
        below("sock"),
        below("log"),
    );
    files::write_atomic(&dir.join("conf/minion"), text.as_bytes(), 0o600)
}

/// Returns whether `fun` has the form `module.function`, and so cannot be an option.
fn is_function(fun: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    fun.len() <= 128 && fun.split_once('.').is_some_and(|(module, name)| is_name(module) && is_name(name))
}

/// Returns the arguments as words of a command line, each encoded as JSON to keep its type; `None` if they are too
/// long.
fn words(run: &Run) -> Option<Vec<String>> {
    let args = run.given.args.iter().map(word);
    let kwargs = run.given.kwargs.iter().map(|(name, value)| format!("{name}={}", word(value)));
    let words: Vec<String> = args.chain(kwargs).collect();
    (words.iter().map(String::len).sum::<usize>() <= ARGUMENTS_MAX).then_some(words)
}

/// Encodes a value as JSON with `#` escaped, because YAML would start a comment there.
fn word(value: &Value) -> String {
    to_json(value).to_string().replace('#', "\\u0023")
}

#[cfg(test)]
mod tests {
    use brine_protocol::args::yamlify;
    use brine_protocol::value::{ValueExt as _, list, map, text};

    use super::*;

    #[test]
    fn arguments_arrive_as_they_are() {
        for value in [
            text("a=b #c"),
            text("-l"),
            text(""),
            text("tab\there\nand a line"),
            text("größe \u{1F600} '\"\\"),
            text("1"),
            Value::from(-5),
            Value::from(1.5),
            Value::Nil,
            Value::from(true),
            list(["a: b", "#"]),
            map([("k", list([1, 2]))]),
        ] {
            assert_eq!(yamlify(&word(&value)), value, "{}", word(&value));
        }
    }

    #[test]
    fn only_functions_are_functions() {
        assert!(is_function("test.ping") && is_function("_a.b_2"));
        for bad in ["", "test", "--config-dir=/x.y", "-l.x", "a.b c", "a.b/c", "a.", ".b", "a.b.c"] {
            assert!(!is_function(bad), "{bad}");
        }
    }

    #[test]
    fn the_configuration_grants_nothing() {
        let dir = tempfile::tempdir().unwrap();
        configure(dir.path(), "it's\nmine").unwrap();
        let file = dir.path().join("conf/minion");
        let text = std::fs::read_to_string(&file).unwrap();
        let config =
            brine_protocol::config::Config::from_yaml(&text, &file, brine_protocol::config::Role::Minion).unwrap();
        assert_eq!(config.value("id").unwrap().python_str(), "it's\nmine");
        assert!(config.value("sandbox").is_none_or(|granted| granted.entries().is_none_or(<[_]>::is_empty)));
    }
}
