//! The states, in Salt's sentences.

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run, missing, no_changes};

use crate::exports::states::Guest;
use crate::{Data, Module, system};

/// What a state came to.
struct Came {
    result: Option<bool>,
    comment: String,
    changes: Value,
}

impl Came {
    fn new(result: Option<bool>, comment: String) -> Self {
        Self { result, comment, changes: no_changes() }
    }

    fn good(comment: String) -> Self {
        Self::new(Some(true), comment)
    }

    fn bad(comment: String) -> Self {
        Self::new(Some(false), comment)
    }

    fn would(comment: String) -> Self {
        Self::new(None, comment)
    }

    fn changed(comment: String, changes: Value) -> Self {
        Self { result: Some(true), comment, changes }
    }

    /// The result, which repeats what was asked for: as in Salt.
    fn with<const N: usize>(self, asked: [(&str, Value); N]) -> Data {
        let came = [("result", self.result.into()), ("changes", self.changes), ("comment", self.comment.into())];
        Value::dict(asked.into_iter().chain(came)).into()
    }
}

fn without(state: &str) -> Result<Option<StateResult>, String> {
    let why = "'alternatives' __virtual__ returned False: alternatives module could not be loaded";
    Ok((!system::is_here()?).then(|| missing(state, why)))
}

impl Guest for Module {
    fn install(name: String, link: String, path: String, priority: Data) -> Result<Data, String> {
        let priority = priority.value()?;
        let asked = || {
            [
                ("name", name.as_str().into()),
                ("link", link.as_str().into()),
                ("path", path.as_str().into()),
                ("priority", priority.clone()),
            ]
        };
        let came = match without("alternatives.install")? {
            Some(StateResult { result, comment, .. }) => Came::new(result, comment),
            None => install(&name, &link, &path, &priority.to_text(), Value::dict(asked()))?,
        };
        Ok(came.with(asked()))
    }

    fn remove(name: String, path: String) -> Result<Data, String> {
        let came = match without("alternatives.remove")? {
            Some(StateResult { result, comment, .. }) => Came::new(result, comment),
            None => remove(&name, &path)?,
        };
        Ok(came.with([("name", name.into()), ("path", path.into())]))
    }

    fn auto(name: String) -> Result<StateResult, String> {
        if let Some(missing) = without("alternatives.auto")? {
            return Ok(missing);
        }
        if system::display(&name)?.lines().next().is_some_and(|line| line.ends_with(" auto mode")) {
            return Ok(StateResult::good(format!("{name} already in auto mode")));
        }
        if is_dry_run() {
            return Ok(StateResult::would(format!("{name} will be put in auto mode"), no_changes()));
        }
        Ok(StateResult::changed("", Value::dict([("result", system::auto(&name)?.into())])))
    }

    fn set(name: String, path: String) -> Result<Data, String> {
        let came = match without("alternatives.set")? {
            Some(StateResult { result, comment, .. }) => Came::new(result, comment),
            None => set(&name, &path)?,
        };
        Ok(came.with([("name", name.into()), ("path", path.into())]))
    }
}

fn install(name: &str, link: &str, path: &str, priority: &str, changes: Value) -> Result<Came, String> {
    if system::is_registered(name, path)? {
        return Ok(Came::good(format!("Alternative {path} for {name} is already registered")));
    }
    if is_dry_run() {
        return Ok(Came::would(format!("Alternative will be set for {name} to {path} with priority {priority}")));
    }
    let said = system::install(name, link, path, priority)?;
    if !system::is_registered(name, path)? {
        return Ok(Came::bad(format!("Alternative for {name} not installed: {said}")));
    }
    let comment = match system::current(name)?.as_deref() == Some(path) {
        true => format!("Alternative for {name} set to path {path} with priority {priority}"),
        false => format!("Alternative {path} for {name} registered with priority {priority} and not set to default"),
    };
    Ok(Came::changed(comment, changes))
}

fn remove(name: &str, path: &str) -> Result<Came, String> {
    if system::is_registered(name, path)? {
        if is_dry_run() {
            return Ok(Came::would(format!("Alternative for {name} will be removed")));
        }
        system::remove(name, path)?;
        return Ok(match system::current(name)? {
            Some(current) => {
                let comment = format!("Alternative for {name} removed. Falling back to path {current}");
                Came::changed(comment, Value::dict([("path", current.into())]))
            }
            None => Came::good(format!("Alternative for {name} removed")),
        });
    }
    Ok(match system::current(name)? {
        Some(current) => Came::good(format!("Alternative for {name} is set to it's default path {current}")),
        None => Came::bad(format!("Alternative for {name} doesn't exist")),
    })
}

fn set(name: &str, path: &str) -> Result<Came, String> {
    if system::current(name)?.as_deref() == Some(path) {
        return Ok(Came::good(format!("Alternative for {name} already set to {path}")));
    }
    if !system::display(name)?.lines().any(|line| line.starts_with(path)) {
        return Ok(Came::bad(format!("Alternative {path} for {name} doesn't exist")));
    }
    if is_dry_run() {
        return Ok(Came::would(format!("Alternative for {name} will be set to path {path}")));
    }
    system::set(name, path)?;
    Ok(match system::current(name)? {
        Some(current) if current == path => {
            let comment = format!("Alternative for {name} set to path {current}");
            Came::changed(comment, Value::dict([("path", current.into())]))
        }
        _ => Came::good(format!("Alternative for {name} not updated")),
    })
}
