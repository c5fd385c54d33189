//! The WASI interfaces of every guest: clocks, randomness, an empty environment, no input, output to the log. They are
//! linked one by one, so that no other interface is included. Files and sockets need a grant, see [`super::filesystem`]
//! and [`super::sockets`].

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, io as wasi_io, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};

use crate::guest::Guest;

/// WASI packages that are linked completely.
pub const PACKAGES: [&str; 4] = ["wasi:io/", "wasi:clocks/", "wasi:random/", "wasi:cli/"];

struct Io;

impl HasData for Io {
    type Data<'a> = &'a mut ResourceTable;
}

/// Adds the interfaces to a linker.
///
/// # Errors
/// The linker already has one of them.
pub fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasi_io::error::add_to_linker::<Guest, Io>(linker, |guest| &mut guest.table)?;
    wasi_io::poll::add_to_linker::<Guest, Io>(linker, |guest| &mut guest.table)?;
    wasi_io::streams::add_to_linker::<Guest, Io>(linker, |guest| &mut guest.table)?;
    clocks::wall_clock::add_to_linker::<Guest, WasiClocks>(linker, Guest::clocks)?;
    clocks::monotonic_clock::add_to_linker::<Guest, WasiClocks>(linker, Guest::clocks)?;
    random::random::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;
    random::insecure::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;
    random::insecure_seed::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;
    cli::environment::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::exit::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_input::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_output::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    Ok(())
}
