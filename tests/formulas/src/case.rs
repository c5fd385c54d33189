//! Compiles one case.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use brine_render::functions::Surroundings;
use brine_render::yaml::{self, DumpOptions};
use brine_render::{Dict, Value};
use brine_states::{Compiler, Limits, Options};
use serde_json::{Value as Json, json};

use crate::json::{decode, encode, read, without_addresses};
use crate::tape::Tape;
use crate::tree::Tree;

/// What all cases share.
pub struct Setting {
    /// The folder of the formulas.
    pub formulas: PathBuf,
    /// The minion's grains.
    pub grains: Value,
    /// The minion's settings.
    pub opts: Value,
    /// The state functions that stock Salt had.
    pub states: Rc<HashSet<String>>,
    /// The execution functions that stock Salt had.
    pub functions: Rc<HashSet<String>>,
}

/// The answers for one formula.
pub struct Formula {
    /// Its name.
    pub name: String,
    /// Stock Salt's answers.
    pub answers: Dict,
}

/// What came of a case.
pub struct Outcome {
    /// `{case, low}` or `{case, errors}`.
    pub answer: Json,
    /// Functions that were called and that nobody answered.
    pub unanswered: BTreeMap<String, usize>,
    /// Calls that were computed, and calls that came from the tape.
    pub counts: (usize, usize),
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::List(list)) => list.borrow().clone(),
        _ => Vec::new(),
    }
}

impl Formula {
    /// Its cases.
    pub fn cases(&self) -> Vec<Dict> {
        let cases = list(self.answers.get("cases")).into_iter();
        cases.filter_map(|case| if let Value::Dict(case) = case { Some(case) } else { None }).collect()
    }

    fn roots(&self, setting: &Setting) -> Vec<PathBuf> {
        let mut folder = setting.formulas.join(&self.name);
        if self.name == "psf-salt" {
            folder = folder.join("salt");
        }
        let tests = ["test/salt/states", "test/salt"].iter().map(|part| folder.join(part)).filter(|path| path.is_dir());
        let others = list(self.answers.get("deps"));
        let others: Vec<PathBuf> =
            others.iter().filter_map(|name| Some(setting.formulas.join(name.as_str()?))).collect();
        std::iter::once(folder.clone()).chain(tests).chain(others).collect()
    }

    /// Compiles a case; none if the answers have no pillar for it.
    pub fn compile(&self, setting: &Setting, case: &Dict) -> Option<Outcome> {
        let name = case.get("case").unwrap_or_default();
        let name = name.as_str().unwrap_or_default();
        let pillars = list(self.answers.get("pillars"));
        let calls = list(self.answers.get("calls"));
        let index = |value: &Value| if let Value::Int(n) = value { usize::try_from(*n).ok() } else { None };
        let pillar = decode(pillars.get(index(&case.get("pillar")?)?)?, true);
        let tape = Tape::default();
        for at in list(case.get("tape")) {
            tape.add(calls.get(index(&at)?)?);
        }
        let mut files = BTreeMap::new();
        if let Some(top @ Value::Dict(_)) = case.get("top") {
            let text = yaml::dump(&top, &DumpOptions::default()).expect("a top file is YAML");
            files.insert("top.sls".to_owned(), text);
        }
        let Value::Dict(opts) = decode(&setting.opts, false) else { return None };
        // as the program that made the answers had them
        let own = json!({
            "id": "web1", "file_client": "local", "root_dir": "/TMP", "cachedir": "/TMP/cache", "pki_dir": "/TMP/pki",
            "sock_dir": "/TMP/sock", "extension_modules": "/TMP/cache/extmods", "conf_file": "/TMP/minion",
            "log_file": "/TMP/log", "file_roots": {"base": ["/TMP/srv", "/FORMULA"]}, "saltenv": null,
            "pillar_roots": {"base": ["/TMP/pillar"]}, "pillarenv": null, "test": true, "state_verbose": true,
            "fileserver_backend": ["roots"], "jid": null, "__role": "minion", "hash_type": "sha256",
            "__cli": "salt-call", "minion_id_caching": false,
        });
        if let Value::Dict(own) = read(&own.to_string()) {
            opts.borrow_mut().extend(own.borrow().iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        if self.name == "psf-salt" {
            opts.set("nodegroups", nodegroups(&setting.formulas.join("psf-salt")));
        }
        let grains = decode(&setting.grains, false);
        opts.set("grains", grains.clone());
        opts.set("pillar", pillar.clone());
        let (Value::Dict(grain_dict), Value::Dict(pillar_dict)) = (&grains, &pillar) else { return None };
        let surroundings = Surroundings::new("web1", grain_dict.clone(), pillar_dict.clone(), opts.clone());
        let tree = Tree {
            roots: self.roots(setting),
            files,
            states: setting.states.clone(),
            tape,
            functions: setting.functions.clone(),
            surroundings,
            unanswered: Default::default(),
            counts: Default::default(),
        };
        let options = Options::new(&opts, grains, pillar);
        let compiler = Compiler::new(&tree, &options, Limits::default());
        let names = match (compiler.pillar_errors(), name.strip_prefix("sls:")) {
            (Some(errors), _) => Err(errors),
            (None, Some(sls)) => Ok(vec![sls.to_owned()]),
            (None, None) => match compiler.show_top() {
                Ok(Ok(top)) => {
                    Ok(list(top.get("base")).iter().filter_map(|sls| Some(sls.as_str()?.to_owned())).collect())
                }
                Ok(Err(errors)) => Err(errors),
                Err(fault) => Err(vec![fault.to_string()]),
            },
        };
        let compiled = names.and_then(|names| match compiler.show_low_sls(&names) {
            Ok(result) => result,
            Err(fault) => Err(vec![fault.to_string()]),
        });
        let answer = match compiled {
            Ok(low) => json!({"case": name, "low": low.into_iter().map(|low| encode(&low.into())).collect::<Vec<_>>()}),
            Err(errors) => {
                json!({"case": name, "errors": errors.iter().map(|error| without_addresses(error)).collect::<Vec<_>>()})
            }
        };
        let outcome = Outcome { answer, unanswered: tree.unanswered.take(), counts: *tree.counts.borrow() };
        Some(outcome)
    }
}

/// The nodegroups that the top files of psf-salt name; the minion is in three of them.
fn nodegroups(tree: &Path) -> Value {
    let groups = Dict::default();
    for top in ["salt/top.sls", "pillar/dev/top.sls"] {
        let text = std::fs::read_to_string(tree.join(top)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let name = pair[0].strip_prefix("  '").and_then(|rest| rest.strip_suffix("':"));
            if let Some(name) = name.filter(|_| pair[1] == "    - match: nodegroup") {
                let is_in = matches!(name, "docs" | "loadbalancer" | "planet");
                groups.set(name, if is_in { "L@web1" } else { "L@nobody" }.into());
            }
        }
    }
    groups.into()
}
