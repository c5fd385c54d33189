//! From events to nodes: PyYAML's composer. Aliases are the same node again, so an alias bomb stays small.

use std::collections::HashMap;

use brine_yaml_emitter::{Tag, resolve};

use super::error::{Mark, YamlError, YamlErrorKind};
use super::parser::{Event, Parser};
use super::{Limits, Result};

/// The place of a node in [`Nodes`].
pub(super) type Id = u32;

pub(super) struct Node {
    pub(super) tag: Tag,
    pub(super) kind: Kind,
    pub(super) mark: Mark,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Scalar(String),
    Sequence(Vec<Id>),
    Mapping(Vec<(Id, Id)>),
}

impl Kind {
    /// As PyYAML calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            Self::Sequence(_) => "sequence",
            Self::Mapping(_) => "mapping",
        }
    }
}

/// The nodes of one document.
#[derive(Default)]
pub(super) struct Nodes {
    pub(super) all: Vec<Node>,
    pub(super) root: Option<Id>,
    /// Where the first alias is of a collection that contains it.
    pub(super) recursive: Option<Mark>,
}

/// A collection whose end has not come.
struct Open {
    id: Id,
    children: Vec<Id>,
}

pub(super) fn compose(text: &str, limits: &Limits) -> Result<Nodes> {
    let mut parser = Parser::new(text, limits.depth);
    let mut nodes = Nodes::default();
    let mut anchors: HashMap<String, Id> = HashMap::new();
    let mut open: Vec<Open> = Vec::new();
    let mut placed = 0;
    loop {
        let (event, mark) = parser.next()?;
        let add = |nodes: &mut Nodes, anchors: &mut HashMap<String, Id>, anchor: Option<String>, node: Node| {
            if nodes.all.len() >= limits.values {
                return Err(YamlError::limit(format!("more than {} values", limits.values), mark));
            }
            let id = nodes.all.len() as Id;
            if let Some(name) = anchor {
                if let Some(first) = anchors.get(&name) {
                    let first = nodes.all[*first as usize].mark;
                    return Err(YamlError::new(YamlErrorKind::Composer, "second occurrence", mark)
                        .within("found duplicate anchor; first occurrence", first));
                }
                anchors.insert(name, id);
            }
            nodes.all.push(node);
            Ok(id)
        };
        let done = match event {
            Event::StreamStart => continue,
            Event::StreamEnd => return Ok(nodes),
            Event::DocumentStart => match nodes.root {
                None => continue,
                Some(root) => {
                    let first = nodes.all[root as usize].mark;
                    return Err(YamlError::new(YamlErrorKind::Composer, "but found another document", mark)
                        .within("expected a single document in the stream", first));
                }
            },
            Event::DocumentEnd => continue,
            Event::Alias { name } => {
                let Some(id) = anchors.get(&name).copied() else {
                    return Err(YamlError::new(YamlErrorKind::Composer, "found undefined alias", mark));
                };
                // Python makes a list that contains itself, which Salt then walks until its stack is full: an error here,
                // after all that Python finds
                if open.iter().any(|collection| collection.id == id) {
                    // a map that merges itself gets nothing from it
                    let merges_itself = open.last().is_some_and(|map| {
                        let key = map.children.last().map(|key| &nodes.all[*key as usize].tag);
                        map.id == id && map.children.len() % 2 == 1 && key == Some(&Tag::Merge)
                    });
                    if !merges_itself {
                        nodes.recursive.get_or_insert(mark);
                    }
                    let node = Node { tag: Tag::Map, kind: Kind::Mapping(Vec::new()), mark };
                    add(&mut nodes, &mut anchors, None, node)?
                } else {
                    id
                }
            }
            Event::Scalar { anchor, tag, value, plain } => {
                let tag = match tag.filter(|tag| tag != "!") {
                    Some(tag) => Tag::parse(tag),
                    None if plain => resolve(&value),
                    None => Tag::Str,
                };
                add(&mut nodes, &mut anchors, anchor, Node { tag, kind: Kind::Scalar(value), mark })?
            }
            Event::SequenceStart { anchor, tag } => {
                let tag = tag.filter(|tag| tag != "!").map_or(Tag::Seq, Tag::parse);
                let node = Node { tag, kind: Kind::Sequence(Vec::new()), mark };
                let id = add(&mut nodes, &mut anchors, anchor, node)?;
                if open.len() >= limits.depth {
                    return Err(YamlError::limit(format!("more than {} levels", limits.depth), mark));
                }
                open.push(Open { id, children: Vec::new() });
                continue;
            }
            Event::MappingStart { anchor, tag } => {
                let tag = tag.filter(|tag| tag != "!").map_or(Tag::Map, Tag::parse);
                let node = Node { tag, kind: Kind::Mapping(Vec::new()), mark };
                let id = add(&mut nodes, &mut anchors, anchor, node)?;
                if open.len() >= limits.depth {
                    return Err(YamlError::limit(format!("more than {} levels", limits.depth), mark));
                }
                open.push(Open { id, children: Vec::new() });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { id, children }) = open.pop() else { continue };
                match &mut nodes.all[id as usize].kind {
                    Kind::Mapping(entries) => {
                        *entries = children.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                    }
                    Kind::Sequence(items) => *items = children,
                    Kind::Scalar(_) => {}
                }
                id
            }
        };
        // an alias costs a place, though no node
        placed += 1;
        if placed > limits.values {
            return Err(YamlError::limit(format!("more than {} values", limits.values), mark));
        }
        match open.last_mut() {
            Some(parent) => parent.children.push(done),
            None => nodes.root = Some(done),
        }
    }
}
