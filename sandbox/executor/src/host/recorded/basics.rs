//! WASI's clocks, randomness, environment and standard streams. Whether a stream is a terminal is the same in each call,
//! and ending the program is no question, so both are linked as in other calls.

use brine_sandbox_wire::LogLevel;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::{cli, clocks, random};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable};
use wasmtime_wasi::random::WasiRandomView;

use super::{Recorded, Spy, args, rows, spied};
use crate::guest::Guest;

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    clocks::wall_clock::add_to_linker::<Guest, Spy>(linker, spied)?;
    clocks::monotonic_clock::add_to_linker::<Guest, Spy>(linker, spied)?;
    random::random::add_to_linker::<Guest, Spy>(linker, spied)?;
    random::insecure::add_to_linker::<Guest, Spy>(linker, spied)?;
    random::insecure_seed::add_to_linker::<Guest, Spy>(linker, spied)?;
    cli::environment::add_to_linker::<Guest, Spy>(linker, spied)?;
    cli::stdin::add_to_linker::<Guest, Spy>(linker, spied)?;
    cli::stdout::add_to_linker::<Guest, Spy>(linker, spied)?;
    cli::stderr::add_to_linker::<Guest, Spy>(linker, spied)?;
    cli::exit::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_input::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_output::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)
}

impl clocks::wall_clock::Host for Recorded<'_> {
    rows! {
        "wasi:clocks/wall-clock", clocks::wall_clock::Host, |guest| guest.clocks();
        now() -> wasmtime::Result<Datetime>;
        resolution() -> wasmtime::Result<Datetime>;
    }
}

impl clocks::monotonic_clock::Host for Recorded<'_> {
    rows! {
        "wasi:clocks/monotonic-clock", clocks::monotonic_clock::Host, |guest| guest.clocks();
        now() -> wasmtime::Result<u64>;
        resolution() -> wasmtime::Result<u64>;
        subscribe_instant(when: u64) -> wasmtime::Result<Resource<DynPollable>>;
        subscribe_duration(duration: u64) -> wasmtime::Result<Resource<DynPollable>>;
    }
}

impl random::random::Host for Recorded<'_> {
    rows! {
        "wasi:random/random", random::random::Host, |guest| guest.random();
        get_random_bytes(length: u64) -> wasmtime::Result<Vec<u8>>;
        get_random_u64() -> wasmtime::Result<u64>;
    }
}

impl random::insecure::Host for Recorded<'_> {
    rows! {
        "wasi:random/insecure", random::insecure::Host, |guest| guest.random();
        get_insecure_random_bytes(length: u64) -> wasmtime::Result<Vec<u8>>;
        get_insecure_random_u64() -> wasmtime::Result<u64>;
    }
}

impl random::insecure_seed::Host for Recorded<'_> {
    rows! {
        "wasi:random/insecure-seed", random::insecure_seed::Host, |guest| guest.random();
        insecure_seed() -> wasmtime::Result<(u64, u64)>;
    }
}

impl cli::environment::Host for Recorded<'_> {
    rows! {
        "wasi:cli/environment", cli::environment::Host, |guest| guest.cli();
        get_environment() -> wasmtime::Result<Vec<(String, String)>>;
        get_arguments() -> wasmtime::Result<Vec<String>>;
        initial_cwd() -> wasmtime::Result<Option<String>>;
    }
}

impl cli::stdin::Host for Recorded<'_> {
    rows! {
        "wasi:cli/stdin", cli::stdin::Host, |guest| guest.cli();
        get_stdin() -> wasmtime::Result<Resource<DynInputStream>>;
    }
}

impl cli::stdout::Host for Recorded<'_> {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        let (name, asked) = ("wasi:cli/stdout.get-stdout", args!());
        if let Some(told) = self.0.replayed::<Resource<DynOutputStream>, wasmtime::Error>(name, &asked) {
            return told.inspect(|stream| self.0.output(stream.rep(), Some(LogLevel::Info)));
        }
        let told = cli::stdout::Host::get_stdout(&mut self.0.enter().cli());
        self.0.told(name, asked, told)
    }
}

impl cli::stderr::Host for Recorded<'_> {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        let (name, asked) = ("wasi:cli/stderr.get-stderr", args!());
        if let Some(told) = self.0.replayed::<Resource<DynOutputStream>, wasmtime::Error>(name, &asked) {
            return told.inspect(|stream| self.0.output(stream.rep(), Some(LogLevel::Warning)));
        }
        let told = cli::stderr::Host::get_stderr(&mut self.0.enter().cli());
        self.0.told(name, asked, told)
    }
}
