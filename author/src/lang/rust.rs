//! Modules in Rust: cargo for wasm32-unknown-unknown and wit-bindgen, so a component imports only what the code uses.

use std::path::{Path, PathBuf};

use super::{Language, Project, componentize};
use crate::failure::Failure;
use crate::{file, tool};

pub(super) struct Rust;

const TARGET: &str = "wasm32-unknown-unknown";
const CARGO_HINT: &str = "install Rust: https://rustup.rs";

impl Language for Rust {
    fn title(&self) -> &'static str {
        "Rust"
    }

    fn looks_for(&self) -> &'static str {
        "Cargo.toml"
    }

    fn template(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("Cargo.toml", include_str!("../../templates/rust/Cargo.toml.in")),
            ("Cargo.lock", include_str!("../../templates/rust/Cargo.lock.in")),
            ("src/lib.rs", include_str!("../../templates/rust/lib.rs.in")),
            (".gitignore", "/target\n*.wasm\n"),
        ]
    }

    fn state_template(&self) -> Option<(&'static str, &'static str)> {
        Some(("src/lib.rs", include_str!("../../templates/rust/lib_state.rs.in")))
    }

    fn engine_template(&self) -> (&'static str, &'static str) {
        ("src/lib.rs", include_str!("../../templates/rust/lib_engine.rs.in"))
    }

    fn tour(&self) -> &'static [(&'static str, &'static str)] {
        &[("src/lib.rs", "what they do, and a test of it")]
    }

    fn test_command(&self) -> &'static str {
        "cargo test"
    }

    fn build(&self, project: &Project) -> Result<Vec<u8>, Failure> {
        check_target()?;
        let mut cargo = tool::command("cargo");
        cargo.args(["build", "--release", "--target", TARGET, "--message-format=json-render-diagnostics"]);
        cargo.arg("--manifest-path").arg(&project.file).current_dir(&project.dir);
        if project.dir.join("Cargo.lock").is_file() {
            cargo.arg("--locked");
        }
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(&project.dir)).env_remove("CARGO_BUILD_TARGET");
        let messages = tool::run("cargo", &mut cargo, CARGO_HINT)?;
        let module = artifact(&messages).ok_or_else(|| {
            Failure::input(format!(
                "{} builds no library of WebAssembly: it needs `[lib]` with `crate-type = [\"cdylib\"]`",
                project.file.display()
            ))
        })?;
        componentize(file::read(&module)?)
    }
}

/// Checks for rustc's std for the target. Without it the compiler's errors are many and unhelpful.
fn check_target() -> Result<(), Failure> {
    let mut rustc = tool::command(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    let libraries = tool::quiet("rustc", &mut rustc, CARGO_HINT)?;
    if Path::new(libraries.trim()).is_dir() {
        return Ok(());
    }
    Err(Failure::failed(format!("this Rust cannot build for {TARGET} yet: run `rustup target add {TARGET}`")))
}

/// Returns flags that keep this machine's paths out of the module, so that the same source gives the same module in
/// every folder.
fn flags(dir: &Path) -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"))).unwrap_or_default();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| dir.join("target"), PathBuf::from);
    // The last matching map applies, and the target folder is inside the module's folder.
    let maps = [(home.as_path(), "/cargo"), (dir, "/module"), (target.as_path(), "/target")];
    let own = std::env::var("CARGO_ENCODED_RUSTFLAGS").ok().filter(|flags| !flags.is_empty());
    let maps = maps.into_iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    own.into_iter().chain(maps).collect::<Vec<_>>().join("\u{1f}")
}

/// Returns the last WebAssembly library in cargo's messages.
fn artifact(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files = messages
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter_map(|message| message["filenames"].as_array().cloned())
        .flatten();
    files
        .filter_map(|file| Some(PathBuf::from(file.as_str()?)))
        .rfind(|file| file.extension().is_some_and(|e| e == "wasm"))
}
