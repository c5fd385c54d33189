//! The module `test`: functions to test a minion, its connection and its arguments. The functions and their
//! documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "test",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
    generate_all,
});

mod numbers;
mod others;
mod pillar;
mod python;
mod states;

use std::time::Duration;

use brine_guest::Value;
use brine_guest::hash::Hash;
use brine_guest::host::{functions, job, log};
use wasi::clocks::monotonic_clock::{now, subscribe_duration};
use wasi::random::random::get_random_u64;

/// The default upper bound of the number in [`Module::random_hash`].
const RANDOM: u64 = 9_999_999_999;
/// The prefix of the keyword arguments that the minion adds.
const OF_THE_JOB: &str = "__pub_";

struct Module;

impl Guest for Module {
    fn ping() -> bool {
        true
    }

    fn echo(text: Data) -> Data {
        text
    }

    fn arg(args: Vec<Data>, kwargs: Data) -> Data {
        Data::dict([("args", Data::list(args)), ("kwargs", kwargs)])
    }

    fn kwarg(kwargs: Data) -> Data {
        kwargs
    }

    fn outputter(data: Data) -> Data {
        data
    }

    fn version() -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn fib(num: u32) -> Result<(u64, f64), String> {
        timed(|| numbers::fib(num))
    }

    fn collatz(start: u64) -> Result<(Vec<u64>, f64), String> {
        timed(|| numbers::collatz(start))
    }

    fn sleep(length: f64) -> Result<bool, String> {
        if length.is_nan() || length < 0.0 {
            return Err("'length' must be a number of seconds that is not negative".into());
        }
        nap(length);
        Ok(true)
    }

    fn exception(message: Option<String>) -> Result<(), String> {
        Err(message.unwrap_or_else(|| "Test Exception".into()))
    }

    fn retcode(code: Option<i32>) -> bool {
        job::set_retcode(code.unwrap_or(42));
        true
    }

    fn true_() -> bool {
        true
    }

    fn false_() -> bool {
        false
    }

    fn arg_clean(args: Vec<Data>, kwargs: Data) -> Result<Data, String> {
        let mut kwargs = kwargs.value()?;
        if let Value::Dict(entries) = &mut kwargs {
            entries.retain(|(name, _)| !name.text().is_some_and(|name| name.starts_with(OF_THE_JOB)));
        }
        Ok(Data::dict([("args", Data::list(args)), ("kwargs", kwargs.into())]))
    }

    fn arg_repr(args: Vec<Data>, kwargs: Data) -> Result<Data, String> {
        let args = python::tuple(&values(&args)?);
        Ok(Value::dict([("args", args.into()), ("kwargs", kwargs.value()?.to_text().into())]).into())
    }

    fn arg_type(args: Vec<Data>, kwargs: Data) -> Result<Data, String> {
        let args: Vec<String> = values(&args)?.iter().map(python::type_name).collect();
        let mut kwargs = kwargs.value()?;
        if let Value::Dict(entries) = &mut kwargs {
            entries.iter_mut().for_each(|(_, value)| *value = python::type_name(value).into());
        }
        Ok(Value::dict([("args", args.into()), ("kwargs", kwargs)]).into())
    }

    fn assertion(assertion: Data) -> Result<(), String> {
        if assertion.value()?.truthy() { Ok(()) } else { Err("AssertionError".into()) }
    }

    fn attr_call() -> Result<Data, String> {
        others::call("grains.items", Vec::new())
    }

    fn conf_test() -> Result<Data, String> {
        Ok(others::setting("test.foo")?.unwrap_or_else(|| "unconfigured".into()).into())
    }

    fn cross_test(func: String, args: Option<Data>) -> Result<Data, String> {
        match args.map(|args| args.value()).transpose()?.unwrap_or_default() {
            Value::None => others::call(&func, Vec::new()),
            Value::List(args) => others::call(&func, args),
            other => Err(format!("args is to be a list of arguments, not {}", other.kind())),
        }
    }

    fn deprecation_warning() -> bool {
        for about in ["by version.", "by date very far into the future (3000-01-01)."] {
            log::write(log::Level::Warning, &format!("DeprecationWarning: This is a test deprecation warning {about}"));
        }
        true
    }

    fn get_opts() -> Result<Data, String> {
        others::settings().map(Data::from)
    }

    fn module_report() -> Result<Data, String> {
        Ok(others::report(others::names("sys.list_functions")?).into())
    }

    fn not_loaded() -> Result<Vec<String>, String> {
        let loaded = others::modules_of(&others::names("sys.list_functions")?);
        let mut all = others::names("sys.list_modules")?;
        all.retain(|module| !loaded.contains(module));
        Ok(all)
    }

    fn opts_pkg() -> Result<Data, String> {
        let mut all = others::settings()?;
        if let Value::Dict(entries) = &mut all {
            entries.retain(|(name, _)| name.text() != Some("grains"));
            entries.push(("grains".into(), others::call("grains.items", Vec::new())?.value()?));
        }
        Ok(all.into())
    }

    fn provider(module: String) -> Result<String, String> {
        let functions = others::names("sys.list_functions")?;
        let is_there = functions.iter().any(|function| others::module_of(function) == module);
        Ok(if is_there { module } else { String::new() })
    }

    fn providers() -> Result<Data, String> {
        let modules = others::modules_of(&others::names("sys.list_functions")?);
        let own = modules.iter().map(|module| (module.as_str(), Value::from(module.as_str())));
        Ok(Value::dict(own).into())
    }

    fn raise_exception(name: String, args: Vec<Data>, _kwargs: Data) -> Result<bool, String> {
        match python::raised(&name, &values(&args)?) {
            Some(said) => Err(said),
            None => {
                log::write(log::Level::Error, &format!("No such exception: {name}"));
                Ok(false)
            }
        }
    }

    fn rand_sleep(max: Option<u32>) -> bool {
        nap((get_random_u64() % (u64::from(max.unwrap_or(60)) + 1)) as f64);
        true
    }

    fn rand_str(size: Option<u64>, hash_type: Option<String>) -> Result<String, String> {
        Self::random_hash(size, hash_type)
    }

    fn random_hash(size: Option<u64>, hash_type: Option<String>) -> Result<String, String> {
        let kind = match hash_type.filter(|kind| !kind.is_empty()) {
            Some(kind) => kind,
            None => others::setting("hash_type")?.map_or_else(|| "sha256".into(), |kind| kind.to_text()),
        };
        match size.unwrap_or(RANDOM) {
            0 => Err("size is to be 1 or more".into()),
            size => {
                let mut hash = Hash::new(&kind).ok_or_else(|| {
                    format!("hash_type is to be md5, sha1, sha224, sha256, sha384 or sha512, not {kind}")
                })?;
                hash.update((get_random_u64() % size + 1).to_string().as_bytes());
                Ok(hash.hex())
            }
        }
    }

    fn stack() -> String {
        let job = job::current();
        let caller = job::called_by().map(|caller| format!("  {caller}\n")).unwrap_or_default();
        format!("  job {} of {} on {}\n{caller}  {}\n", job.jid, job.user, job.minion_id, job.function)
    }

    fn tty(_args: Vec<Data>, _kwargs: Data) -> String {
        "ERROR: This function has been moved to cmd.tty".into()
    }

    fn try_(module: String, return_try_exception: Option<bool>, kwargs: Data) -> Result<Data, String> {
        Ok(functions::call(&module, &[], &kwargs).unwrap_or_else(|why| match return_try_exception {
            Some(true) => why.into(),
            _ => Value::None.into(),
        }))
    }

    fn versions() -> Result<String, String> {
        Ok(others::versions_report(&versions()?))
    }

    fn versions_information() -> Result<Data, String> {
        versions().map(Data::from)
    }

    fn versions_report() -> Result<String, String> {
        Self::versions()
    }
}

fn versions() -> Result<Value, String> {
    let grains = others::call("grains.items", Vec::new())?.value()?;
    Ok(others::versions(env!("CARGO_PKG_VERSION"), &grains))
}

fn values(args: &[Data]) -> Result<Vec<Value>, String> {
    args.iter().map(Data::value).collect()
}

/// Sleeps for this many seconds.
fn nap(seconds: f64) {
    // The cast saturates at the type's greatest number, which exceeds the job's time limit anyway.
    subscribe_duration((seconds * 1e9) as u64).block();
}

/// A result with the seconds that it took.
fn timed<T>(work: impl FnOnce() -> Result<T, String>) -> Result<(T, f64), String> {
    let start = now();
    let result = work()?;
    Ok((result, Duration::from_nanos(now() - start).as_secs_f64()))
}

export!(Module);
