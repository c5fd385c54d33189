//! The languages of `salt-module`: everything that is specific to one language.
//!
//! # Implementing a language
//!
//! A language is a file here (`rust.rs`, `python.rs`, `js.rs`, `c.rs`) with one `Language`, and a folder of templates
//! (`author/templates/<lang>/`). The frame (`new.rs`, `build.rs`) does the rest:
//!
//! - **before** [`Language::build`]: detects the language of a folder ([`Language::project_file`]), copies the host's
//!   WIT to `wit/deps/`, reads the WIT and finds the world;
//! - **afterwards**: writes the doc comments and the version of the WIT into the component, checks that minions will
//!   accept it, writes `NAME.wasm` (NAME is the world's name in snake_case), signs it, and prints what it is and what
//!   it asks for.
//!
//! So `build` gets a [`Project`] and returns the bytes of a component of that world. If its compiler makes a core
//! module with `component-type` sections, as wit-bindgen's do, [`componentize`] makes the component. Rules:
//!
//! - Programs are started only with [`crate::tool`]. A compiler whose errors concern the author runs with
//!   [`tool::run`], which shows them at once; other tools run with [`tool::quiet`].
//! - Pinned tools are in `${XDG_CACHE_HOME:-~/.cache}/brine/tools/NAME-VERSION`; [`tool::installed`] makes that folder
//!   once.
//! - The same files give the same bytes in every folder, as far as the language permits.
//! - An error is a [`Failure`] with a remedy, if possible an exact command.
//!
//! Templates are files with `{{name}}` (`disk_report`: the module), `{{kebab}}` (`disk-report`: its world and package
//! in WIT), `{{camel}}` (`diskReport`), `{{pascal}}` (`DiskReport`), in their paths too. `wit/world.wit` comes from the
//! frame (`templates/world.wit`), so that the first module is the same in all languages: one function `world(name)`, and with `--state`
//! (`world_state.wit`) one state `written(name, who)` beside it. With `--engine` (`world_engine.wit`) it is an engine of a master.

mod c;
mod js;
mod merge;
mod python;
mod rust;

use std::path::{Path, PathBuf};

use brine_sandbox::ModuleName;
use clap::ValueEnum;

use crate::failure::Failure;
use crate::wit::Wit;

/// A language that modules are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lang {
    /// Rust, with wit-bindgen
    Rust,
    /// Python, with componentize-py
    Python,
    /// JavaScript, with componentize-js
    Js,
    /// C, with wit-bindgen's C generator
    C,
}

/// A module's folder, ready to build.
pub(crate) struct Project {
    /// The folder; absolute.
    pub(crate) dir: PathBuf,
    /// The file found by [`Language::project_file`].
    pub(crate) file: PathBuf,
    /// The parsed `wit/` with `deps/`.
    pub(crate) wit: Wit,
    /// The module's name: the world's name in snake_case.
    pub(crate) name: ModuleName,
    /// An empty folder for temporary files, removed afterwards.
    pub(crate) scratch: PathBuf,
}

/// A language; the module's documentation has the rules.
pub(crate) trait Language: Sync {
    /// Returns the language's usual name: `JavaScript`.
    fn title(&self) -> &'static str;
    /// Returns the file that identifies a folder of this language: `Cargo.toml`, `module.py`, `module.js`,
    /// `src/module.c`. None if the folder is not of this language.
    fn project_file(&self, dir: &Path) -> Option<PathBuf> {
        Some(dir.join(self.looks_for())).filter(|path| path.is_file())
    }
    /// Returns the path in a folder that shows that the folder is of this language: `Cargo.toml`.
    fn looks_for(&self) -> &'static str;
    /// Returns the files of a new module: path in its folder, text.
    fn template(&self) -> &'static [(&'static str, &'static str)];
    /// Returns the file of [`Self::template`] that is another in a new module with a state. None: there is no such
    /// template.
    fn state_template(&self) -> Option<(&'static str, &'static str)> {
        None
    }
    /// Returns the file of [`Self::template`] that is another in a new engine.
    fn engine_template(&self) -> (&'static str, &'static str);
    /// Returns the files that an author changes first, with their purpose: `("src/lib.rs", "what they do")`.
    fn tour(&self) -> &'static [(&'static str, &'static str)];
    /// Returns the command that runs the new module's own test.
    fn test_command(&self) -> &'static str;
    /// Builds the component.
    fn build(&self, project: &Project) -> Result<Vec<u8>, Failure>;
}

impl Lang {
    /// The languages in the order of detection.
    pub(crate) const ALL: [Self; 4] = [Self::Rust, Self::Js, Self::Python, Self::C];

    pub(crate) fn language(self) -> &'static dyn Language {
        match self {
            Self::Rust => &rust::Rust,
            Self::Python => &python::Python,
            Self::Js => &js::Js,
            Self::C => &c::C,
        }
    }

    /// Returns the language of a folder and the file that identifies it.
    pub(crate) fn of(dir: &Path) -> Result<(Self, PathBuf), Failure> {
        let found = Self::ALL.into_iter().find_map(|lang| Some((lang, lang.language().project_file(dir)?)));
        found.ok_or_else(|| {
            let looks: Vec<String> = Self::ALL
                .into_iter()
                .map(Self::language)
                .map(|language| format!("{} ({})", language.looks_for(), language.title()))
                .collect();
            let (dir, looks) = (dir.display(), looks.join(", "));
            Failure::input(format!(
                "{dir} is no module's folder: there is none of {looks} in it; `salt-module new NAME` makes one"
            ))
        })
    }
}

/// Makes a component of a core module with wit-bindgen's sections. A component is returned unchanged.
pub(crate) fn componentize(module: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if wasmparser::Parser::is_component(&module) {
        return Ok(module);
    }
    let encoded = wit_component::ComponentEncoder::default().validate(true).module(&module);
    let encoded = encoded.and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| Failure::input(format!("what was built does not become a component: {error:#}")))
}
