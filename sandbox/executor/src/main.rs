//! `brine-executor`: salt-minion starts this program with a socket as fd 0. See the library.

use std::os::fd::AsFd;
use std::process::ExitCode;

use brine_executor::{ServeError, ServeOptions, serve};
use brine_sandbox_walls::Spec;
use brine_trim::Code;

/// EX_USAGE of sysexits: the program was started with wrong arguments.
const USAGE: u8 = 64;
/// EX_DATAERR: the peer on the socket does not speak the protocol.
const BAD_DATA: u8 = 65;
/// EX_OSERR: this host cannot run the program.
const HOST: u8 = 71;

const HELP: &str = "brine-executor [--guest-threads N] [--max-running N] [what it keeps]

Runs module instances for salt-minion, which starts it with a socket for fd 0. Before anything else it takes from itself
what it does not need. What it keeps, each as often as there is something to say:
";

fn main() -> ExitCode {
    brine_sandbox_walls::close_inherited();
    // Behind the walls there is no /proc.
    let code = Code::look();
    let (settings, spec) = match options(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}  {}", Spec::OPTIONS);
            return ExitCode::SUCCESS;
        }
        Err(message) => return end(&message, USAGE),
    };
    let socket = match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => socket,
        Err(error) => return end(&ServeError::NoSocket(error).to_string(), USAGE),
    };
    // The process still has one thread and has read no byte from outside.
    let walls = match brine_sandbox_walls::raise(&spec) {
        Ok(walls) => walls,
        Err(error) => return end(&error.to_string(), HOST),
    };
    // Sets the process's name, because the program may have been started from an open file.
    let _ = rustix::thread::set_name(c"brine-executor");
    match serve(socket, &settings, walls, code) {
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

/// Parses the options. Returns none for `--help`.
fn options(mut args: impl Iterator<Item = String>) -> Result<Option<(ServeOptions, Spec)>, String> {
    let (mut settings, mut spec) = (ServeOptions::default(), Spec::executor());
    while let Some(option) = args.next() {
        let target = match option.as_str() {
            "--guest-threads" => &mut settings.guest_threads,
            "--max-running" => &mut settings.max_running,
            "-h" | "--help" => return Ok(None),
            other => {
                let value = args.next().unwrap_or_default();
                if spec.option(other, &value).map_err(|error| error.to_string())? {
                    continue;
                }
                let known = format!("--guest-threads N, --max-running N, {}", Spec::OPTIONS);
                return Err(format!("unknown option '{other}'; it takes {known}"));
            }
        };
        let value = args.next().ok_or_else(|| format!("{option} needs a number"))?;
        *target = match value.parse() {
            Ok(number @ 1..=4096) => number,
            _ => return Err(format!("{option} must be a number from 1 to 4096, got '{value}'")),
        };
    }
    Ok(Some((settings, spec)))
}
