//! What a state is given: its keywords, by name.

use std::ops::Deref;

use brine_guest::host::job;
use brine_guest::keywords::Keywords;
use brine_guest::{Data, Result, Value};

use crate::options::Call;
use crate::run;

/// The keywords of a state.
pub(crate) struct Arguments(Keywords);

impl Deref for Arguments {
    type Target = Keywords;

    fn deref(&self) -> &Keywords {
        &self.0
    }
}

impl Arguments {
    pub(crate) fn new<const N: usize>(kwargs: &Data, named: [(&str, Option<Data>); N]) -> Result<Self> {
        Keywords::new(kwargs, named).map(Self)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.take(name)
    }

    /// Whether the command reports its own result. In Salt, a list says only what to run with `test=True`.
    pub(crate) fn is_stateful(&self) -> bool {
        self.get("stateful").is_some_and(|stateful| match stateful {
            Value::List(_) => stateful.truthy(),
            other => *other == Value::Bool(true),
        })
    }

    /// The command that a dry run runs in place of the state's.
    pub(crate) fn test_name(&self) -> Option<String> {
        let Some(Value::List(entries)) = self.get("stateful") else { return None };
        entries.first()?.get("test_name").map(Value::to_text)
    }

    pub(crate) fn has_odd_env(&self) -> bool {
        self.get("env").is_some_and(|env| !matches!(env, Value::List(_) | Value::Dict(_)))
    }

    pub(crate) fn saltenv(&self) -> String {
        let own = || job::state().map(|state| state.saltenv).filter(|saltenv| !saltenv.is_empty());
        self.text("saltenv").or_else(own).unwrap_or_else(|| "base".into())
    }

    /// What a template sees beside the usual: `defaults`, and `context` over them.
    pub(crate) fn context(&self) -> Value {
        let mut merged: Vec<(Value, Value)> = Vec::new();
        for name in ["defaults", "context"] {
            if let Some(Value::Dict(entries)) = self.get(name) {
                for (key, value) in entries {
                    merged.retain(|(known, _)| known != key);
                    merged.push((key.clone(), value.clone()));
                }
            }
        }
        Value::Dict(merged)
    }

    /// The options of the command.
    pub(crate) fn call(&self, cmd: Value) -> Result<Call> {
        let data = |name: &str| self.get(name).cloned().map(Data::from);
        let flag = |name: &str| self.get(name).map(Value::truthy);
        Ok(Call {
            cwd: self.text("cwd"),
            stdin: data("stdin"),
            runas: self.text("runas"),
            group: self.text("group"),
            shell: self.text("shell").or_else(run::grains_shell),
            env: data("env"),
            clean_env: flag("clean_env"),
            rstrip: flag("rstrip"),
            umask: data("umask"),
            output_encoding: self.text("output_encoding"),
            output_loglevel: self.text("output_loglevel"),
            hide_output: flag("hide_output"),
            timeout: data("timeout"),
            reset_system_locale: flag("reset_system_locale"),
            ignore_retcode: flag("ignore_retcode"),
            template: data("template"),
            bg: flag("bg"),
            prepend_path: self.text("prepend_path"),
            success_retcodes: data("success_retcodes"),
            success_stdout: data("success_stdout"),
            success_stderr: data("success_stderr"),
            ..Call::new(cmd.into())?
        })
    }

    /// Why a command could not run, in Salt's words where it has some.
    pub(crate) fn explained(&self, why: String) -> String {
        match self.text("cwd") {
            Some(cwd)
                if why.contains(&format!("{cwd:?} does not exist"))
                    || why.contains(&format!("{cwd:?} is not a directory")) =>
            {
                format!("Desired working directory \"{cwd}\" is not available")
            }
            _ => why,
        }
    }
}
