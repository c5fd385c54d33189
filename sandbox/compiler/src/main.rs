//! Compiles one module in a cage: the only program that links Cranelift, which bounds neither memory nor time
//! (778 bytes of component ask it for 9 GB). It limits itself before it reads a byte, reads the component from
//! standard input, writes the compiled code and what the component says about itself, and ends.
//!
//! The sandbox starts it and judges by exit code, signal and the last line on standard error.

mod cage;

use std::fs::{File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// EX_DATAERR: the component is refused; it would be again.
const REFUSED: u8 = 65;
/// EX_SOFTWARE: the compiler itself failed on it; it would again.
const BROKEN: u8 = 70;
/// EX_OSERR: the cage cannot be built here.
const NO_CAGE: u8 = 71;
/// EX_CANTCREAT: the results cannot be written.
const NO_OUTPUT: u8 = 73;
/// EX_IOERR: the component cannot be read.
const NO_INPUT: u8 = 74;

#[derive(Parser)]
#[command(name = "brine-compiler", version, about = "Compiles one module, read from standard input, within limits")]
struct Options {
    /// The file for the compiled code
    #[arg(long, required_unless_present = "engine")]
    output: Option<PathBuf>,
    /// The file for what the component says about itself (JSON)
    #[arg(long, required_unless_present = "engine")]
    info: Option<PathBuf>,
    /// Print what the compiled code depends on beside the component, and end
    #[arg(long, conflicts_with_all = ["output", "info"])]
    engine: bool,
    #[command(flatten)]
    limits: cage::Limits,
}

/// Why there is no result: one line, and the exit code.
type Failure = (u8, String);

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match (&options.output, &options.info) {
        (Some(output), Some(info)) if !options.engine => compile(output, info, &options.limits),
        _ => print_engine(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            eprintln!("{message}");
            ExitCode::from(code)
        }
    }
}

fn compile(output: &Path, info: &Path, limits: &cage::Limits) -> Result<(), Failure> {
    // Opened first: behind the walls there is nothing that can be opened.
    let mut output = create(output)?;
    let mut info = create(info)?;
    cage::enter(limits).map_err(|error| (NO_CAGE, format!("cannot limit itself: {error}")))?;
    // A panic is one line, printed where it is caught.
    std::panic::set_hook(Box::new(|_| {}));

    let mut wasm = Vec::new();
    let read = std::io::stdin().lock().take(limits.module + 1).read_to_end(&mut wasm);
    read.map_err(|error| (NO_INPUT, format!("cannot read the component: {error}")))?;
    if wasm.len() as u64 > limits.module {
        return Err((REFUSED, format!("is larger than {} bytes", limits.module)));
    }
    let described =
        guarded("reading", || brine_component::read(&wasm))?.map_err(|error| (REFUSED, error.to_string()))?;
    let described = serde_json::to_vec(&described).map_err(|error| (BROKEN, error.to_string()))?;
    let code = guarded("compiling", || brine_engine::engine()?.precompile_component(&wasm))?
        .map_err(|error| (REFUSED, format!("cannot be compiled: {}", one_line(&format!("{error:#}")))))?;
    write(&mut output, &code)?;
    write(&mut info, &described)
}

/// Runs what may panic on hostile bytes. It starts from nothing and what it leaves behind is dropped with the process.
fn guarded<T>(what: &str, work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        (BROKEN, format!("made the compiler fail while {what} it: {}", one_line(text.unwrap_or("a panic"))))
    })
}

fn create(path: &Path) -> Result<File, Failure> {
    let open = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    open.map_err(|error| (NO_OUTPUT, format!("cannot write {}: {error}", path.display())))
}

fn write(file: &mut File, bytes: &[u8]) -> Result<(), Failure> {
    // On the disk before anybody renames it to where it is trusted.
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|error| (NO_OUTPUT, format!("cannot write the result: {error}")))
}

/// The key of everything that the compiled code depends on: the engine's version and settings, and this host's processor.
fn print_engine() -> Result<(), Failure> {
    let engine = brine_engine::engine().map_err(|error| (BROKEN, format!("no engine here: {error:#}")))?;
    // Fixed keys, and nobody else computes it: it has to tell configurations apart, not to resist anyone.
    let mut hasher = std::hash::DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    // What beside the code comes from this program: the description's form.
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    println!("{:016x}", hasher.finish());
    Ok(())
}

fn one_line(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}
