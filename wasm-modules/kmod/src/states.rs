//! The states, in Salt's sentences.

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use crate::exports::states::Guest;
use crate::{Data, Module, change, kernel, persistent};

/// The modules that a state is about.
fn wanted(name: &str, mods: Option<Data>) -> Result<Vec<String>, String> {
    let mut wanted = match mods.map(|mods| mods.value()).transpose()? {
        Some(Value::List(mods)) => mods.iter().map(Value::to_text).collect(),
        _ => vec![name.to_owned()],
    };
    let all = std::mem::take(&mut wanted);
    all.into_iter().for_each(|module| {
        if !wanted.contains(&module) {
            wanted.push(module);
        }
    });
    Ok(wanted)
}

/// `BEFORE module NAME AFTER`, in the plural for several.
fn sentence(before: &str, names: &[&str], one: &str, more: &str) -> String {
    match names {
        [name] => format!("{before} module {name}{one}"),
        names => format!("{before} modules {}{more}", names.join(", ")),
    }
}

/// What became of each module.
#[derive(Default)]
struct Done<'a> {
    yes: Vec<&'a str>,
    no: Vec<&'a str>,
    failed: Vec<(&'a str, String)>,
    changes: Vec<(Value, Value)>,
}

impl<'a> Done<'a> {
    fn take(&mut self, module: &'a str, word: &str, done: Result<Vec<String>, String>) {
        match done {
            Err(why) => self.failed.push((module, why)),
            Ok(names) if names.is_empty() => self.no.push(module),
            Ok(names) => {
                for name in names {
                    self.changes.retain(|(known, _)| known.text() != Some(&name));
                    self.changes.push((name.into(), word.into()));
                }
                self.yes.push(module);
            }
        }
    }

    /// The state's result: `said` are the lines before, `past` and `verb` what was done.
    fn result(self, mut said: Vec<String>, past: &str, verb: &str, other: bool) -> StateResult {
        if !self.yes.is_empty() {
            said.push(sentence(&format!("{past} kernel"), &self.yes, "", ""));
        }
        if !self.no.is_empty() {
            said.push(sentence(&format!("Failed to {verb} kernel"), &self.no, "", ""));
        }
        for (module, why) in &self.failed {
            said.push(format!("Failed to {verb} kernel module {module}: {why}"));
        }
        let good = other && self.no.is_empty() && self.failed.is_empty();
        StateResult::new(Some(good), said.join("\n"), Value::Dict(self.changes))
    }
}

impl Guest for Module {
    fn present(name: String, persist: Option<bool>, mods: Option<Data>) -> Result<StateResult, String> {
        let persist = persist == Some(true);
        let mods = wanted(&name, mods)?;
        let mut loaded = kernel::names()?;
        if persist {
            let persistent = persistent::names()?;
            loaded.retain(|module| persistent.contains(module));
        }
        let (there, missing): (Vec<&str>, Vec<&str>) =
            mods.iter().map(String::as_str).partition(|module| loaded.iter().any(|known| known == module));
        let mut said = Vec::new();
        if !there.is_empty() {
            said.push(sentence("Kernel", &there, " is already present", " are already present"));
        }
        if missing.is_empty() {
            return Ok(StateResult::good(said.join("\n")));
        }
        if is_dry_run() {
            said.push(sentence("Kernel", &missing, " is set to be loaded", " are set to be loaded"));
            return Ok(StateResult::would(said.join("\n"), no_changes()));
        }
        let known = kernel::available()?;
        let (known, unknown): (Vec<&str>, Vec<&str>) =
            missing.into_iter().partition(|module| known.iter().any(|known| known == module));
        if !unknown.is_empty() {
            said.push(sentence("Kernel", &unknown, " is unavailable", " are unavailable"));
        }
        let mut done = Done::default();
        for module in known {
            // Another one may have needed it.
            match done.changes.iter().any(|(known, _)| known.text() == Some(module)) {
                true => done.yes.push(module),
                false => done.take(module, "loaded", change::load(module, persist)?),
            }
        }
        Ok(done.result(said, "Loaded", "load", unknown.is_empty()))
    }

    fn absent(
        name: String,
        persist: Option<bool>,
        comment: Option<bool>,
        mods: Option<Data>,
    ) -> Result<StateResult, String> {
        let persist = persist == Some(true);
        let mods = wanted(&name, mods)?;
        let mut loaded = kernel::names()?;
        if persist {
            loaded.extend(persistent::names()?);
        }
        let all: Vec<&str> = mods.iter().map(String::as_str).collect();
        let there: Vec<&str> =
            all.iter().copied().filter(|module| loaded.iter().any(|known| known == module)).collect();
        if there.is_empty() {
            return Ok(StateResult::good(sentence("Kernel", &all, " is already removed", " are already removed")));
        }
        if is_dry_run() {
            let comment = sentence("Kernel", &there, " is set to be removed", " are set to be removed");
            return Ok(StateResult::would(comment, no_changes()));
        }
        let mut done = Done::default();
        for module in there {
            done.take(module, "removed", change::remove(module, persist, comment != Some(false))?);
        }
        Ok(done.result(Vec::new(), "Removed", "remove", true))
    }
}
