//! `salt-call`: runs one function on this host, in a sandbox of its own, and prints what it returned.

mod completion;
mod docs;
mod flags;
mod setup;

use std::ffi::OsString;
use std::sync::Arc;

use brine_cli::output::Outputter;
use brine_cli::print::Printer;
use brine_cli::{Failure, commandline, logging};
use brine_protocol::args::parse_input_but;
use brine_protocol::config::settings;
use brine_protocol::exit;
use brine_protocol::job::FunCall;
use brine_protocol::value::{Value, ValueExt, list, map};
use brine_sandbox::{JobOutcome, Preparing};
use tracing::warn;

use crate::accounts;
use crate::cli;
use crate::config::{MinionOpts, returner_names};
use crate::jobs::{local_job, module_of, parse_own_timeout, parse_record, read_function};
use crate::minion::{Base, package_sandbox};
use crate::receipts::Receipts;
use flags::Flags;
use setup::{load_conf, start_threads};

/// Runs the program and returns its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    completion::complete();
    let flags = commandline::parse_with_stdin(args, |flags: &Flags| flags.args_stdin);
    flags.and_then(|flags| start(&flags)).unwrap_or_else(Failure::report)
}

fn start(flags: &Flags) -> Result<i32, Failure> {
    let misuse = |message: String| Failure::new(exit::USAGE, format!("salt-call: {message}"));
    flags.check().map_err(misuse)?;
    cli::check_conf_dir(flags.config_dir.as_deref()).map_err(misuse)?;
    let opts = load_conf(flags)?;
    if let Some(user) = &flags.user {
        let failed = |e: brine_daemon::ProcessError| Failure::new(e.exit_code(), format!("salt-call: {e}"));
        if let Some(other) = brine_daemon::user::find_other("salt-call", user, true).map_err(failed)? {
            other.become_it().map_err(failed)?;
        }
    }
    let mut printer =
        Printer::new(&flags.output, &opts.config).map_err(|e| Failure::new(exit::USAGE, format!("salt-call: {e}")))?;
    // The minion's log file belongs to the daemon. A log service is shared by all programs.
    let service = || opts.config.get(settings::LOG_FILE).ok().filter(|path| logging::is_url(path));
    let log_file = flags.log_file.clone().or_else(service);
    let log_file = log_file.as_deref().map(|path| (path, flags.log_file_level.as_deref()));
    cli::start_log(&opts.config, flags.log_level.as_deref(), log_file).map_err(misuse)?;

    let runtime = start_threads()?;
    let result = runtime.block_on(Box::pin(run(flags, &mut printer, opts)));
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    result
}

async fn run(flags: &Flags, printer: &mut Printer, opts: MinionOpts) -> Result<i32, Failure> {
    let file_client_local = opts.config.get(settings::FILE_CLIENT).is_ok_and(|from| from == "local");
    let with_master = !(flags.grains || flags.local || file_client_local);
    let failed = |e: crate::minion::MinionError| Failure::new(e.exit_code(), format!("salt-call: {e}"));
    if flags.grains && flags.host_grains {
        print(printer, crate::grains::collect(&opts), 0);
        return Ok(exit::OK);
    }
    let make_sandbox = package_sandbox(&opts, flags.module_dir.clone(), Preparing::OnNeed).map_err(failed)?;
    let base = Base::prepare(opts, with_master, false, make_sandbox).await.map_err(failed)?;
    let code = match flags.grains {
        false => call(flags, printer, &base).await,
        true => {
            base.refresh.grains_at_start().await;
            print(printer, Value::clone(&base.grains.now()), 0);
            Ok(exit::OK)
        }
    };
    base.sandbox.shutdown().await;
    code
}

/// Modules whose functions look at all others.
const LOOK_AT_ALL: [&str; 3] = ["beacons", "sandbox", "sys"];

async fn call(flags: &Flags, printer: &mut Printer, base: &Base) -> Result<i32, Failure> {
    let opts = Arc::clone(&base.opts);
    let receipts = tokio::task::spawn_blocking(move || Receipts::for_call(&opts));
    if let Ok(channel) = base.masters.preferred() {
        channel.sign_in().await.map_err(|e| Failure::new(e.exit_code(), format!("salt-call: {e}")))?;
    }
    base.refresh.grains_at_start().await;
    base.refresh.pillar_or_log().await;
    if flags.doc {
        return docs::print(base, flags.function.as_deref().unwrap_or_default()).await;
    }
    let fun = flags.function.as_deref().expect("the flags were checked");
    let arg = parse_input_but(&flags.arguments, &flags.no_parse);
    let call = FunCall { fun: fun.to_owned(), arg };
    let job = local_job(&accounts::own_name(), call, flags.job_options());
    parse_own_timeout(&job.raw).map_err(|why| Failure::new(exit::USAGE, format!("salt-call: {why}")))?;
    parse_record(&job.raw).map_err(|why| Failure::new(exit::USAGE, format!("salt-call: {why}")))?;
    let (jid, metadata) = (job.jid.clone(), job.metadata.clone());
    let report = (base.masters.preferred().is_ok() && !flags.no_return_event).then(|| words(&flags.arguments));
    match receipts.await {
        Ok(Ok(Some(receipts))) => base.jobs.attach_receipts(Arc::new(receipts)),
        Ok(Ok(None)) | Err(_) => {}
        Ok(Err(e)) => warn!("this call has no receipt: {e}"),
    }
    // Also the report of a call that was refused names what is known of its function.
    base.sandbox.settle(module_of(fun)).await;
    if LOOK_AT_ALL.contains(&module_of(fun)) {
        // However long it takes: nobody else compiles them meanwhile, and the job's own time has not begun.
        while base.sandbox.settle_all().await.is_err() {}
    }
    let called = base.jobs.call(job, report, !flags.for_others).await;
    let usage = called.usage();
    let own_out = called.own_outputter();
    let out = called.outputter().unwrap_or_else(|| Outputter::of_function(fun));
    let JobOutcome { value, retcode, .. } = called.outcome;

    if !base.has_function(fun) && !called.ran {
        if value.entries().is_none() {
            return Err(Failure::new(exit::NO_FUNCTION, value.python_str()));
        }
        // `fun` is a module or the beginning of a name, so the value is documentation.
        print(printer, value, retcode);
        return Ok(exit::GENERIC);
    }
    if !called.ran && value.text().is_some() {
        let message = format!("Error running '{fun}': {}", value.python_str());
        return Err(Failure::new(flags.exit_code(retcode), message));
    }
    if let Some(names) = &flags.returner {
        let mut ret = map([
            ("jid", Value::from(&jid)),
            ("return", value.clone()),
            ("retcode", Value::from(retcode)),
            ("id", Value::from(&base.opts.id)),
            ("fun", Value::from(fun)),
            ("fun_args", words(&flags.arguments)),
            ("success", Value::from(true)),
        ]);
        if let Some(out) = own_out {
            ret.insert("out", out);
        }
        if let Some(metadata) = &metadata {
            ret.insert("metadata", metadata.clone());
        }
        for name in returner_names(names) {
            if let Err(why) = base.jobs.hand_to(name, &ret).await {
                tracing::error!("the returner {name} did not take the return: {why}");
            }
        }
    }
    if flags.metadata {
        let mut shown = map([
            ("jid", Value::from(&jid)),
            ("fun", Value::from(fun)),
            ("fun_args", words(&flags.arguments)),
            ("id", Value::from(&base.opts.id)),
            ("return", value),
            ("retcode", Value::from(retcode)),
            ("usage", usage),
        ]);
        if let Some(out) = own_out {
            shown.insert("out", out);
        }
        if let Some(metadata) = metadata {
            shown.insert("metadata", metadata);
        }
        print(printer, shown, retcode);
    } else {
        printer.tuples(base.returns_tuple(fun));
        printer.show(&local(value), out, retcode);
    }
    Ok(flags.exit_code(retcode))
}

/// Prints a value below Salt's heading.
fn print(printer: &mut Printer, value: Value, retcode: i64) {
    printer.show(&local(value), "nested", retcode);
}

/// A value below Salt's heading, `local:`.
fn local(value: Value) -> Value {
    map([("local", value)])
}

fn words(words: &[String]) -> Value {
    list(words.iter().map(String::as_str))
}

impl Base {
    fn has_function(&self, fun: &str) -> bool {
        read_function(&self.sandbox, fun, |_| ()).is_some()
    }

    /// Whether the function returns a tuple in Python. A `Value` has no tuples, only lists.
    fn returns_tuple(&self, fun: &str) -> bool {
        let tuple = |result: &str| result.strip_prefix("result<").unwrap_or(result).starts_with("tuple<");
        read_function(&self.sandbox, fun, |known| known.result.as_deref().is_some_and(tuple)).unwrap_or(false)
    }
}
