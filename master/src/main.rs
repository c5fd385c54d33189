//! salt-master: reads flags and configuration, starts the library's server, and ends it at a signal.

use std::ffi::OsString;
use std::process::exit;

use brine_daemon::args::DaemonArgs;
use brine_daemon::signals::{Signals, Told};
use brine_daemon::{ProcessError, background, folders, limits, service, user};
use brine_master::server::{folders as own_folders, preflight};
use brine_master::{MasterOpts, Server, settings};
use brine_protocol::commandline;
use brine_protocol::config::Config;
use brine_protocol::exit::{GENERIC, OK, USAGE};
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

/// The Salt Master, used to control the Salt Minions
#[derive(Debug, Parser)]
#[command(name = "salt-master", version = concat!(env!("CARGO_PKG_VERSION"), " (Brine)"))]
struct Flags {
    #[command(flatten)]
    daemon: DaemonArgs,
}

fn main() {
    commandline::answer(&Flags::command(), &[]);
    let read = commandline::read(Flags::command(), std::env::args_os());
    let read = read.and_then(|(mut matches, line)| Ok((Flags::from_arg_matches_mut(&mut matches)?, line)));
    let (flags, line) = read.unwrap_or_else(|error| {
        exit(if commandline::explain_as_salt(Flags::command(), &error) { USAGE } else { OK });
    });
    exit(run(&flags.daemon, &line).unwrap_or_else(|error| {
        commandline::output::stderr(&format!("salt-master: {error}"));
        error.exit_code()
    }));
}

fn run(args: &DaemonArgs, line: &[OsString]) -> Result<i32, ProcessError> {
    let (config, opts) = settings::load(args)?;
    if args.background {
        background::leave_terminal();
    } else if args.daemon {
        return background::start(line.get(1..).unwrap_or_default());
    }
    // While this is root still, if it is.
    let open_files = limits::raise_open_files(&config)?;
    let mut given = Vec::new();
    if let Some(other) = user::other("salt-master", &opts.user, args.user.is_some())? {
        let files = settings::files(&config, &opts);
        let files: Vec<&std::path::Path> = files.iter().map(|file| file.as_path()).collect();
        given = folders::give("salt-master", &own_folders(&opts), &files, &other)?;
        other.become_it()?;
    }
    args.start_log(&config)?;
    for line in given {
        tracing::warn!("{line}");
    }
    open_files.say();
    open_files.judge(&opts.pki_dir.join("minions"));
    preflight::look(&config, &opts);
    let runtime = tokio::runtime::Runtime::new().map_err(|e| ProcessError::new(GENERIC, e.to_string()))?;
    runtime.block_on(serve(args, config, opts))
}

async fn serve(args: &DaemonArgs, mut config: Config, opts: MasterOpts) -> Result<i32, ProcessError> {
    // First: whoever hears that it answers may end it at once.
    let mut signals =
        Signals::listen().map_err(|e| ProcessError::new(GENERIC, format!("signals cannot be received: {e}")))?;
    let server = Server::start(opts).await.map_err(|e| ProcessError::new(e.exit_code(), e.to_string()))?;
    let answers = server.status();
    service::ready(&answers);
    tokio::spawn(service::watchdog());
    if args.background {
        background::detach();
    }
    loop {
        match signals.next().await {
            Told::Stop => break,
            Told::Reload => {
                service::reloading();
                config = settings::reload(args, config, &server);
                service::ready(&answers);
            }
            Told::Dump => server.dump(),
            Told::Profile => server.profile(),
        }
    }
    service::stopping();
    tokio::select! {
        () = server.stop() => Ok(OK),
        // A second time: at once.
        () = signals.stop() => Ok(GENERIC),
    }
}
