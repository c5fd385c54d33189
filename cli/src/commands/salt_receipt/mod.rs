//! `salt-receipt`: verifies receipts anywhere, and shows those of this host. Needs neither master nor minion.

mod host;
mod verify;

use std::ffi::OsString;
use std::path::PathBuf;

use brine_protocol::exit;
use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::Outcome;
use crate::commandline;
use crate::logging::LogArgs;
use crate::print::stdout;

/// The command line of `salt-receipt`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "salt-receipt",
    version = commandline::VERSION,
    about = "Verifies receipts of jobs, and shows those that this host keeps."
)]
pub struct SaltReceiptArgs {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Verify exported receipts: signatures, the minion's key, chains.
    Verify {
        /// The fingerprint that the minion's key must have, as salt-key -f prints it.
        #[arg(long = "minion-key", value_name = "FINGERPRINT")]
        minion_key: Option<String>,
        /// Files of lines from receipts.export or salt-receipt export; - for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// List the receipts that this host keeps, the oldest first.
    List(Host),
    /// Show what a job's receipt on this host says.
    Show {
        /// The job.
        jid: String,
        #[command(flatten)]
        host: Host,
    },
    /// Print the receipts of this host as lines that verify reads.
    Export(Host),
}

/// Where this host keeps its receipts.
#[derive(Debug, Clone, Args)]
struct Host {
    /// The minion's cachedir.
    #[arg(long, value_name = "DIR", default_value = "/var/cache/salt/minion")]
    cachedir: PathBuf,
    /// The minion's pki_dir.
    #[arg(long = "pki-dir", value_name = "DIR", default_value = "/etc/salt/pki/minion")]
    pki_dir: PathBuf,
}

/// Runs the command with these arguments, beginning with the program's name.
///
/// # Errors
/// The failure that ended the command, with its exit code.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> Outcome {
    commandline::complete_or_document(&SaltReceiptArgs::command(), &[]);
    let args: SaltReceiptArgs = commandline::parse(argv)?;
    args.log.start()?;
    match args.command {
        Command::Verify { minion_key, files } => verify::run(&files, minion_key.as_deref()),
        Command::List(host) => host::each(&host, |signed, asked| {
            let receipt = signed.receipt();
            let by = receipt.master.map_or_else(|| "this host".to_owned(), |master| master.to_string());
            let functions: Vec<&str> = receipt.calls.iter().map(|call| call.function.as_str()).collect();
            let outcome = format!("{:?}", receipt.outcome).to_lowercase();
            let proof = if asked.is_some() { "signed" } else { "-" };
            let (end, jid, code) = (receipt.end, &receipt.jid, receipt.retcode);
            stdout(&format!("{end} {jid} {} {outcome} {code} {proof} {by}", functions.join(",")));
            Ok(())
        }),
        Command::Show { jid, host } => host::show(&host, &jid),
        Command::Export(host) => host::export(&host),
    }
    .map(|()| exit::OK)
}
