//! `salt-call`: runs one function on this host, in a sandbox of its own, and prints what it returned.

mod complete;
mod docs;
mod flags;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use brine_protocol::args::parse_input;
use brine_protocol::exit;
use brine_protocol::ids::Jid;
use brine_protocol::job::FunCall;
use brine_protocol::output::{self, Style};
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::JobOutcome;
use tracing::{debug, warn};

use crate::cli;
use crate::config::MinionOpts;
use crate::connection::Channel;
use crate::jobs::{Origin, SALT_CALL, judge, usage};
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
    let flags = match cli::parse::<Flags>(args) {
        Ok(flags) => flags,
        Err(code) => return code,
    };
    match start(&flags) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{}", failure.message);
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
        process::become_user(user).map_err(|e| Failure::new(e.exit_code(), format!("salt-call: {e}")))?;
    }
    let log_file = flags.log_file.as_deref().map(|path| (path, flags.log_file_level.as_deref()));
    cli::start_log(&opts.config, flags.log_level.as_deref(), log_file).map_err(misuse)?;

    let runtime = threads()?;
    let result = runtime.block_on(Box::pin(run(flags, opts)));
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

async fn run(flags: &Flags, opts: MinionOpts) -> Result<i32, Failure> {
    if flags.grains {
        let grains = crate::grains::collect(&opts);
        print(flags, &grains, "nested", 0);
        return Ok(exit::OK);
    }
    let file_client_local = opts.config.value("file_client").and_then(|v| v.text()) == Some("local");
    let with_master = !(flags.local || file_client_local);
    let failed = |e: crate::minion::MinionError| Failure::new(e.exit_code(), format!("salt-call: {e}"));
    let make_runtime = package_sandbox(&opts, flags.module_dir.clone()).map_err(failed)?;
    let base = Base::prepare(opts, with_master, make_runtime).await.map_err(failed)?;
    let code = call(flags, &base).await;
    base.runtime.shutdown().await;
    code
}

async fn call(flags: &Flags, base: &Base) -> Result<i32, Failure> {
    if let Some(channel) = &base.channel {
        channel.sign_in().await.map_err(|e| Failure::new(e.exit_code(), format!("salt-call: {e}")))?;
        base.refresh.pillar_or_log().await;
    }
    if flags.doc {
        return docs::print(base, flags.function.as_deref().unwrap_or_default()).await;
    }
    let fun = flags.function.as_deref().expect("the flags were checked");
    let arg = if flags.no_parse { plain(&flags.arguments) } else { parse_input(&flags.arguments) };
    let jid = Jid::now();
    let load = map([
        ("fun", Value::from(fun)),
        ("jid", Value::from(&jid)),
        ("tgt", Value::from(SALT_CALL)),
        ("user", Value::from(process::own_name())),
    ]);
    let record = base.procs.record(&jid, &load);
    let call = FunCall { fun: fun.to_owned(), arg: arg.clone() };
    let from = Origin { jid: jid.as_str(), user: &process::own_name(), master: None, ends: None, end: None };
    let mut outcome = base.runner().call(&from, &call).await;
    drop(record);

    if !base.has_function(fun) && !outcome.success {
        return Err(Failure::new(exit::NO_FUNCTION, said(&outcome)));
    }
    let ran = outcome.success;
    judge(&mut outcome);
    if let Some(channel) = base.channel.as_ref().filter(|_| !flags.no_return_event) {
        send_return(base, channel, fun, arg, &outcome).await;
    }
    if !ran && outcome.value.text().is_some() {
        return Err(Failure::new(
            flags.exit_code(outcome.retcode),
            format!("Error running '{fun}': {}", said(&outcome)),
        ));
    }
    if flags.metadata {
        let shown = map([
            ("jid", Value::from(&jid)),
            ("fun", Value::from(fun)),
            ("id", Value::from(&base.opts.id)),
            ("return", outcome.value.clone()),
            ("retcode", Value::from(outcome.retcode)),
            ("usage", usage(&outcome)),
        ]);
        print(flags, &shown, "nested", outcome.retcode);
    } else {
        print(flags, &outcome.value, "nested", outcome.retcode);
    }
    Ok(flags.exit_code(outcome.retcode))
}

/// Tells the master, which gives the job an id (PROTOCOL §6.2). What cannot be told is said and does not fail the call.
async fn send_return(base: &Base, channel: &Arc<Channel>, fun: &str, arg: Vec<Value>, outcome: &JobOutcome) {
    let load = map([
        ("cmd", Value::from("_return")),
        ("id", Value::from(&base.opts.id)),
        ("jid", Value::from("req")),
        ("fun", Value::from(fun)),
        ("fun_args", Value::Array(arg)),
        ("return", outcome.value.clone()),
        ("retcode", Value::from(outcome.retcode)),
        ("usage", usage(outcome)),
    ]);
    match channel.request(load).await {
        Ok(_) => debug!("the master has the return"),
        Err(e) => warn!("the return could not be sent to the master: {e}"),
    }
}

/// Prints a value below Salt's heading, `local:`.
fn print(flags: &Flags, value: &Value, outputter: &str, retcode: i64) {
    let terminal = std::io::stdout().is_terminal();
    let base = if terminal { Style::terminal() } else { Style::default() };
    let color = flags.force_color || (terminal && !flags.no_color);
    let style = Style { color, retcode, indent: flags.indent(), ..base };
    let name = flags.out.as_deref().unwrap_or(outputter);
    if output::Outputter::by_name(name).is_none() {
        eprintln!("there is no outputter {name}; showing nested");
    }
    let text = output::render(name, &map([("local", value.clone())]), &style);
    let mut out = std::io::stdout().lock();
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    // Who closed the pipe does not want the rest.
    let _ = write!(out, "{text}{newline}").and_then(|()| out.flush());
}

fn said(outcome: &JobOutcome) -> String {
    outcome.value.python_str()
}

fn plain(words: &[String]) -> Vec<Value> {
    words.iter().map(|word| Value::from(word.as_str())).collect()
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
        fun.split_once('.').is_some_and(|(module, function)| {
            self.runtime.describe(module).is_some_and(|m| m.info.functions.iter().any(|f| f.name == function))
        })
    }
}
