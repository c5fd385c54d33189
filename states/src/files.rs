//! The environments and the SLS files that the file server has.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use brine_patterns::Glob;

use crate::fault::Res;
use crate::host::{File, Host};
use crate::limits::Budget;
use crate::options::Options;
use crate::python;

/// The names of an environment: sorted, and to look up.
struct Names {
    sorted: Vec<Rc<str>>,
    set: HashSet<Rc<str>>,
}

/// What the file server has, asked once.
pub(crate) struct Files<'a> {
    host: &'a dyn Host,
    options: &'a Options,
    budget: &'a Budget,
    environments: OnceCell<Vec<String>>,
    names: RefCell<HashMap<String, Rc<Names>>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(host: &'a dyn Host, options: &'a Options, budget: &'a Budget) -> Self {
        Self { host, options, budget, environments: OnceCell::new(), names: RefCell::default() }
    }

    /// The environments, in the order in which their top files count.
    pub(crate) fn environments(&self) -> &[String] {
        self.environments.get_or_init(|| {
            let served = self.host.environments();
            let mut order = Vec::new();
            for env in &self.options.env_order {
                if !order.contains(env) {
                    order.push(env.clone());
                }
            }
            if !order.is_empty() {
                if !served.is_empty() {
                    order.retain(|env| served.contains(env));
                }
                return order;
            }
            let mut all = vec!["base".to_owned()];
            for env in self.options.file_roots.iter().chain(&served) {
                if !all.contains(env) {
                    all.push(env.clone());
                }
            }
            all
        })
    }

    pub(crate) fn has_environment(&self, saltenv: &str) -> bool {
        saltenv == "base" || self.environments().iter().any(|env| env == saltenv)
    }

    /// `base`, and the others: those whose files can be listed.
    pub(crate) fn listed(&self) -> Vec<String> {
        let mut all = vec!["base".to_owned()];
        all.extend(self.environments().iter().filter(|env| *env != "base").cloned());
        all
    }

    fn names(&self, saltenv: &str) -> Rc<Names> {
        if let Some(known) = self.names.borrow().get(saltenv) {
            return known.clone();
        }
        let mut sorted: Vec<Rc<str>> = self.host.states(saltenv).into_iter().map(Rc::from).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let names = Rc::new(Names { set: sorted.iter().cloned().collect(), sorted });
        self.names.borrow_mut().insert(saltenv.to_owned(), names.clone());
        names
    }

    /// All SLS files of an environment, sorted.
    pub(crate) fn all(&self, saltenv: &str) -> Vec<Rc<str>> {
        self.names(saltenv).sorted.clone()
    }

    /// The SLS files of an environment that a pattern matches, sorted.
    pub(crate) fn matching(&self, saltenv: &str, pattern: &str) -> Res<Vec<Rc<str>>> {
        let names = self.names(saltenv);
        if !python::is_pattern(pattern) {
            return Ok(names.set.get(pattern).cloned().into_iter().collect());
        }
        self.budget.search(names.sorted.len())?;
        let glob = Glob::new(pattern);
        Ok(names.sorted.iter().filter(|name| glob.matches(name)).cloned().collect())
    }

    /// The file of an SLS, and whether it is an `init.sls`.
    pub(crate) fn sls(&self, sls: &str, saltenv: &str) -> Result<Option<(File, bool)>, String> {
        let path = sls.replace('.', "/");
        if let Some(file) = self.host.load(saltenv, &format!("{path}.sls"))? {
            return Ok(Some((file, false)));
        }
        Ok(self.host.load(saltenv, &format!("{path}/init.sls"))?.map(|file| (file, true)))
    }
}
