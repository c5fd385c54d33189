//! Runs git.

use std::cell::OnceCell;

use brine_guest::changes::{self, Kind, Put};
use brine_guest::host::{files, job, process};
use brine_guest::path;
use brine_guest::program::{Output, Program};
use brine_guest::states::is_dry_run;

use crate::url::redacted;

/// What Salt says on a host without git.
pub(crate) const UNAVAILABLE: &str = "The git execution module cannot be loaded: git unavailable.";
/// Bytes of one read of a key from the master: more than a key has.
const MAX_KEY: u32 = 64 << 10;

/// A command line of git, as Salt shows it.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    words: Vec<String>,
    cwd: Option<String>,
    is_merged: bool,
    is_probe: bool,
    /// Before which word no more options follow.
    plain_from: Option<usize>,
}

impl Command {
    pub(crate) fn new<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Self {
        let mut all = vec!["git".to_owned()];
        all.extend(words.into_iter().map(Into::into));
        Self { words: all, cwd: None, is_merged: false, is_probe: false, plain_from: None }
    }

    pub(crate) fn arg(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    pub(crate) fn args<T: Into<String>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// Starts it in this directory.
    pub(crate) fn at(mut self, cwd: &str) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Puts its standard error into its output.
    pub(crate) fn merged(mut self) -> Self {
        self.is_merged = true;
        self
    }

    /// What follows is no option, whatever it looks like. Git is told; people see the command without it.
    pub(crate) fn plain(mut self) -> Self {
        self.plain_from = Some(self.words.len());
        self
    }

    /// It only looks; but git may run what a repository's configuration names, or fetch what is missing. In a dry run it runs where
    /// that can change nothing.
    pub(crate) fn probing(mut self) -> Self {
        self.is_probe = true;
        self
    }

    /// The words that git gets, behind its own name.
    fn arguments(&self) -> Vec<String> {
        let mut words = self.words.clone();
        if let Some(at) = self.plain_from {
            words.insert(at, "--".into());
        }
        words.remove(0);
        words
    }

    fn failed(&self, done: &Output) -> String {
        let said = if self.is_merged { &done.stdout } else { &done.stderr };
        let why = if said.is_empty() { String::new() } else { format!(": {}", redacted(said)) };
        format!("Command '{}' failed{why}", redacted(&self.words.join(" ")))
    }
}

/// Who runs git, and with which keys.
#[derive(Debug, Default)]
pub(crate) struct Git {
    pub(crate) user: Option<String>,
    /// Files of keys for ssh, which are tried one after another.
    pub(crate) identity: Vec<String>,
    pub(crate) saltenv: String,
    program: OnceCell<String>,
}

impl Git {
    pub(crate) fn new(user: Option<String>) -> Self {
        Self { user, ..Self::default() }
    }

    /// Its output.
    ///
    /// # Errors
    /// `Command '…' failed: …` as in Salt, and what keeps it from being run.
    pub(crate) fn run(&self, command: &Command) -> Result<String, String> {
        let done = match self.identity.is_empty() {
            true => self.output(command)?,
            false => return self.with_keys(command),
        };
        if done.succeeded() { Ok(done.stdout) } else { Err(command.failed(&done)) }
    }

    /// What it left, whatever its code; without keys.
    ///
    /// # Errors
    /// What keeps it from being run.
    pub(crate) fn output(&self, command: &Command) -> Result<Output, String> {
        self.start(command, None)
    }

    fn start(&self, command: &Command, ssh: Option<String>) -> Result<Output, String> {
        let git = match self.program.get() {
            Some(program) => program.clone(),
            None => {
                let found = program()?.ok_or(UNAVAILABLE)?;
                self.program.get_or_init(|| found).clone()
            }
        };
        let mut program = Program::new([git]).args(command.arguments());
        if let Some(cwd) = &command.cwd {
            if !cwd.starts_with('/') || !is_directory(cwd) {
                return Err(format!("Specified cwd '{cwd}' either not absolute or does not exist"));
            }
            program = program.cwd(cwd.as_str());
        }
        if let Some(user) = &self.user {
            program = program.run_as(user.as_str());
        }
        if let Some(ssh) = ssh {
            program = program.env("GIT_SSH_COMMAND", ssh);
        }
        if command.is_merged {
            program = program.merged();
        }
        let done = if command.is_probe && is_dry_run() { program.probe() } else { program.run() };
        done.map_err(|why| match &self.user {
            Some(user) if why.contains("there is no user") => format!("User '{user}' is not available"),
            _ => why,
        })
    }

    /// Tries the keys one after another.
    fn with_keys(&self, command: &Command) -> Result<String, String> {
        let (mut errors, mut missing) = (Vec::new(), Vec::new());
        for key in &self.identity {
            let fetched = match key.strip_prefix("salt://") {
                None => None,
                Some(path) => match self.fetch_key(path)? {
                    None => continue,
                    fetched => fetched,
                },
            };
            let file = fetched.as_deref().unwrap_or(key);
            if fetched.is_none() && !changes::is(file, Kind::Regular)? {
                missing.push(key.clone());
                continue;
            }
            let done = self.start(command, Some(ssh(file)));
            if let Some(fetched) = &fetched {
                changes::remove(fetched, false)?;
            }
            let done = done?;
            if done.succeeded() {
                return Ok(done.stdout);
            }
            let said = if command.is_merged { done.stdout } else { done.stderr };
            if !said.is_empty() {
                errors.push(redacted(&said));
            }
        }
        let mut why = format!("Unable to authenticate using identity file:\n\n{}", errors.join("\n"));
        if !missing.is_empty() {
            let apart = if errors.is_empty() { "" } else { "\n\n" };
            why.push_str(&format!("{apart}The following identity file(s) were not found: {}", missing.join(", ")));
        }
        Err(why)
    }

    /// Puts a key of the master where only the user can read it, for the time of one command.
    fn fetch_key(&self, path: &str) -> Result<Option<String>, String> {
        let (path, saltenv) = path.split_once("?saltenv=").unwrap_or((path, &self.saltenv));
        let Some(key) = files::read(path, saltenv, 0, MAX_KEY)? else { return Ok(None) };
        let file = format!("/tmp/brine-git-{}-{}", job::current().jid, self.identity.len());
        Put::new(&file).owner(self.user.clone(), None).mode(Some(0o600)).expect(Some(String::new())).bytes(key)?;
        Ok(Some(file))
    }
}

/// The path of git; none if this host has none.
///
/// # Errors
/// When it is not granted.
pub(crate) fn program() -> Result<Option<String>, String> {
    // Of several that are granted, a bare name is the first.
    match process::which("git")? {
        None => process::which("/usr/bin/git"),
        found => Ok(found),
    }
}

/// How git calls ssh with a key: it asks nobody anything, as in Salt.
fn ssh(key: &str) -> String {
    let quoted = key.replace('\'', "'\\''");
    format!(
        "ssh -oStrictHostKeyChecking=no -oPasswordAuthentication=no -oKbdInteractiveAuthentication=no -oBatchMode=yes \
         -i '{quoted}'"
    )
}

pub(crate) fn is_directory(path: &str) -> bool {
    changes::is(path, Kind::Directory).unwrap_or(false)
}

pub(crate) fn is_file(path: &str) -> bool {
    changes::is(path, Kind::Regular).unwrap_or(false)
}

/// A path as Salt's functions take it: one that is relative is of the user's home.
///
/// # Errors
/// When the path is relative and the user's home is not known.
pub(crate) fn expanded(path: &str, user: Option<&str>) -> Result<String, String> {
    if path.starts_with('/') {
        return Ok(path.into());
    }
    let user = user.unwrap_or("root");
    let users = changes::read_text("/etc/passwd")?.unwrap_or_default();
    let homes = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let home = homes.filter(|fields| fields.first() == Some(&user)).find_map(|fields| fields.get(5).copied());
    match home {
        Some(home) => Ok(path::join(home, path.strip_prefix("~/").unwrap_or(path))),
        None => Err(format!("'{path}' is relative, and the home of the user '{user}' is not known")),
    }
}

/// A text in two at its first white space, as Python's `split(None, 1)`.
pub(crate) fn halves(line: &str) -> Option<(&str, &str)> {
    let (head, tail) = line.trim_start().split_once(char::is_whitespace)?;
    Some((head, tail.trim_start())).filter(|(_, tail)| !tail.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_salts_command_and_git_gets_no_option_by_accident() {
        let command = Command::new(["ls-remote"]).plain().arg("--upload-pack=/tmp/x");
        assert_eq!(command.arguments(), ["ls-remote", "--", "--upload-pack=/tmp/x"]);
        let done = |stdout: &str, stderr: &str| Output {
            pid: 1,
            code: 128,
            stdout: stdout.into(),
            stderr: stderr.into(),
            timed_out: false,
        };
        assert_eq!(command.failed(&done("out", "")), "Command 'git ls-remote --upload-pack=/tmp/x' failed");
        assert_eq!(command.failed(&done("", "no")), "Command 'git ls-remote --upload-pack=/tmp/x' failed: no");
        let command = Command::new(["fetch", "https://a:b@h/x"]).merged();
        assert_eq!(command.failed(&done("no", "")), "Command 'git fetch https://<redacted>@h/x' failed: no");
    }

    #[test]
    fn lines_are_split_as_in_python() {
        assert_eq!(halves(" M  a b "), Some(("M", "a b ")));
        assert_eq!(halves("a"), None);
        assert_eq!(halves("a  "), None);
        assert!(ssh("/a'b").ends_with(r"-i '/a'\''b'"));
    }
}
