//! `salt-module docs`

use std::path::Path;

use crate::cli::Docs;
use crate::failure::Failure;
use crate::file;

pub(crate) fn run(options: &Docs) -> Result<(), Failure> {
    let wasm = file::read(&options.file)?;
    let out = embed(&wasm, &options.wit, options.world.as_deref(), &options.file)?;
    file::write(&options.output, &out)
}

/// Returns the component with the doc comments of its WIT in it.
pub(crate) fn embed<P: AsRef<Path>>(
    wasm: &[u8],
    wit: &[P],
    world: Option<&str>,
    file: &Path,
) -> Result<Vec<u8>, Failure> {
    brine_component::embed_docs(wasm, wit, world)
        .map_err(|error| Failure::input(format!("{}: {error}", file.display())))
}
