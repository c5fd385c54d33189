//! `salt-module`: what an author of modules needs beside a compiler. Now: putting docs into a component.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// EX_DATAERR: an input was not what it should be (Salt has no code of its own for this).
const EX_DATAERR: u8 = 65;
/// EX_NOINPUT: a file could not be read.
const EX_NOINPUT: u8 = 66;
/// EX_CANTCREAT: the result could not be written.
const EX_CANTCREAT: u8 = 73;

#[derive(Parser)]
#[command(name = "salt-module", version, about = "Works on Brine modules: WebAssembly components with typed functions")]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Puts the doc comments of the WIT into the component, where sys.doc finds them
    Docs {
        /// The component
        file: PathBuf,
        /// A folder or file of WIT; may be given several times, dependencies first
        #[arg(long, required = true, value_name = "DIR")]
        wit: Vec<PathBuf>,
        /// The world that the component was built from; may be left out where the WIT has only one
        #[arg(long)]
        world: Option<String>,
        /// The file to write; may be the component itself
        #[arg(short, long)]
        output: PathBuf,
    },
}

fn main() -> ExitCode {
    let Command::Docs { file, wit, world, output } = Options::parse().command;
    match docs(&file, &wit, world.as_deref(), &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err((message, code)) => {
            eprintln!("salt-module: {message}");
            ExitCode::from(code)
        }
    }
}

fn docs(file: &Path, wit: &[PathBuf], world: Option<&str>, output: &Path) -> Result<(), (String, u8)> {
    let wasm = std::fs::read(file).map_err(|error| (format!("{}: {error}", file.display()), EX_NOINPUT))?;
    let out = brine_component::embed_docs(&wasm, wit, world)
        .map_err(|error| (format!("{}: {error}", file.display()), EX_DATAERR))?;
    // Whole or not at all: the next build step may be looking.
    let temporary = output.with_extension("wasm.tmp");
    std::fs::write(&temporary, out)
        .and_then(|()| std::fs::rename(&temporary, output))
        .map_err(|error| (format!("{}: {error}", output.display()), EX_CANTCREAT))
}
