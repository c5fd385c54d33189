//! Compiles one module in a cage. This is the only program that links Cranelift, which bounds neither memory nor time
//! (a component of 778 bytes makes it request 9 GB). The program limits itself before it reads a byte, reads the
//! component, writes the compiled code and the description of the component, and ends. It opens no file: it receives
//! three open ones.
//!
//! The sandbox starts the program and judges it by the exit code, the signal and the last line on standard error.

mod cage;

use std::fs::{File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use brine_sandbox_walls::Walls;
use brine_text::joined;
use clap::Parser;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

/// EX_DATAERR: the component is invalid, and another try would fail too.
const REFUSED: u8 = 65;
/// EX_SOFTWARE: the compiler failed on the component, and another try would fail too.
const BROKEN: u8 = 70;
/// EX_OSERR: the cage is not possible on this host.
const NO_CAGE: u8 = 71;
/// EX_CANTCREAT: the results cannot be written.
const NO_OUTPUT: u8 = 73;
/// EX_IOERR: the component cannot be read.
const NO_INPUT: u8 = 74;
/// Upper bound on the characters of another crate's error in a message.
const MESSAGE_MAX: usize = 500;

#[derive(Parser)]
#[command(name = "brine-compiler", version, about = "Compiles one module, read from standard input, within limits")]
struct Options {
    /// The file for the compiled code
    #[arg(long, required_unless_present_any = ["engine", "socket"], requires = "info")]
    output: Option<PathBuf>,
    /// The file for what the component says about itself (JSON)
    #[arg(long, requires = "output")]
    info: Option<PathBuf>,
    /// Standard input is a socket by which the three open files come: the component, and the two for the results
    #[arg(long, conflicts_with = "output")]
    socket: bool,
    /// Only say what the component says about itself: no code is made
    #[arg(long)]
    describe: bool,
    /// Print what the compiled code depends on beside the component and, as JSON, the walls raised here; and end
    #[arg(long, conflicts_with_all = ["output", "socket"])]
    engine: bool,
    #[command(flatten)]
    limits: cage::Limits,
}

/// Why there is no result: the exit code and one line.
type Failure = (u8, String);

fn main() -> ExitCode {
    brine_sandbox_walls::close_inherited();
    let options = Options::parse();
    let done = match (&options.output, &options.info) {
        _ if options.engine => print_engine(&options.limits),
        (Some(output), Some(info)) => create(output).and_then(|output| {
            // The files are opened first, because the walls forbid opening files.
            let files = Files { wasm: Box::new(std::io::stdin()), output, info: create(info)? };
            cage(&options.limits)?;
            compile(files, &options)
        }),
        _ => cage(&options.limits).and_then(|_| compile(receive()?, &options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            eprintln!("{message}");
            ExitCode::from(code)
        }
    }
}

/// The input and the outputs of one run.
struct Files {
    wasm: Box<dyn Read>,
    output: File,
    info: File,
}

/// Receives the files over the socket on standard input.
fn receive() -> Result<Files, Failure> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = rustix::net::recvmsg(
        std::io::stdin(),
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    );
    received.map_err(|error| (NO_INPUT, format!("standard input is no socket with files in it: {error}")))?;
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received.map(File::from));
        }
    }
    let [wasm, output, info] = <[File; 3]>::try_from(files)
        .map_err(|files| (NO_INPUT, format!("{} files came by the socket, not 3", files.len())))?;
    Ok(Files { wasm: Box::new(wasm), output, info })
}

fn cage(limits: &cage::Limits) -> Result<Walls, Failure> {
    cage::enter(limits).map_err(|error| (NO_CAGE, format!("cannot limit itself: {error}")))
}

fn compile(files: Files, options: &Options) -> Result<(), Failure> {
    let Files { wasm: input, mut output, mut info } = files;
    let limits = &options.limits;
    // `guarded` prints a panic as one line, so the hook prints nothing.
    std::panic::set_hook(Box::new(|_| {}));

    let mut wasm = Vec::new();
    let read = input.take(limits.module + 1).read_to_end(&mut wasm);
    read.map_err(|error| (NO_INPUT, format!("cannot read the component: {error}")))?;
    if wasm.len() as u64 > limits.module {
        return Err((REFUSED, format!("is larger than {} bytes", limits.module)));
    }
    let described = guarded("reading", || brine_component::read(&wasm)?.write())?;
    let described = described.map_err(|error| (REFUSED, error.to_string()))?;
    if options.describe {
        return write(&mut info, &described);
    }
    let code = guarded("compiling", || brine_engine::engine()?.precompile_component(&wasm))?
        .map_err(|error| (REFUSED, format!("cannot be compiled: {}", joined(&format!("{error:#}"), MESSAGE_MAX))))?;
    write(&mut output, &code)?;
    write(&mut info, &described)
}

/// Runs work that may panic on hostile bytes. A panic cannot leave broken state behind, because the process ends
/// afterwards.
fn guarded<T>(what: &str, work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        (BROKEN, format!("made the compiler fail while {what} it: {}", joined(text.unwrap_or("a panic"), MESSAGE_MAX)))
    })
}

fn create(path: &Path) -> Result<File, Failure> {
    let open = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    open.map_err(|error| (NO_OUTPUT, format!("cannot write {}: {error}", path.display())))
}

fn write(file: &mut File, bytes: &[u8]) -> Result<(), Failure> {
    // The file is synced before it is renamed to the place where it is trusted.
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|error| (NO_OUTPUT, format!("cannot write the result: {error}")))
}

/// Prints the key of everything that the compiled code depends on: the engine's version and settings, and this host's
/// processor.
fn print_engine(limits: &cage::Limits) -> Result<(), Failure> {
    let walls = cage(limits)?;
    let engine = brine_engine::engine().map_err(|error| (BROKEN, format!("no engine here: {error:#}")))?;
    // A hasher with fixed keys is enough: the key distinguishes configurations and defends against nobody.
    let mut hasher = std::hash::DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    // The form of the description also comes from this program.
    (env!("CARGO_PKG_VERSION"), brine_component::FORM).hash(&mut hasher);
    let walls = serde_json::to_string(&walls).map_err(|error| (BROKEN, error.to_string()))?;
    println!("{:016x}\n{walls}", hasher.finish());
    Ok(())
}
