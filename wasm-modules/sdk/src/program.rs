//! Programs of the host: an argv in, a code and text out. No shell is in between.
//!
//! ```ignore
//! let listed = Program::new(["/usr/bin/systemctl", "list-unit-files"]).run()?;
//! ```
//!
//! What the owner did not grant ends the call, and so does, with `test=True`, what does not only look.

use crate::host::process::{self, Command, Finished, Unprobed};

/// The variables that Salt sets to `C` for what it runs. Salt also sets LANGUAGE, which affects only messages and has no
/// effect with LC_MESSAGES=C.
pub const LOCALE: [&str; 12] = [
    "LC_CTYPE",
    "LC_NUMERIC",
    "LC_TIME",
    "LC_COLLATE",
    "LC_MONETARY",
    "LC_MESSAGES",
    "LC_PAPER",
    "LC_NAME",
    "LC_ADDRESS",
    "LC_TELEPHONE",
    "LC_MEASUREMENT",
    "LC_IDENTIFICATION",
];

/// A program that is to run, in the locale `C`.
#[derive(Debug, Clone)]
pub struct Program {
    command: Command,
}

/// What a program left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its process id.
    pub pid: u32,
    /// The exit code; as in Python, the negative number of the signal that ended it.
    pub code: i64,
    /// Its output, without the white space at the end unless [`Program::raw`] was said.
    pub stdout: String,
    /// Its error output, in the same way.
    pub stderr: String,
    /// Whether the timeout ended it.
    pub timed_out: bool,
}

impl Output {
    /// Whether the code is 0.
    pub fn succeeded(&self) -> bool {
        self.code == 0 && !self.timed_out
    }

    /// The output of a program that succeeded.
    ///
    /// # Errors
    /// What it said on standard error, or its output if that is empty, if it did not succeed.
    pub fn ok(self) -> Result<String, String> {
        match (self.succeeded(), self.stderr.is_empty()) {
            (true, _) => Ok(self.stdout),
            (false, false) => Err(self.stderr),
            (false, true) => Err(self.stdout),
        }
    }
}

impl Program {
    /// A program, by a bare name or an absolute path, and its arguments.
    pub fn new<T: Into<String>>(argv: impl IntoIterator<Item = T>) -> Self {
        Self {
            command: Command {
                argv: argv.into_iter().map(Into::into).collect(),
                cwd: None,
                env: LOCALE.iter().map(|name| ((*name).into(), "C".into())).collect(),
                clean_env: false,
                stdin: None,
                timeout_ms: None,
                run_as: None,
                group: None,
                umask: None,
                max_output: None,
                merge_stderr: false,
            },
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.command.argv.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.command.argv.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable; the owner's grant names those beside LANG, `LC_*` and TZ.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.command.env.retain(|(other, _)| other != name);
        self.command.env.push((name.into(), value.into()));
        self
    }

    /// Starts it in this absolute directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.command.cwd = Some(cwd.into());
        self
    }

    /// Gives it this input; without it, the input is empty.
    #[must_use]
    pub fn stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.command.stdin = Some(stdin.into());
        self
    }

    /// Ends it after so many milliseconds.
    #[must_use]
    pub fn timeout(mut self, milliseconds: u64) -> Self {
        self.command.timeout_ms = Some(milliseconds);
        self
    }

    /// Keeps so many bytes of each output, up to the host's own bound.
    #[must_use]
    pub fn max_output(mut self, bytes: u64) -> Self {
        self.command.max_output = Some(bytes);
        self
    }

    /// Runs it as this user.
    #[must_use]
    pub fn run_as(mut self, user: impl Into<String>) -> Self {
        self.command.run_as = Some(user.into());
        self
    }

    /// Puts its standard error into its output.
    #[must_use]
    pub fn merged(mut self) -> Self {
        self.command.merge_stderr = true;
        self
    }

    /// Runs it to its end. A code other than 0 is no error; see [`Output::ok`].
    ///
    /// # Errors
    /// A program, user or directory that does not exist; more output than the host keeps.
    pub fn run(&self) -> Result<Output, String> {
        output(process::run(&self.command)?, true)
    }

    /// [`Program::run`], with the white space at the end of the outputs.
    ///
    /// # Errors
    /// As for [`Program::run`].
    pub fn raw(&self) -> Result<Output, String> {
        output(process::run(&self.command)?, false)
    }

    /// Runs it as a probe: with `test=True` it runs where it can change nothing.
    ///
    /// # Errors
    /// As for [`Program::run`], and a host that cannot run a probe.
    pub fn probe(&self) -> Result<Output, String> {
        match process::probe(&self.command) {
            Ok(finished) => output(finished, true),
            Err(Unprobed::Unable(why) | Unprobed::Failed(why)) => Err(why),
        }
    }
}

/// Whether this host has a program that was granted.
///
/// # Errors
/// When the name is no program's.
pub fn exists(name: &str) -> Result<bool, String> {
    Ok(process::which(name)?.is_some())
}

fn output(finished: Finished, trimmed: bool) -> Result<Output, String> {
    let Finished { pid, code, signal, stdout, stderr, stdout_dropped, stderr_dropped, timed_out } = finished;
    if stdout_dropped > 0 || stderr_dropped > 0 {
        return Err(format!("the output has {} bytes more than this host keeps", stdout_dropped + stderr_dropped));
    }
    let text = |bytes: Vec<u8>| {
        let mut text =
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        if trimmed {
            text.truncate(text.trim_end().len());
        }
        text
    };
    Ok(Output {
        pid,
        code: code.map_or_else(|| -i64::from(signal.unwrap_or(0)), i64::from),
        stdout: text(stdout),
        stderr: text(stderr),
        timed_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(stdout: &[u8], stderr: &[u8]) -> Finished {
        Finished {
            pid: 7,
            code: Some(0),
            signal: None,
            stdout: stdout.into(),
            stderr: stderr.into(),
            stdout_dropped: 0,
            stderr_dropped: 0,
            timed_out: false,
        }
    }

    #[test]
    fn outputs_are_text() {
        let done = output(finished(b"a \xff\n\n", b"e\n"), true).unwrap();
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "a \u{fffd}", "e"));
        assert_eq!(output(finished(b"a\n", b""), false).unwrap().stdout, "a\n");
        let cut = Finished { stdout_dropped: 3, ..finished(b"a", b"") };
        assert_eq!(output(cut, true), Err("the output has 3 bytes more than this host keeps".into()));
    }

    #[test]
    fn what_failed_says_why() {
        let done = |code: Option<i32>, signal, stdout: &[u8], stderr: &[u8]| {
            output(Finished { code, signal, ..finished(stdout, stderr) }, true).unwrap()
        };
        assert_eq!(done(Some(0), None, b"out", b"warning").ok(), Ok("out".into()));
        assert_eq!(done(Some(1), None, b"out", b"why").ok(), Err("why".into()));
        assert_eq!(done(Some(1), None, b"out", b"").ok(), Err("out".into()));
        assert_eq!(done(None, Some(9), b"", b"").code, -9);
        assert!(!output(Finished { timed_out: true, ..finished(b"", b"") }, true).unwrap().succeeded());
    }

    #[test]
    fn a_program_has_one_value_for_a_variable() {
        let program = Program::new(["locale"]).arg("-a").env("LC_TIME", "de_DE").env("LC_TIME", "C.UTF-8");
        assert_eq!(program.command.argv, ["locale", "-a"]);
        let time: Vec<&str> =
            program.command.env.iter().filter(|(name, _)| name == "LC_TIME").map(|(_, value)| value.as_str()).collect();
        assert_eq!(time, ["C.UTF-8"]);
        assert_eq!(program.command.env.len(), LOCALE.len());
    }
}
