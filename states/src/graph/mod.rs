//! Which chunk depends on which, and in which order they run.
//!
//! | file | |
//! |---|---|
//! | `mod` | nodes, edges, and how chunks are looked up |
//! | `requisites` | from the requisites of a chunk to edges |
//! | `sort` | the order, and cycles |
//! | `aggregate` | chunks that run together |

mod aggregate;
mod requisites;
mod sort;

use std::rc::Rc;

use brine_render::{Dict, Value};
use indexmap::{IndexMap, IndexSet};

use crate::fault::{Fault, Res};
use crate::keywords::Requisite;
use crate::limits::Budget;
use crate::python;

/// The place of a node.
pub(crate) type Node = usize;

/// The kinds of edges from one node to another, in the order in which they were made.
type Kinds = Vec<Requisite>;

/// A chunk, the trial of a chunk that `prereq` asks for, or several chunks that run together.
#[derive(Default)]
struct Entry {
    id: Rc<str>,
    chunk: Option<Dict>,
    module: Rc<str>,
    may_aggregate: bool,
    /// The node for the chunks that run together with this one.
    aggregate: Option<Node>,
    /// The chunks that run together, of such a node.
    members: Vec<Node>,
    /// What depends on this.
    out: IndexMap<Node, Kinds>,
    /// What this depends on.
    into: IndexMap<Node, Kinds>,
}

/// The dependencies among the chunks of a run.
pub(crate) struct Graph {
    nodes: Vec<Entry>,
    ids: IndexMap<Rc<str>, Node>,
    /// By module (or `id`), and by name or id.
    named: IndexMap<(String, Name), IndexSet<Node>>,
    of_sls: IndexMap<Rc<str>, IndexSet<Node>>,
}

/// A name as key.
type Name = brine_render::Key;

impl Graph {
    pub(crate) fn new() -> Self {
        Self { nodes: Vec::new(), ids: IndexMap::new(), named: IndexMap::new(), of_sls: IndexMap::new() }
    }

    fn node(&mut self, id: &str) -> Node {
        if let Some(known) = self.ids.get(id) {
            return *known;
        }
        let id: Rc<str> = id.into();
        self.nodes.push(Entry { id: id.clone(), ..Entry::default() });
        self.ids.insert(id, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// Adds a chunk. One with the tag of another takes its place.
    pub(crate) fn add_chunk(&mut self, low: &Dict, may_aggregate: bool) -> Res<()> {
        let node = self.node(&python::tag(low)?);
        let module = python::name(&low.get("state").unwrap_or_default());
        let entry = &mut self.nodes[node];
        entry.chunk = Some(low.clone());
        entry.module = module.as_str().into();
        entry.may_aggregate = may_aggregate;
        let name = python::key(&low.get("name").unwrap_or_default())?;
        let id = python::key(&low.get("__id__").unwrap_or_default())?;
        for (kind, key) in [(module.as_str(), &name), (module.as_str(), &id), ("id", &id), ("id", &name)] {
            self.named.entry((kind.to_owned(), key.clone())).or_default().insert(node);
        }
        let mut files: Vec<Value> = low.get("__sls__").filter(Value::truthy).into_iter().collect();
        if let Some(by) = low.get("__sls_included_from__").filter(Value::truthy) {
            files.extend(python::iterate(&by)?);
        }
        for sls in files {
            self.of_sls.entry(python::name(&sls).into()).or_default().insert(node);
        }
        Ok(())
    }

    fn add_edge(&mut self, from: Node, to: Node, kind: Requisite, budget: &Budget) -> Res<()> {
        let kinds = self.nodes[from].out.entry(to).or_default();
        if kinds.contains(&kind) {
            return Ok(());
        }
        budget.edge()?;
        kinds.push(kind);
        self.nodes[to].into.entry(from).or_default().push(kind);
        Ok(())
    }

    fn trial_id(id: &str) -> String {
        format!("{id}_|-__prereq_test__")
    }

    fn chunk(&self, node: Node) -> Res<&Dict> {
        self.nodes[node].chunk.as_ref().ok_or_else(|| Fault::python("KeyError", "'chunk'"))
    }

    /// The requisites of a chunk, with the chunks that they name. One that is on trial has those of its trial.
    pub(crate) fn dependencies(&self, low: &Dict) -> Res<Vec<(Requisite, Dict)>> {
        let mut id = python::tag(low)?;
        if low.get("__prereq__").is_some_and(|value| value.truthy()) {
            id = Self::trial_id(&id);
        }
        let mut found = Vec::new();
        let Some(node) = self.ids.get(id.as_str()) else { return Ok(found) };
        for (from, kinds) in &self.nodes[*node].into {
            for kind in kinds {
                let from = &self.nodes[*from];
                match &from.chunk {
                    Some(chunk) => found.push((*kind, chunk.clone())),
                    None => {
                        let members = from.members.iter().filter_map(|node| self.nodes[*node].chunk.clone());
                        found.extend(members.map(|chunk| (*kind, chunk)));
                    }
                }
            }
        }
        Ok(found)
    }
}
