//! A host over folders: the file server of a case.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use brine_render::functions::{self, Surroundings};
use brine_render::jinja::CallError;
use brine_render::{Dict, Value};
use brine_states::{Fault, File, Host, Parameters};

use crate::tape::Tape;

/// One environment, `base`, of several folders: the first that has a file gives it.
pub struct Tree {
    /// The folders.
    pub roots: Vec<PathBuf>,
    /// Files that are in no folder: the top file of a suite.
    pub files: BTreeMap<String, String>,
    /// The state functions that stock Salt had.
    pub states: Rc<HashSet<String>>,
    /// What functions answer.
    pub tape: Tape,
    /// The execution functions that stock Salt had.
    pub functions: Rc<HashSet<String>>,
    /// What functions that only compute look at.
    pub surroundings: Surroundings,
    /// Functions that were called and not answered.
    pub unanswered: RefCell<BTreeMap<String, usize>>,
    /// How many calls were computed, and how many came from the tape.
    pub counts: RefCell<(usize, usize)>,
}

fn walk(folder: &Path, below: &str, into: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{below}{name}");
        if entry.path().is_dir() {
            walk(&entry.path(), &format!("{path}/"), into);
        } else {
            into.insert(path);
        }
    }
}

impl Host for Tree {
    fn environments(&self) -> Vec<String> {
        vec!["base".to_owned()]
    }

    fn states(&self, _: &str) -> Vec<String> {
        let mut files: BTreeSet<String> = self.files.keys().cloned().collect();
        for root in &self.roots {
            walk(root, "", &mut files);
        }
        let sls = files.iter().filter_map(|file| file.strip_suffix(".sls"));
        sls.map(|file| file.strip_suffix("/init").unwrap_or(file).replace('/', ".")).collect()
    }

    fn load(&self, _: &str, path: &str) -> Result<Option<File>, String> {
        let shown = format!("/TMP/cache/files/base/{path}");
        if let Some(text) = self.files.get(path) {
            return Ok(Some(File { path: shown, data: text.as_bytes().into() }));
        }
        if path.split('/').any(|part| part == "..") {
            return Ok(None);
        }
        for root in &self.roots {
            let file = root.join(path);
            if file.is_file() {
                let data = fs::read(&file).map_err(|error| error.to_string())?;
                return Ok(Some(File { path: shown, data: data.into() }));
            }
        }
        Ok(None)
    }

    fn has_function(&self, name: &str) -> bool {
        self.functions.contains(name)
    }

    fn has_module(&self, name: &str) -> bool {
        self.functions.iter().any(|function| function.split('.').next() == Some(name))
    }

    fn functions(&self) -> Vec<String> {
        self.functions.iter().cloned().collect()
    }

    fn call(
        &self,
        _: &str,
        name: &str,
        positional: Vec<Value>,
        keyword: Vec<(Rc<str>, Value)>,
    ) -> Result<Value, CallError> {
        let computed = functions::call(&self.surroundings, name, positional.clone(), keyword.clone());
        if let Some(answer) = computed {
            self.counts.borrow_mut().0 += 1;
            return answer;
        }
        if let Some(answer) = self.tape.call(name, &positional, &keyword) {
            self.counts.borrow_mut().1 += 1;
            return answer;
        }
        *self.unanswered.borrow_mut().entry(name.to_owned()).or_default() += 1;
        Err(CallError {
            refused: true,
            message: format!("{name} was not called by stock Salt with {positional:?} {keyword:?}"),
        })
    }

    fn has_state(&self, name: &str) -> bool {
        self.states.contains(name)
    }

    fn parameters(&self, _: &str) -> Option<Parameters> {
        None
    }

    fn is_target(&self, expression: &Value, matcher: &str, _: &Value) -> Result<bool, Fault> {
        functions::matches(&self.surroundings, expression, matcher)
            .map_err(|error| Fault::Python { class: "SaltRenderError", message: error.to_string() })
    }

    fn master_tops(&self) -> Dict {
        Dict::default()
    }
}
