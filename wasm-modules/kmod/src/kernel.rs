//! What the kernel has and what is loaded, by the programs of kmod and their files.

use std::collections::BTreeSet;

use brine_guest::host::grains;
use brine_guest::program::{self, Output, Program};
use brine_guest::{Value, changes, path};

/// The folder of the kernels' modules.
const MODULES: &str = "/usr/lib/modules";

/// A module that is loaded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    name: String,
    size: String,
    users: String,
    /// The modules that use it.
    deps: Vec<String>,
}

impl Loaded {
    /// Reads a line of `lsmod`; none for its heading.
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, size, users, deps @ ..] = &words[..] else { return None };
        let deps = deps.first().map(|deps| deps.split(',').map(str::to_owned).collect()).unwrap_or_default();
        (*name != "Module").then(|| Self { name: (*name).into(), size: (*size).into(), users: (*users).into(), deps })
    }

    pub(crate) fn value(&self) -> Value {
        Value::dict([
            ("size", self.size.clone().into()),
            ("module", self.name.clone().into()),
            ("depcount", self.users.clone().into()),
            ("deps", self.deps.clone().into()),
        ])
    }
}

/// Runs a program of kmod.
pub(crate) fn run(name: &str, words: &[&str]) -> Result<Output, String> {
    if !program::exists(name)? {
        return Err(format!("Command '{name}' cannot be found"));
    }
    Program::new([name]).args(words.iter().copied()).run()
}

pub(crate) fn loaded() -> Result<Vec<Loaded>, String> {
    Ok(run("lsmod", &[])?.stdout.lines().filter_map(Loaded::read).collect())
}

/// The names of what is loaded, sorted.
pub(crate) fn names() -> Result<Vec<String>, String> {
    Ok(set()?.into_iter().collect())
}

/// [`names`], as a set.
pub(crate) fn set() -> Result<BTreeSet<String>, String> {
    Ok(loaded()?.into_iter().map(|module| module.name).collect())
}

/// The modules that this kernel has, sorted; those that are built in too.
pub(crate) fn available() -> Result<Vec<String>, String> {
    let release = grains::items().value()?.get("kernelrelease").map(Value::to_text).unwrap_or_default();
    let file = |name: &str| changes::read_text(&format!("{MODULES}/{release}/{name}"));
    let built_in = file("modules.builtin")?.unwrap_or_default();
    let others = file("modules.dep")?.unwrap_or_default();
    let built_in = built_in.lines().map(|line| path::basename(line).trim_end_matches(".ko").to_owned());
    // A line is `kernel/fs/x-y.ko.xz: …`.
    let others = others.lines().filter_map(|line| {
        let file = path::basename(line.split(':').next().unwrap_or_default());
        Some(file.split_once(".ko")?.0.replace('-', "_"))
    });
    let mut all: Vec<String> = built_in.chain(others).collect();
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_lsmod_are_read() {
        assert_eq!(Loaded::read("Module                  Size  Used by"), None);
        let module = Loaded::read("nf_nat  49152  2 nft_chain_nat,xt_MASQUERADE").unwrap();
        assert_eq!((module.name.as_str(), module.users.as_str(), module.deps.len()), ("nf_nat", "2", 2));
        assert!(Loaded::read("loop 40960 0").unwrap().deps.is_empty());
    }
}
