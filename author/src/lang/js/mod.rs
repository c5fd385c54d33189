//! JavaScript: componentize-js builds SpiderMonkey and `module.js` into a module, and wit-component makes it a
//! component. The engine's WASI is disabled, so that a module imports only what its WIT imports.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use wit_parser::{WorldItem, WorldKey};

use super::{Language, Project, componentize};
use crate::failure::Failure;
use crate::wit::Wit;
use crate::{file, tool};

pub(super) struct Js;

/// The file that exports the world's functions.
const MAIN: &str = "module.js";

const VERSION: &str = "0.23.0";
const SIZE: &str = "25 MB to fetch, 45 MB on disk";
/// The packages for npm. componentize-js depends on jco and weval, 315 MB, for what wit-component does here and for an
/// unused mode. Stubs of a few lines replace them.
const PACKAGES: [(&str, &str); 7] = [
    ("package.json", include_str!("package.json")),
    ("package-lock.json", include_str!("package-lock.json")),
    ("build.mjs", include_str!("build.mjs")),
    ("jco/package.json", include_str!("jco/package.json")),
    ("jco/index.js", include_str!("jco/index.js")),
    ("weval/package.json", include_str!("weval/package.json")),
    ("weval/index.js", include_str!("weval/index.js")),
];
/// Upper bound on the files of a module's WIT.
const MAX_FILES: usize = 1_000;
/// Engines for other modes of componentize-js, 26 MB.
const UNUSED: [&str; 3] =
    ["starlingmonkey_embedding.debug.wasm", "starlingmonkey_embedding_weval.wasm", "starlingmonkey_ics.wevalcache"];
const HINT: &str = "on Debian: `apt-get install nodejs npm` (node 18 or newer)";

impl Language for Js {
    fn title(&self) -> &'static str {
        "JavaScript"
    }

    fn looks_for(&self) -> &'static str {
        MAIN
    }

    fn template(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (MAIN, include_str!("../../../templates/js/module.js.in")),
            ("greeting.js", include_str!("../../../templates/js/greeting.js.in")),
            ("greeting.test.js", include_str!("../../../templates/js/greeting.test.js.in")),
            ("package.json", include_str!("../../../templates/js/package.json.in")),
            (".gitignore", "node_modules/\n*.wasm\n"),
        ]
    }

    fn engine_template(&self) -> (&'static str, &'static str) {
        (MAIN, include_str!("../../../templates/js/module_engine.js.in"))
    }

    fn tour(&self) -> &'static [(&'static str, &'static str)] {
        &[(MAIN, "what they do"), ("greeting.test.js", "a test of it")]
    }

    fn test_command(&self) -> &'static str {
        "node --test"
    }

    fn build(&self, project: &Project) -> Result<Vec<u8>, Failure> {
        let tool = tool::installed("componentize-js", VERSION, SIZE, install)?;
        // componentize-js reads sources below its working directory, and WIT without symbolic links.
        let work = tempfile::Builder::new().prefix(".build-").tempdir_in(&project.dir);
        let work = work.map_err(|error| Failure::unwritable(&project.dir, error))?;
        let (entry, wit) = (work.path().join("entry.js"), project.scratch.join("wit"));
        file::write(&entry, entry_of(&project.wit).as_bytes())?;
        copy(&project.wit.dir, &wit, &mut MAX_FILES.clone()).map_err(|error| Failure::unwritable(&wit, error))?;
        let output = project.scratch.join("core.wasm");
        let mut command = tool::command("node");
        command.arg(tool.join("build.mjs")).args([&entry, &wit]).arg(project.wit.world_name()).arg(&output);
        command.current_dir(&project.dir);
        tool::quiet("componentize-js", &mut command, HINT)?;
        componentize(fs::read(&output).map_err(|error| Failure::unreadable(&output, error))?)
    }
}

fn install(dir: &Path) -> Result<(), Failure> {
    for (name, text) in PACKAGES {
        let path = dir.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|error| Failure::unwritable(&path, error))?;
        file::write(&path, text.as_bytes())?;
    }
    let downloads = dir.join("npm");
    let mut npm = tool::command("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
        "--cache",
    ]);
    npm.arg(&downloads).current_dir(dir);
    tool::quiet("npm", &mut npm, HINT).map_err(|failure| {
        Failure::failed(format!("{failure}\n  is registry.npmjs.org, or the registry that .npmrc names, within reach?"))
    })?;
    for name in UNUSED {
        // Whether the file exists depends on the version.
        let _ = fs::remove_file(dir.join("node_modules/@bytecodealliance/componentize-js/lib").join(name));
    }
    let _ = fs::remove_dir_all(&downloads);
    Ok(())
}

/// Copies a folder of WIT, with symbolic links replaced by their targets.
fn copy(from: &Path, to: &Path, left: &mut usize) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?.path();
        *left = left.checked_sub(1).ok_or_else(|| std::io::Error::other("that is more than a module's WIT"))?;
        let Some(name) = entry.file_name() else { continue };
        if entry.is_dir() {
            copy(&entry, &to.join(name), left)?;
        } else if entry.extension().is_some_and(|extension| extension == "wit") {
            fs::copy(&entry, to.join(name))?;
        }
    }
    Ok(())
}

/// Returns the component's entry point, which imports `module.js` and exports the world's functions.
fn entry_of(wit: &Wit) -> String {
    let mut entry = String::from("import * as module from '../module.js';\n");
    let world = &wit.resolve.worlds[wit.world];
    let mut imports = world.imports.keys().map(|key| wit.resolve.name_world_key(key));
    match imports.find(|name| name.starts_with("brine:host/log@")) {
        Some(log) => entry.push_str(&format!("import {{ write }} from '{log}';\n")),
        None => entry.push_str("const write = () => {};\n"),
    }
    entry.push_str(include_str!("entry.js"));
    for (key, item) in &world.exports {
        let (name, value) = match item {
            WorldItem::Function(function) => {
                let name = camel_case(&function.name);
                let value = format!("guarded(module, '{name}')");
                (name, value)
            }
            WorldItem::Interface { id, .. } => {
                let interface = &wit.resolve.interfaces[*id];
                let name = match key {
                    WorldKey::Name(name) => Some(name),
                    WorldKey::Interface(_) => interface.name.as_ref(),
                };
                let name = camel_case(name.map_or("", String::as_str));
                let mut members = String::new();
                for function in interface.functions.keys() {
                    let function = camel_case(function);
                    let _ = write!(members, " {function}: guarded(module.{name}, '{function}', '{name}'),");
                }
                let value = format!("{{ ...module.{name},{members} }}");
                (name, value)
            }
            WorldItem::Type { .. } => continue,
        };
        // A reserved word of the language can be an export's name but not a variable's.
        let _ = write!(entry, "const {name}_ = {value};\nexport {{ {name}_ as {name} }};\n");
    }
    entry
}

/// Converts `list-all` to `listAll`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('-');
    let mut text = words.next().unwrap_or_default().to_ascii_lowercase();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        text.push_str(&first.to_ascii_uppercase());
        text.push_str(&rest.to_ascii_lowercase());
    }
    text
}
