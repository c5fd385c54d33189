//! The options of `salt-cp`, with Salt's names.

use brine_protocol::exit;
use clap::{CommandFactory as _, Parser};

use crate::Failure;
use crate::commandline::misuse;
use crate::commands::options::ConfigArgs;
use crate::commands::target::TargetArgs;
use crate::logging::LogArgs;
use crate::print::OutputArgs;

/// The command line of `salt-cp`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "salt-cp",
    about = "Copies files of this host to minions. Small text files need no option; --chunked sends all others.",
    override_usage = "salt-cp [options] '<target>' SOURCE DEST"
)]
pub struct SaltCpArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Seconds to wait for returns before asking the minions whether they still run the job. Default: the setting timeout (5).
    #[arg(short = 't', long, value_name = "TIMEOUT", allow_negative_numbers = true)]
    pub(super) timeout: Option<i64>,
    /// The target, the files, where they go.
    #[arg(value_name = "ARGUMENTS", hide = true, value_hint = clap::ValueHint::AnyPath)]
    words: Vec<String>,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// The target combines several kinds, as with salt -C: 'G@os:Debian and not web*'.
    #[arg(long, help_heading = "Target Options")]
    pub(super) compound: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Send files in pieces: needed for large files, for files that are no text, and for folders.
    #[arg(short = 'C', long, help_heading = "File Options")]
    pub(super) chunked: bool,
    /// Do not compress the pieces.
    #[arg(short = 'n', long = "no-compression", help_heading = "File Options")]
    pub(super) no_compression: bool,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

impl SaltCpArgs {
    /// The target, the files and the destination.
    pub(super) fn words(&self) -> Result<(&str, &[String], &str), Failure> {
        if let [tgt, from @ .., dest] = self.words.as_slice()
            && !from.is_empty()
        {
            return Ok((tgt, from, dest));
        }
        crate::print::stdout(Self::command().render_help().to_string().trim_end());
        let Failure { message, .. } = misuse::<Self>("Insufficient arguments");
        Err(Failure { message, code: exit::USAGE })
    }

    /// Whether the next argument is the target.
    pub(super) fn is_at_target(&self) -> bool {
        self.words.is_empty()
    }
}
