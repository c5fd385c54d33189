//! `salt`: runs a function on minions and prints their returns as they come.

mod args;
mod batch;
mod call;
mod candidates;
mod preview;
mod progress;
mod summary;

use std::ffi::OsString;
use std::time::Duration;

use crate::commandline;
use crate::output;
use brine_protocol::args as arguments;
use brine_protocol::exit;
use brine_protocol::value::{self, Value, ValueExt};
use clap::CommandFactory as _;
use rand::seq::SliceRandom as _;

pub use args::SaltArgs;
use batch::Plan;
use call::Call;

use super::target::replace_groups;
use super::{block_on, print_hint};
use crate::Outcome;
use crate::print::{Printer, stderr, stdout};
use brine_client::{ClientError, ClientOpts, Job, JobEvent, LocalClient, MinionReturn, Returns, no_response};

/// Runs the command with these arguments, beginning with the program's name.
///
/// # Errors
/// The failure that ended the command, with its exit code.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> Outcome {
    commandline::complete_or_document(&SaltArgs::command(), &[("words", candidates::candidates)]);
    let args: SaltArgs = commandline::parse_with_stdin(argv, |args: &SaltArgs| args.args_stdin)?;
    let tgt_type = args.tgt_type()?;
    args.log.start()?;
    if args.config_dump {
        let (config, _) = args.config.load()?;
        stdout(&output::render("yaml", config.opts(), &output::Style { visible: true, ..output::Style::default() }));
        return Ok(exit::OK);
    }
    let call = Call::new(&args)?;
    let (config, opts) = args.config.load()?;
    let mut printer = Printer::new(&args.output, &config)?;
    if args.preview_target {
        return Ok(preview::show(&mut printer, preview::minions(&args, &call, tgt_type, &config, &opts)));
    }
    let batch = Plan::new(&args, &config, || preview::minions(&args, &call, tgt_type, &config, &opts))?;
    let mut job = job(&args, &call, tgt_type, &opts);
    if matches!(tgt_type, "nodegroup" | "compound") {
        match replace_groups(&job.tgt, tgt_type, &config) {
            Ok(tgt) => (job.tgt, job.tgt_type) = (tgt, "compound".to_owned()),
            Err(text) => {
                printer.show(&Value::from(text), "", 1);
                return Ok(exit::OK);
            }
        }
    }
    block_on(async {
        args.log_in.check_system(exit::STATE_FAILURE)?;
        let log_in = args.log_in.resolve(&config, &opts).await?;
        let client = LocalClient::logged_in(opts, log_in);
        let mut session = Session { args: &args, call: &call, printer: &mut printer };
        Ok(session.run(&client, job, batch.as_ref()).await.unwrap_or_else(|error| session.failed(&error)))
    })?
}

/// The job that the options describe.
fn job(args: &SaltArgs, call: &Call, tgt_type: &str, opts: &ClientOpts) -> Job {
    let seconds = args.timeout.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    let timeout = seconds.map_or(opts.timeout, Duration::from_secs);
    let mut kwargs = vec![
        ("show_timeout".to_owned(), Value::from(!args.hide_timeout)),
        ("show_jid".to_owned(), Value::from(args.show_jid)),
        ("delimiter".to_owned(), Value::from(args.target.delimiter.as_str())),
    ];
    let yaml = [
        ("module_executors", &args.module_executors),
        ("executor_opts", &args.executor_opts),
        ("metadata", &args.metadata),
        ("ret_kwargs", &args.return_kwargs),
    ];
    for (name, text) in yaml {
        if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
            kwargs.push((name.to_owned(), arguments::yamlify(text)));
        }
    }
    if let Some(config) = args.return_config.as_deref().filter(|config| !config.is_empty()) {
        kwargs.push(("ret_config".to_owned(), Value::from(config)));
    }
    if args.start_event {
        kwargs.push(("start_event".to_owned(), Value::from(true)));
    }
    Job {
        tgt: call.tgt.clone(),
        tgt_type: tgt_type.to_owned(),
        fun: call.fun.clone(),
        arg: call.arg.clone(),
        ret: args.returner.clone().unwrap_or_default(),
        jid: String::new(),
        kwargs,
        timeout: Some(timeout),
    }
}

/// One call of the command.
struct Session<'a> {
    args: &'a SaltArgs,
    call: &'a Call,
    printer: &'a mut Printer,
}

impl Session<'_> {
    async fn run(&mut self, client: &LocalClient, job: Job, batch: Option<&Plan>) -> Result<i32, ClientError> {
        // Salt ignores the subset for a batch and for `--async`, and runs the job on the whole target.
        let job = match self.args.subset.filter(|count| *count != 0) {
            None => job,
            Some(count) => match subset(client, &job, usize::try_from(count).unwrap_or(1)).await {
                Err(error @ ClientError::NoMatch { .. }) => return Ok(self.no_match(&error)),
                job => job?,
            },
        };
        match batch {
            Some(plan) => self.batch(client, &job, plan).await,
            None if self.args.asynchronous => self.publish(client, &job).await,
            None => self.wait(client, &job).await,
        }
    }

    /// `--async`.
    async fn publish(&mut self, client: &LocalClient, job: &Job) -> Result<i32, ClientError> {
        let jid = match client.cmd_async(job).await {
            Ok(published) => published.jid,
            Err(error @ ClientError::NoMatch { .. }) => {
                stdout(&error.to_string());
                print_hint(&error);
                "0".to_owned()
            }
            Err(error) => return Err(error),
        };
        self.printer.line(&format!("Executed command with job ID: {jid}"));
        Ok(exit::OK)
    }

    async fn wait(&mut self, client: &LocalClient, job: &Job) -> Result<i32, ClientError> {
        let mut returns = match client.cmd_iter(job).await {
            Err(error @ ClientError::NoMatch { .. }) => return Ok(self.no_match(&error)),
            returns => returns?,
        };
        let jid = returns.published().jid.clone();
        // As in Salt, `--static` shows nothing but the returns, which scripts read.
        let is_told = !self.args.static_;
        if is_told && self.args.verbose {
            let heading = format!("Executing job with jid {jid}");
            self.printer.line(&format!("{heading}\n{}\n", "-".repeat(heading.len())));
        } else if is_told && self.args.show_jid {
            self.printer.line(&format!("jid: {jid}"));
        }
        let grouped = self.call.is_doc() || self.args.static_ || self.args.progress;
        let all = self.collect(&mut returns, grouped).await?;
        if self.call.is_doc() {
            return Ok(self.docs(&all));
        }
        if self.args.static_ {
            let group = value::map(all.iter().map(|ret| (ret.id.as_str(), ret.ret.clone())));
            let worst = all.iter().map(|ret| ret.retcode).max().unwrap_or(0);
            // The map of all returns requests no outputter, but one of the returns may.
            let chosen = self.args.output.output.as_deref().unwrap_or_else(|| self.call.outputter());
            let out = all.iter().find_map(|ret| ret.out.as_deref().filter(|out| *out != "no_return"));
            self.printer.show(&group, out.unwrap_or(chosen), worst);
        }
        let summary = is_told && self.args.summary && !self.printer.is_chosen();
        if self.args.progress || summary {
            for line in summary::lines(&all, self.args.verbose) {
                self.printer.line(&line);
            }
        }
        if all.iter().all(|ret| ret.retcode == 0) {
            return Ok(exit::OK);
        }
        stderr("ERROR: Minions returned with non-zero exit code");
        Ok(exit::GENERIC)
    }

    /// Collects every return, and a row for each minion that did not return. Prints them on arrival unless they are
    /// `grouped`.
    async fn collect(&mut self, returns: &mut Returns<'_>, grouped: bool) -> Result<Vec<MinionReturn>, ClientError> {
        let mut all = Vec::new();
        let bar = self.args.progress.then(|| progress::Bar::new(returns.published().minions.len()));
        loop {
            let event = tokio::select! {
                event = returns.next() => event?,
                _ = tokio::signal::ctrl_c() => self.interrupted(&returns.published().jid),
            };
            let ret = match event {
                None => return Ok(all),
                Some(JobEvent::Return(ret)) => {
                    if let Some(bar) = &bar {
                        bar.returned();
                    }
                    *ret
                }
                Some(JobEvent::Missing { .. }) if self.args.hide_timeout && !self.args.verbose => continue,
                Some(JobEvent::Missing { id, disconnected }) => no_return(id, disconnected, &returns.published().jid),
            };
            if !grouped {
                let row = value::map([(ret.id.as_str(), ret.ret.clone())]);
                self.printer.show(&row, ret.out.as_deref().unwrap_or_else(|| self.call.outputter()), ret.retcode);
            }
            all.push(ret);
        }
    }

    /// Prints an empty return because no minion matched.
    fn no_match(&mut self, error: &ClientError) -> i32 {
        stdout(&error.to_string());
        print_hint(error);
        if self.call.is_doc() {
            stderr("No minions found to gather docs from");
            return exit::STATE_FAILURE;
        }
        self.printer.show(&value::empty_map(), "", 0);
        stderr("ERROR: No return received");
        exit::STATE_FAILURE
    }

    /// Prints the documentation of all minions, merged (`sys.doc`). A minion's error is displayed like any other
    /// return.
    fn docs(&mut self, all: &[MinionReturn]) -> i32 {
        let mut docs: Vec<(String, Value)> = Vec::new();
        for ret in all {
            match &ret.ret {
                Value::Map(entries) => {
                    for (fun, doc) in entries.iter().filter(|(_, doc)| doc.truthy()) {
                        let fun = fun.python_str();
                        if !docs.iter().any(|(known, _)| *known == fun) {
                            docs.push((fun, doc.clone()));
                        }
                    }
                }
                other if ret.retcode != 0 && ret.out.as_deref() != Some("no_return") => {
                    self.printer.show(&value::map([(ret.id.as_str(), other.clone())]), "", ret.retcode);
                }
                _ => {}
            }
        }
        docs.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (fun, doc) in docs {
            if self.printer.is_chosen() {
                self.printer.show(&value::map([(fun, doc)]), "", 0);
            } else {
                self.printer.line(&format!("{fun}:\n{}\n", doc.python_str()));
            }
        }
        exit::OK
    }

    fn interrupted(&self, jid: &str) -> ! {
        let text = format!(
            "\nThis job's jid is: {jid}\nExiting gracefully on Ctrl-c\nThe minions may not have all finished running and \
             any remaining minions will return upon completion. To look up the return data for this job later, run the \
             following command:\n\nsalt-run jobs.lookup_jid {jid}"
        );
        stderr(&text);
        std::process::exit(exit::GENERIC)
    }

    /// Prints an error of the master in place of returns. The exit code is 0, as scripts around Salt expect, with two
    /// exceptions: the master could not do what it allowed (for example because its disk is full), or this user may not
    /// send the request.
    fn failed(&mut self, error: &ClientError) -> i32 {
        print_hint(error);
        self.printer.show(&Value::from(error.to_string()), "", 1);
        if matches!(error, ClientError::Refused(_) | ClientError::NotPermitted(_)) { exit::GENERIC } else { exit::OK }
    }
}

/// The same job for `count` minions, selected at random among those that have its functions.
async fn subset(client: &LocalClient, job: &Job, count: usize) -> Result<Job, ClientError> {
    let funs: Vec<&str> = match &job.fun {
        Value::Array(funs) => funs.iter().filter_map(ValueExt::text).collect(),
        fun => fun.text().into_iter().collect(),
    };
    let list = Job { fun: Value::from("sys.list_functions"), arg: Vec::new(), ..job.clone() };
    let has_all = |functions: &Value| {
        let has = |fun: &&str| functions.list().is_some_and(|all| all.iter().any(|known| known.text() == Some(fun)));
        funs.iter().all(has)
    };
    let mut ids: Vec<String> =
        client.cmd(&list).await?.into_iter().filter(|(_, functions)| has_all(functions)).map(|(id, _)| id).collect();
    ids.shuffle(&mut rand::rng());
    ids.truncate(count);
    Ok(Job { tgt: value::list(ids), tgt_type: "list".to_owned(), ..job.clone() })
}

/// The row for a minion that did not return.
fn no_return(id: String, disconnected: bool, jid: &str) -> MinionReturn {
    let text = if disconnected { "Minion did not return. [Not connected]".to_owned() } else { no_response(jid) };
    let out = Some("no_return".to_owned());
    MinionReturn { id, ret: text.into(), retcode: i64::from(exit::GENERIC), out, load: Value::Nil }
}
