//! The states, and the edits that they share with the functions.

use brine_guest::states::{StateResult, is_dry_run, no_changes};
use brine_guest::{Data, Result, Value};

use crate::Module;
use crate::exports::states::Guest;
use crate::file::File;
use crate::ini::Item;

/// What is said if nothing has to change.
const NOTHING: &str = "No anomaly detected";
const DONE: &str = "Changes take effect";

/// A change, or the changes of a section, by name.
type Changes = Vec<(Value, Value)>;

/// Removes an option of a section, or one of no section if there is no such section; returns its value.
pub(crate) fn remove(file: &mut File, section: &str, option: &str) -> Value {
    let removed = match file.sections.item(section) {
        Some(Item::Section(section)) => section.remove(option),
        _ => file.sections.remove(option),
    };
    file.flush(false);
    removed.map_or(Value::None, |item| item.value(false))
}

/// Removes a section; returns its options, none if there was none.
pub(crate) fn remove_section(file: &mut File, name: &str) -> Result<Option<Value>> {
    match file.sections.get(name) {
        None => Ok(None),
        Some(Item::Text(_)) => Err(format!("{name} is an option and no section")),
        Some(Item::Section(_)) => {
            let removed = file.sections.remove(name).map(|item| item.value(false));
            file.flush(false);
            Ok(removed)
        }
    }
}

/// The entries of a dict, or of what Salt makes one of.
pub(crate) fn entries(sections: Option<&Data>) -> Result<Vec<(Value, Value)>> {
    match sections.map(Data::value).transpose()?.unwrap_or_default() {
        Value::Dict(entries) => Ok(entries),
        value if !value.truthy() => Ok(Vec::new()),
        other => Err(format!("sections is to be a dict, not {}", other.kind())),
    }
}

/// The names of sections: a list, or the keys of a dict.
fn names(sections: Option<&Data>) -> Result<Vec<String>> {
    Ok(match sections.map(Data::value).transpose()?.unwrap_or_default() {
        Value::List(names) => names.iter().map(Value::to_text).collect(),
        Value::Dict(entries) => entries.iter().map(|(name, _)| name.to_text()).collect(),
        value if !value.truthy() => Vec::new(),
        other => return Err(format!("sections is to be a list, not {}", other.kind())),
    })
}

/// What a dry run tells, line by line.
#[derive(Default)]
struct Told {
    comment: String,
    would_change: bool,
}

impl Told {
    fn unchanged(&mut self, line: &str) {
        self.comment.push_str(line);
        self.comment.push_str(".\n");
    }

    fn changed(&mut self, line: &str) {
        self.unchanged(line);
        self.would_change = true;
    }

    /// `otherwise` is the comment if there is nothing to tell.
    fn result(self, otherwise: &str) -> StateResult {
        let comment = if self.comment.is_empty() { otherwise.to_owned() } else { self.comment };
        StateResult::new((!self.would_change).then_some(true), comment, no_changes())
    }
}

fn done(changes: Changes) -> StateResult {
    match changes.is_empty() {
        true => StateResult::good(NOTHING),
        false => StateResult::changed(DONE, Value::Dict(changes)),
    }
}

/// ` in section NAME`, empty for none.
fn within(section: &str) -> String {
    if section.is_empty() { String::new() } else { format!(" in section {section}") }
}

impl Guest for Module {
    fn options_present(
        name: String,
        sections: Option<Data>,
        separator: Option<String>,
        strict: Option<bool>,
        encoding: Option<String>,
        no_spaces: Option<bool>,
    ) -> Result<StateResult> {
        let mut file = File::open(&name, separator.as_deref(), encoding.as_deref())?;
        let wanted = entries(sections.as_ref())?;
        let (strict, no_spaces) = (strict == Some(true), no_spaces == Some(true));
        if is_dry_run() {
            return Ok(would_be_present(&file, &wanted, strict));
        }
        let changes = present(&mut file, &wanted, strict, no_spaces)?;
        file.save()?;
        Ok(done(changes))
    }

    fn options_absent(
        name: String,
        sections: Option<Data>,
        separator: Option<String>,
        encoding: Option<String>,
    ) -> Result<StateResult> {
        let mut file = File::open(&name, separator.as_deref(), encoding.as_deref())?;
        let mut told = Told::default();
        let mut changes: Changes = Vec::new();
        for (section, options) in entries(sections.as_ref())? {
            let section = section.to_text();
            let Value::List(options) = options else {
                return Err(format!("the options of {section} are to be a list, not {}", options.kind()));
            };
            let mut gone: Changes = Vec::new();
            for option in options.iter().map(Value::to_text) {
                if is_dry_run() {
                    let known = match file.sections.get(&section) {
                        Some(Item::Section(known)) => known.get(&option).map(|item| item.value(false)),
                        _ => None,
                    };
                    match known.is_some_and(|value| value.truthy()) {
                        true => told.changed(&format!("Deleted key {option}{}", within(&section))),
                        false => told.unchanged(&format!("Key {option}{} does not exist", within(&section))),
                    }
                    continue;
                }
                let value = remove(&mut file, &section, &option);
                if value.truthy() {
                    gone.push((option.into(), value));
                }
            }
            if !gone.is_empty() {
                changes.push((section.into(), Value::Dict(gone)));
            }
        }
        if is_dry_run() {
            return Ok(told.result("No changes detected."));
        }
        file.save()?;
        Ok(done(changes))
    }

    fn sections_present(
        name: String,
        sections: Option<Data>,
        separator: Option<String>,
        encoding: Option<String>,
    ) -> Result<StateResult> {
        let mut file = File::open(&name, separator.as_deref(), encoding.as_deref())?;
        let names = names(sections.as_ref())?;
        if is_dry_run() {
            let mut told = Told::default();
            for name in &names {
                match file.sections.get(name) {
                    Some(_) => told.unchanged(&format!("Section unchanged {name}")),
                    None => told.changed(&format!("Created new section {name}")),
                }
            }
            return Ok(told.result("No changes detected."));
        }
        let wanted: Vec<(Value, Value)> = names.into_iter().map(|name| (name.into(), Value::dict([]))).collect();
        let changes = file.set(&wanted, false)?;
        file.save()?;
        Ok(StateResult::changed(DONE, Value::Dict(changes)))
    }

    fn sections_absent(
        name: String,
        sections: Option<Data>,
        separator: Option<String>,
        encoding: Option<String>,
    ) -> Result<StateResult> {
        let mut file = File::open(&name, separator.as_deref(), encoding.as_deref())?;
        let names = names(sections.as_ref())?;
        if is_dry_run() {
            let mut told = Told::default();
            for name in &names {
                match file.sections.get(name) {
                    Some(_) => told.changed(&format!("Deleted section {name}")),
                    None => told.unchanged(&format!("Section {name} does not exist")),
                }
            }
            return Ok(told.result("No changes detected."));
        }
        let mut changes: Changes = Vec::new();
        for name in names {
            if let Some(gone) = remove_section(&mut file, &name)?.filter(Value::truthy) {
                changes.push((name.into(), gone));
            }
        }
        file.save()?;
        Ok(done(changes))
    }
}

/// Names of options, or of sections, that a file has and that are not wanted.
fn surplus(has: &Value, sections: bool, wanted: &[(Value, Value)]) -> Vec<(String, Value)> {
    let Value::Dict(has) = has else { return Vec::new() };
    let is = |value: &Value| matches!(value, Value::Dict(_)) == sections;
    let wanted = |name: &Value| wanted.iter().any(|(known, value)| known.to_text() == name.to_text() && is(value));
    has.iter()
        .filter(|(name, value)| is(value) && !wanted(name))
        .map(|(name, value)| (name.to_text(), value.clone()))
        .collect()
}

fn present(file: &mut File, wanted: &[(Value, Value)], strict: bool, no_spaces: bool) -> Result<Changes> {
    let has = file.sections.value(false);
    let (parts, options): (Changes, Changes) =
        wanted.iter().cloned().partition(|(_, value)| matches!(value, Value::Dict(_)));
    let gone = |value: &Value| Value::dict([("before", value.clone()), ("after", Value::None)]);
    let mut changes = file.set(&options, no_spaces)?;
    if strict && !wanted.is_empty() {
        for (option, value) in surplus(&has, false, wanted) {
            remove(file, "", &option);
            changes.push((option.into(), gone(&value)));
        }
        for (section, value) in surplus(&has, true, wanted) {
            remove_section(file, &section)?;
            changes.push((section.into(), gone(&value)));
        }
    }
    for (section, options) in parts {
        let name = section.to_text();
        let mut below: Changes = Vec::new();
        if strict && let (Some(known), Value::Dict(options)) = (has.get(&name), &options) {
            for (option, value) in surplus(known, false, options) {
                remove(file, &name, &option);
                below.push((option.into(), gone(&value)));
            }
        }
        if let Some((_, Value::Dict(set))) = file.set(&[(section.clone(), options)], no_spaces)?.pop() {
            below.extend(set);
        }
        if !below.is_empty() {
            changes.push((section, Value::Dict(below)));
        }
    }
    Ok(changes)
}

fn would_be_present(file: &File, wanted: &[(Value, Value)], strict: bool) -> StateResult {
    let has = file.sections.value(false);
    let mut told = Told::default();
    let tell = |told: &mut Told, known: Option<&Value>, option: &Value, value: &Value, section: &str| {
        let line = |what: &str| format!("{what} key {}{}", option.to_text(), within(section));
        match known.is_some_and(|known| known.to_text() == value.to_text()) {
            true => told.unchanged(&line("Unchanged")),
            false => told.changed(&line("Changed")),
        }
    };
    for (option, value) in wanted.iter().filter(|(_, value)| !matches!(value, Value::Dict(_))) {
        tell(&mut told, has.get(&option.to_text()), option, value, "");
    }
    if strict && !wanted.is_empty() {
        for (option, _) in surplus(&has, false, wanted) {
            told.changed(&format!("Removed key {option}"));
        }
        for (section, _) in surplus(&has, true, wanted) {
            told.changed(&format!("Removed section {section}"));
        }
    }
    for (section, options) in wanted {
        let Value::Dict(options) = options else { continue };
        let name = section.to_text();
        let known = has.get(&name);
        if strict && let Some(known) = known {
            for (option, _) in surplus(known, false, options) {
                told.changed(&format!("Deleted key {option}{}", within(&name)));
            }
        }
        for (option, value) in options {
            tell(&mut told, known.and_then(|known| known.get(&option.to_text())), option, value, &name);
        }
    }
    told.result("")
}
