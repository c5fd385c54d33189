//! `brine-executor`: started by salt-minion with a socket for fd 0. See the library.

use std::os::fd::AsFd;
use std::process::ExitCode;

use brine_executor::{ServeError, Settings, serve};

/// sysexits' EX_USAGE: started in a way that cannot work.
const USAGE: u8 = 64;
/// EX_DATAERR: the other end of the socket is no minion of ours.
const BAD_DATA: u8 = 65;
/// EX_OSERR: the host does not let it work.
const HOST: u8 = 71;

const HELP: &str = "brine-executor [--guest-threads N] [--max-running N]

Runs module instances for salt-minion, which starts it with a socket for fd 0.";

fn main() -> ExitCode {
    let settings = match settings(std::env::args().skip(1)) {
        Ok(settings) => settings,
        Err(message) => return end(&message, USAGE),
    };
    let Some(settings) = settings else {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    };
    let socket = match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => socket,
        Err(error) => return end(&ServeError::NoSocket(error).to_string(), USAGE),
    };
    match serve(socket, &settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ ServeError::NoSocket(_)) => end(&error.to_string(), USAGE),
        Err(error @ ServeError::Start(_)) => end(&error.to_string(), HOST),
        Err(error @ ServeError::Wire(_)) => end(&error.to_string(), BAD_DATA),
    }
}

fn end(message: &str, code: u8) -> ExitCode {
    eprintln!("brine-executor: {message}");
    ExitCode::from(code)
}

/// None where help is asked for.
fn settings(mut args: impl Iterator<Item = String>) -> Result<Option<Settings>, String> {
    let mut settings = Settings::default();
    while let Some(option) = args.next() {
        let target = match option.as_str() {
            "--guest-threads" => &mut settings.guest_threads,
            "--max-running" => &mut settings.max_running,
            "-h" | "--help" => return Ok(None),
            other => return Err(format!("unknown option '{other}'; it takes --guest-threads N and --max-running N")),
        };
        let value = args.next().ok_or_else(|| format!("{option} needs a number"))?;
        *target = match value.parse() {
            Ok(number @ 1..=4096) => number,
            _ => return Err(format!("{option} must be a number from 1 to 4096, got '{value}'")),
        };
    }
    Ok(Some(settings))
}
