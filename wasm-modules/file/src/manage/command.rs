//! `check_cmd`: a program that judges the content before it takes its place.

use brine_guest::changes::{self, Content, Put};
use brine_guest::hash::sha256;
use brine_guest::host::{functions, job};
use brine_guest::{Value, path};

use crate::wasi::clocks::wall_clock;

/// Runs a command with the path of a file that has this content as its last argument. Returns the comment of a failed
/// state if it fails. The command is `cmd.run_all`'s, with what the owner granted the module `cmd`.
pub(crate) fn refused(
    command: &str,
    content: &Content,
    dir: Option<&str>,
    end: &str,
) -> Result<Option<String>, String> {
    let now = wall_clock::now();
    let seed = format!("{}{}{}{command}", job::current().jid, now.seconds, now.nanoseconds);
    let name = format!("__salt.tmp.{}{end}", &sha256(seed.as_bytes())[..12]);
    let place = path::join(dir.unwrap_or("/tmp"), &name);
    // Nobody else's file is overwritten, and no link followed.
    Put::new(&place).mode(Some(0o600)).follow(false).expect(Some(String::new())).content(content)?;
    let judged = run(command, &place);
    let removed = changes::remove(&place, false);
    let judgement = judged?;
    removed?;
    Ok(judgement)
}

/// Runs a command with a path as its last argument. Returns the comment of a failed state if it fails.
pub(crate) fn run(command: &str, place: &str) -> Result<Option<String>, String> {
    let args = [format!("{command} {place}").into()];
    let done = functions::call("cmd.run_all", &args, &Value::Dict(Vec::new()).into())?.value()?;
    if matches!(done.get("retcode"), Some(Value::Int(0))) {
        return Ok(None);
    }
    let mut comment = String::from("check_cmd execution failed");
    for output in ["stdout", "stderr"] {
        if let Some(said) = done.get(output).filter(|said| said.truthy()) {
            comment += &format!("\n{}", said.to_text());
        }
    }
    Ok(Some(comment))
}
