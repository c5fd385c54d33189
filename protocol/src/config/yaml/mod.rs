//! Loads YAML 1.1 like Salt's safe loader, from `saphyr-parser`'s events.
//!
//! The events become nodes with tags (as in PyYAML's composer and resolver), and the nodes become values (as in Salt's
//! constructor): `yes` and `on` are booleans, `0644` is 644 and `1:30` is 90, dates stay text, duplicate keys are
//! errors, `<<` merges. Text, depth and the number of values are bounded; an alias counts as everything it repeats.

mod scalar;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag as ParsedTag};

use crate::value::{Value, ValueExt};

/// Upper bound on the bytes of a document. Salt's own defaults file has 50 KB.
pub const MAX_TEXT: usize = 16 << 20;
/// Upper bound on nesting.
pub const MAX_DEPTH: usize = 100;
/// Upper bound on the values of one document after aliases are expanded.
pub const MAX_VALUES: usize = 1 << 20;
/// Upper bound on the bytes of text after aliases are expanded.
pub const MAX_EXPANDED: usize = 64 << 20;

/// What a short foreign text may have beyond its length.
const FEW: usize = 16;

/// Why a text is not YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    /// The error message.
    pub message: String,
}

/// Loads one document. An empty one is nil.
///
/// # Errors
/// The text is not YAML, not one document, or outside the bounds.
pub fn load(text: &str) -> Result<Value, YamlError> {
    load_within(text, MAX_VALUES, MAX_EXPANDED)
}

/// As [`load`], for a text that somebody sent. What its aliases repeat has to fit into what a document of its length may have without any: so
/// nobody gets more memory for a text than for another one that is as long.
///
/// # Errors
/// As [`load`].
pub fn load_foreign(text: &str) -> Result<Value, YamlError> {
    // Without aliases, each value has at least one character that belongs to no other, and an escape of two characters becomes three bytes
    // at most.
    let values = text.len().saturating_add(FEW).min(MAX_VALUES);
    load_within(text, values, text.len().saturating_mul(2).saturating_add(FEW).min(MAX_EXPANDED))
}

fn load_within(text: &str, values: usize, bytes: usize) -> Result<Value, YamlError> {
    let start = Place { line: 1, column: 1 };
    if text.len() > MAX_TEXT {
        return Err(start.error(format!("the document has more than {MAX_TEXT} bytes")));
    }
    check_characters(text)?;
    match compose(text)? {
        Some(root) => Constructor { values_left: values, bytes_left: bytes }.value(&root, 0),
        None => Ok(Value::Nil),
    }
}

#[derive(Debug, Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn error(self, message: impl Into<String>) -> YamlError {
        YamlError { line: self.line, column: self.column, message: message.into() }
    }
}

impl From<&Marker> for Place {
    fn from(marker: &Marker) -> Self {
        Self { line: marker.line(), column: marker.col() + 1 }
    }
}

/// Refuses control characters, which YAML does not allow and which could otherwise reach logs and terminals.
fn check_characters(text: &str) -> Result<(), YamlError> {
    for (i, line) in text.split('\n').enumerate() {
        for (j, c) in line.chars().enumerate() {
            let allowed = matches!(c,
                '\t' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
            if !allowed {
                let place = Place { line: i + 1, column: j + 1 };
                return Err(place.error(format!("the character U+{:04X} is not allowed", u32::from(c))));
            }
        }
    }
    Ok(())
}

/// The tags of YAML 1.1's types. Other tags have no meaning to Salt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Null,
    Bool,
    Int,
    Float,
    Str,
    Binary,
    Seq,
    Map,
    Set,
    Pairs,
    Merge,
    Value,
}

#[derive(Debug)]
struct Node {
    place: Place,
    tag: Tag,
    kind: Kind,
}

/// The keys of a map and their values.
type Entries = Vec<(Rc<Node>, Rc<Node>)>;

#[derive(Debug)]
enum Kind {
    Scalar(String),
    Seq(Vec<Rc<Node>>),
    Map(Entries),
}

/// A list or map whose items are still being read.
struct Open {
    place: Place,
    tag: Tag,
    anchor: usize,
    is_map: bool,
    items: Vec<Rc<Node>>,
}

/// Returns the document's root. None if the document is empty.
fn compose(text: &str) -> Result<Option<Rc<Node>>, YamlError> {
    let mut parser = Parser::new_from_str(text);
    let mut root = None;
    let mut documents = 0_usize;
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: HashMap<usize, Rc<Node>> = HashMap::new();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|e| Place::from(e.marker()).error(e.info()))?;
        let place = Place::from(&span.start);
        let (node, anchor) = match event {
            Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentEnd => continue,
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err(place.error("expected a single document, but found another"));
                }
                continue;
            }
            Event::Alias(id) => {
                let node = anchors.get(&id).ok_or_else(|| place.error("an alias within what it repeats"))?;
                (Rc::clone(node), 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = match tag.as_deref() {
                    None if style == ScalarStyle::Plain => scalar::resolve(&text),
                    None => Tag::Str,
                    // The tag `!` has the same effect as no tag, except that an empty scalar is text.
                    Some(tag) if is_bare(tag) && text.is_empty() => Tag::Str,
                    Some(tag) if is_bare(tag) => scalar::resolve(&text),
                    Some(tag) => known_tag(tag, place)?,
                };
                (Rc::new(Node { place, tag, kind: Kind::Scalar(text.into_owned()) }), anchor)
            }
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) if open.len() >= MAX_DEPTH => {
                let _ = (anchor, tag);
                return Err(place.error(format!("more than {MAX_DEPTH} levels")));
            }
            Event::SequenceStart(anchor, tag) => {
                let tag = collection_tag(tag.as_deref(), Tag::Seq, place)?;
                open.push(Open { place, tag, anchor, is_map: false, items: Vec::new() });
                continue;
            }
            Event::MappingStart(anchor, tag) => {
                let tag = collection_tag(tag.as_deref(), Tag::Map, place)?;
                open.push(Open { place, tag, anchor, is_map: true, items: Vec::new() });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let done = open.pop().ok_or_else(|| place.error("an end without a start"))?;
                let kind = if done.is_map {
                    let mut items = done.items.into_iter();
                    let mut entries = Vec::new();
                    while let (Some(key), Some(value)) = (items.next(), items.next()) {
                        entries.push((key, value));
                    }
                    Kind::Map(entries)
                } else {
                    Kind::Seq(done.items)
                };
                (Rc::new(Node { place: done.place, tag: done.tag, kind }), done.anchor)
            }
        };
        if anchor != 0 {
            anchors.insert(anchor, Rc::clone(&node));
        }
        match open.last_mut() {
            Some(parent) => parent.items.push(node),
            None => root = Some(node),
        }
    }
    Ok(root)
}

fn is_bare(tag: &ParsedTag) -> bool {
    tag.handle.is_empty() && tag.suffix == "!" || tag.handle == "!" && tag.suffix.is_empty()
}

fn collection_tag(tag: Option<&ParsedTag>, default: Tag, place: Place) -> Result<Tag, YamlError> {
    match tag {
        None => Ok(default),
        Some(tag) if is_bare(tag) => Ok(default),
        Some(tag) => known_tag(tag, place),
    }
}

fn known_tag(tag: &ParsedTag, place: Place) -> Result<Tag, YamlError> {
    let full = format!("{}{}", tag.handle, tag.suffix);
    Ok(match full.strip_prefix("tag:yaml.org,2002:") {
        Some("null") => Tag::Null,
        Some("bool") => Tag::Bool,
        Some("int") => Tag::Int,
        Some("float") => Tag::Float,
        Some("str" | "timestamp" | "python/unicode") => Tag::Str,
        Some("binary") => Tag::Binary,
        Some("seq") => Tag::Seq,
        Some("map") => Tag::Map,
        Some("set") => Tag::Set,
        Some("pairs" | "omap") => Tag::Pairs,
        _ => {
            let shown: String = full.chars().take(80).collect();
            return Err(place.error(format!("could not determine a constructor for the tag {shown:?}")));
        }
    })
}

struct Constructor {
    values_left: usize,
    bytes_left: usize,
}

impl Constructor {
    fn value(&mut self, node: &Rc<Node>, depth: usize) -> Result<Value, YamlError> {
        let place = node.place;
        if depth > MAX_DEPTH {
            return Err(place.error(format!("more than {MAX_DEPTH} levels after aliases")));
        }
        self.values_left =
            self.values_left.checked_sub(1).ok_or_else(|| place.error("too many values after aliases"))?;
        match (&node.kind, node.tag) {
            (Kind::Scalar(text), tag) => {
                self.bytes_left = self
                    .bytes_left
                    .checked_sub(text.len())
                    .ok_or_else(|| place.error("too many bytes after aliases"))?;
                scalar::construct(text, tag).map_err(|why| place.error(why))
            }
            (Kind::Seq(items), Tag::Seq) => {
                items.iter().map(|item| self.value(item, depth + 1)).collect::<Result<_, _>>().map(Value::Array)
            }
            (Kind::Seq(items), Tag::Pairs) => self.pairs(items, depth),
            (Kind::Map(entries), Tag::Map) => self.mapping(place, entries, depth),
            (Kind::Map(entries), Tag::Set) => match self.mapping(place, entries, depth)? {
                Value::Map(entries) => Ok(Value::Array(entries.into_iter().map(|(key, _)| key).collect())),
                other => Ok(other),
            },
            _ => Err(place.error("the tag does not fit what it stands before")),
        }
    }

    fn pairs(&mut self, items: &[Rc<Node>], depth: usize) -> Result<Value, YamlError> {
        let mut pairs = Vec::new();
        for item in items {
            let Kind::Map(entries) = &item.kind else { return Err(item.place.error("expected a mapping of length 1")) };
            let [(key, value)] = entries.as_slice() else {
                return Err(item.place.error("expected a mapping of length 1"));
            };
            pairs.push(Value::Array(vec![self.value(key, depth + 1)?, self.value(value, depth + 1)?]));
        }
        Ok(Value::Array(pairs))
    }

    fn mapping(&mut self, place: Place, entries: &[(Rc<Node>, Rc<Node>)], depth: usize) -> Result<Value, YamlError> {
        let entries = self.flatten(entries, depth)?;
        let mut seen = std::collections::HashSet::with_capacity(entries.len());
        let mut out = Vec::with_capacity(entries.len());
        for (key_node, value_node) in &entries {
            let key = match (&key_node.kind, key_node.tag) {
                // `=` is a type of its own, but as a key it is text.
                (Kind::Scalar(text), Tag::Value) => Value::from(text.as_str()),
                (Kind::Scalar(_), _) => self.value(key_node, depth + 1)?,
                _ => return Err(key_node.place.error("a list or map cannot be a key")),
            };
            if !seen.insert(KeyIdentity::of(&key)) {
                let shown: String = key.python_str().chars().take(80).collect();
                return Err(key_node
                    .place
                    .error(format!("the key {shown:?} is there twice in the map that begins in line {}", place.line)));
            }
            out.push((key, self.value(value_node, depth + 1)?));
        }
        Ok(Value::Map(out))
    }

    /// Inserts the entries of `<<` before a map's own entries, which take precedence.
    fn flatten(&mut self, entries: &[(Rc<Node>, Rc<Node>)], depth: usize) -> Result<Entries, YamlError> {
        let (merges, own): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(|(key, _)| key.tag == Tag::Merge);
        if merges.is_empty() {
            return Ok(own);
        }
        let mut merged = Vec::new();
        for (_, source) in &merges {
            match &source.kind {
                Kind::Map(entries) => merged.extend(self.merge_source(source.place, entries, depth)?),
                Kind::Seq(maps) => {
                    // Of several maps the first takes precedence. Salt's loader reports keys in several of them as a
                    // conflict.
                    for map in maps.iter().rev() {
                        let Kind::Map(entries) = &map.kind else {
                            return Err(map.place.error("expected a mapping for merging"));
                        };
                        merged.extend(self.merge_source(map.place, entries, depth)?);
                    }
                }
                Kind::Scalar(_) => {
                    return Err(source.place.error("expected a mapping or list of mappings for merging"));
                }
            }
        }
        let names: std::collections::HashSet<&str> = own.iter().filter_map(|(key, _)| key.text()).collect();
        merged.retain(|(key, _)| !key.text().is_some_and(|text| names.contains(text)));
        merged.extend(own.iter().cloned());
        Ok(merged)
    }

    fn merge_source(
        &mut self,
        place: Place,
        entries: &[(Rc<Node>, Rc<Node>)],
        depth: usize,
    ) -> Result<Entries, YamlError> {
        if depth > MAX_DEPTH {
            return Err(place.error(format!("more than {MAX_DEPTH} levels of merges")));
        }
        // Nested merges repeat entries before they become values, so the repeated entries count.
        self.values_left =
            self.values_left.checked_sub(entries.len()).ok_or_else(|| place.error("too many values after merges"))?;
        self.flatten(entries, depth + 1)
    }
}

impl Node {
    /// Returns the text of a scalar.
    fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(text) => Some(text),
            _ => None,
        }
    }
}

/// The identity of a key in Python: 1, 1.0 and true are the same key.
#[derive(PartialEq, Eq, Hash)]
enum KeyIdentity {
    Nil,
    Int(i128),
    Float(u64),
    Text(Vec<u8>),
    Bytes(Vec<u8>),
}

impl KeyIdentity {
    fn of(key: &Value) -> Self {
        match key {
            Value::Boolean(b) => Self::Int(i128::from(*b)),
            Value::Integer(n) => {
                Self::Int(n.as_u64().map_or_else(|| i128::from(n.as_i64().unwrap_or_default()), i128::from))
            }
            #[expect(clippy::cast_possible_truncation, reason = "checked to be a whole number of that range")]
            Value::F64(n) if n.fract() == 0.0 && n.abs() < 1e18 => Self::Int(*n as i128),
            Value::F64(n) => Self::Float(n.to_bits()),
            Value::String(s) => Self::Text(s.as_bytes().to_vec()),
            Value::Binary(b) => Self::Bytes(b.clone()),
            _ => Self::Nil,
        }
    }
}
