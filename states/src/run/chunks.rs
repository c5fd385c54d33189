//! One chunk after the other, and at the end what listens.

use brine_render::{Dict, Value};
use indexmap::IndexMap;

use super::core::Core;
use super::step::{Answer, Step};
use crate::fault::Res;
use crate::keywords;
use crate::low::may_aggregate;
use crate::python;

/// Module, id and name of each chunk.
type References = IndexMap<[brine_render::Key; 3], Dict>;

impl Core<'_> {
    /// All chunks, then `listen` and `beacon`.
    pub(super) async fn run_all(&self) -> Res<()> {
        let running = self.results.borrow().clone();
        self.run_chunks(&self.chunks, &running).await?;
        let (listeners, errors) = self.listeners(&running)?;
        self.run_more(&listeners, &running).await?;
        for (tag, error) in errors {
            error.set("__run_num__", self.next_number());
            running.set(&tag, error.into());
        }
        let beacons = self.beacons()?;
        self.run_more(&beacons, &running).await
    }

    /// The chunks of an id, with what they require: each as if it were alone.
    pub(super) async fn run_id(&self, id: &str) -> Res<()> {
        let all = self.results.borrow().clone();
        for low in &self.chunks {
            if low.get("__id__").is_some_and(|own| own.as_str() == Some(id)) {
                let running = Dict::default();
                self.results.replace(running.clone());
                self.chunk(low, &running, 0).await?;
                while !self.reconcile(&running, None).await? {
                    self.wait().await?;
                }
                python::update(&all, &running.into())?;
                self.results.replace(all.clone());
            }
        }
        Ok(())
    }

    /// One call.
    pub(super) async fn run_one(&self, low: &Dict) -> Res<()> {
        let running = self.results.borrow().clone();
        let result = self.call(low, &Dict::default()).await?;
        running.set(&python::tag(low)?, result.into());
        while !self.reconcile(&running, None).await? {
            self.wait().await?;
        }
        Ok(())
    }

    async fn run_more(&self, chunks: &[Dict], all: &Dict) -> Res<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        let running = Dict::default();
        self.results.replace(running.clone());
        let done = self.run_chunks(chunks, &running).await;
        python::update(all, &running.into())?;
        self.results.replace(all.clone());
        done
    }

    async fn run_chunks(&self, chunks: &[Dict], running: &Dict) -> Res<()> {
        let mut pending: IndexMap<String, Dict> = IndexMap::new();
        for low in chunks {
            if self.run_pending(&mut pending, running).await? || Self::take_failed_hard(running) {
                return Ok(());
            }
            self.reconcile(running, None).await?;
            let tag = python::tag(low)?;
            if python::has(running, &tag) {
                continue;
            }
            if self.asks_pause.get() && matches!(self.ask(Step::Pause(low.clone())).await, Answer::Kill) {
                break;
            }
            if self.chunk(low, running, 0).await? {
                pending.insert(tag, low.clone());
            }
            if self.fails_hard(low, running)? {
                Self::take_failed_hard(running);
                return Ok(());
            }
        }
        while !pending.is_empty() {
            if self.run_pending(&mut pending, running).await? {
                return Ok(());
            }
            if !pending.is_empty() {
                self.wait().await?;
            }
        }
        while !self.reconcile(running, None).await? {
            self.wait().await?;
        }
        Self::take_failed_hard(running);
        Ok(())
    }

    /// Runs parallel chunks that had to wait for others; says whether a failure ends the run.
    async fn run_pending(&self, pending: &mut IndexMap<String, Dict>, running: &Dict) -> Res<bool> {
        for (tag, low) in std::mem::take(pending) {
            if python::has(running, &tag) {
                continue;
            }
            if self.chunk(&low, running, 0).await? {
                pending.insert(tag, low.clone());
            }
            if self.fails_hard(&low, running)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The `mod_watch` chunks of what listens to something that changed, and the results of what listens to nothing.
    fn listeners(&self, running: &Dict) -> Res<(Vec<Dict>, IndexMap<String, Dict>)> {
        let mut references = References::new();
        let mut listeners: Vec<([Value; 2], Value)> = Vec::new();
        for low in &self.chunks {
            let of = |name: &str| low.get(name).unwrap_or_default();
            let reference = [python::key(&of("state"))?, python::key(&of("__id__"))?, python::key(&of("name"))?];
            references.insert(reference, low.clone());
            if let Some(listen) = low.get("listen") {
                listeners.push(([of("state"), of("__id__")], listen));
            }
            if let Some(listens) = low.get("listen_in") {
                for target in python::iterate(&listens)? {
                    for (module, name) in python::entries(python::dict_method(&target, "items")?) {
                        let to = Value::dict([(python::key(&of("state"))?, of("__id__"))]);
                        listeners.push(([module, name], Value::list([to])));
                    }
                }
            }
        }
        let mut watchers = Vec::new();
        let mut errors = IndexMap::new();
        for (listener, targets) in listeners {
            for target in python::iterate(&targets)? {
                let Some(target) = self.listened(&target)? else { continue };
                for (module, name) in python::entries(&target) {
                    self.budget.search(references.len())?;
                    let heard = named(&references, &module, &name);
                    if heard.is_empty() {
                        errors.insert(listen_tag(&module, &name), listen_error(&module, &name));
                        continue;
                    }
                    for low in heard {
                        let changed = match running.get(&python::tag(&low)?) {
                            Some(Value::Dict(result)) => super::result::changed(&result),
                            _ => false,
                        };
                        if !changed {
                            continue;
                        }
                        let [module, name] = &listener;
                        self.budget.search(references.len())?;
                        let chunks = named(&references, module, name);
                        if chunks.is_empty() {
                            errors.insert(listen_tag(module, name), listen_error(module, name));
                        }
                        for chunk in chunks {
                            self.budget.chunk()?;
                            watchers.push(self.extra(&chunk, "mod_watch", "listener_")?);
                        }
                    }
                }
            }
        }
        Ok((watchers, errors))
    }

    /// What is listened to; text is an id or a name.
    fn listened(&self, target: &Value) -> Res<Option<Dict>> {
        if let Value::Dict(target) = target {
            return Ok(Some(target.clone()));
        }
        self.budget.search(self.chunks.len())?;
        let mut target = target.clone();
        let mut found = None;
        for low in &self.chunks {
            if [low.get("__id__"), low.get("name")].contains(&Some(target.clone())) {
                let dict = Dict::default();
                dict.set(&python::name(&low.get("state").unwrap_or_default()), low.get("__id__").unwrap_or_default());
                target = dict.clone().into();
                found = Some(dict);
            }
        }
        Ok(found)
    }

    /// A chunk that runs after the others.
    fn extra(&self, chunk: &Dict, function: &str, prefix: &str) -> Res<Dict> {
        let low: Dict = chunk.borrow().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        low.set("sfun", low.get("fun").unwrap_or_default());
        low.set("fun", function.into());
        let id = python::name(&low.get("__id__").unwrap_or_default());
        low.set("__id__", format!("{prefix}{id}").into());
        if function == "mod_watch" {
            low.borrow_mut().retain(|name, _| !name.as_str().is_some_and(keywords::is_requisite));
        }
        let may_aggregate = python::has(&low, "aggregate") && may_aggregate(&low, self.host, self.options)?;
        self.graph.borrow_mut().add_chunk(&low, may_aggregate)?;
        Ok(low)
    }

    /// The `mod_beacon` chunks of what has a beacon.
    fn beacons(&self) -> Res<Vec<Dict>> {
        let chunks = self.chunks.iter().filter(|low| python::has(low, "beacon"));
        chunks.map(|low| self.extra(low, "mod_beacon", "beacon_")).collect()
    }
}

/// The chunks of a module whose id or name is the one that is asked for.
fn named(references: &References, module: &Value, name: &Value) -> Vec<Dict> {
    let is_meant = |reference: &[brine_render::Key; 3]| {
        reference[0].value() == module && reference.iter().any(|part| part.value() == name)
    };
    references.iter().filter(|(reference, _)| is_meant(reference)).map(|(_, low)| low.clone()).collect()
}

fn listen_tag(module: &Value, name: &Value) -> String {
    let (module, name) = (python::name(module), python::name(name));
    format!("Listen_Error_|-listen_{name}_|-listen_{module}_|-Listen_Error")
}

fn listen_error(module: &Value, name: &Value) -> Dict {
    let (module, name) = (python::name(module), python::name(name));
    let comment = format!("Referenced state {module}: {name} does not exist");
    super::result::new(format!("listen_{module}:{name}").into(), false.into(), &comment)
}
