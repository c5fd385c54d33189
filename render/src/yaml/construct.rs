//! From nodes to values: PyYAML's SafeConstructor with the changes of Salt's `SaltYamlSafeLoader`.
//!
//! As there, a collection is made empty and filled later, level by level. So of several errors the same one is found,
//! and deep nesting takes no stack.

use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;

use brine_yaml_emitter::Tag;

use super::compose::{Id, Kind, Nodes};
use super::error::{Mark, YamlError, YamlErrorKind};
use super::{Limits, Result, scalar};
use crate::value::{Dict, Key, List, Set, Value};

/// Upper bound on the text of a key in an error.
const SHOWN_KEY: usize = 4096;
const MAPPING: &str = "while constructing a mapping";

pub(super) fn construct(nodes: Nodes, limits: &Limits, ordered: bool) -> Result<Value> {
    let Some(root) = nodes.root else { return Ok(Value::None) };
    let recursive = nodes.recursive;
    let done = vec![None; nodes.all.len()];
    let mut constructor =
        Constructor { nodes, ordered, done, later: VecDeque::new(), merges_left: limits.values, depth: limits.depth };
    let value = constructor.object(root)?;
    while let Some(fill) = constructor.later.pop_front() {
        constructor.fill(fill)?;
    }
    match recursive {
        Some(mark) => Err(YamlError::new(YamlErrorKind::Constructor, "found unconstructable recursive node", mark)),
        None => Ok(value),
    }
}

struct Constructor {
    nodes: Nodes,
    /// Whether maps are OrderedDicts.
    ordered: bool,
    done: Vec<Option<Value>>,
    later: VecDeque<Fill>,
    merges_left: usize,
    depth: usize,
}

/// A collection that was made and has to be filled.
enum Fill {
    Dict(Id, Dict),
    List(Id, List),
    Set(Id, Set),
    Pairs(Id, List, &'static str),
}

impl Constructor {
    fn tag(&self, id: Id) -> &Tag {
        &self.nodes.all[id as usize].tag
    }

    fn kind(&self, id: Id) -> &Kind {
        &self.nodes.all[id as usize].kind
    }

    fn mark(&self, id: Id) -> Mark {
        self.nodes.all[id as usize].mark
    }

    fn error<T>(&self, id: Id, problem: impl Into<String>) -> Result<T> {
        Err(YamlError::new(YamlErrorKind::Constructor, problem, self.mark(id)))
    }

    fn error_in<T>(&self, context: &str, outer: Id, id: Id, problem: impl Into<String>) -> Result<T> {
        Err(YamlError::new(YamlErrorKind::Constructor, problem, self.mark(id)).within(context, self.mark(outer)))
    }

    fn object(&mut self, id: Id) -> Result<Value> {
        if let Some(done) = &self.done[id as usize] {
            return Ok(done.clone());
        }
        let value = match self.tag(id) {
            Tag::Null => {
                self.scalar(id)?;
                Value::None
            }
            Tag::Int => {
                self.strip_octal(id)?;
                let text = self.scalar(id)?;
                scalar::int(text).map_err(|why| self.python_error(id, why))?
            }
            Tag::Bool => scalar::bool(self.scalar(id)?).map_err(|why| self.python_error(id, why))?,
            Tag::Float => scalar::float(self.scalar(id)?).map_err(|why| self.python_error(id, why))?,
            Tag::Binary => match scalar::binary(self.scalar(id)?) {
                Ok(bytes) => Value::Bytes(bytes.into()),
                Err(problem) => return self.error(id, problem),
            },
            // Salt leaves dates as they are written
            Tag::Str | Tag::Timestamp | Tag::Unicode => Value::str(self.scalar(id)?),
            Tag::Map => self.dict(id),
            Tag::Omap if self.ordered => self.dict(id),
            Tag::Omap => self.pairs(id, "while constructing an ordered map"),
            Tag::Pairs => self.pairs(id, "while constructing pairs"),
            Tag::Seq => {
                let list = List::default();
                self.later.push_back(Fill::List(id, list.clone()));
                Value::List(list)
            }
            Tag::Set => {
                let set = Set::default();
                self.later.push_back(Fill::Set(id, set.clone()));
                Value::Set(set)
            }
            tag @ (Tag::Merge | Tag::Value | Tag::Yaml | Tag::Other(_)) => {
                let mut shown = String::new();
                write_str_repr(&mut shown, &tag.to_string());
                return self.error(id, format!("could not determine a constructor for the tag {shown}"));
            }
        };
        self.done[id as usize] = Some(value.clone());
        Ok(value)
    }

    fn dict(&mut self, id: Id) -> Value {
        let dict = if self.ordered { Dict::ordered() } else { Dict::default() };
        self.later.push_back(Fill::Dict(id, dict.clone()));
        Value::Dict(dict)
    }

    fn pairs(&mut self, id: Id, context: &'static str) -> Value {
        let list = List::default();
        self.later.push_back(Fill::Pairs(id, list.clone(), context));
        Value::List(list)
    }

    /// An error that Python raises outside of PyYAML.
    fn python_error(&self, id: Id, (kind, problem): (YamlErrorKind, String)) -> Box<YamlError> {
        YamlError::new(kind, problem, self.mark(id))
    }

    /// The text of a scalar, or of the `=` of a map.
    fn scalar(&self, id: Id) -> Result<&str> {
        let mut at = id;
        for _ in 0..=self.depth {
            match self.kind(at) {
                Kind::Scalar(text) => return Ok(text),
                Kind::Mapping(entries) => match entries.iter().find(|(key, _)| *self.tag(*key) == Tag::Value) {
                    Some((_, value)) => at = *value,
                    None => break,
                },
                Kind::Sequence(_) => break,
            }
        }
        self.error(at, format!("expected a scalar node, but found {}", self.kind(at).name()))
    }

    /// Salt's rule: zeros before a number mean nothing.
    fn strip_octal(&mut self, id: Id) -> Result<()> {
        match &mut self.nodes.all[id as usize].kind {
            Kind::Scalar(text) => {
                if text.starts_with('0') && !text.starts_with("0b") && !text.starts_with("0x") {
                    let rest = text.trim_start_matches('0');
                    *text = if rest.is_empty() { "0".to_owned() } else { rest.to_owned() };
                }
                Ok(())
            }
            _ => {
                let problem = "'list' object has no attribute 'startswith'".to_owned();
                Err(self.python_error(id, (YamlErrorKind::Attribute, problem)))
            }
        }
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        match fill {
            Fill::Dict(id, dict) => {
                let entries = self.mapping(id)?;
                *dict.borrow_mut() = std::mem::take(&mut *entries.borrow_mut());
            }
            Fill::Set(id, set) => {
                let entries = self.mapping(id)?;
                set.borrow_mut().extend(entries.borrow_mut().drain(..).map(|(key, _)| key));
            }
            Fill::List(id, list) => {
                let Kind::Sequence(items) = self.kind(id).clone() else {
                    return self.error(id, format!("expected a sequence node, but found {}", self.kind(id).name()));
                };
                let items = items.into_iter().map(|item| self.object(item)).collect::<Result<Vec<_>>>()?;
                list.borrow_mut().extend(items);
            }
            Fill::Pairs(id, list, context) => self.fill_pairs(id, &list, context)?,
        }
        Ok(())
    }

    fn fill_pairs(&mut self, id: Id, list: &List, context: &str) -> Result<()> {
        let Kind::Sequence(items) = self.kind(id).clone() else {
            return self.error_in(context, id, id, format!("expected a sequence, but found {}", self.kind(id).name()));
        };
        for item in items {
            let (key, value) = match self.kind(item) {
                Kind::Mapping(entries) => match entries.as_slice() {
                    [entry] => *entry,
                    entries => {
                        let problem = format!("expected a single mapping item, but found {} items", entries.len());
                        return self.error_in(context, id, item, problem);
                    }
                },
                other => {
                    let problem = format!("expected a mapping of length 1, but found {}", other.name());
                    return self.error_in(context, id, item, problem);
                }
            };
            let pair = Value::tuple([self.object(key)?, self.object(value)?]);
            list.borrow_mut().push(pair);
        }
        Ok(())
    }

    fn mapping(&mut self, id: Id) -> Result<Dict> {
        if !matches!(self.kind(id), Kind::Mapping(_)) {
            return self.error(id, format!("expected a mapping node, but found {}", self.kind(id).name()));
        }
        self.flatten(id, 0)?;
        let Kind::Mapping(entries) = self.kind(id).clone() else { return Ok(Dict::default()) };
        let dict = Dict::default();
        for (key_node, value_node) in entries {
            let Ok(key) = Key::new(self.object(key_node)?) else {
                let mut shown = String::new();
                self.write_node_value(key_node, &mut shown, 0);
                return self.error_in(MAPPING, id, key_node, format!("found unacceptable key {shown}"));
            };
            let value = self.object(value_node)?;
            if dict.borrow().contains_key(&key) {
                let mut shown = String::new();
                // writing to a String does not fail
                let _ = key.value().write_str(&mut shown);
                return self.error_in(MAPPING, id, key_node, format!("found conflicting ID '{shown}'"));
            }
            dict.borrow_mut().insert(key, value);
        }
        Ok(dict)
    }

    /// Puts the entries of `<<` before a map's own, which win.
    fn flatten(&mut self, id: Id, depth: usize) -> Result<()> {
        if depth > self.depth {
            return Err(YamlError::limit(format!("more than {} levels of merges", self.depth), self.mark(id)));
        }
        let Kind::Mapping(entries) = self.kind(id).clone() else { return Ok(()) };
        let mut merges = false;
        for (key, _) in &entries {
            match self.tag(*key) {
                Tag::Merge => merges = true,
                Tag::Value => self.nodes.all[*key as usize].tag = Tag::Str,
                _ => {}
            }
        }
        if !merges {
            return Ok(());
        }
        let (sources, own): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(key, _)| *self.tag(*key) == Tag::Merge);
        let mut merged = Vec::new();
        for (_, source) in sources {
            match self.kind(source).clone() {
                Kind::Mapping(_) => merged.extend(self.merge_source(source, depth)?),
                Kind::Sequence(maps) => {
                    let mut parts = Vec::new();
                    for map in maps {
                        if !matches!(self.kind(map), Kind::Mapping(_)) {
                            let found = self.kind(map).name();
                            let problem = format!("expected a mapping for merging, but found {found}");
                            return self.error_in(MAPPING, id, map, problem);
                        }
                        parts.push(self.merge_source(map, depth)?);
                    }
                    merged.extend(parts.into_iter().rev().flatten());
                }
                Kind::Scalar(_) => {
                    let problem = "expected a mapping or list of mappings for merging, but found scalar";
                    return self.error_in(MAPPING, id, source, problem);
                }
            }
        }
        let names: HashSet<&str> = own
            .iter()
            .filter_map(|(key, _)| match self.kind(*key) {
                Kind::Scalar(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        merged.retain(|(key, _)| match self.kind(*key) {
            Kind::Scalar(text) => !names.contains(text.as_str()),
            other => !own.iter().any(|(key, _)| self.kind(*key) == other),
        });
        merged.extend(own);
        self.nodes.all[id as usize].kind = Kind::Mapping(merged);
        Ok(())
    }

    fn merge_source(&mut self, id: Id, depth: usize) -> Result<Vec<(Id, Id)>> {
        self.flatten(id, depth + 1)?;
        let Kind::Mapping(entries) = self.kind(id).clone() else { return Ok(Vec::new()) };
        // merges of merges can double
        self.merges_left = self
            .merges_left
            .checked_sub(entries.len())
            .ok_or_else(|| YamlError::limit("too many merged entries", self.mark(id)))?;
        Ok(entries)
    }

    /// Python's `repr(node.value)`.
    fn write_node_value(&self, id: Id, out: &mut String, depth: usize) {
        if out.len() > SHOWN_KEY || depth > self.depth {
            return out.push_str("...");
        }
        match self.kind(id) {
            Kind::Scalar(text) if depth == 0 => out.push_str(text),
            Kind::Scalar(text) => write_str_repr(out, text),
            Kind::Sequence(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n > 0 { ", " } else { "" });
                    self.write_node(*item, out, depth + 1);
                    if out.len() > SHOWN_KEY {
                        break;
                    }
                }
                out.push(']');
            }
            Kind::Mapping(entries) => {
                out.push('[');
                for (n, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if n > 0 { ", (" } else { "(" });
                    self.write_node(*key, out, depth + 1);
                    out.push_str(", ");
                    self.write_node(*value, out, depth + 1);
                    out.push(')');
                    if out.len() > SHOWN_KEY {
                        break;
                    }
                }
                out.push(']');
            }
        }
    }

    fn write_node(&self, id: Id, out: &mut String, depth: usize) {
        let class = match self.kind(id) {
            Kind::Scalar(_) => "ScalarNode",
            Kind::Sequence(_) => "SequenceNode",
            Kind::Mapping(_) => "MappingNode",
        };
        let _ = write!(out, "{class}(tag=");
        write_str_repr(out, &self.tag(id).to_string());
        out.push_str(", value=");
        self.write_node_value(id, out, depth);
        out.push(')');
    }
}

fn write_str_repr(out: &mut String, text: &str) {
    // writing to a String does not fail
    let _ = Value::str(text).write_repr(out);
}
