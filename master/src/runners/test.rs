//! `test.*`: functions for testing runners.

use std::time::Duration;

use brine_protocol::value::{Value, list, map};

use super::function::{Function, Outcome, Run, functions};

/// The longest sleep that a caller can request.
const SLEEP_MAX_SECONDS: f64 = 3_600.0;

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Returns its arguments.
    "test.arg(*args, **kwargs)" => |run| async move { Ok(arguments(&run, |name| !name.starts_with("__"))) },
    /// Returns the options of the master that config.get shows.
    "test.get_opts()" => |run| async move { Ok(run.parts.live.load().shown.clone()) },
    /// Returns names for examples.
    "test.metasyntactic(locality='us')" => |run| async move { Ok(metasyntactic(&run)) },
    /// Returns its arguments, also those whose names begin with two underscores.
    "test.raw_arg(*args, **kwargs)" => |run| async move { Ok(arguments(&run, |_| true)) },
    /// Sleeps so many seconds.
    "test.sleep(s_time=10)" => sleep,
    /// Prints foo and returns bar.
    "test.stdout_print()" => |run| async move {
        run.print("foo");
        Ok(Value::from("bar"))
    },
    /// Fires progress events, for ten seconds.
    "test.stream()" => stream,
};

fn arguments(run: &Run, shown: impl Fn(&str) -> bool) -> Value {
    let kwargs = run.given.kwargs.iter().filter(|(name, _)| shown(name));
    map([
        ("args", Value::Array(run.given.args.clone())),
        ("kwargs", map(kwargs.map(|(name, value)| (name.as_str(), value.clone())))),
    ])
}

fn metasyntactic(run: &Run) -> Value {
    match run.text("locality").as_str() {
        "us" => list([
            "foo", "bar", "baz", "qux", "quux", "quuz", "corge", "grault", "garply", "waldo", "fred", "plugh", "xyzzy",
            "thud",
        ]),
        "uk" => list(["wibble", "wobble", "wubble", "flob"]),
        _ => Value::Nil,
    }
}

async fn sleep(run: Run) -> Outcome {
    let time = run.seconds("s_time", SLEEP_MAX_SECONDS)?.unwrap_or_default();
    run.print(run.text("s_time"));
    tokio::time::sleep(time).await;
    Ok(Value::from(true))
}

async fn stream(run: Run) -> Outcome {
    for percent in 1..100 {
        run.progress(format!("Runner is {percent}% done"));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(Value::from(true))
}
