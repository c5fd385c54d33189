//! `yaml`: block style as PyYAML writes it through libyaml, at 80 columns, with sorted keys.

use brine_protocol::pyrepr;
use brine_protocol::value::Value;
use brine_yaml_emitter::{Format, Id, Kind, Node, Style as ScalarStyle, Tag, binary, emit, float};

use super::{Indent, Style};

pub(super) fn render(value: &Value, style: &Style) -> String {
    let (flow, indent) = match style.indent {
        Indent::Columns(columns) => (columns < 0, columns),
        Indent::Unset | Indent::Null | Indent::Pretty => (false, 2),
    };
    let mut nodes = Nodes { nodes: Vec::new(), flow };
    let root = nodes.value(value);
    let format = Format { indent, visible: style.visible, ..Format::default() };
    let mut text = emit(&nodes.nodes, root, format).unwrap_or_default(); // there is no bound
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// The nodes of a value.
struct Nodes {
    nodes: Vec<Node>,
    /// Whether collections are written between brackets.
    flow: bool,
}

impl Nodes {
    fn add(&mut self, tag: Tag, kind: Kind) -> Id {
        self.nodes.push(Node { tag, kind });
        self.nodes.len() - 1
    }

    fn scalar(&mut self, tag: Tag, text: impl Into<String>) -> Id {
        self.add(tag, Kind::Scalar { text: text.into(), style: None })
    }

    fn bytes(&mut self, data: &[u8]) -> Id {
        self.add(Tag::Binary, Kind::Scalar { text: binary(data), style: Some(ScalarStyle::Literal) })
    }

    fn float(&mut self, number: f64) -> Id {
        self.scalar(Tag::Float, float(number, pyrepr::float(number)))
    }

    fn value(&mut self, value: &Value) -> Id {
        match value {
            Value::Nil => self.scalar(Tag::Null, "null"),
            Value::Boolean(flag) => self.scalar(Tag::Bool, if *flag { "true" } else { "false" }),
            Value::Integer(_) => self.scalar(Tag::Int, pyrepr::repr(value)),
            Value::F32(number) => self.float(f64::from(*number)),
            Value::F64(number) => self.float(*number),
            Value::String(text) => match text.as_str() {
                Some(text) => self.scalar(Tag::Str, text),
                None => self.bytes(text.as_bytes()),
            },
            Value::Binary(data) => self.bytes(data),
            Value::Ext(_, data) => match std::str::from_utf8(data) {
                Ok(text) => self.scalar(Tag::Str, text),
                Err(_) => self.bytes(data),
            },
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item)).collect();
                self.add(Tag::Seq, Kind::Sequence { items, flow: self.flow })
            }
            Value::Map(entries) => {
                let entries = pyrepr::sorted(entries).unwrap_or_else(|| entries.iter().collect());
                let entries = entries.into_iter().map(|(key, item)| (self.value(key), self.value(item))).collect();
                self.add(Tag::Map, Kind::Mapping { entries, flow: self.flow })
            }
        }
    }
}
