//! Runs one command: finds the program, runs it, and processes its output.

use brine_guest::Value;
use brine_guest::host::process::{self, Command, Finished, Unprobed};
use brine_guest::host::{grains, job, log};

use crate::options::Call;
use crate::template;
use crate::words::{self, Unsplit};

/// The result of a command.
pub(crate) struct Done {
    pub pid: Option<u32>,
    pub retcode: i64,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// The result in the form of `cmd.run_all`.
    pub(crate) fn all(self) -> Value {
        Value::dict([
            ("pid", self.pid.map_or(Value::None, |pid| Value::Int(pid.into()))),
            ("retcode", Value::Int(self.retcode)),
            ("stdout", self.stdout.into()),
            ("stderr", self.stderr.into()),
        ])
    }
}

/// Upper bound on the bytes of output. Both outputs together fit the default bound on a job's return (4 MiB).
const MAX_MERGED: u64 = 3 << 20;
const MAX_APART: u64 = MAX_MERGED / 2;
/// Upper bound on the bytes of an output in the log.
const MAX_LOGGED: usize = 4096;

/// `cmd.run`: the output. Both outputs are merged unless the caller separates them.
pub(crate) fn output(call: Call) -> Result<String, String> {
    let done = run(&call, call.redirect_stderr != Some(false))?;
    if done.retcode != 0 && call.raise_err == Some(true) && call.ignore_retcode != Some(true) && !call.quiet() {
        return Err(done.stdout);
    }
    Ok(done.stdout)
}

/// Runs the command to its end. Its code becomes the job's return code.
pub(crate) fn run(call: &Call, merge: bool) -> Result<Done, String> {
    call.supported()?;
    let success = call.success()?;
    let (cmd, cwd) = rendered(call)?;
    let argv = argv(call, &cmd)?;
    if argv.first().is_none_or(String::is_empty) {
        return Err("the command is empty".into());
    }
    let cwd = cwd.filter(|cwd| !cwd.is_empty());
    if let Some(cwd) = cwd.as_deref().filter(|cwd| !cwd.starts_with('/')) {
        return Err(format!("Specified cwd '{cwd}' either not absolute or does not exist"));
    }
    let timeout = call.timeout()?;
    let command = Command {
        argv,
        cwd,
        env: call.env()?,
        clean_env: call.clean_env == Some(true),
        stdin: call.stdin()?,
        timeout_ms: timeout.as_ref().map(|(milliseconds, _)| *milliseconds),
        run_as: call.runas.clone(),
        group: call.group.clone(),
        umask: call.umask()?,
        max_output: Some(if merge { MAX_MERGED } else { MAX_APART }),
        merge_stderr: merge,
    };
    let named = if call.quiet() { "REDACTED".to_owned() } else { cmd.to_text() };
    let finished = start(&command).map_err(|reason| format!("Unable to run command '{named}', reason: {reason}"))?;
    let mut done = match timeout {
        Some((_, seconds)) if finished.timed_out => {
            let stdout = format!("{} : Timed out after {seconds} seconds", shown(&cmd, &command));
            Done { pid: Some(finished.pid), retcode: 1, stdout, stderr: String::new() }
        }
        _ => {
            let Finished { pid, code, signal, stdout, stderr, stdout_dropped, stderr_dropped, .. } = finished;
            // As in Python, a signal becomes a negative code.
            let code = code.map_or_else(|| -i64::from(signal.unwrap_or(0)), i64::from);
            let stdout = cut(call.decode(stdout)?, stdout_dropped);
            let stderr = cut(call.decode(stderr)?, stderr_dropped);
            let found = |texts: &[String], output: &str| texts.iter().any(|text| output.contains(text.as_str()));
            let good =
                success.codes.contains(&code) || found(&success.stdout, &stdout) || found(&success.stderr, &stderr);
            Done { pid: Some(pid), retcode: if good { 0 } else { code }, stdout, stderr }
        }
    };
    let ignored = call.ignore_retcode == Some(true);
    job::set_retcode(if ignored { 0 } else { i32::try_from(done.retcode).unwrap_or(1) });
    if !call.quiet() {
        if done.retcode != 0 && !ignored {
            let first = named.split_whitespace().next().unwrap_or_default();
            log::write(log::Level::Error, &format!("Command '{first}' failed with return code: {}", done.retcode));
        }
        log_outputs(call, &done);
    }
    if call.hide_output == Some(true) {
        (done.stdout, done.stderr) = (String::new(), String::new());
    }
    Ok(done)
}

/// Runs the program. With `test=True`, what others ask, such as the `unless` of a state or a template, is a question: it
/// runs where it can change nothing. A job that is itself a command is stopped by the host.
fn start(command: &Command) -> Result<Finished, String> {
    let is_question = job::current().test && (job::called_by().is_some() || job::state().is_some());
    if !is_question {
        return process::run(command);
    }
    process::probe(command).map_err(|error| match error {
        Unprobed::Unable(why) => format!("a dry run cannot ask it: {why}"),
        Unprobed::Failed(why) => why,
    })
}

/// The command and its folder, as the templates that they may be.
fn rendered(call: &Call) -> Result<(Value, Option<String>), String> {
    let Some(engine) = call.template()? else { return Ok((call.cmd.clone(), call.cwd.clone())) };
    let saltenv = call.saltenv.as_deref().filter(|saltenv| !saltenv.is_empty()).unwrap_or("base");
    let render = |text: String| {
        let rendered = template::render(text, &engine, saltenv, Value::Dict(Vec::new()));
        rendered.map_err(|why| format!("Failed to execute cmd with error: {why}"))
    };
    let cmd = render(call.cmd.to_text())?;
    Ok((cmd.into(), call.cwd.clone().map(render).transpose()?))
}

/// The program's arguments, preceded by the program: a shell, or the program of the command.
fn argv(call: &Call, cmd: &Value) -> Result<Vec<String>, String> {
    let line = match cmd {
        Value::List(words) => return Ok(words.iter().map(Value::to_text).collect()),
        line => line.to_text(),
    };
    // By default, calls from outside use a shell, and calls from modules do not.
    let wanted = call.python_shell.unwrap_or_else(|| job::called_by().is_none());
    if !wanted && !call.needs_shell {
        return words::split(&line).map_err(unsplit);
    }
    let of_grains = call.shell.is_none().then(grains_shell).flatten();
    let shell = match of_grains {
        Some(shell) => Some(shell),
        None => process::shell(call.shell.as_deref())?,
    };
    if let Some(shell) = shell {
        return Ok(vec![shell, "-c".into(), line]);
    }
    let shell = call.shell.as_deref().unwrap_or("/bin/sh");
    if call.needs_shell || call.shell.is_some() {
        return Err(no_shell(&format!("the shell {shell} was not granted"), shell));
    }
    words::plain(&line).map_err(unsplit)
}

/// The shell of the grains, if it was granted; else the one that was granted first runs the line.
pub(crate) fn grains_shell() -> Option<String> {
    let shell = grains::get("shell", None)?.value().ok()?;
    process::shell(shell.text()).ok().flatten()
}

pub(crate) fn unsplit(why: Unsplit) -> String {
    match why {
        Unsplit::Open(what) => what.into(),
        Unsplit::Syntax(what) => no_shell(
            &format!("{what} is for a shell to interpret, and none was granted: quote it if it is meant as it is"),
            "/bin/sh",
        ),
    }
}

fn no_shell(what: &str, shell: &str) -> String {
    format!(
        "{what}; the owner of this host grants it by this line under sandbox: modules: in the minion's configuration: \
         cmd: {{process: [{shell}]}}"
    )
}

/// The command as Python displays it: the line for a shell, or the list of words.
fn shown(cmd: &Value, command: &Command) -> String {
    match cmd {
        Value::Text(line) if command.argv.last() == Some(line) && command.argv.len() == 3 => line.clone(),
        _ => Value::from(command.argv.clone()).to_text(),
    }
}

fn cut(mut output: String, dropped: u64) -> String {
    if dropped > 0 {
        output.push_str(&format!("\n[{dropped} more bytes were over the bound of this host and are not here]"));
    }
    output
}

/// Logs the outputs at the requested level.
fn log_outputs(call: &Call, done: &Done) {
    let level = match call.output_loglevel.as_deref().map(str::to_ascii_lowercase).as_deref() {
        Some("all" | "garbage" | "trace" | "profile") => log::Level::Trace,
        None | Some("debug") => log::Level::Debug,
        Some("warning") => log::Level::Warning,
        Some("error" | "critical") => log::Level::Error,
        Some(_) => log::Level::Info,
    };
    for (name, output) in [("stdout", &done.stdout), ("stderr", &done.stderr)] {
        if !output.is_empty() {
            let end = output.floor_char_boundary(MAX_LOGGED.min(output.len()));
            log::write(level, &format!("{name}: {}", &output[..end]));
        }
    }
}
