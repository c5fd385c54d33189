//! `salt-sandbox`: a terminal program in which the owner of a host sees what runs in the sandbox, what was refused and which
//! updates are held, and decides.
//!
//! - `host.rs`     one call of a function on this host, by `salt-call --local`
//! - `snapshot.rs` what is shown, read from the answers · `load.rs` what the executors use, from `/proc`
//! - `worker.rs`   the thread that makes the calls, so that keys are answered at once
//! - `app.rs`      what is selected and asked, and what a key does · `draw/` the screen
//!
//! It decides nothing: what it changes, it changes by the functions `sandbox.*`, which only the owner may call on this host.
//! Texts of jobs and modules are foreign, so each is escaped before it is drawn.

mod app;
mod draw;
mod host;
mod load;
mod snapshot;
#[cfg(test)]
mod tests;
mod worker;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use brine_cli::{Failure, Outcome, commandline};
use brine_protocol::exit;
use clap::{CommandFactory as _, Parser};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

use app::App;
use host::SaltCall;
use worker::Worker;

/// Time that one look for keys waits before the screen is drawn again.
const LOOK: Duration = Duration::from_millis(100);

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "salt-sandbox",
    version = commandline::VERSION,
    about = "Shows what runs in this host's sandbox, what was refused and which updates are held, and lets its owner decide."
)]
struct Options {
    /// The folder with the minion's configuration.
    #[arg(short = 'c', long = "config-dir", value_name = "CONFIG_DIR", default_value = "/etc/salt")]
    config_dir: PathBuf,
    /// Seconds between two looks at the minion.
    #[arg(short = 'i', long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

/// Runs the program with these arguments, beginning with its name.
///
/// # Errors
/// The failure that ended it, with its exit code.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> Outcome {
    commandline::complete_or_document(&Options::command(), &[]);
    let options: Options = commandline::parse(argv)?;
    let misuse = |why: String| Failure::new(exit::USAGE, format!("salt-sandbox: {why}"));
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let why =
            "it needs a terminal; salt-call --local sandbox.list, sandbox.refusals and sandbox.check print the same";
        return Err(misuse(why.to_owned()));
    }
    let host = SaltCall::new(options.config_dir).map_err(misuse)?;
    let worker = Worker::start(host, Duration::from_secs(options.interval))
        .map_err(|error| Failure::new(exit::SOFTWARE, format!("salt-sandbox: no thread: {error}")))?;
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::new(exit::SOFTWARE, format!("salt-sandbox: the terminal: {error}")))?;
    let ended = show(&mut terminal, &worker);
    ratatui::restore();
    ended.map_err(|error| Failure::new(exit::SOFTWARE, format!("salt-sandbox: the terminal: {error}")))?;
    Ok(exit::OK)
}

/// Draws and answers keys until the owner leaves.
fn show(terminal: &mut DefaultTerminal, worker: &Worker) -> std::io::Result<()> {
    let mut app = App::default();
    loop {
        for news in worker.news() {
            app.take(news);
        }
        terminal.draw(|frame| draw::screen(frame, &app))?;
        if !event::poll(LOOK)? {
            continue;
        }
        if let Event::Key(key) = event::read()?
            && key.is_press()
        {
            for order in app.press(key) {
                worker.order(order);
            }
        }
        if app.ended() {
            return Ok(());
        }
    }
}
