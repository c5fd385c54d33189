//! Chunks of one module that can run together (`state_aggregate`): none of them depends on another.

use std::collections::HashMap;
use std::rc::Rc;

use brine_render::Dict;

use super::{Graph, Node};
use crate::fault::Res;
use crate::limits::Budget;
use crate::python;

/// Upper bound on the chunks that run together; Salt's number.
const GROUP: usize = 500;

impl Graph {
    /// The chunks in their order, with those marked that can run together; none if there is a cycle.
    pub(crate) fn order(&mut self, cap: i128, budget: &Budget) -> Res<Option<Vec<Dict>>> {
        let Some(sorted) = self.sorted(cap)? else { return Ok(None) };
        let mut groups: HashMap<Rc<str>, Vec<Vec<Node>>> = HashMap::new();
        for &node in &sorted {
            if !self.nodes[node].may_aggregate {
                continue;
            }
            let module = self.nodes[node].module.clone();
            let of_module = groups.entry(module.clone()).or_default();
            let mut is_added = false;
            for (at, group) in of_module.iter_mut().enumerate() {
                let Some(&first) = group.first().filter(|_| group.len() < GROUP) else { continue };
                let known = self.nodes[first].aggregate;
                if self.has_path(known.unwrap_or(first), node, budget)? {
                    continue;
                }
                let together = match known {
                    Some(known) => known,
                    None => {
                        let new = self.node(&format!("__aggregate_{module}_{at}__"));
                        self.nodes[new].module = module.clone();
                        self.copy_edges(first, new, budget)?;
                        self.nodes[first].aggregate = Some(new);
                        self.nodes[new].members.push(first);
                        new
                    }
                };
                self.copy_edges(node, together, budget)?;
                self.nodes[node].aggregate = Some(together);
                self.nodes[together].members.push(node);
                group.push(node);
                is_added = true;
                break;
            }
            if !is_added {
                of_module.push(vec![node]);
            }
        }
        sorted.into_iter().map(|node| self.chunk(node).cloned()).collect::<Res<_>>().map(Some)
    }

    fn copy_edges(&mut self, from: Node, to: Node, budget: &Budget) -> Res<()> {
        let into: Vec<_> = self.nodes[from].into.iter().map(|(node, kinds)| (*node, kinds.clone())).collect();
        let out: Vec<_> = self.nodes[from].out.iter().map(|(node, kinds)| (*node, kinds.clone())).collect();
        for (node, kinds) in into {
            for kind in kinds {
                self.add_edge(node, to, kind, budget)?;
            }
        }
        for (node, kinds) in out {
            for kind in kinds {
                self.add_edge(to, node, kind, budget)?;
            }
        }
        Ok(())
    }

    fn has_path(&self, from: Node, to: Node, budget: &Budget) -> Res<bool> {
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            if node == to {
                return Ok(true);
            }
            if !std::mem::replace(&mut seen[node], true) {
                budget.search(self.nodes[node].out.len() + 1)?;
                open.extend(self.nodes[node].out.keys().filter(|next| !seen[**next]));
            }
        }
        Ok(false)
    }

    /// The chunks that can run together with one; itself among them, or none.
    pub(crate) fn together(&self, low: &Dict) -> Res<Vec<Dict>> {
        let Some(&node) = self.ids.get(python::tag(low)?.as_str()) else { return Ok(Vec::new()) };
        let Some(together) = self.nodes[node].aggregate else { return Ok(Vec::new()) };
        let members = self.nodes[together].members.iter();
        Ok(members.filter_map(|member| self.nodes[*member].chunk.clone()).collect())
    }
}
