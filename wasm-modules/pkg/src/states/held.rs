//! The states `held` and `unheld`.

use brine_apt::arguments::Keywords;
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use crate::selections::{self, Holding};

/// The packages that are asked for, with the versions that are shown.
fn asked(name: &str, keywords: &Keywords) -> Vec<(String, Option<String>)> {
    let text = |value: &Value| Some(value.to_text()).filter(|_| value.truthy());
    match keywords.get("pkgs") {
        Some(Value::List(items)) => {
            let one = |item: &Value| match item {
                Value::Dict(entries) => entries.first().map(|(name, version)| (name.to_text(), text(version))),
                name => Some((name.to_text(), None)),
            };
            items.iter().filter_map(one).collect()
        }
        _ => vec![(name.to_owned(), keywords.get("version").and_then(text))],
    }
}

fn is_empty_list(keywords: &Keywords) -> bool {
    keywords.get("pkgs") == Some(&Value::List(Vec::new()))
}

/// The result so far.
struct Told {
    result: bool,
    comments: Vec<String>,
    changes: Value,
}

impl Told {
    fn new() -> Self {
        Self { result: true, comments: Vec::new(), changes: Value::Dict(Vec::new()) }
    }

    /// Adds what became of packages.
    fn add(&mut self, holdings: &[Holding]) {
        self.result &= holdings.iter().all(|holding| holding.result == Some(true));
        self.changes.update(&selections::to_value(holdings), false);
    }

    fn unhold(&mut self, name: String) -> Result<()> {
        let holdings = selections::unhold(&[name])?;
        self.comments
            .extend(holdings.iter().map(|holding| holding.comment.clone()).filter(|comment| !comment.is_empty()));
        self.add(&holdings);
        Ok(())
    }

    fn ended(self) -> StateResult {
        let nothing = self.comments.is_empty() && !self.changes.truthy();
        let comment = if nothing { "No changes made".into() } else { self.comments.join("\n") };
        StateResult::new(Some(self.result), comment, self.changes)
    }
}

pub(super) fn held(name: &str, keywords: &Keywords) -> Result<StateResult> {
    let replace = keywords.truthy("replace");
    if is_empty_list(keywords) && !replace {
        return Ok(StateResult::good("No packages to be held provided"));
    }
    let asked = asked(name, keywords);
    let locks = selections::of(None, "hold")?;
    let mut told = Told::new();
    for (name, version) in asked.iter().filter(|(name, _)| !locks.contains(name)) {
        if is_dry_run() {
            let version = version.as_ref().map(|version| format!(" (version = {version})")).unwrap_or_default();
            told.comments.push(format!("The following package would be held: {name}{version}"));
            continue;
        }
        let holdings = selections::hold(std::slice::from_ref(name))?;
        let now = holdings.iter().all(|holding| holding.result == Some(true));
        told.comments.push(format!("Package {name} {}", if now { "is now being held" } else { "was not held" }));
        told.add(&holdings);
    }
    if replace {
        for lock in locks.into_iter().filter(|lock| !asked.iter().any(|(name, _)| name == lock)) {
            match is_dry_run() {
                true => told.comments.push(format!("The following package would be unheld: {lock}")),
                false => told.unhold(lock)?,
            }
        }
    }
    Ok(told.ended())
}

pub(super) fn unheld(name: &str, keywords: &Keywords) -> Result<StateResult> {
    let all = keywords.truthy("all");
    if is_empty_list(keywords) && !all {
        return Ok(StateResult::good("No packages to be unheld provided"));
    }
    let asked = asked(name, keywords);
    let mut told = Told::new();
    for lock in selections::of(None, "hold")? {
        let wanted = asked.iter().find(|(name, _)| *name == lock);
        if !all && wanted.is_none() {
            continue;
        }
        if is_dry_run() {
            // dpkg's holds have no versions, which Salt prints so.
            let version =
                wanted.and_then(|(_, version)| version.as_ref()).map(|_| " (version = None)").unwrap_or_default();
            told.comments.push(format!("The following package would be unheld: {lock}{version}"));
        } else {
            told.unhold(lock)?;
        }
    }
    Ok(told.ended())
}
