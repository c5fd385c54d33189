//! `salt-call`: runs one function on this host, in a sandbox of its own, and prints what it returned.

mod complete;
mod docs;
mod flags;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

use brine_protocol::args::parse_input_but;
use brine_protocol::commandline::output::{Printer, stderr};
use brine_protocol::config::settings;
use brine_protocol::ids::Jid;
use brine_protocol::job::FunCall;
use brine_protocol::value::{Value, ValueExt, list, map};
use brine_protocol::{exit, logging};
use brine_sandbox::JobOutcome;
use tracing::{debug, warn};

use crate::cli;
use crate::config::MinionOpts;
use crate::connection::Channel;
use crate::jobs::{Origin, SALT_CALL, judge, own_time, usage};
use crate::minion::{Base, package_sandbox};
use crate::process;
use flags::Flags;

/// One thread for `salt-call`, one for what it waits for.
const WORKER_THREADS: usize = 2;

/// How the program ends when something went wrong.
#[derive(Debug)]
struct Failure {
    code: i32,
    message: String,
}

impl Failure {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Runs the program and returns its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    complete::answer();
    let flags = match cli::parse_with_stdin(args, |flags: &Flags| flags.args_stdin) {
        Ok(flags) => flags,
        Err(code) => return code,
    };
    match start(&flags) {
        Ok(code) => code,
        Err(failure) => {
            stderr(&failure.message);
            failure.code
        }
    }
}

fn start(flags: &Flags) -> Result<i32, Failure> {
    let misuse = |message: String| Failure::new(exit::USAGE, format!("salt-call: {message}"));
    flags.check().map_err(misuse)?;
    cli::check_conf_dir(flags.config_dir.as_deref()).map_err(misuse)?;
    let opts = conf(flags)?;
    if let Some(user) = &flags.user {
        let failed = |e: brine_daemon::ProcessError| Failure::new(e.exit_code(), format!("salt-call: {e}"));
        if let Some(other) = brine_daemon::user::other("salt-call", user, true).map_err(failed)? {
            other.become_it().map_err(failed)?;
        }
    }
    let mut printer =
        Printer::new(&flags.output, &opts.config).map_err(|e| Failure::new(exit::USAGE, format!("salt-call: {e}")))?;
    // The minion's log file is the daemon's; a log service is for all.
    let service = || opts.config.get(settings::LOG_FILE).ok().filter(|path| logging::is_url(path));
    let log_file = flags.log_file.clone().or_else(service);
    let log_file = log_file.as_deref().map(|path| (path, flags.log_file_level.as_deref()));
    cli::start_log(&opts.config, flags.log_level.as_deref(), log_file).map_err(misuse)?;

    let runtime = threads()?;
    let result = runtime.block_on(Box::pin(run(flags, &mut printer, opts)));
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    result
}

/// The minion's configuration, with what the command line overrules.
fn conf(flags: &Flags) -> Result<MinionOpts, Failure> {
    MinionOpts::load_with(&cli::conf_dir(flags.config_dir.as_deref()), flags.id.as_deref(), &flags.overrides())
        .map_err(|e| Failure::new(e.exit_code(), format!("salt-call: {e}")))
}

fn threads() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(|e| Failure::new(exit::SOFTWARE, format!("salt-call: no threads: {e}")))
}

async fn run(flags: &Flags, printer: &mut Printer, opts: MinionOpts) -> Result<i32, Failure> {
    if flags.grains {
        let grains = crate::grains::collect(&opts);
        print(printer, grains, 0);
        return Ok(exit::OK);
    }
    let file_client_local = opts.config.get(settings::FILE_CLIENT).is_ok_and(|from| from == "local");
    let with_master = !(flags.local || file_client_local);
    let failed = |e: crate::minion::MinionError| Failure::new(e.exit_code(), format!("salt-call: {e}"));
    let make_runtime = package_sandbox(&opts, flags.module_dir.clone()).map_err(failed)?;
    let base = Base::prepare(opts, with_master, make_runtime).await.map_err(failed)?;
    let code = call(flags, printer, &base).await;
    base.runtime.shutdown().await;
    code
}

async fn call(flags: &Flags, printer: &mut Printer, base: &Base) -> Result<i32, Failure> {
    if let Some(channel) = &base.channel {
        channel.sign_in().await.map_err(|e| Failure::new(e.exit_code(), format!("salt-call: {e}")))?;
        base.refresh.pillar_or_log().await;
    }
    if flags.doc {
        return docs::print(base, flags.function.as_deref().unwrap_or_default()).await;
    }
    let fun = flags.function.as_deref().expect("the flags were checked");
    let arg = parse_input_but(&flags.arguments, &flags.no_parse);
    let jid = Jid::now();
    let mut load = map([
        ("fun", Value::from(fun)),
        ("jid", Value::from(&jid)),
        ("tgt", Value::from(SALT_CALL)),
        ("user", Value::from(process::own_name())),
    ]);
    for (name, said) in flags.of_the_job() {
        load.insert(name, said);
    }
    let own_time = own_time(&load).map_err(|why| Failure::new(exit::USAGE, format!("salt-call: {why}")))?;
    let record = base.procs.record(&jid, &load);
    let call = FunCall { fun: fun.to_owned(), arg };
    let from = Origin {
        jid: jid.as_str(),
        user: &process::own_name(),
        master: None,
        ends: own_time.map(|own| (own, Instant::now() + own)),
        end: None,
    };
    let mut outcome = base.runner().call(&from, &call).await;
    drop(record);

    if !base.has_function(fun) && !outcome.success {
        if outcome.value.entries().is_none() {
            return Err(Failure::new(exit::NO_FUNCTION, said(&outcome)));
        }
        // What begins so; the master is not told, as there was no call.
        print(printer, outcome.value, outcome.retcode);
        return Ok(exit::GENERIC);
    }
    let ran = outcome.success;
    judge(&mut outcome);
    if let Some(channel) = base.channel.as_ref().filter(|_| !flags.no_return_event) {
        send_return(base, channel, fun, flags, &outcome).await;
    }
    if !ran && outcome.value.text().is_some() {
        return Err(Failure::new(
            flags.exit_code(outcome.retcode),
            format!("Error running '{fun}': {}", said(&outcome)),
        ));
    }
    if flags.metadata {
        let mut shown = map([
            ("jid", Value::from(&jid)),
            ("fun", Value::from(fun)),
            ("fun_args", words(&flags.arguments)),
            ("id", Value::from(&base.opts.id)),
            ("return", outcome.value.clone()),
            ("retcode", Value::from(outcome.retcode)),
            ("usage", usage(&outcome)),
        ]);
        if let Some(metadata) = load.remove("metadata") {
            shown.insert("metadata", metadata);
        }
        print(printer, shown, outcome.retcode);
    } else {
        printer.tuples(base.returns_tuple(fun));
        print(printer, outcome.value.clone(), outcome.retcode);
    }
    Ok(flags.exit_code(outcome.retcode))
}

/// Tells the master, which gives the job an id (PROTOCOL §6.2). What cannot be told is said and does not fail the call.
async fn send_return(base: &Base, channel: &Arc<Channel>, fun: &str, flags: &Flags, outcome: &JobOutcome) {
    let mut load = map([
        ("cmd", Value::from("_return")),
        ("id", Value::from(&base.opts.id)),
        ("jid", Value::from("req")),
        ("fun", Value::from(fun)),
        // Salt sends the words as they were written.
        ("fun_args", words(&flags.arguments)),
        ("return", outcome.value.clone()),
        ("retcode", Value::from(outcome.retcode)),
        ("usage", usage(outcome)),
    ]);
    for (name, said) in flags.of_the_job().into_iter().filter(|(name, _)| *name == "metadata") {
        load.insert(name, said);
    }
    match channel.request(load).await {
        Ok(_) => debug!("the master has the return"),
        Err(e) => warn!("the return could not be sent to the master: {e}"),
    }
}

/// Prints a value below Salt's heading, `local:`.
fn print(printer: &mut Printer, value: Value, retcode: i64) {
    printer.show(&map([("local", value)]), "nested", retcode);
}

fn said(outcome: &JobOutcome) -> String {
    outcome.value.python_str()
}

fn words(words: &[String]) -> Value {
    list(words.iter().map(String::as_str))
}

impl Base {
    /// As in `test.ping`, of all modules that are there.
    fn functions(&self) -> Vec<String> {
        let modules = self.runtime.names().into_iter().filter_map(|name| self.runtime.describe(&name));
        let functions = modules.flat_map(|module| {
            let names = module.info.functions.iter().map(|function| format!("{}.{}", module.name, function.name));
            names.collect::<Vec<_>>()
        });
        functions.collect()
    }

    fn has_function(&self, fun: &str) -> bool {
        self.result_of(fun).is_some()
    }

    /// Whether what it returns is a tuple to Python, which values do not tell from a list.
    fn returns_tuple(&self, fun: &str) -> bool {
        let tuple = |result: String| result.strip_prefix("result<").unwrap_or(&result).starts_with("tuple<");
        self.result_of(fun).flatten().is_some_and(tuple)
    }

    /// The type that a function returns, if any; none where there is no such function.
    fn result_of(&self, fun: &str) -> Option<Option<String>> {
        let (module, function) = fun.split_once('.')?;
        let module = self.runtime.describe(module)?;
        module
            .info
            .functions
            .iter()
            .find(|known| known.name == function)
            .map(|known| known.result.as_deref().map(str::to_owned))
    }
}
