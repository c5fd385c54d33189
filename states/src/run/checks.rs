//! `unless`, `onlyif`, `creates` and `check_cmd`: questions to the host that decide about a state.

use brine_render::{Dict, Value};

use super::core::Core;
use super::step::{Answer, Check, Step};
use crate::fault::Res;
use crate::python;

/// What the questions before a state say.
pub(super) struct Verdict {
    /// The state is not called: its result is true.
    pub(super) is_skipped: bool,
    /// Whether a change of what it watches does not count either.
    skip_watch: Option<bool>,
    comments: Vec<String>,
}

/// An exception that a question raised: it is the state's result.
pub(super) struct Raised(pub(super) String);

/// The exit code of a command that could not be run.
enum Code {
    Exit(i64),
    NotRun,
}

/// One answer so far.
struct Said {
    result: bool,
    skip_watch: bool,
    /// None until something was asked: Salt fails if nothing is.
    comment: Option<String>,
}

impl Said {
    fn new() -> Self {
        Self { result: false, skip_watch: false, comment: None }
    }

    fn say(&mut self, comment: &str, result: bool) {
        self.comment = Some(comment.to_owned());
        self.result = result;
        if result {
            self.skip_watch = true;
        }
    }
}

/// A value as list.
fn listed(value: &Value) -> Vec<Value> {
    match value {
        Value::List(list) => list.borrow().clone(),
        other => vec![other.clone()],
    }
}

impl Verdict {
    fn add(&mut self, said: Said) -> Result<(), Raised> {
        self.is_skipped |= said.result;
        self.comments.push(said.comment.ok_or_else(|| Raised("KeyError: 'comment'".to_owned()))?);
        if said.skip_watch {
            self.skip_watch = Some(true);
        }
        Ok(())
    }

    /// Puts the verdict into a result.
    pub(super) fn write(self, result: &Dict, low: &Dict) {
        result.set("result", self.is_skipped.into());
        result.set("comment", Value::list(self.comments.into_iter().map(Value::from)));
        Core::mark(result, low);
        if let Some(skip) = self.skip_watch {
            result.set("skip_watch", skip.into());
        }
    }
}

impl Core<'_> {
    /// Asks `onlyif`, `unless` and `creates`.
    pub(super) async fn check(&self, low: &Dict, took: &mut f64) -> Res<Result<Verdict, Raised>> {
        let mut verdict = Verdict { is_skipped: false, skip_watch: None, comments: Vec::new() };
        let options = self.command_options(low);
        for name in ["onlyif", "unless"] {
            if let Some(entries) = low.get(name) {
                let said = self.conditions(name, &listed(&entries), &options, took).await?;
                if let Err(raised) = said.and_then(|said| verdict.add(said)) {
                    return Ok(Err(raised));
                }
            }
        }
        if let Some(paths) = low.get("creates") {
            let said = self.creates(&paths).await?;
            if let Err(raised) = said.and_then(|said| verdict.add(said)) {
                return Ok(Err(raised));
            }
        }
        Ok(Ok(verdict))
    }

    /// With what the commands of the questions run.
    fn command_options(&self, low: &Dict) -> Dict {
        let left_out = low.get("cmd_opts_exclude").map(|names| listed(&names)).unwrap_or_default();
        let is_left_out = |name: &str| left_out.iter().any(|other| other.as_str() == Some(name));
        let options = Dict::default();
        for name in ["cwd", "root", "runas", "env", "prepend_path", "umask", "timeout", "success_retcodes"] {
            if !is_left_out(name) {
                options.set(name, low.get(name).unwrap_or_default());
            }
        }
        match low.get("shell").filter(|_| !is_left_out("shell")) {
            Some(shell) => options.set("shell", shell),
            None => options.borrow_mut().extend(self.shell().borrow().iter().map(|(k, v)| (k.clone(), v.clone()))),
        }
        options
    }

    /// The shell of the grains.
    fn shell(&self) -> Dict {
        let options = Dict::default();
        if let Value::Dict(grains) = &self.options.grains
            && let Some(shell) = grains.get("shell")
        {
            options.set("shell", shell);
        }
        options
    }

    async fn command(&self, command: &str, options: &Dict, took: &mut f64) -> Res<Result<Code, Raised>> {
        let check = Check::Command { command: command.to_owned(), options: options.clone() };
        match self.ask(Step::Check(check)).await {
            Answer::Code(code) => Ok(Ok(Code::Exit(code))),
            Answer::Raised(_, milliseconds) => {
                *took += milliseconds;
                Ok(Ok(Code::NotRun))
            }
            Answer::Refused(why) => Ok(Err(Raised(why))),
            other => Err(other.unexpected()),
        }
    }

    /// `onlyif` ends at the first condition that is false, `unless` at the first that is false too: then the state runs.
    async fn conditions(
        &self,
        kind: &str,
        entries: &[Value],
        options: &Dict,
        took: &mut f64,
    ) -> Res<Result<Said, Raised>> {
        let is_onlyif = kind == "onlyif";
        let mut said = Said::new();
        for entry in entries {
            let is_true = match entry {
                Value::Str(command) => match self.command(command, options, took).await? {
                    Ok(Code::Exit(code)) => code == 0,
                    // what cannot be run skips the state
                    Ok(Code::NotRun) => !is_onlyif,
                    Err(raised) => return Ok(Err(raised)),
                },
                Value::Dict(entry) => {
                    if !python::has(entry, "fun") {
                        let shown = python::text(&entry.clone().into(), self.budget.limits.text);
                        said.comment = Some(format!("no `fun` argument in {kind}: {shown}"));
                        return Ok(Ok(said));
                    }
                    match self.function(entry).await? {
                        Ok(is_true) => is_true,
                        Err(raised) => return Ok(Err(raised)),
                    }
                }
                _ if is_onlyif => {
                    said.say("onlyif execution failed, bad type passed", false);
                    return Ok(Ok(said));
                }
                _ => {
                    said.say("unless condition is false, bad type passed", false);
                    continue;
                }
            };
            match (is_onlyif, is_true) {
                (true, true) => said.say("onlyif condition is true", false),
                (true, false) => {
                    said.say("onlyif condition is false", true);
                    return Ok(Ok(said));
                }
                (false, true) => said.say("unless condition is true", true),
                (false, false) => {
                    said.skip_watch = false;
                    said.say("unless condition is false", false);
                    return Ok(Ok(said));
                }
            }
        }
        Ok(Ok(said))
    }

    /// Calls a function; whether what it gives is true. An exit code other than 0 is false.
    async fn function(&self, entry: &Dict) -> Res<Result<bool, Raised>> {
        let keyword: Dict = entry.borrow().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let name = python::name(&python::pop(&keyword, "fun").unwrap_or_default());
        let get_return = python::pop(&keyword, "get_return").filter(Value::truthy);
        let positional = python::pop(&keyword, "args").unwrap_or_else(|| Value::list([]));
        match self.ask(Step::Check(Check::Function { name, positional, keyword })).await {
            Answer::Value { code, .. } if code != 0 => Ok(Ok(false)),
            Answer::Value { value, .. } => {
                let value = get_return.map_or(value.clone(), |path| traverse(&value, &python::name(&path)));
                Ok(Ok(value.truthy()))
            }
            Answer::Raised(why, _) => Ok(Err(Raised(why))),
            other => Err(other.unexpected()),
        }
    }

    async fn creates(&self, paths: &Value) -> Res<Result<Said, Raised>> {
        let mut said = Said::new();
        let list: Vec<String> = match paths {
            Value::Str(path) => vec![path.to_string()],
            Value::List(paths) => paths.borrow().iter().map(python::name).collect(),
            _ => {
                said.say("Creates files not found", false);
                return Ok(Ok(said));
            }
        };
        match self.ask(Step::Check(Check::Exist(list))).await {
            Answer::Value { value, .. } if value.truthy() => match paths {
                Value::Str(path) => said.say(&format!("{path} exists"), true),
                _ => said.say("All files in creates exist", true),
            },
            Answer::Value { .. } => said.say("Creates files not found", false),
            Answer::Raised(why, _) => return Ok(Err(Raised(why))),
            other => return Err(other.unexpected()),
        }
        Ok(Ok(said))
    }

    /// `check_cmd`, after a state: its commands decide whether the state succeeded.
    pub(super) async fn check_after(&self, low: &Dict, result: &Dict, took: &mut f64) -> Res<Result<(), Raised>> {
        let commands = low.get("check_cmd").unwrap_or_default();
        let commands = match &commands {
            Value::Str(_) => vec![commands],
            other => match python::iterate(other) {
                Ok(commands) => commands,
                Err(fault) => return Ok(Err(Raised(fault.to_string()))),
            },
        };
        result.set("result", false.into());
        Self::mark(result, low);
        let mut is_first = true;
        for command in commands {
            let code = match self.command(&python::name(&command), &self.shell(), took).await? {
                Ok(Code::Exit(code)) => code,
                Ok(Code::NotRun) => 1,
                Err(raised) => return Ok(Err(raised)),
            };
            if code != 0 {
                result.set("comment", "check_cmd determined the state failed".into());
                result.set("result", false.into());
                return Ok(Ok(()));
            }
            if is_first {
                result.set("comment", "check_cmd determined the state succeeded".into());
                result.set("result", true.into());
                is_first = false;
            }
        }
        Ok(Ok(()))
    }
}

/// A part of a value, by keys with colons between them.
fn traverse(value: &Value, path: &str) -> Value {
    let mut at = value.clone();
    for part in path.split(':') {
        at = match &at {
            Value::Dict(dict) => match dict.get(part) {
                Some(value) => value,
                None => return Value::dict([]),
            },
            Value::List(list) => {
                let item = part.parse::<usize>().ok().and_then(|index| list.borrow().get(index).cloned());
                match item {
                    Some(value) => value,
                    None => return Value::dict([]),
                }
            }
            _ => return Value::dict([]),
        };
    }
    at
}
