//! What `salt-module` has to know of a language, and nothing else does.
//!
//! # What a language gives
//!
//! A file here (`rust.rs`, `python.rs`, `js.rs`, `c.rs`) with one `Language`, and a folder of templates
//! (`author/templates/<lang>/`). The frame (`new.rs`, `build.rs`) does everything else:
//!
//! - **before** [`Language::build`]: finds which language a folder is in ([`Language::project_file`]), lays the host's WIT down
//!   under `wit/deps/`, reads the WIT and finds the world;
//! - **after** it: puts the doc comments and the version of the WIT into the component, checks that minions will take it, writes
//!   `NAME.wasm` (NAME is the world's name in snake_case), signs it, and says what it is and asks for.
//!
//! So `build` gets a [`Project`] and returns the bytes of a component of that world. If its compiler makes a core module with
//! `component-type` sections in it, as wit-bindgen's do, [`componentize`] makes the component. Rules:
//!
//! - Programs are started with [`crate::tool`] only. A compiler whose errors are the author's runs with [`tool::run`], so that
//!   they are seen as they come; a tool that has nothing to say to the author with [`tool::quiet`].
//! - Pinned tools live in `${XDG_CACHE_HOME:-~/.cache}/brine/tools/NAME-VERSION`: [`tool::installed`] makes that folder once.
//! - The same files give the same bytes wherever the folder is, as far as the language can.
//! - What goes wrong is a [`Failure`] that says what to do: the exact command where there is one.
//!
//! Templates are files with `{{name}}` (`disk_report`: the module), `{{kebab}}` (`disk-report`: its world and package in WIT),
//! `{{camel}}` (`diskReport`), `{{pascal}}` (`DiskReport`), in their paths too. `wit/world.wit` comes from the frame
//! (`templates/world.wit`), so that the first module is the same in all languages: one function `world(name)`.

mod c;
mod js;
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

/// A module's folder, read and ready to build.
pub(crate) struct Project {
    /// Absolute.
    pub(crate) dir: PathBuf,
    /// What [`Language::project_file`] found.
    pub(crate) file: PathBuf,
    /// `wit/` with `deps/`, read.
    pub(crate) wit: Wit,
    /// The module's name: the world's, in snake_case.
    pub(crate) name: ModuleName,
    /// An empty folder for what is needed only now; gone afterwards.
    pub(crate) scratch: PathBuf,
}

/// See the top of this file.
pub(crate) trait Language: Sync {
    /// As people write it: `JavaScript`.
    fn title(&self) -> &'static str;
    /// The file that makes a folder a module in this language: `Cargo.toml`, `module.py`, `module.js`, `src/module.c`. None: it is another's.
    fn project_file(&self, dir: &Path) -> Option<PathBuf>;
    /// What [`Self::project_file`] looks for, for an error: `Cargo.toml`.
    fn looks_for(&self) -> &'static str;
    /// Files of a new module: path in its folder, text.
    fn template(&self) -> &'static [(&'static str, &'static str)];
    /// What an author changes first, and what for: `("src/lib.rs", "what they do")`.
    fn tour(&self) -> &'static [(&'static str, &'static str)];
    /// The command that runs the new module's own test.
    fn test_command(&self) -> &'static str;
    /// The component.
    fn build(&self, project: &Project) -> Result<Vec<u8>, Failure>;
}

impl Lang {
    /// In the order in which a folder is asked whose it is.
    pub(crate) const ALL: [Self; 4] = [Self::Rust, Self::Js, Self::Python, Self::C];

    pub(crate) fn language(self) -> &'static dyn Language {
        match self {
            Self::Rust => &rust::Rust,
            Self::Python => &python::Python,
            Self::Js => &js::Js,
            Self::C => &c::C,
        }
    }

    /// The language of a folder and the file that says so.
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

/// Makes a component of a core module that carries what wit-bindgen put into it; a component stays what it is.
pub(crate) fn componentize(module: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if wasmparser::Parser::is_component(&module) {
        return Ok(module);
    }
    let encoded = wit_component::ComponentEncoder::default().validate(true).module(&module);
    let encoded = encoded.and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| Failure::input(format!("what was built does not become a component: {error:#}")))
}
