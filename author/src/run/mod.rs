//! `salt-module run`: one call with the minion's engine, broker, policy and limits, but without a minion or a master.
//!
//! - `state.rs` a state in place of a function · `work.rs` the folder of a run

mod state;
mod work;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use brine_cli::output::{self, Outputter, Style};
use brine_component::ModuleInfo;
use brine_minion::config::MinionOpts;
use brine_minion::minion::{Local, sandbox_with};
use brine_protocol::args::parse_input;
use brine_protocol::config::{Config, Role};
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{Capability, ModuleName, Preparing, Settings, Sha256Hex, Subject};
use sha2::{Digest, Sha256};

use crate::cage::{self, Module};
use crate::cli::Run;
use crate::failure::{self, Failure};
use crate::file;
use crate::grants::{self, Merged};
use work::Work;

/// The minion id that the module sees, because there is no minion.
const ID: &str = "local";

pub(crate) fn run(options: &Run) -> Result<ExitCode, Failure> {
    let name = file::module_name(&options.file)?;
    let wasm = file::read(&options.file)?;
    let grants = grants::merge("--grant", "filesystem: {/srv: ro}", &options.grants)?;
    let limits = grants::merge("--limit", "memory: 16MiB", &options.limits)?;
    if let Some(out) = options.out.as_deref().filter(|out| Outputter::by_name(out).is_none()) {
        return Err(Failure::usage(format!(
            "--out: there is no outputter {out}; there are nested, json, yaml, raw, txt…"
        )));
    }
    if let Some(level) = &options.log_level {
        log(level)?;
    }
    if options.function.is_none() {
        return list(&Module::read(&options.file, false)?, options.state);
    }
    let fun = function(options, &name)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("no threads: {error}")))?;
    let ended = runtime.block_on(Box::pin(host(options, (&name, &fun), &wasm, grants, limits)));
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    ended
}

/// Returns the full name `test.ping`, as in a call by `salt`.
fn function(options: &Run, name: &ModuleName) -> Result<String, Failure> {
    let function = options.function.as_deref().unwrap_or_default();
    match function.split_once('.') {
        None => Ok(format!("{name}.{function}")),
        Some((module, _)) if module == name.as_str() => Ok(function.to_owned()),
        Some((module, _)) => Err(Failure::usage(format!(
            "{} is the module {name}, not {module}: the file's name is the module's",
            options.file.display()
        ))),
    }
}

fn log(level: &str) -> Result<(), Failure> {
    brine_cli::logging::init(level, None).map_err(|why| Failure::usage(format!("--log-level: {why}")))
}

/// Lists the functions, or the states.
fn list(module: &Module, states: bool) -> Result<ExitCode, Failure> {
    let (what, all) = if states { ("states", &module.info.states) } else { ("functions", &module.info.functions) };
    if all.is_empty() {
        say!("{} has no {what}.", module.name);
    } else {
        say!("{} has these {what}; name one, and its arguments after it:", module.name);
    }
    for function in all {
        let signature = brine_component::signature(&module.name, function);
        // `deploy.installed`, as an SLS file names it.
        say!("  {}", signature.replacen(&format!(".{}.", brine_component::STATES), ".", 1));
    }
    if !states && !module.info.states.is_empty() {
        say!("It has states too: salt-module run --state {}", module.path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prepares the host of one call. All its files are in a folder that is removed afterwards. Only the compiled code
/// stays, for the next call.
async fn host(
    options: &Run,
    (name, fun): (&ModuleName, &str),
    wasm: &[u8],
    grants: Merged,
    limits: Merged,
) -> Result<ExitCode, Failure> {
    let work = Work::new()?;
    let dir = work.path();
    // Ctrl-C removes the folder too.
    let ended = tokio::select! {
        ended = Box::pin(async {
            let (local, info) = prepare(dir, options, name, wasm, &grants, limits).await?;
            let ended = call(options, &local, (name, fun), (wasm, &info), &grants).await;
            local.sandbox().shutdown().await;
            if let Some(to) = &options.record {
                work::keep_recordings(name, &dir.join("cache/recordings"), to)?;
            }
            ended
        }) => ended,
        _ = tokio::signal::ctrl_c() => Err(Failure::new(failure::INTERRUPTED, "interrupted")),
    };
    work.keep();
    ended
}

async fn prepare(
    dir: &Path,
    options: &Run,
    name: &ModuleName,
    wasm: &[u8],
    grants: &Merged,
    limits: Merged,
) -> Result<(Local, ModuleInfo), Failure> {
    let path = &options.file;
    let mut package = cage::package()?;
    let called = grants.get(Capability::Functions.key());
    if called.is_none_or(|functions| !functions.truthy()) {
        // The module cannot call the standard modules, and each of them would have to be compiled.
        let needed: &[&str] = if options.state { &state::MODULES } else { &[] };
        package.modules = work::few_modules(dir, &package.modules, needed)?;
    }
    let (mut entry, mut general) = (grants.value(), limits.value());
    if options.state {
        // They are of the state, and not of the module `state` that runs it.
        entry.insert("limits", std::mem::replace(&mut general, Value::Map(Vec::new())));
    }
    // Not in the module's own entry, which refusals name with the line that would grant something.
    let every = map([("record", Value::from(options.record.is_some()))]);
    let sandbox = map([
        ("modules", map([("*", every), (name.as_str(), entry)])),
        ("limits", general),
        // The file is what is to run, whatever has its name.
        ("replace_standard", Value::Array(vec![name.as_str().into()])),
    ]);
    let failed = |error: String| Failure::failed(format!("no sandbox for it: {error}"));
    let mut config = Config::from_yaml("", &dir.join("minion"), Role::Minion).map_err(|e| failed(e.to_string()))?;
    config.set("cachedir", dir.join("cache").to_string_lossy().into_owned());
    config.set("pki_dir", dir.join("pki").to_string_lossy().into_owned());
    config.set("sandbox", sandbox);
    let opts = MinionOpts::from_config(config, Some(ID)).map_err(|e| failed(e.to_string()))?;
    let misuse = |error: brine_minion::minion::MinionError| match error {
        brine_minion::minion::MinionError::Settings(error) => Failure::usage(in_options(&error.to_string(), name)),
        other => Failure::new(failure::UNAVAILABLE, other.to_string()),
    };
    let compiler = package.compiler.clone();
    let make = sandbox_with(package, &opts, None, Preparing::OnNeed).map_err(misuse)?;
    // Checked before the module is compiled, which can take long.
    let settings = Settings::load(&opts.sandbox, dir).map_err(|error| misuse(error.into()))?;
    let examined = brine_sandbox::examine(compiler, settings.compile, wasm, false).await;
    let (info, _) = examined.map_err(|why| Failure::input(format!("{} {why}", path.display())))?;
    let functions: Vec<&str> = info.all().map(|function| function.name.as_str()).collect();
    let sha256 = Sha256Hex::from(<[u8; 32]>::from(Sha256::digest(wasm)));
    let subject = Subject { name, standard: false, sha256, signers: &[] };
    if let Err(refused) = settings.policy.decide(&subject, &info.imports, &functions) {
        return Err(Failure::failed(with_hint(&refused.to_string(), grants)));
    }
    // The file is there from the start, so that compiled code of an earlier run is not attributed to another module.
    file::write(&opts.modules_dir().join(format!("{name}.wasm")), wasm)?;
    Ok((Local::prepare(opts, make).await.map_err(misuse)?, info))
}

/// Rewrites a setting's error in terms of the options that became settings.
fn in_options(error: &str, name: &ModuleName) -> String {
    let options = [
        (format!("sandbox:modules:{name}:limits:"), "--limit "),
        (format!("sandbox:modules:{name}:"), "--grant "),
        ("sandbox:limits:".to_owned(), "--limit "),
    ];
    let said = options.iter().fold(error.to_owned(), |text, (setting, option)| text.replace(setting, option));
    said.strip_prefix("the setting ").map(str::to_owned).unwrap_or(said)
}

async fn call(
    options: &Run,
    local: &Local,
    (name, fun): (&ModuleName, &str),
    (wasm, info): (&[u8], &ModuleInfo),
    grants: &Merged,
) -> Result<ExitCode, Failure> {
    let (fun, arguments) = if options.state {
        let state = state::full_name(name, fun, &info.states)?;
        (state::SINGLE, state::arguments(&state, &options.arguments, options.test)?)
    } else {
        (fun, parse_input(&options.arguments))
    };
    let installed = local.sandbox().install(name.as_str(), wasm, None, "base").await;
    installed.map_err(|why| Failure::failed(with_hint(&why.to_string(), grants)))?;
    if options.log_level.is_none() {
        // The log starts here: the call matters, not the preparation of its host.
        log("info")?;
    }
    let called = local.call(fun, arguments).await;
    if options.usage {
        let shown = output::render("nested", &map([("usage", called.usage())]), &Style::default());
        brine_cli::print::stderr(shown.trim_end());
    }
    let outcome = &called.outcome;
    if !called.ran && outcome.value.text().is_some() {
        let said = with_hint(&outcome.value.python_str(), grants);
        return Err(Failure::failed(format!("error running {fun}: {said}")));
    }
    print(options, &outcome.value, outcome.retcode);
    if options.state {
        if options.out.is_none() {
            state::print_plan(&outcome.value);
        }
        state::print_hints(&outcome.value, grants);
        // Salt's codes: 1 if nothing could be run, 2 if the state failed.
        return Ok(ExitCode::from(u8::try_from(outcome.retcode).unwrap_or(failure::FAILED)));
    }
    Ok(if outcome.retcode == 0 { ExitCode::SUCCESS } else { ExitCode::from(failure::FAILED) })
}

/// Adds the option that would grant what a refusal asks the owner for.
fn with_hint(words: &str, grants: &Merged) -> String {
    match grants::lacking(words, grants) {
        None => words.to_owned(),
        Some(options) => format!("{words}\nHere it is granted by: {options}"),
    }
}

/// Prints the return like `salt-call`.
fn print(options: &Run, value: &Value, retcode: i64) {
    let terminal = std::io::stdout().is_terminal();
    let mut style = Style { retcode, ..if terminal { Style::terminal() } else { Style::default() } };
    let name = options.out.as_deref().unwrap_or(if options.state { "highstate" } else { "nested" });
    style.visible |= Outputter::by_name(name).is_some_and(Outputter::has_escapes);
    let text = output::render(name, &map([("local", value.clone())]), &style);
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let mut out = std::io::stdout().lock();
    // The reader closed the pipe and does not want the rest.
    let _ = write!(out, "{text}{newline}").and_then(|()| out.flush());
}
