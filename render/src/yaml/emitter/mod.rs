//! From nodes to text: libyaml 0.2.5's emitter (see `scanner`), which is what `salt.utils.yaml.safe_dump` writes with.
//!
//! libyaml is fed events and keeps a stack of states; we have the nodes, so each state is a function.

mod scalar;

use super::represent::{Id, Kind, Node};
pub(crate) use scalar::escaped;
use scalar::is_break;

/// Upper bound on a key that is written without `?`, in bytes with its anchor and tag.
const MAX_SIMPLE_KEY: usize = 128;

/// How the text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub(super) indent: i64,
    pub(super) width: i64,
    pub(super) unicode: bool,
    /// The line `%YAML`, with this version of it.
    pub(super) version: Option<&'static str>,
    /// The line `---`, which `version` needs too.
    pub(super) start: bool,
    /// The line `...`.
    pub(super) end: bool,
    /// Upper bound on the bytes of the text.
    pub(super) max_bytes: usize,
}

/// The text has more bytes than allowed.
pub(super) struct TooLong;

type Result = std::result::Result<(), TooLong>;

pub(super) fn emit(nodes: &[Node], root: Id, format: Format) -> std::result::Result<String, TooLong> {
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
    Ok(emitter.out)
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
