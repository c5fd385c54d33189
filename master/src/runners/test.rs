//! `test.*`: functions for testing runners.

use std::time::Duration;

use brine_protocol::value::{Value, ValueExt, list, map};

use super::function::{Function, Outcome, Run};

/// The longest sleep that a caller can request.
const SLEEP_MAX_SECONDS: f64 = 3_600.0;

/// The functions of this module.
pub(super) const FUNCTIONS: [Function; 7] = [
    Function {
        name: "test.arg",
        parameters: &["*args", "**kwargs"],
        doc: "Returns its arguments.",
        run: |run| Box::pin(async move { Ok(arguments(&run, |name| !name.starts_with("__"))) }),
    },
    Function {
        name: "test.get_opts",
        parameters: &[],
        doc: "Returns the options of the master that config.get shows.",
        run: |run| Box::pin(async move { Ok(run.parts.live.load().shown.clone()) }),
    },
    Function {
        name: "test.metasyntactic",
        parameters: &["locality='us'"],
        doc: "Returns names for examples.",
        run: |run| Box::pin(async move { Ok(metasyntactic(&run)) }),
    },
    Function {
        name: "test.raw_arg",
        parameters: &["*args", "**kwargs"],
        doc: "Returns its arguments, also those whose names begin with two underscores.",
        run: |run| Box::pin(async move { Ok(arguments(&run, |_| true)) }),
    },
    Function {
        name: "test.sleep",
        parameters: &["s_time=10"],
        doc: "Sleeps so many seconds.",
        run: |run| Box::pin(sleep(run)),
    },
    Function {
        name: "test.stdout_print",
        parameters: &[],
        doc: "Prints foo and returns bar.",
        run: |run| {
            Box::pin(async move {
                run.print("foo");
                Ok(Value::from("bar"))
            })
        },
    },
    Function {
        name: "test.stream",
        parameters: &[],
        doc: "Fires progress events, for ten seconds.",
        run: |run| Box::pin(stream(run)),
    },
];

fn arguments(run: &Run, shown: impl Fn(&str) -> bool) -> Value {
    let kwargs = run.given.kwargs.iter().filter(|(name, _)| shown(name));
    map([
        ("args", Value::Array(run.given.args.clone())),
        ("kwargs", map(kwargs.map(|(name, value)| (name.as_str(), value.clone())))),
    ])
}

fn metasyntactic(run: &Run) -> Value {
    match run.text("locality").as_deref() {
        None | Some("us") => list([
            "foo", "bar", "baz", "qux", "quux", "quuz", "corge", "grault", "garply", "waldo", "fred", "plugh", "xyzzy",
            "thud",
        ]),
        Some("uk") => list(["wibble", "wobble", "wubble", "flob"]),
        Some(_) => Value::Nil,
    }
}

async fn sleep(run: Run) -> Outcome {
    let given = run.get("s_time").cloned().unwrap_or_else(|| Value::from(10));
    let time = run.seconds("s_time", SLEEP_MAX_SECONDS)?.unwrap_or_else(|| match run.get("s_time") {
        Some(_) => Duration::ZERO,
        None => Duration::from_secs(10),
    });
    run.print(given.python_str());
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
