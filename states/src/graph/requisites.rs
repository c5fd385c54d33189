//! From the requisites of a chunk to edges.

use brine_patterns::Glob;
use brine_render::{Dict, Value};

use super::{Graph, Node};
use crate::fault::{Fault, Res};
use crate::keywords::Requisite;
use crate::limits::Budget;
use crate::python;

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', ']'])
}

impl Graph {
    /// Adds the requisites of a chunk; a sentence if one names nothing.
    pub(crate) fn add_requisites(&mut self, low: &Dict, disabled: &[String], budget: &Budget) -> Res<Option<String>> {
        if !Requisite::ALL.iter().any(|kind| python::has(low, kind.name())) {
            return Ok(None);
        }
        for kind in Requisite::EDGES {
            let Some(list) = low.get(kind.name()).filter(Value::truthy) else { continue };
            if disabled.iter().any(|name| name == kind.name()) {
                continue;
            }
            for requisite in python::iterate(&list)? {
                let (module, name) = named(&requisite)?;
                let name = match &name {
                    Value::None => continue,
                    Value::Str(name) => name,
                    _ => {
                        let (at, sls) = place(low);
                        return Ok(Some(format!(
                            "Requisite [{}: {module}] in state [{at}] in SLS [{sls}] must have a string as the value",
                            kind.name()
                        )));
                    }
                };
                if !self.add_dependency(low, kind, &module, name, budget)? {
                    let (at, sls) = place(low);
                    return Ok(Some(format!(
                        "Referenced state does not exist for requisite [{}: ({module}: {name})] in state [{at}] in SLS \
                         [{sls}]",
                        kind.name()
                    )));
                }
            }
        }
        Ok(None)
    }

    /// Adds the edges of one requisite; says whether it names anything.
    fn add_dependency(&mut self, low: &Dict, kind: Requisite, module: &str, name: &str, budget: &Budget) -> Res<bool> {
        let on_trial = low.get("__prereq__").is_some_and(|value| value.truthy());
        let node = self.node(&python::tag(low)?);
        let mut found: Vec<Vec<Node>> = Vec::new();
        let mut is_there = false;
        if module == "sls" {
            if is_pattern(name) {
                is_there = true;
                let glob = Glob::new(name);
                budget.search(self.of_sls.len())?;
                let matching = self.of_sls.iter().filter(|(sls, _)| glob.matches(sls));
                found.extend(matching.map(|(_, nodes)| nodes.iter().copied().collect()));
            } else if let Some(nodes) = self.of_sls.get(name) {
                found.push(nodes.iter().copied().collect());
            }
        } else if is_pattern(name) {
            budget.search(self.named.len())?;
            let glob = Glob::new(name);
            for ((of, other), nodes) in &self.named {
                if of != module {
                    continue;
                }
                let other = other.as_str().ok_or_else(|| {
                    let class = other.value().type_name();
                    Fault::type_error(format!("expected str, bytes or os.PathLike object, not {class}"))
                })?;
                if glob.matches(other) {
                    found.push(nodes.iter().copied().collect());
                }
            }
        } else if let Some(nodes) = self.named.get(&(module.to_owned(), name.into())) {
            found.push(nodes.iter().copied().collect());
        }
        is_there |= !found.is_empty();
        for other in found.into_iter().flatten() {
            if kind == Requisite::Prereq {
                self.add_prereq(node, other, budget)?;
                continue;
            }
            if on_trial {
                let trial = self.node(&Self::trial_id(&self.nodes[node].id.clone()));
                self.add_edge(other, trial, kind, budget)?;
            }
            self.add_edge(other, node, kind, budget)?;
        }
        Ok(is_there)
    }

    /// `node` runs if `other` is going to change something: a trial of `other` comes before it, and `other` itself after.
    fn add_prereq(&mut self, node: Node, other: Node, budget: &Budget) -> Res<()> {
        self.chunk(node)?.set("__prerequiring__", true.into());
        let chunk = self.chunk(other)?.clone();
        chunk.set("__prereq__", true.into());
        let trial_id = Self::trial_id(&self.nodes[other].id.clone());
        let trial = self.node(&trial_id);
        if self.nodes[trial].chunk.is_none() {
            self.nodes[trial].module = self.nodes[other].module.clone();
            self.nodes[trial].chunk = Some(chunk);
            let edges: Vec<_> = self.nodes[other].into.iter().map(|(from, kinds)| (*from, kinds.clone())).collect();
            for (from, kinds) in edges {
                for kind in kinds.into_iter().filter(|kind| *kind != Requisite::Prereq) {
                    self.add_edge(from, trial, kind, budget)?;
                }
            }
        }
        self.add_edge(trial, node, Requisite::Prereq, budget)?;
        self.add_edge(node, other, Requisite::Require, budget)?;
        let own_trial = self.ids.get(Self::trial_id(&self.nodes[node].id).as_str()).copied();
        if let Some(own_trial) = own_trial {
            self.add_edge(trial, own_trial, Requisite::Prereq, budget)?;
        }
        Ok(())
    }
}

/// The module and the name of a requisite: text is an id; a function behind the module does not count.
fn named(requisite: &Value) -> Res<(String, Value)> {
    if matches!(requisite, Value::Str(_)) {
        return Ok(("id".to_owned(), requisite.clone()));
    }
    let dict = python::dict_method(requisite, "items")?;
    let module = python::first(requisite)?;
    let name = python::entries(dict).swap_remove(0).1;
    python::contains(&module, &".".into())?;
    let module = module.as_str().unwrap_or_default();
    Ok((module.split('.').next().unwrap_or_default().to_owned(), name))
}

/// The name of a chunk, and its SLS, for messages.
fn place(low: &Dict) -> (String, String) {
    let of = |name: &str| python::name(&low.get(name).unwrap_or_default());
    (of("name"), of("__sls__"))
}
