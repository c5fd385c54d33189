//! A module's WIT: copies the host's interfaces beside it, and finds its world.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wit_parser::{ParseError, Resolve, ResolveError, WorldId};

use crate::failure::Failure;
use crate::file;

/// The host's interfaces and those of WASI that they use: path below `wit/deps/`, text.
const DEPS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/wit.rs"));

/// A module's WIT.
pub(crate) struct Wit {
    /// The folder; absolute.
    pub(crate) dir: PathBuf,
    pub(crate) resolve: Resolve,
    pub(crate) world: WorldId,
}

impl Wit {
    /// Returns the name of the world in kebab-case, which bindings generators expect.
    pub(crate) fn world_name(&self) -> &str {
        &self.resolve.worlds[self.world].name
    }

    /// Reads the WIT of a module's folder. `world` selects one if there are several.
    pub(crate) fn read(project: &Path, world: Option<&str>) -> Result<Self, Failure> {
        let dir = project.join("wit");
        if !dir.is_dir() {
            return Err(Failure::input(format!(
                "{} has no wit/ folder: a module's functions are typed in wit/world.wit, and `salt-module new` lays one down",
                project.display()
            )));
        }
        lay_down(&dir)?;
        let bad = |why: String| Failure::input(format!("the WIT in {}: {why}", dir.display()));
        let mut resolve = Resolve::default();
        let (package, _) = match resolve.push_path(&dir) {
            Ok(pushed) => pushed,
            // The error with the place in the file. The outer errors of the chain only say that a folder was read.
            Err(error) => {
                let sources = &resolve.source_map;
                let said = error.chain().find_map(|layer| match layer.downcast_ref::<ParseError>() {
                    Some(error) => Some(error.render(sources)),
                    None => Some(layer.downcast_ref::<ResolveError>()?.render(sources)),
                });
                return Err(bad(said.unwrap_or_else(|| format!("{error:#}"))));
            }
        };
        let worlds = &resolve.packages[package].worlds;
        let found = match world {
            Some(name) => worlds.get(name).copied(),
            None if worlds.len() == 1 => worlds.values().next().copied(),
            None => None,
        };
        let names = || worlds.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let world = found.ok_or_else(|| match world {
            Some(name) => bad(format!("there is no world {name}; there are: {}", names())),
            None if worlds.is_empty() => {
                bad("there is no world; a module's is `world NAME { export FUNCTION: func() -> string; }`".into())
            }
            None => bad(format!("there are {} worlds, and a module is one of them: --world {}", worlds.len(), names())),
        })?;
        if resolve.worlds[world].exports.is_empty() {
            let name = &resolve.worlds[world].name;
            return Err(bad(format!(
                "the world {name} exports nothing, so there is nothing to call: `export FUNCTION: func() -> string;`"
            )));
        }
        Ok(Self { dir, resolve, world })
    }
}

/// Copies the packages that the WIT refers to into `deps/`: all of the host's, and those of WASI that are named.
/// Updates copies made by an older salt-module; the author's own packages stay.
pub(crate) fn lay_down(wit: &Path) -> Result<(), Failure> {
    let deps = wit.join("deps");
    let (mut declared, mut text) = (BTreeSet::new(), String::new());
    let (own, mut others) = (wit_files(wit), wit_files(&deps));
    others.retain(|path| !DEPS.iter().any(|(laid, _)| *path == deps.join(laid)));
    for (path, own) in own.iter().map(|path| (path, true)).chain(others.iter().map(|path| (path, false))) {
        let content = std::fs::read_to_string(path).map_err(|error| Failure::unreadable(path, error))?;
        declared.extend(package(&content));
        // The host's WIT mentions WASI only in comments.
        if own {
            text.push_str(&content);
        }
    }
    for (path, content) in DEPS {
        let name = package(content).unwrap_or_default();
        let wanted = name == "brine:host" || text.contains("wasi:");
        if wanted && !declared.contains(&name) {
            let path = deps.join(path);
            if std::fs::read(&path).is_ok_and(|there| there == content.as_bytes()) {
                continue;
            }
            let folder = path.parent().unwrap_or(&deps);
            std::fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, error))?;
            file::write(&path, content.as_bytes())?;
        }
    }
    Ok(())
}

/// Returns the WIT files in a folder and its subfolders.
fn wit_files(dir: &Path) -> Vec<PathBuf> {
    let list = |dir: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let all = list(dir).into_iter().filter(|path| path.file_name().is_none_or(|name| name != "deps"));
    let all = all.flat_map(|path| if path.is_dir() { list(&path) } else { vec![path] });
    let mut files: Vec<PathBuf> = all.filter(|path| path.extension().is_some_and(|e| e == "wit")).collect();
    files.sort();
    files
}

/// Returns `brine:host` from `package brine:host@1.0.0;`.
fn package(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("package "))?;
    Some(line.split(['@', ';']).next()?.trim().to_owned())
}
