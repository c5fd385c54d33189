//! From values to nodes: PyYAML's SafeRepresenter as `salt.utils.yaml.safe_dump` sets it up.

use std::cmp::Ordering;
use std::collections::HashMap;

use brine_yaml_emitter::{Format, Id, Kind, Node, Style, Tag, TooLong, binary, emit, float};

use crate::value::{Dict, Key, MAX_DEPTH, Value, python_float};

/// The options of `salt.utils.yaml.safe_dump`, with its defaults.
#[derive(Clone, Copy, Debug)]
pub struct DumpOptions {
    /// Whether collections are written as `[]` and `{}`; None does so with those that have only scalars.
    pub default_flow_style: Option<bool>,
    /// How scalars are written, if it is not up to each.
    pub default_style: Option<Style>,
    /// Characters of indentation; others than 2 to 9 mean 2.
    pub indent: i64,
    /// Characters after which lines are folded; negative is never.
    pub width: i64,
    /// Whether text beyond ASCII is written as it is.
    pub allow_unicode: bool,
    /// Whether the keys of a `dict` are sorted. Those of an `OrderedDict` never are.
    pub sort_keys: bool,
    /// Whether the text begins with `---`.
    pub explicit_start: bool,
    /// Whether the text ends with `...`.
    pub explicit_end: bool,
    /// The version in a line `%YAML` before the text.
    pub version: Option<&'static str>,
    /// Upper bound on the values. Shared ones count once, since they are written once.
    pub max_values: usize,
    /// Upper bound on the bytes of the text.
    pub max_bytes: usize,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self {
            default_flow_style: None,
            default_style: None,
            indent: 2,
            width: 80,
            allow_unicode: true,
            sort_keys: true,
            explicit_start: false,
            explicit_end: false,
            version: None,
            max_values: 1 << 18,
            max_bytes: 16 << 20,
        }
    }
}

/// Why a value is not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// More levels than [`MAX_DEPTH`].
    #[error("more than {MAX_DEPTH} levels")]
    Depth,
    /// More values than allowed.
    #[error("more than {0} values")]
    Values(usize),
    /// More bytes than allowed.
    #[error("more than {0} bytes of YAML")]
    Bytes(usize),
}

/// The value as YAML, as `salt.utils.yaml.safe_dump` writes it. Lists and dicts that occur twice have anchors. What only
/// its maker knows is `NULL`, as there.
///
/// # Errors
/// The value is outside the bounds.
pub fn dump(value: &Value, options: &DumpOptions) -> Result<String, DumpError> {
    let mut representer = Representer { options, nodes: Vec::new(), known: HashMap::new(), bytes: 0 };
    let root = representer.value(value, 0)?;
    let format = Format {
        indent: options.indent,
        width: options.width,
        unicode: options.allow_unicode,
        visible: false,
        version: options.version,
        start: options.explicit_start,
        end: options.explicit_end,
        max_bytes: options.max_bytes,
    };
    emit(&representer.nodes, root, format).map_err(|TooLong| DumpError::Bytes(options.max_bytes))
}

struct Representer<'a> {
    options: &'a DumpOptions,
    nodes: Vec<Node>,
    /// The nodes of values that can be shared.
    known: HashMap<usize, Id>,
    /// Bytes of scalars, which all get into the text.
    bytes: usize,
}

impl Representer<'_> {
    fn add(&mut self, address: Option<usize>, tag: Tag, kind: Kind) -> Result<Id, DumpError> {
        let id = self.nodes.len();
        if id >= self.options.max_values {
            return Err(DumpError::Values(self.options.max_values));
        }
        if let Some(address) = address {
            self.known.insert(address, id);
        }
        self.nodes.push(Node { tag, kind });
        Ok(id)
    }

    fn scalar(&mut self, tag: Tag, text: impl Into<String>) -> Result<Id, DumpError> {
        self.styled(None, tag, text.into(), self.options.default_style)
    }

    fn styled(
        &mut self,
        address: Option<usize>,
        tag: Tag,
        text: String,
        style: Option<Style>,
    ) -> Result<Id, DumpError> {
        self.bytes += text.len();
        if self.bytes > self.options.max_bytes {
            return Err(DumpError::Bytes(self.options.max_bytes));
        }
        self.add(address, tag, Kind::Scalar { text, style })
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<Id, DumpError> {
        if depth > MAX_DEPTH {
            return Err(DumpError::Depth);
        }
        let address = value.address();
        if let Some(known) = address.and_then(|address| self.known.get(&address)) {
            return Ok(*known);
        }
        match value {
            Value::None => self.scalar(Tag::Null, "null"),
            Value::Bool(b) => self.scalar(Tag::Bool, if *b { "true" } else { "false" }),
            Value::Int(n) => self.scalar(Tag::Int, n.to_string()),
            Value::Float(n) => self.scalar(Tag::Float, float(*n, python_float(*n))),
            Value::Str(text) => self.scalar(Tag::Str, &**text),
            Value::Bytes(bytes) => self.styled(None, Tag::Binary, binary(bytes), Some(Style::Literal)),
            Value::Date(date) => self.scalar(Tag::Timestamp, date.to_string()),
            Value::DateTime(time) => self.scalar(Tag::Timestamp, time.to_string()),
            Value::Object(_) => self.styled(address, Tag::Null, "NULL".to_owned(), self.options.default_style),
            Value::List(list) => {
                let items = list.borrow();
                self.sequence(address, &items, depth)
            }
            Value::Tuple(items) => self.sequence(address, items, depth),
            Value::Dict(dict) => self.dict(address, dict, depth),
            Value::Set(set) => {
                let members: Vec<Key> = set.borrow().iter().cloned().collect();
                let entries = members.into_iter().map(|key| (key, Value::None)).collect();
                self.mapping(address, Tag::Set, self.sorted(entries), depth)
            }
        }
    }

    fn sequence(&mut self, address: Option<usize>, items: &[Value], depth: usize) -> Result<Id, DumpError> {
        // known before its items, which may contain it
        let id = self.add(address, Tag::Seq, Kind::Sequence { items: Vec::new(), flow: false })?;
        let mut ids = Vec::with_capacity(items.len());
        for item in items {
            ids.push(self.value(item, depth + 1)?);
        }
        let flow = self.options.default_flow_style.unwrap_or_else(|| ids.iter().all(|id| self.is_small(*id)));
        self.nodes[id].kind = Kind::Sequence { items: ids, flow };
        Ok(id)
    }

    fn dict(&mut self, address: Option<usize>, dict: &Dict, depth: usize) -> Result<Id, DumpError> {
        let entries: Vec<(Key, Value)> =
            dict.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let entries = if dict.is_ordered() { entries } else { self.sorted(entries) };
        self.mapping(address, Tag::Map, entries, depth)
    }

    /// As Python's `sorted`: keys that cannot be compared keep their order.
    fn sorted(&self, mut entries: Vec<(Key, Value)>) -> Vec<(Key, Value)> {
        if !self.options.sort_keys {
            return entries;
        }
        let first = entries.first().map(|(key, _)| kind_of_order(key.value()));
        let comparable = entries.iter().all(|(key, _)| {
            first.is_some_and(|first| first != KindOfOrder::None && first == kind_of_order(key.value()))
        });
        // tuples may be comparable or not, item by item
        let mut failed = !comparable && entries.len() > 1;
        let mut sorted = entries.clone();
        if !failed {
            sorted.sort_by(|(a, _), (b, _)| {
                order(a.value(), b.value(), 0).unwrap_or_else(|| {
                    failed = true;
                    Ordering::Equal
                })
            });
        }
        if !failed {
            entries = sorted;
        }
        entries
    }

    fn mapping(
        &mut self,
        address: Option<usize>,
        tag: Tag,
        entries: Vec<(Key, Value)>,
        depth: usize,
    ) -> Result<Id, DumpError> {
        let id = self.add(address, tag, Kind::Mapping { entries: Vec::new(), flow: false })?;
        let mut ids = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            ids.push((self.value(key.value(), depth + 1)?, self.value(&value, depth + 1)?));
        }
        let flow = self
            .options
            .default_flow_style
            .unwrap_or_else(|| ids.iter().all(|(key, value)| self.is_small(*key) && self.is_small(*value)));
        self.nodes[id].kind = Kind::Mapping { entries: ids, flow };
        Ok(id)
    }

    /// Whether a node does not keep its collection from being written as `[]`.
    fn is_small(&self, id: Id) -> bool {
        matches!(self.nodes[id].kind, Kind::Scalar { style: None, .. })
    }
}

/// What Python can compare with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KindOfOrder {
    Number,
    Text,
    Bytes,
    Tuple,
    Date,
    DateTime,
    None,
}

fn kind_of_order(value: &Value) -> KindOfOrder {
    match value {
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => KindOfOrder::Number,
        Value::Str(_) => KindOfOrder::Text,
        Value::Bytes(_) => KindOfOrder::Bytes,
        Value::Tuple(_) => KindOfOrder::Tuple,
        Value::Date(_) => KindOfOrder::Date,
        Value::DateTime(_) => KindOfOrder::DateTime,
        _ => KindOfOrder::None,
    }
}

/// Python's order of two keys, if there is one.
fn order(a: &Value, b: &Value, depth: usize) -> Option<Ordering> {
    if depth > MAX_DEPTH {
        return None;
    }
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (Value::DateTime(a), Value::DateTime(b)) => match (a.offset_minutes, b.offset_minutes) {
            (None, None) => Some(a.instant().cmp(&b.instant())),
            (Some(_), Some(_)) => Some(a.instant().cmp(&b.instant())),
            _ => None,
        },
        (Value::Tuple(a), Value::Tuple(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !a.equals(b)? {
                    return order(a, b, depth + 1);
                }
            }
            Some(a.len().cmp(&b.len()))
        }
        _ => number_order(a, b),
    }
}

fn number_order(a: &Value, b: &Value) -> Option<Ordering> {
    let int = |value: &Value| match value {
        Value::Bool(b) => Some(i128::from(*b)),
        Value::Int(n) => Some(*n),
        _ => None,
    };
    match (int(a), int(b), a, b) {
        (Some(a), Some(b), ..) => Some(a.cmp(&b)),
        (Some(a), _, _, Value::Float(b)) => Some((a as f64).total_cmp(b)),
        (_, Some(b), Value::Float(a), _) => Some(a.total_cmp(&(b as f64))),
        (_, _, Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        _ => None,
    }
}
