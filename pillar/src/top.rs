//! Top files: which files of which environment are for which target (`salt.pillar.Pillar.get_tops` and what follows).

use std::collections::{HashMap, HashSet};

use brine_render::{Dict, Key, Value};
use indexmap::IndexMap;

/// The sources of one target: SLS names, and the dicts that say how it matches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// `match`, the last that is said.
    pub(crate) matcher: Option<String>,
    /// As they are shown: the dicts with `match`, then the names.
    pub(crate) items: Vec<Value>,
    order: i128,
}

/// All top files in one.
#[derive(Debug, Default)]
pub(crate) struct Top {
    /// By environment, targets in the order in which they count.
    pub(crate) envs: IndexMap<String, IndexMap<Key, Entry>>,
    /// Files that may be missing, by environment.
    pub(crate) ignored: HashMap<String, HashSet<String>>,
}

/// A top file that has another form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Error encountered while rendering pillar top file.")]
pub(crate) struct BadTop;

impl Top {
    /// Merges rendered top files, in the order of their environments and includes.
    ///
    /// # Errors
    /// One has another form than environments with targets with lists.
    pub(crate) fn merge(tops: &[Value]) -> Result<Self, BadTop> {
        let mut top = Self::default();
        for file in tops {
            let Value::Dict(file) = file else { return Err(BadTop) };
            for (env, targets) in file.borrow().iter() {
                let Some(env) = env.as_str() else { continue };
                if env == "include" {
                    continue;
                }
                let Value::Dict(targets) = targets else {
                    // An empty list has no targets.
                    if matches!(targets, Value::List(list) if list.borrow().is_empty()) {
                        continue;
                    }
                    return Err(BadTop);
                };
                for (target, sources) in targets.borrow().iter() {
                    top.add(env, target, sources)?;
                }
            }
        }
        for targets in top.envs.values_mut() {
            targets.sort_by(|_, a, _, b| a.order.cmp(&b.order));
        }
        Ok(top)
    }

    fn add(&mut self, env: &str, target: &Key, sources: &Value) -> Result<(), BadTop> {
        let sources = match sources {
            Value::List(list) => list.borrow().clone(),
            // Python goes through the characters.
            Value::Str(text) => text.chars().map(|c| Value::str(c.to_string())).collect(),
            Value::Dict(dict) => dict.borrow().keys().map(|key| key.value().clone()).collect(),
            Value::Tuple(items) => items.to_vec(),
            _ => return Err(BadTop),
        };
        let mut entry = Entry::default();
        let mut names: Vec<&str> = Vec::new();
        let mut ignore_missing = false;
        for source in &sources {
            match source {
                Value::Dict(options) => {
                    if let Some(matcher) = options.get("match") {
                        entry.matcher = Some(matcher.as_str().map_or_else(|| matcher.short_repr(), str::to_owned));
                        entry.items.push(source.clone());
                    }
                    if let Some(order) = options.get("order") {
                        entry.order = read_order(&order)?;
                    }
                    ignore_missing |= options.get("ignore_missing").is_some_and(|ignore| ignore.truthy());
                }
                Value::Str(name) if !names.contains(&&**name) => names.push(name),
                _ => {}
            }
        }
        if ignore_missing {
            self.ignored.entry(env.to_owned()).or_default().extend(names.iter().map(|name| (*name).to_owned()));
        }
        entry.items.extend(names.into_iter().map(Value::from));
        self.envs.entry(env.to_owned()).or_default().insert(target.clone(), entry);
        Ok(())
    }

    /// The names of files by environment, for the targets that match. `matches` gets environment, target and entry.
    ///
    /// # Errors
    /// What `matches` says.
    pub(crate) fn matching<E>(
        &self,
        only: Option<&str>,
        mut matches: impl FnMut(&str, &Key, &Entry) -> Result<bool, E>,
    ) -> Result<IndexMap<String, Vec<String>>, E> {
        let mut found: IndexMap<String, Vec<String>> = IndexMap::new();
        for (env, targets) in self.envs.iter().filter(|(env, _)| only.is_none_or(|only| only == *env)) {
            for (target, entry) in targets {
                if !matches(env, target, entry)? {
                    continue;
                }
                let names = found.entry(env.clone()).or_default();
                for name in entry.items.iter().filter_map(Value::as_str) {
                    if !names.iter().any(|known| known == name) {
                        names.push(name.to_owned());
                    }
                }
            }
        }
        Ok(found)
    }

    /// All of it, as `pillar.show_top` shows it.
    pub(crate) fn shown(&self) -> Value {
        let targets = |targets: &IndexMap<Key, Entry>| {
            let entries = targets.iter().map(|(target, entry)| (target.clone(), Value::list(entry.items.clone())));
            Value::Dict(entries.collect::<Dict>())
        };
        Value::dict(self.envs.iter().map(|(env, all)| (Key::from(env.as_str()), targets(all))).collect::<Vec<_>>())
    }
}

/// Python's `int()` of an order; a text that is no number is 0.
fn read_order(order: &Value) -> Result<i128, BadTop> {
    match order {
        Value::Int(n) => Ok(*n),
        Value::Bool(b) => Ok(i128::from(*b)),
        #[expect(clippy::cast_possible_truncation, reason = "as() saturates, and orders are compared only")]
        Value::Float(n) => Ok(*n as i128),
        Value::Str(text) => Ok(text.trim().parse().unwrap_or(0)),
        _ => Err(BadTop),
    }
}

/// The names of further top files that a top file includes.
pub(crate) fn take_includes(top: &Value) -> Vec<String> {
    let Value::Dict(dict) = top else { return Vec::new() };
    match dict.borrow_mut().shift_remove(&Key::from("include")) {
        Some(Value::List(names)) => names.borrow().iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top(texts: &[&str]) -> Result<Top, BadTop> {
        let load =
            |text: &&str| brine_render::yaml::load_ordered(text, &brine_render::yaml::Limits::default()).unwrap();
        Top::merge(&texts.iter().map(load).collect::<Vec<_>>())
    }

    #[test]
    fn orders_and_matches() {
        let top = top(&[
            "base: {'b*': [x, {order: 2}], 'os:Debian': [{match: grain}, y, y], c: [{order: '1'}, z]}",
            "base: {'b*': [w]}\ndev: {'*': [x, {ignore_missing: true}]}",
        ])
        .unwrap();
        let targets: Vec<&str> = top.envs["base"].keys().filter_map(Key::as_str).collect();
        assert_eq!(targets, ["b*", "os:Debian", "c"], "the second file replaces the order too");
        assert_eq!(top.envs["base"].get(&Key::from("os:Debian")).unwrap().matcher.as_deref(), Some("grain"));
        assert!(top.ignored["dev"].contains("x"));
        let all = top.matching::<()>(None, |_, _, _| Ok(true)).unwrap();
        assert_eq!(all["base"], ["w", "y", "z"]);
        assert_eq!(top.matching::<()>(Some("dev"), |_, _, _| Ok(true)).unwrap().len(), 1);
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "[a]",
            "base: [a]",
            "base: 1",
            "base: {'*': 1}",
            "base: {'*': null}",
            "base: null",
            "base: {'*': [{order: []}]}",
        ] {
            assert!(top(&[text]).is_err(), "{text}");
        }
        for text in ["{}", "base: {}", "base: []", "base: {'*': []}", "include: [a]"] {
            assert!(top(&[text]).is_ok(), "{text}");
        }
    }
}
