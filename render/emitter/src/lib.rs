//! YAML as libyaml 0.2.5 writes it, which is what `salt.utils.yaml.safe_dump` writes with, and the types that PyYAML gives plain text.
//!
//! libyaml is fed events and keeps a stack of states; here are the nodes, so each state is a function.

mod resolver;
mod scalar;

use base64::Engine as _;

pub use resolver::{Tag, resolve};
pub use scalar::escaped;
use scalar::is_break;

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `text`
    Plain,
    /// `'text'`
    SingleQuoted,
    /// `"text"`
    DoubleQuoted,
    /// `|`
    Literal,
    /// `>`
    Folded,
}

/// The place of a node among all.
pub type Id = usize;

/// A value with its type.
#[derive(Debug)]
pub struct Node {
    /// The type.
    pub tag: Tag,
    /// The content.
    pub kind: Kind,
}

/// What a node consists of.
#[derive(Debug)]
pub enum Kind {
    /// A text, and how it is written; None leaves that to the text.
    Scalar {
        /// As it is read.
        text: String,
        /// How it is written, where that can be.
        style: Option<Style>,
    },
    /// `[]` with `flow`, otherwise a line for each.
    Sequence {
        /// In order.
        items: Vec<Id>,
        /// Whether all is between brackets.
        flow: bool,
    },
    /// `{}` with `flow`, otherwise a line for each.
    Mapping {
        /// In order, keys first.
        entries: Vec<(Id, Id)>,
        /// Whether all is between brackets.
        flow: bool,
    },
}

impl Node {
    /// Whether plain text has this type by itself.
    fn is_plain_implicit(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, .. } if resolve(text) == self.tag)
    }

    /// Whether quoted text has this type by itself.
    fn is_str(&self) -> bool {
        self.tag == Tag::Str
    }

    /// The tag, where the type cannot be seen.
    fn explicit_tag(&self) -> Option<&'static str> {
        let implicit = match self.kind {
            Kind::Scalar { .. } => self.is_str() || self.is_plain_implicit(),
            Kind::Sequence { .. } => self.tag == Tag::Seq,
            Kind::Mapping { .. } => self.tag == Tag::Map,
        };
        match self.tag {
            _ if implicit => None,
            Tag::Null => Some("!!null"),
            Tag::Bool => Some("!!bool"),
            Tag::Int => Some("!!int"),
            Tag::Float => Some("!!float"),
            Tag::Binary => Some("!!binary"),
            Tag::Timestamp => Some("!!timestamp"),
            Tag::Set => Some("!!set"),
            _ => None,
        }
    }
}

/// A float as YAML 1.1 reads it, from Python's `repr` of it: with a point.
#[must_use]
pub fn float(number: f64, repr: String) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    match repr.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => repr,
    }
}

/// Bytes as the text of a node of [`Tag::Binary`], by Python's `base64.encodebytes`: lines of 76 characters.
#[must_use]
pub fn binary(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(57) * 77);
    for line in bytes.chunks(57) {
        base64::engine::general_purpose::STANDARD.encode_string(line, &mut out);
        out.push('\n');
    }
    out
}

/// Upper bound on a key that is written without `?`, in bytes with its anchor and tag.
const MAX_SIMPLE_KEY: usize = 128;

/// How the text looks.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Characters of indentation; others than 2 to 9 mean 2.
    pub indent: i64,
    /// Characters after which lines are folded; negative is never, and up to twice the indentation is 80.
    pub width: i64,
    /// Whether text beyond ASCII is written as it is.
    pub unicode: bool,
    /// Whether what does something to a terminal is written by its number (`brine_text`).
    pub visible: bool,
    /// The line `%YAML`, with this version of it.
    pub version: Option<&'static str>,
    /// The line `---`, which `version` needs too.
    pub start: bool,
    /// The line `...`.
    pub end: bool,
    /// Upper bound on the bytes of the text.
    pub max_bytes: usize,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            indent: 2,
            width: 80,
            unicode: true,
            visible: false,
            version: None,
            start: false,
            end: false,
            max_bytes: usize::MAX,
        }
    }
}

/// The text has more bytes than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

type Result = std::result::Result<(), TooLong>;

/// Writes the node at `root` and those that it refers to, each by its place in `nodes`. What is referred to twice has an anchor.
///
/// # Errors
/// The text is longer than the format allows.
///
/// # Panics
/// When a place is outside of `nodes`.
pub fn emit(nodes: &[Node], root: Id, mut format: Format) -> std::result::Result<String, TooLong> {
    if !(2..=9).contains(&format.indent) {
        format.indent = 2;
    }
    format.width = match format.width {
        width if width < 0 => i64::MAX,
        width if width <= format.indent * 2 => 80,
        width => width,
    };
    let anchors = Anchors::number(nodes, root);
    let mut emitter = Emitter {
        nodes,
        anchors,
        format,
        out: String::new(),
        indent: -1,
        flow_level: 0,
        column: 0,
        whitespace: true,
        indention: true,
        open_ended: false,
    };
    if let Some(version) = format.version {
        emitter.write_indicator("%YAML", true, false, false);
        emitter.write_indicator(version, true, false, false);
        emitter.write_indent();
    }
    if format.start || format.version.is_some() {
        emitter.write_indicator("---", true, false, false);
    }
    emitter.node(root, Place { mapping: false, simple_key: false })?;
    emitter.write_indent();
    if emitter.open_ended || format.end {
        emitter.write_indicator("...", true, false, false);
        emitter.write_indent();
    }
    if emitter.out.len() > format.max_bytes { Err(TooLong) } else { Ok(emitter.out) }
}

/// Which nodes are referred to more than once, by what number, and which were written.
struct Anchors {
    numbers: Vec<u32>,
    written: Vec<bool>,
}

impl Anchors {
    fn number(nodes: &[Node], root: Id) -> Self {
        let mut seen = vec![false; nodes.len()];
        let mut numbers = vec![0; nodes.len()];
        let mut last = 0;
        let mut pile = vec![root];
        while let Some(id) = pile.pop() {
            if std::mem::replace(&mut seen[id], true) {
                if numbers[id] == 0 {
                    last += 1;
                    numbers[id] = last;
                }
                continue;
            }
            match &nodes[id].kind {
                Kind::Scalar { .. } => {}
                Kind::Sequence { items, .. } => pile.extend(items.iter().rev()),
                Kind::Mapping { entries, .. } => {
                    pile.extend(entries.iter().rev().flat_map(|(key, value)| [*value, *key]));
                }
            }
        }
        Self { numbers, written: vec![false; nodes.len()] }
    }
}

/// What is around a node.
#[derive(Clone, Copy)]
struct Place {
    mapping: bool,
    simple_key: bool,
}

const ITEM: Place = Place { mapping: false, simple_key: false };
const KEY: Place = Place { mapping: true, simple_key: false };
const SIMPLE_KEY: Place = Place { mapping: true, simple_key: true };
const VALUE: Place = Place { mapping: true, simple_key: false };

struct Emitter<'a> {
    nodes: &'a [Node],
    anchors: Anchors,
    format: Format,
    out: String,
    indent: i64,
    flow_level: usize,
    column: i64,
    /// Whether the last character was white space.
    whitespace: bool,
    /// Whether the last characters were indentation, or `-`, `?` and `:`.
    indention: bool,
    /// Whether the last text ends in line breaks that count.
    open_ended: bool,
}

impl Emitter<'_> {
    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_text(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count() as i64;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn write_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }

    fn write_indent(&mut self) {
        let indent = self.indent.max(0);
        if !self.indention || self.column > indent || self.column == indent && !self.whitespace {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn write_indicator(&mut self, text: &str, need_whitespace: bool, is_whitespace: bool, is_indention: bool) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        self.put_text(text);
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    /// Indents what `content` writes.
    fn indented(&mut self, flow: bool, indentless: bool, content: impl FnOnce(&mut Self) -> Result) -> Result {
        let outer = self.indent;
        if self.indent < 0 {
            self.indent = if flow { self.format.indent } else { 0 };
        } else if !indentless {
            self.indent += self.format.indent;
        }
        let done = content(self);
        self.indent = outer;
        done
    }

    fn is_too_wide(&self) -> bool {
        self.column > self.format.width
    }

    fn node(&mut self, id: Id, place: Place) -> Result {
        if self.out.len() > self.format.max_bytes {
            return Err(TooLong);
        }
        let nodes = self.nodes;
        let node = &nodes[id];
        let number = self.anchors.numbers[id];
        if number > 0 {
            let again = std::mem::replace(&mut self.anchors.written[id], true);
            self.write_indicator(if again { "*" } else { "&" }, true, false, false);
            self.put_text(&format!("id{number:03}"));
            self.whitespace = false;
            self.indention = false;
            if again {
                if place.simple_key {
                    self.put(' ');
                }
                return Ok(());
            }
        }
        match &node.kind {
            Kind::Scalar { text, style } => self.scalar(node, text, *style, place),
            Kind::Sequence { items, flow } => {
                self.write_tag(node.explicit_tag());
                if self.flow_level > 0 || *flow || items.is_empty() {
                    self.flow_sequence(items)
                } else {
                    self.block_sequence(items, place)
                }
            }
            Kind::Mapping { entries, flow } => {
                self.write_tag(node.explicit_tag());
                if self.flow_level > 0 || *flow || entries.is_empty() {
                    self.flow_mapping(entries)
                } else {
                    self.block_mapping(entries)
                }
            }
        }
    }

    /// Writes a tag: a type's name, or `!`.
    fn write_tag(&mut self, tag: Option<&str>) {
        if let Some(tag) = tag {
            if !self.whitespace {
                self.put(' ');
            }
            self.put_text(tag);
            self.whitespace = false;
            self.indention = false;
        }
    }

    fn flow_sequence(&mut self, items: &[Id]) -> Result {
        self.write_indicator("[", true, true, false);
        self.flow_level += 1;
        self.indented(true, false, |this| {
            for (n, item) in items.iter().enumerate() {
                this.next_in_flow(n);
                this.node(*item, ITEM)?;
            }
            Ok(())
        })?;
        self.flow_level -= 1;
        self.write_indicator("]", false, false, false);
        Ok(())
    }

    fn next_in_flow(&mut self, n: usize) {
        if n > 0 {
            self.write_indicator(",", false, false, false);
        }
        if self.is_too_wide() {
            self.write_indent();
        }
    }

    fn flow_mapping(&mut self, entries: &[(Id, Id)]) -> Result {
        self.write_indicator("{", true, true, false);
        self.flow_level += 1;
        self.indented(true, false, |this| {
            for (n, (key, value)) in entries.iter().enumerate() {
                this.next_in_flow(n);
                if this.is_simple_key(*key) {
                    this.node(*key, SIMPLE_KEY)?;
                    this.write_indicator(":", false, false, false);
                } else {
                    this.write_indicator("?", true, false, false);
                    this.node(*key, KEY)?;
                    if this.is_too_wide() {
                        this.write_indent();
                    }
                    this.write_indicator(":", true, false, false);
                }
                this.node(*value, VALUE)?;
            }
            Ok(())
        })?;
        self.flow_level -= 1;
        self.write_indicator("}", false, false, false);
        Ok(())
    }

    fn block_sequence(&mut self, items: &[Id], place: Place) -> Result {
        let indentless = place.mapping && !self.indention;
        self.indented(false, indentless, |this| {
            for item in items {
                this.write_indent();
                this.write_indicator("-", true, false, true);
                this.node(*item, ITEM)?;
            }
            Ok(())
        })
    }

    fn block_mapping(&mut self, entries: &[(Id, Id)]) -> Result {
        self.indented(false, false, |this| {
            for (key, value) in entries {
                this.write_indent();
                if this.is_simple_key(*key) {
                    this.node(*key, SIMPLE_KEY)?;
                    this.write_indicator(":", false, false, false);
                } else {
                    this.write_indicator("?", true, false, true);
                    this.node(*key, KEY)?;
                    this.write_indent();
                    this.write_indicator(":", true, false, true);
                }
                this.node(*value, VALUE)?;
            }
            Ok(())
        })
    }

    fn is_simple_key(&self, id: Id) -> bool {
        let node = &self.nodes[id];
        let anchor = if self.anchors.numbers[id] > 0 { "id001".len() } else { 0 };
        if anchor > 0 && self.anchors.written[id] {
            return true;
        }
        let length = anchor + node.explicit_tag().map_or(0, str::len);
        let (fits, length) = match &node.kind {
            Kind::Scalar { text, .. } => (!text.contains(is_break), length + text.len()),
            Kind::Sequence { items, .. } => (items.is_empty(), length),
            Kind::Mapping { entries, .. } => (entries.is_empty(), length),
        };
        fits && length <= MAX_SIMPLE_KEY
    }
}
