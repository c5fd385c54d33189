//! The states `set` and `set_file`.

use brine_guest::host::job;
use brine_guest::states::{StateResult, is_dry_run, missing};
use brine_guest::{Data, Result, Value};

use crate::exports::states::Guest;
use crate::{Module, selections};

/// What a state says on a host that cannot read its answers: in a dry run, the package that brings the program may only be
/// planned.
fn without(state: &str) -> Result<Option<StateResult>> {
    let here = brine_guest::program::exists("debconf-get-selections")?;
    let why = "'debconf' __virtual__ returned False: debconf module could not be loaded";
    Ok((!here).then(|| missing(state, why)))
}

impl Guest for Module {
    fn set(name: String, data: Data, _: Data) -> Result<StateResult> {
        if let Some(without) = without("debconf.set")? {
            return Ok(without);
        }
        let Value::Dict(questions) = data.value()? else {
            return Err("data is to be a dict: for each question a dict of type and value".into());
        };
        let current = selections::of(&name)?.unwrap_or_default();
        let mut changes: Vec<(Value, Value)> = Vec::new();
        let (mut result, mut comment) = (Some(true), String::new());
        for (question, answer) in questions {
            let question = question.to_text();
            let (Some(kind), Some(value)) = (answer.get("type"), answer.get("value")) else {
                return Err(format!("the answer to {question} is to be a dict of type and value"));
            };
            let (kind, value) = match kind.to_text() {
                kind if kind == "boolean" => (kind, if value.truthy() { "true".into() } else { "false".into() }),
                kind => (kind, value.to_text()),
            };
            if current.contains(&vec![question.clone(), kind.clone(), value.clone()]) {
                if comment.is_empty() {
                    comment.push_str("Unchanged answers: ");
                }
                comment.push_str(&format!("{question} "));
            } else if is_dry_run() {
                result = None;
                let shown = if kind == "password" { "(password hidden)" } else { &value };
                changes.push((question.into(), format!("New value: {shown}").into()));
            } else {
                selections::set(&name, &question, &kind, &value)?;
                let shown = if kind == "password" { "(password hidden)".into() } else { value };
                changes.push((question.into(), shown.into()));
            }
        }
        if changes.is_empty() {
            comment = "All specified answers are already set".into();
        }
        Ok(StateResult::new(result, comment, Value::Dict(changes)))
    }

    fn set_file(
        _: String,
        source: String,
        template: Option<Data>,
        context: Option<Data>,
        defaults: Option<Data>,
        _: Data,
    ) -> Result<StateResult> {
        if let Some(without) = without("debconf.set_file")? {
            return Ok(without);
        }
        for (data, what) in [(context, "Context"), (defaults, "Defaults")] {
            let value = data.map(|data| data.value()).transpose()?.unwrap_or_default();
            if !matches!(value, Value::None | Value::Dict(_)) {
                return Ok(StateResult::bad(format!("{what} must be formed as a dict")));
            }
        }
        if template.map(|data| data.value()).transpose()?.is_some_and(|value| value.truthy()) {
            return Ok(StateResult::bad(
                "template is not supported here: write the file by file.managed, and name its path as source",
            ));
        }
        if is_dry_run() {
            return Ok(StateResult::would("Debconf selections would have been set.", Value::Dict(Vec::new())));
        }
        let saltenv = job::state().map(|state| state.saltenv).filter(|env| !env.is_empty());
        Ok(match selections::set_file(&source, saltenv.as_deref().unwrap_or("base"))? {
            true => StateResult::good("Debconf selections were set."),
            false => StateResult::bad("Unable to set debconf selections from file."),
        })
    }
}
