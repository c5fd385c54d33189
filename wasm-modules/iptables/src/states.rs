//! The states, in Salt's sentences.

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use crate::command::Family;
use crate::exports::states::Guest;
use crate::rules::{self, Place};
use crate::{Data, Module, rule};

/// The command line that a sentence shows.
pub(crate) fn line(
    family: Family,
    table: &str,
    command: &str,
    chain: &str,
    position: &str,
    rule: &str,
) -> Result<String, String> {
    let flag = if "ACDIRLSFZNXPE".contains(command) { "-" } else { "--" };
    let wait = if family.has("--wait")? { "--wait" } else { "" };
    Ok(format!("{} {wait} -t {table} {flag}{command} {chain} {position} {rule}", family.path()?))
}

/// A rule that a state is about.
struct Wanted {
    name: String,
    table: String,
    chain: String,
    position: Option<Value>,
    /// Whether to save, and where.
    save: Option<Value>,
    rule: String,
    /// The family as it was said, for sentences.
    said_family: String,
    family: Family,
    command: String,
}

/// The entries of a dict.
fn entries(kwargs: &Data) -> Result<Vec<(Value, Value)>, String> {
    match kwargs.value()? {
        Value::Dict(entries) => Ok(entries),
        other => Err(format!("arguments are a dict, not {}", other.kind())),
    }
}

fn entry<'a>(entries: &'a [(Value, Value)], name: &str) -> Option<&'a Value> {
    entries.iter().find(|(known, _)| known.text() == Some(name)).map(|(_, value)| value)
}

fn needed(entries: &[(Value, Value)], name: &str) -> Result<String, String> {
    entry(entries, name).map(Value::to_text).ok_or_else(|| format!("{name} is missing"))
}

impl Wanted {
    /// `command` is the letter of what is to be done.
    fn new(
        name: String,
        table: Option<String>,
        family: Option<String>,
        entries: &[(Value, Value)],
        command: &str,
    ) -> Result<Self, String> {
        let table = table.unwrap_or_else(|| "filter".into());
        let said_family = family.unwrap_or_else(|| "ipv4".into());
        let family = Family::new(Some(&said_family));
        let parts: Vec<(Value, Value)> =
            entries.iter().filter(|(key, _)| !matches!(key.text(), Some("position" | "full"))).cloned().collect();
        let rule = rule::build(&parts)?.unwrap_or_else(str::to_owned);
        let chain = needed(entries, "chain")?;
        let position = entry(entries, "position").cloned();
        let place = position.as_ref().map(Value::to_text).unwrap_or_default();
        let command = match rule.starts_with("Error: ") {
            true => rule.clone(),
            false => line(family, &table, command, &chain, &place, &rule)?.trim().to_owned(),
        };
        let save = entry(entries, "save").filter(|save| save.truthy()).cloned();
        Ok(Self { name, table, chain, position, save, rule, said_family, family, command })
    }

    fn place(&self) -> Result<Place<'_>, String> {
        Place::new(Some(&self.table), Some(&self.chain), self.family)?.map_err(str::to_owned)
    }

    fn is_there(&self) -> Result<bool, String> {
        Ok(self.place()?.check(Some(&self.rule))? == Ok(true))
    }

    /// Where to save; the inner none is the system's file.
    fn save_to(&self) -> Option<Option<String>> {
        self.save.as_ref().map(|save| (*save != Value::Bool(true)).then(|| save.to_text()))
    }

    /// Saves, if it is to. Returns Salt's sentence about it.
    fn save(&self) -> Result<Option<String>, String> {
        self.save_to().map(|file| rules::save(file.as_deref(), self.family)).transpose()
    }

    /// The result for a rule that is there: saves if the file has other rules.
    fn there(&self, comment: String) -> Result<StateResult, String> {
        let Some(file) = self.save_to() else { return Ok(StateResult::good(comment)) };
        let saved = rules::saved(file.as_deref(), self.family)?;
        let current = rules::current(self.family)?;
        if saved.rules() == current.rules() {
            return Ok(StateResult::good(comment));
        }
        let out = rules::save(file.as_deref(), self.family)?;
        let Self { name, said_family, command, .. } = self;
        Ok(StateResult::good(format!("{comment}\nSaved iptables rule {name} for {said_family}\n{command}\n{out}")))
    }

    /// The result of a rule that was added or removed. `word` is `Set` or `Deleted`.
    fn changed(&self, comment: String, word: &str) -> Result<StateResult, String> {
        let Self { name, said_family, command, .. } = self;
        let comment = match self.save()? {
            None => comment,
            Some(out) => format!("{word} and saved iptables rule {name} for {said_family}\n{command}\n{out}"),
        };
        Ok(locale(name, comment))
    }
}

/// A result with the change that Salt names so.
fn locale(name: &str, comment: String) -> StateResult {
    StateResult::changed(comment, Value::dict([("locale", name.into())]))
}

type One = fn(String, Option<String>, Option<String>, &[(Value, Value)]) -> Result<StateResult, String>;

/// Runs a state for each rule of `rules`, or for the one that it names itself.
fn each(
    one: One,
    name: String,
    table: Option<String>,
    family: Option<String>,
    kwargs: &Data,
) -> Result<StateResult, String> {
    let entries = entries(kwargs)?;
    let Some(rules) = entry(&entries, "rules") else { return one(name, table, family, &entries) };
    let Value::List(rules) = rules else { return Err(format!("rules is to be a list, not {}", rules.kind())) };
    let (mut comments, mut changed, mut result, mut save) = (Vec::new(), Vec::new(), None, None);
    for rule in rules {
        let Value::Dict(rule) = rule else { return Err(format!("a rule is a dict, not {}", rule.kind())) };
        let text = |name: &str| entry(rule, name).filter(|value| **value != Value::None).map(Value::to_text);
        save = entry(rule, "save").filter(|save| save.truthy()).cloned().or(save);
        let taken = ["rules", "save", "name", "table", "family"];
        let parts: Vec<(Value, Value)> =
            rule.iter().filter(|(key, _)| key.text().is_none_or(|key| !taken.contains(&key))).cloned().collect();
        let name = text("name").ok_or("a rule has no name")?;
        let done = one(name, text("table"), text("family"), &parts)?;
        if let Some(name) = done.changes.value()?.get("locale") {
            changed.push(name.clone());
        }
        comments.push(done.comment);
        result = done.result;
    }
    if let Some(save) = save.filter(|_| !is_dry_run()) {
        let file = (save != Value::Bool(true)).then(|| save.to_text());
        rules::save(file.as_deref(), Family::new(family.as_deref()))?;
    }
    let changes = if changed.is_empty() { no_changes() } else { Value::dict([("locale", Value::List(changed))]) };
    Ok(StateResult::new(result, comments.join("\n"), changes))
}

fn append(
    name: String,
    table: Option<String>,
    family: Option<String>,
    entries: &[(Value, Value)],
) -> Result<StateResult, String> {
    let wanted = Wanted::new(name, table, family, entries, "A")?;
    let Wanted { name, said_family, command, .. } = &wanted;
    if wanted.is_there()? {
        let comment = format!("iptables rule for {name} already set ({command}) for {said_family}");
        return wanted.there(comment);
    }
    if is_dry_run() {
        let comment = format!("iptables rule for {name} needs to be set ({command}) for {said_family}");
        return Ok(StateResult::would(comment, no_changes()));
    }
    match wanted.place()?.append(Some(&wanted.rule))? {
        // As in Salt, its answer to a missing rule counts as done.
        Ok(true) | Err(_) => {
            wanted.changed(format!("Set iptables rule for {name} to: {command} for {said_family}"), "Set")
        }
        Ok(false) => Ok(StateResult::bad(format!(
            "Failed to set iptables rule for {name}.\nAttempted rule was {command} for {said_family}"
        ))),
    }
}

fn insert(
    name: String,
    table: Option<String>,
    family: Option<String>,
    entries: &[(Value, Value)],
) -> Result<StateResult, String> {
    let wanted = Wanted::new(name, table, family, entries, "I")?;
    let Wanted { name, said_family, command, .. } = &wanted;
    if wanted.is_there()? {
        let comment = format!("iptables rule for {name} already set for {said_family} ({command})");
        return wanted.there(comment);
    }
    if is_dry_run() {
        let comment = format!("iptables rule for {name} needs to be set for {said_family} ({command})");
        return Ok(StateResult::would(comment, no_changes()));
    }
    let Some(position) = &wanted.position else { return Err("position is missing".into()) };
    match wanted.place()?.insert(Some(position), Some(&wanted.rule))? {
        Some(why) if !why.is_empty() => {
            Ok(StateResult::bad(format!("Failed to set iptables rule for {name}.\nAttempted rule was {command}")))
        }
        _ => wanted.changed(format!("Set iptables rule for {name} to: {command} for {said_family}"), "Set"),
    }
}

fn delete(
    name: String,
    table: Option<String>,
    family: Option<String>,
    entries: &[(Value, Value)],
) -> Result<StateResult, String> {
    let wanted = Wanted::new(name, table, family, entries, "D")?;
    let Wanted { name, said_family, command, position, .. } = &wanted;
    if position.is_none() && !wanted.is_there()? {
        let comment = format!("iptables rule for {name} already absent for {said_family} ({command})");
        return Ok(StateResult::good(comment));
    }
    if is_dry_run() {
        let comment = format!("iptables rule for {name} needs to be deleted for {said_family} ({command})");
        return Ok(StateResult::would(comment, no_changes()));
    }
    let said = match position {
        Some(position) => wanted.place()?.delete(Some(position), None)?,
        None => wanted.place()?.delete(None, Some(&wanted.rule))?,
    };
    match said.is_empty() {
        true => wanted.changed(format!("Delete iptables rule for {name} {command}"), "Deleted"),
        false => {
            Ok(StateResult::bad(format!("Failed to delete iptables rule for {name}.\nAttempted rule was {command}")))
        }
    }
}

impl Guest for Module {
    fn mod_available() -> Result<(), String> {
        match Family::new(None).path()?.as_str() {
            "None" => Err("iptables module could not be loaded".into()),
            _ => Ok(()),
        }
    }

    fn mod_aggregate(low: Data, chunks: Data) -> Result<Data, String> {
        let Value::List(chunks) = chunks.value()? else { return Err("chunks are a list".into()) };
        Ok(Value::List(aggregate(low.value()?, chunks)).into())
    }

    fn chain_present(name: String, table: Option<String>, family: Option<String>) -> Result<StateResult, String> {
        let (table, said) = (table.unwrap_or_else(|| "filter".into()), family.unwrap_or_else(|| "ipv4".into()));
        let place = Place::new(Some(&table), Some(&name), Family::new(Some(&said)))??;
        if place.exists()? {
            let comment = format!("iptables {name} chain is already exist in {table} table for {said}");
            return Ok(StateResult::good(comment));
        }
        if is_dry_run() {
            let comment = format!("iptables {name} chain in {table} table needs to be set for {said}");
            return Ok(StateResult::would(comment, no_changes()));
        }
        Ok(match place.make()? {
            Ok(()) => locale(&name, format!("iptables {name} chain in {table} table create success for {said}")),
            Err(why) => {
                StateResult::bad(format!("Failed to create {name} chain in {table} table: {} for {said}", why.trim()))
            }
        })
    }

    fn chain_absent(name: String, table: Option<String>, family: Option<String>) -> Result<StateResult, String> {
        let (table, said) = (table.unwrap_or_else(|| "filter".into()), family.unwrap_or_else(|| "ipv4".into()));
        let place = Place::new(Some(&table), Some(&name), Family::new(Some(&said)))??;
        if !place.exists()? {
            let comment = format!("iptables {name} chain is already absent in {table} table for {said}");
            return Ok(StateResult::good(comment));
        }
        if is_dry_run() {
            let comment = format!("iptables {name} chain in {table} table needs to be removed {said}");
            return Ok(StateResult::would(comment, no_changes()));
        }
        let flushed = rules::flush(Some(&table), Some(&name), place.family)?;
        if !flushed.is_empty() {
            let comment = format!("Failed to flush {name} chain in {table} table: {} for {said}", flushed.trim());
            return Ok(StateResult::bad(comment));
        }
        Ok(match place.remove()? {
            Ok(()) => locale(&name, format!("iptables {name} chain in {table} table delete success for {said}")),
            Err(why) => {
                StateResult::bad(format!("Failed to delete {name} chain in {table} table: {} for {said}", why.trim()))
            }
        })
    }

    fn append(
        name: String,
        table: Option<String>,
        family: Option<String>,
        kwargs: Data,
    ) -> Result<StateResult, String> {
        each(append, name, table, family, &kwargs)
    }

    fn insert(
        name: String,
        table: Option<String>,
        family: Option<String>,
        kwargs: Data,
    ) -> Result<StateResult, String> {
        each(insert, name, table, family, &kwargs)
    }

    fn delete(
        name: String,
        table: Option<String>,
        family: Option<String>,
        kwargs: Data,
    ) -> Result<StateResult, String> {
        each(delete, name, table, family, &kwargs)
    }

    fn set_policy(
        name: String,
        table: Option<String>,
        family: Option<String>,
        kwargs: Data,
    ) -> Result<StateResult, String> {
        let entries = entries(&kwargs)?;
        let (chain, policy) = (needed(&entries, "chain")?, needed(&entries, "policy")?);
        let (table, said) = (table.unwrap_or_else(|| "filter".into()), family.unwrap_or_else(|| "ipv4".into()));
        let place = Place::new(Some(&table), Some(&chain), Family::new(Some(&said)))??;
        if place.policy(&rules::current(place.family)?).as_deref() == Some(&policy) {
            return Ok(StateResult::good(format!(
                "iptables default policy for chain {chain} on table {table} for {said} already set to {policy}"
            )));
        }
        if is_dry_run() {
            let comment = format!(
                "iptables default policy for chain {chain} on table {table} for {said} needs to be set to {policy}"
            );
            return Ok(StateResult::would(comment, no_changes()));
        }
        if !place.set_policy(Some(&policy))?.is_empty() {
            return Ok(StateResult::bad("Failed to set iptables default policy"));
        }
        let mut word = "Set";
        if let Some(save) = entry(&entries, "save").filter(|save| save.truthy()) {
            let file = (*save != Value::Bool(true)).then(|| save.to_text());
            rules::save(file.as_deref(), place.family)?;
            word = "Set and saved";
        }
        Ok(locale(&name, format!("{word} default policy for {chain} to {policy} family {said}")))
    }

    fn flush(name: String, table: Option<String>, family: Option<String>, kwargs: Data) -> Result<StateResult, String> {
        let entries = entries(&kwargs)?;
        let chain = entry(&entries, "chain").map(Value::to_text).unwrap_or_default();
        let (table, said) = (table.unwrap_or_else(|| "filter".into()), family.unwrap_or_else(|| "ipv4".into()));
        if is_dry_run() {
            // The words and their places are Salt's.
            let comment = format!("iptables rules in {name} table {table} chain {said} family needs to be flushed");
            return Ok(StateResult::would(comment, no_changes()));
        }
        if !rules::flush(Some(&table), Some(&chain), Family::new(Some(&said)))?.is_empty() {
            return Ok(StateResult::bad("Failed to flush iptables rules"));
        }
        Ok(locale(&name, format!("Flush iptables rules in {table} table {chain} chain {said} family")))
    }
}

/// Puts the rules of chunks of the same function into `low`. Returns it and the others, marked where they were merged.
fn aggregate(mut low: Value, chunks: Vec<Value>) -> Vec<Value> {
    let text = |chunk: &Value, key: &str| chunk.get(key).and_then(Value::text).map(str::to_owned);
    let fun = text(&low, "fun");
    if !matches!(fun.as_deref(), Some("append" | "insert")) {
        return std::iter::once(low).chain(chunks).collect();
    }
    let mut merged = Vec::new();
    if low.get("__agg__").is_none() {
        merged.push(low.clone());
    }
    let others: Vec<Value> = chunks
        .into_iter()
        .map(|mut chunk| {
            let is_one = text(&chunk, "state").as_deref() == Some("iptables") && text(&chunk, "fun") == fun;
            if is_one && chunk.get("__agg__").is_none() {
                merged.push(chunk.clone());
                if let Value::Dict(entries) = &mut chunk {
                    entries.push(("__agg__".into(), true.into()));
                }
            }
            chunk
        })
        .collect();
    if let Value::Dict(entries) = &mut low
        && !merged.is_empty()
    {
        match entries.iter_mut().find(|(key, _)| key.text() == Some("rules")) {
            Some((_, Value::List(rules))) => rules.extend(merged),
            _ => entries.push(("rules".into(), Value::List(merged))),
        }
    }
    std::iter::once(low).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_one_function_are_added_together() {
        let chunk = |name: &str, fun: &str| {
            Value::dict([("state", "iptables".into()), ("fun", fun.into()), ("name", name.into())])
        };
        let all = aggregate(chunk("a", "append"), vec![chunk("b", "append"), chunk("c", "insert")]);
        assert_eq!(all.len(), 3);
        let Some(Value::List(rules)) = all[0].get("rules") else { panic!("{all:?}") };
        assert_eq!(rules, &[chunk("a", "append"), chunk("b", "append")]);
        assert_eq!(all[1].get("__agg__"), Some(&true.into()));
        assert_eq!(all[2], chunk("c", "insert"));
        assert_eq!(
            aggregate(chunk("a", "delete"), vec![chunk("b", "delete")]),
            [chunk("a", "delete"), chunk("b", "delete")]
        );
    }
}
