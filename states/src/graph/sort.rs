//! The order of chunks: requisites first, then `order`, then module, name and function.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::rc::Rc;

use brine_render::{Dict, Value};

use super::{Graph, Node};
use crate::fault::{Fault, Res};
use crate::keywords::Requisite;
use crate::python;

/// What `order: last` adds to the largest order.
const LAST: i128 = 1_000_000;

/// What nodes are sorted by.
struct Place {
    order: f64,
    own: f64,
    label: String,
    id: Rc<str>,
    node: Node,
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = self.order.total_cmp(&other.order).then(self.own.total_cmp(&other.own));
        numbers.then_with(|| self.label.cmp(&other.label)).then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}

#[expect(clippy::cast_precision_loss, reason = "orders are small; larger ones are compared as floats")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::Float(n) => Some(*n),
        Value::Bool(b) => Some(f64::from(*b)),
        _ => None,
    }
}

fn add(value: &Value, more: i128) -> Value {
    match value {
        Value::Int(n) => Value::Int(n.saturating_add(more)),
        Value::Bool(b) => Value::Int(i128::from(*b) + more),
        #[expect(clippy::cast_precision_loss, reason = "as Python adds a float")]
        other => Value::Float(number(other).unwrap_or_default() + more as f64),
    }
}

/// `first`, `last`, or nothing, as numbers. `cap` is above all orders that are given.
fn named(order: Option<&Value>, cap: i128) -> Value {
    match order.and_then(Value::as_str) {
        Some("last") => Value::Int(cap + LAST),
        Some("first") => Value::Int(0),
        _ => Value::Int(cap),
    }
}

impl Graph {
    /// The place of a node; gives its chunk the number of its order.
    fn place(&self, node: Node, cap: i128) -> Res<Place> {
        let chunk = self.chunk(node)?;
        let mut order = chunk.get("order");
        if order.as_ref().and_then(number).is_none() {
            order = Some(named(order.as_ref(), cap));
            chunk.set("order", order.clone().unwrap_or_default());
        }
        let mut order = order.unwrap_or_default();
        let name_order = python::pop(chunk, "name_order").as_ref().and_then(number).unwrap_or(0.0);
        if name_order != 0.0 {
            order = Value::Float(number(&order).unwrap_or_default() + name_order / 10000.0);
            chunk.set("order", order.clone());
        }
        if number(&order).is_some_and(|order| order < 0.0) {
            order = add(&order, cap + LAST);
            chunk.set("order", order.clone());
        }
        let own = number(&order).unwrap_or_default();
        let (mut strongest, mut earliest) = (None, f64::INFINITY);
        for (dependent, kinds) in &self.nodes[node].out {
            for kind in kinds {
                if strongest > Some(*kind) {
                    continue;
                }
                strongest = Some(*kind);
                let dependent = self.nodes[*dependent].chunk.as_ref();
                let order = match dependent.and_then(|chunk| Some((chunk, chunk.get("order")?))) {
                    None => f64::INFINITY,
                    Some((chunk, order)) => number(&order).unwrap_or_else(|| {
                        let order = named(Some(&order), cap);
                        chunk.set("order", order.clone());
                        number(&order).unwrap_or_default()
                    }),
                };
                earliest = earliest.min(order);
            }
        }
        let part = |name: &str| python::name(&chunk.get(name).unwrap_or_default());
        Ok(Place {
            order: own.min(earliest),
            own,
            label: part("state") + &part("name") + &part("fun"),
            id: self.nodes[node].id.clone(),
            node,
        })
    }

    /// The nodes in their order; none if there is a cycle. `cap` is above all orders that are given.
    pub(super) fn sorted(&self, cap: i128) -> Res<Option<Vec<Node>>> {
        let mut open: Vec<usize> = self.nodes.iter().map(|entry| entry.into.values().map(Vec::len).sum()).collect();
        let mut heap = BinaryHeap::new();
        for (node, count) in open.iter().enumerate() {
            if *count == 0 {
                heap.push(Reverse(self.place(node, cap)?));
            }
        }
        let mut sorted = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse(place)) = heap.pop() {
            sorted.push(place.node);
            for (dependent, kinds) in &self.nodes[place.node].out {
                open[*dependent] -= kinds.len();
                if open[*dependent] == 0 {
                    heap.push(Reverse(self.place(*dependent, cap)?));
                }
            }
        }
        Ok((sorted.len() == self.nodes.len()).then_some(sorted))
    }

    /// The cycle that is found first, in Salt's form.
    pub(crate) fn cycle_text(&self) -> Res<String> {
        let mut parts = Vec::new();
        for (from, to, kind) in self.cycle() {
            let (dependency, dependent) = (self.chunk(from)?, self.chunk(to)?);
            let is_added = kind == Requisite::Require && !python::has(dependent, kind.name());
            let kind = if is_added { Requisite::Prereq } else { kind };
            parts.push(format!("({}, '{}', {})", shown(dependent)?, kind.name(), shown(dependency)?));
        }
        Ok(parts.join(", "))
    }

    /// The edges of a cycle.
    fn cycle(&self) -> Vec<(Node, Node, Requisite)> {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            No,
            Open,
            Done,
        }
        let mut seen = vec![Seen::No; self.nodes.len()];
        let mut parents: Vec<Option<(Node, Requisite)>> = vec![None; self.nodes.len()];
        let edges = |node: Node| -> Vec<(Node, Requisite)> {
            let out = self.nodes[node].out.iter();
            out.flat_map(|(to, kinds)| kinds.iter().map(|kind| (*to, *kind))).collect()
        };
        for start in 0..self.nodes.len() {
            if seen[start] != Seen::No {
                continue;
            }
            seen[start] = Seen::Open;
            let mut path = vec![(start, edges(start).into_iter())];
            while let Some((node, rest)) = path.last_mut() {
                let node = *node;
                let Some((to, kind)) = rest.next() else {
                    seen[node] = Seen::Done;
                    path.pop();
                    continue;
                };
                match seen[to] {
                    Seen::Done => {}
                    Seen::No => {
                        parents[to] = Some((node, kind));
                        seen[to] = Seen::Open;
                        path.push((to, edges(to).into_iter()));
                    }
                    Seen::Open => {
                        let mut cycle = vec![(node, to, kind)];
                        let mut at = node;
                        while at != to {
                            let Some((before, kind)) = parents[at] else { break };
                            cycle.push((before, at, kind));
                            at = before;
                        }
                        cycle.reverse();
                        return cycle;
                    }
                }
            }
        }
        Vec::new()
    }
}

/// A chunk in the sentence about a cycle.
fn shown(chunk: &Dict) -> Res<String> {
    let of = |name: &str| chunk.get(name).ok_or_else(|| Fault::python("KeyError", format!("'{name}'")));
    let (id, name) = (of("__id__")?, of("name")?);
    let dict = Dict::default();
    dict.set("SLS", of("__sls__")?);
    dict.set("ID", id.clone());
    if id != name {
        dict.set("NAME", name);
    }
    Ok(python::name(&dict.into()))
}
