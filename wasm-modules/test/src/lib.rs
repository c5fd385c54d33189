//! The module `test`: functions to try a minion, its connection and its arguments with. They and their documentation are
//! in `wit/world.wit`.

wit_bindgen::generate!({
    world: "test",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

mod numbers;

use std::time::Duration;

use brine_guest::host::job;
use wasi::clocks::monotonic_clock::{now, subscribe_duration};

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
        // The cast ends at the type's greatest number, which outlives the job's time limit anyway.
        subscribe_duration((length * 1e9) as u64).block();
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
}

/// The result beside the seconds it took.
fn timed<T>(work: impl FnOnce() -> Result<T, String>) -> Result<(T, f64), String> {
    let start = now();
    let result = work()?;
    Ok((result, Duration::from_nanos(now() - start).as_secs_f64()))
}

export!(Module);
