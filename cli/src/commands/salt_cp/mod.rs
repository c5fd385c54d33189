//! `salt-cp`: copies files of this host to minions with their functions `cp.recv` (whole files, text only) and
//! `cp.recv_chunked`.

mod args;
mod chunks;
mod sources;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use crate::commandline::{self, Line};
use brine_protocol::config::settings;
use brine_protocol::exit;
use brine_protocol::keys::KeyState;
use brine_protocol::value::{self, Value, ValueExt};
use clap::CommandFactory as _;

pub use args::SaltCpArgs;
use sources::{Source, Sources};

use super::target::replace_groups;
use super::{block_on, candidates as complete, print_hint};
use crate::print::{Printer, stderr, stdout};
use crate::{Failure, Outcome};
use brine_client::{ClientError, Job, JobEvent, LocalClient, no_response};

/// Runs the command with these arguments, beginning with the program's name.
///
/// # Errors
/// The failure that ended the command, with its exit code.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> Outcome {
    commandline::complete_or_document(&SaltCpArgs::command(), &[("words", candidates)]);
    let args: SaltCpArgs = commandline::parse(argv)?;
    let tgt_type = args.target.tgt_type::<SaltCpArgs>(args.compound)?;
    args.log.start()?;
    let (tgt, from, dest) = args.words()?;
    let (config, opts) = args.config.load()?;
    let mut printer = Printer::new(&args.output, &config)?;
    let chunk =
        config.get(settings::SALT_CP_CHUNK_SIZE).map_err(|error| Failure::new(exit::USAGE, error.to_string()))?;
    let sources = Sources::find(from, args.chunked)?;
    let mut job = Job::new("", "cp.recv", Vec::new());
    (job.tgt, job.tgt_type) = (args.target.target(tgt), tgt_type.to_owned());
    if matches!(tgt_type, "nodegroup" | "compound") {
        let tgt = replace_groups(&job.tgt, tgt_type, &config).map_err(|text| Failure::new(exit::OPTION, text))?;
        (job.tgt, job.tgt_type) = (tgt, "compound".to_owned());
    }
    job.kwargs.push(("delimiter".to_owned(), args.target.delimiter.as_str().into()));
    let seconds = args.timeout.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    job.timeout = seconds.map(Duration::from_secs);

    block_on(async {
        let client = LocalClient::new(opts);
        let mut copy = Copy { client, job, returns: BTreeMap::new() };
        let copied = match args.chunked {
            true => copy.copy_chunked(&sources, dest, chunk, !args.no_compression).await,
            false => copy.copy_whole(&sources, dest).await,
        };
        match copied {
            Ok(()) => {}
            Err(Stopped::Failed(failure)) => return Err(failure),
            Err(Stopped::Refused(error @ ClientError::NoMatch { .. })) => {
                stdout(&error.to_string());
                print_hint(&error);
                return Ok(exit::STATE_FAILURE);
            }
            Err(Stopped::Refused(error)) => {
                print_hint(&error);
                return Err(Failure::new(exit::GENERIC, error.to_string()));
            }
        }
        Ok(copy.show(&mut printer))
    })?
}

/// Completion candidates: a minion of the target, or a file of this host.
fn candidates(command: &clap::Command, line: &Line) -> Vec<String> {
    let Some(args) = line.parse::<SaltCpArgs>(command) else { return Vec::new() };
    match (args.is_at_target(), args.config.load()) {
        (true, Ok((_, opts))) => complete::ids(&opts, &[KeyState::Accepted]),
        (true, Err(_)) => Vec::new(),
        (false, _) => complete::paths(&line.current),
    }
}

/// Why a copy ended early.
enum Stopped {
    /// A file cannot be read.
    Failed(Failure),
    /// The master refuses the request.
    Refused(ClientError),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ClientError> for Stopped {
    fn from(error: ClientError) -> Self {
        Self::Refused(error)
    }
}

/// Returns by minion.
type Said = Vec<(String, Value)>;

struct Copy {
    client: LocalClient,
    /// The job with the target; its function and arguments are set for each call.
    job: Job,
    /// Returns by minion; for `cp.recv` the return of the function.
    returns: BTreeMap<String, Value>,
}

impl Copy {
    /// Copies all files in one job.
    async fn copy_whole(&mut self, sources: &Sources, dest: &str) -> Result<(), Stopped> {
        let files = sources.texts()?;
        let arg = vec![value::map(files), Value::from(dest)];
        for (id, ret) in self.call("cp.recv", arg).await? {
            self.returns.insert(id, ret);
        }
        Ok(())
    }

    /// Copies each file in as many jobs as it has chunks, and each empty directory in one.
    async fn copy_chunked(&mut self, sources: &Sources, dest: &str, chunk: u64, compress: bool) -> Result<(), Stopped> {
        let everybody = (self.job.tgt.clone(), self.job.tgt_type.clone());
        for source in &sources.all {
            let place = sources.place(source, dest);
            (self.job.tgt, self.job.tgt_type) = everybody.clone();
            match source {
                Source::EmptyDir(_) => {
                    let arg = vec![Value::from(place.as_str()), Value::Nil];
                    let said = self.call("cp.recv_chunked", arg).await?;
                    self.note(&place, said);
                }
                Source::File { path, mode } => {
                    let mut chunks = chunks::Chunks::open(path, chunk, compress)?;
                    let mut append = false;
                    while let Some(text) = chunks.next()? {
                        let arg = vec![
                            Value::from(place.as_str()),
                            Value::from(text),
                            Value::from(append),
                            Value::from(compress),
                            Value::from(*mode),
                        ];
                        let said = self.call("cp.recv_chunked", arg).await?;
                        // A minion that missed a chunk gets no further ones, because its file would have a gap.
                        let took: Vec<String> = said
                            .iter()
                            .filter(|(_, ret)| *ret == Value::from(true))
                            .map(|(id, _)| id.clone())
                            .collect();
                        self.note(&place, said);
                        if took.is_empty() {
                            break;
                        }
                        (self.job.tgt, self.job.tgt_type) = (value::list(took), "list".to_owned());
                        append = true;
                    }
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, place: &str, said: Said) {
        for (id, ret) in said {
            self.returns.entry(id).or_insert_with(value::empty_map).insert(place, ret);
        }
    }

    /// Runs a function. Returns each minion's return, or the text for a minion that did not return.
    async fn call(&mut self, fun: &str, arg: Vec<Value>) -> Result<Said, ClientError> {
        (self.job.fun, self.job.arg) = (Value::from(fun), arg);
        let mut returns = self.client.cmd_iter(&self.job).await?;
        let jid = returns.published().jid.clone();
        let mut said = Vec::new();
        while let Some(event) = returns.next().await? {
            match event {
                JobEvent::Return(ret) => said.push((ret.id, ret.ret)),
                JobEvent::Missing { id, .. } => said.push((id, no_response(&jid).into())),
            }
        }
        Ok(said)
    }

    /// Prints all returns. The exit code is 0 if every minion accepted every file.
    fn show(self, printer: &mut Printer) -> i32 {
        let took = |ret: &Value| match ret {
            Value::Map(places) => places.iter().all(|(_, took)| *took == Value::from(true)),
            _ => false,
        };
        let all = self.returns.values().all(took);
        printer.show(&value::map(self.returns), "nested", 0);
        if all {
            return exit::OK;
        }
        stderr("ERROR: Minions did not take every file");
        exit::GENERIC
    }
}
