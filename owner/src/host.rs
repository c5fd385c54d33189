//! One call of a function on this host.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::runtime::{Builder, Runtime};

/// Time that a call may take.
const CALL_TIME: Duration = Duration::from_secs(60);

/// Who answers calls: this host, or a script in a test.
pub(crate) trait Host: Send {
    /// Calls a function with these arguments, and returns what it returned.
    ///
    /// # Errors
    /// One line: the function failed or was refused, or the call did not happen.
    fn call(&self, function: &str, arguments: &[&str]) -> Result<Value, String>;
}

/// `salt-call --local`, the one beside this program.
#[derive(Debug)]
pub(crate) struct SaltCall {
    program: PathBuf,
    config_dir: PathBuf,
    runtime: Runtime,
}

impl SaltCall {
    /// For the minion with this folder of configuration.
    ///
    /// # Errors
    /// One line: the folder or the program is not there.
    pub(crate) fn new(config_dir: PathBuf) -> Result<Self, String> {
        if !config_dir.exists() {
            let dir = config_dir.display();
            return Err(format!("the configuration folder {dir} does not exist; name another with -c"));
        }
        let here = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
        let program = here.with_file_name("salt-call");
        if !program.is_file() {
            return Err(format!("{} is not there", program.display()));
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no event loop: {error}"))?;
        Ok(Self { program, config_dir, runtime })
    }
}

impl Host for SaltCall {
    fn call(&self, function: &str, arguments: &[&str]) -> Result<Value, String> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the program beside this one, with arguments of this program's own"
        )]
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(&self.config_dir).args(["--local", "--skip-grains", "--log-level=quiet", "--out=json"]);
        // What follows is never taken for an option.
        command.arg(function).arg("--").args(arguments);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = async { tokio::time::timeout(CALL_TIME, command.output()).await };
        let output = self
            .runtime
            .block_on(output)
            .map_err(|_| format!("salt-call did not answer within {} s", CALL_TIME.as_secs()))?
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let parsed = serde_json::from_slice::<Value>(&output.stdout).ok();
        match parsed.and_then(|mut parsed| parsed.get_mut("local").map(Value::take)) {
            Some(value) if output.status.success() => Ok(value),
            Some(Value::String(why)) => Err(why),
            _ => {
                let error = String::from_utf8_lossy(&output.stderr);
                let last = error.lines().rev().find(|line| !line.trim().is_empty());
                Err(last.map_or_else(|| format!("salt-call ended: {}", output.status), str::to_owned))
            }
        }
    }
}
