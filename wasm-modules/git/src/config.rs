//! git's settings.

use brine_guest::Value;

use crate::run::{Command, Git};

/// Keys with their values, in git's order.
pub(crate) type Settings = Vec<(String, Vec<String>)>;

/// Whose settings.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// The user's, and not those of one repository.
    pub(crate) is_global: bool,
    /// Where git runs: in the repository.
    pub(crate) cwd: Option<String>,
}

impl Scope {
    fn option(&self) -> &'static str {
        if self.is_global { "--global" } else { "--local" }
    }

    /// A question: a probe in a repository's directory, where no command line counts as one that looks.
    fn question(&self, how: &'static str) -> Command {
        let command = self.command([self.option(), how]);
        if self.cwd.is_some() { command.probing() } else { command }
    }

    fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let command = Command::new(["config"]).args(words);
        match &self.cwd {
            Some(cwd) => command.at(cwd),
            None => command,
        }
    }
}

impl Git {
    /// All values of a key; none if it is not set.
    pub(crate) fn config_get(&self, scope: &Scope, key: &str) -> Result<Option<Vec<String>>, String> {
        let done = self.output(&scope.question("--get-all").plain().arg(key))?;
        Ok((done.code != 1).then(|| done.stdout.lines().map(str::to_owned).collect()))
    }

    /// The settings whose keys and values match these expressions.
    pub(crate) fn config_get_regexp(&self, scope: &Scope, key: &str, value: Option<&str>) -> Result<Settings, String> {
        let done = self.output(&scope.question("--get-regexp").plain().arg(key).args(value))?;
        let mut found = Settings::new();
        if done.code == 1 {
            return Ok(found);
        }
        for line in done.stdout.lines() {
            let Some((key, value)) = crate::run::halves(line) else { continue };
            match found.iter_mut().find(|(known, _)| known == key) {
                Some((_, values)) => values.push(value.into()),
                None => found.push((key.into(), vec![value.into()])),
            }
        }
        Ok(found)
    }

    /// Gives a key these values, and no others; with `adds`, one more.
    pub(crate) fn config_set(&self, scope: &Scope, key: &str, values: &[String], adds: bool) -> Result<(), String> {
        for (at, value) in values.iter().enumerate() {
            let how = if at == 0 && !adds { "--replace-all" } else { "--add" };
            let global = scope.is_global.then_some("--global");
            self.run(&scope.command(global.into_iter().chain([how, key, value])))?;
        }
        Ok(())
    }

    /// Takes away a key, or those of its values that match the expression.
    pub(crate) fn config_unset(&self, scope: &Scope, key: &str, value: Option<&str>, all: bool) -> Result<(), String> {
        let how = if all { "--unset-all" } else { "--unset" };
        let done = self.output(&scope.command([how, scope.option(), key].into_iter().chain(value)))?;
        match done.code {
            0 => Ok(()),
            1 => Err("Section or key is invalid".into()),
            5 if self.config_get(scope, key)?.is_none() => Err(format!("Key '{key}' does not exist")),
            5 => {
                let more = if value.is_some() { " and value_regex matches multiple values" } else { "" };
                Err(format!("Multiple values exist for key '{key}'{more}"))
            }
            6 => Err("The value_regex is invalid".into()),
            code => {
                let why = if done.stderr.is_empty() { String::new() } else { format!("; {}", done.stderr) };
                Err(format!("Failed to unset key '{key}', git config returned exit code {code}{why}"))
            }
        }
    }
}

/// Settings as a dict of lists.
pub(crate) fn value(settings: &Settings) -> Value {
    Value::dict(settings.iter().map(|(key, values)| (key.as_str(), values.clone().into())))
}
