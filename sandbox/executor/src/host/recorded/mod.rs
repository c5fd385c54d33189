//! The same interfaces for a call that is recorded or replayed. [`Recorded`] implements the traits of the functions that
//! this program answers itself: it calls the implementation of every other call and writes down what was asked and told,
//! or answers from a recording. Handles are written down as their numbers.
//!
//! The functions are listed one by one, because the engine cannot call a host function of static types from one of dynamic
//! values, which could stand for all of them. A function that is missing in a list does not compile.
//!
//! Requests to the broker pass through [`crate::guest::Guest::ask`], which records them. Dropping a handle asks for
//! nothing and is not recorded, nor is what goes into the log.
//!
//! - `basics.rs` clocks, randomness, the environment, the standard streams; `io.rs` streams and what waits for them
//! - `files.rs` directories and files; `sockets.rs` connections; `values.rs` how each type is written down

mod basics;
mod files;
mod io;
mod sockets;
mod values;

use brine_recording::{pack, unpack};
use brine_sandbox_wire::LogLevel;
use wasmtime::component::{HasData, Linker};

use crate::failure::HostFailure;
use crate::guest::Guest;
use values::{Answer, Fails, Told};

/// A guest whose calls are recorded or replayed.
pub struct Recorded<'a>(&'a mut Guest);

struct Spy;

impl HasData for Spy {
    type Data<'a> = Recorded<'a>;
}

fn spied(guest: &mut Guest) -> Recorded<'_> {
    Recorded(guest)
}

/// Adds WASI's interfaces of every guest to a linker, as [`super::wasi::link`] does.
///
/// # Errors
/// The linker already has one of them.
pub fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    io::link(linker)?;
    basics::link(linker)
}

/// Adds an interface to a linker.
pub type Link = fn(&mut Linker<Guest>) -> wasmtime::Result<()>;

/// The function that adds a granted interface to a linker. None for an interface whose requests all go to the broker.
#[must_use]
pub fn granted(interface: &str) -> Option<Link> {
    files::LINKS.iter().chain(sockets::LINKS).find(|(name, _)| *name == interface).map(|(_, add)| *add)
}

impl Guest {
    /// Answers a function of the host from the recording. None if it has to be called.
    fn replayed<T: Told, E: Fails>(&mut self, name: &str, asked: &[u8]) -> Option<Result<T, E>> {
        let recorder = self.recorder.as_mut()?;
        let told = match recorder.answer(name, asked)? {
            Ok(told) => told,
            Err(failure) => return Some(Err(E::trap(failure.into()))),
        };
        Some(match unpack::<Answer<T::Written>>(&told) {
            Ok(Answer::Ok(written)) => T::read(written).ok_or_else(|| E::trap(unreadable(name).into())),
            Ok(Answer::Code(code)) => Err(E::from_code(&code).unwrap_or_else(|| E::trap(unreadable(name).into()))),
            Ok(Answer::Ended) => Err(E::trap(recorder.ends().into())),
            Err(_) => Err(E::trap(unreadable(name).into())),
        })
    }

    fn enter(&mut self) -> &mut Self {
        if let Some(recorder) = &mut self.recorder {
            recorder.enter();
        }
        self
    }

    /// Writes down what a function of the host returned, and passes it on.
    fn told<T: Told, E: Fails>(&mut self, name: &str, asked: Vec<u8>, told: Result<T, E>) -> Result<T, E> {
        if let Some(recorder) = &mut self.recorder {
            recorder.leave();
        }
        let answer = match &told {
            Ok(value) => Answer::Ok(value.written()),
            Err(error) => error.code().map_or(Answer::Ended, Answer::Code),
        };
        self.keep(name, asked, pack(&answer));
        told
    }

    fn replays(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.replays())
    }

    fn output(&mut self, handle: u32, level: Option<LogLevel>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.output(handle, level);
        }
    }
}

fn unreadable(name: &str) -> HostFailure {
    HostFailure::Failed { what: "the replay", error: format!("the recording's answer of {name} is damaged") }
}

/// The arguments of a function as they are written down.
macro_rules! args {
    ($($arg:ident),*) => { brine_recording::pack(&[$(super::values::Asks::written(&$arg)),*] as &[super::values::Arg]) };
}

/// Functions of an interface, each recorded around the implementation of other calls.
macro_rules! rows {
    ($interface:literal, $of:path, |$guest:ident| $real:expr; $($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        $(fn $name(&mut self, $($arg: $ty),*) -> $result {
            let (name, asked) = (concat!($interface, ".", stringify!($name)), args!($($arg),*));
            if let Some(told) = self.0.replayed(name, &asked) {
                return told;
            }
            let $guest = self.0.enter();
            let told = <_ as $of>::$name(&mut $real, $($arg),*);
            self.0.told(name, asked, told)
        })*
    };
}

/// The same for functions that wait.
macro_rules! waiting_rows {
    ($interface:literal, $of:path, |$guest:ident| $real:expr; $($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        $(async fn $name(&mut self, $($arg: $ty),*) -> $result {
            let (name, asked) = (concat!($interface, ".", stringify!($name)), args!($($arg),*));
            if let Some(told) = self.0.replayed(name, &asked) {
                return told;
            }
            let $guest = self.0.enter();
            let told = <_ as $of>::$name(&mut $real, $($arg),*).await;
            self.0.told(name, asked, told)
        })*
    };
}

use {args, rows, waiting_rows};
