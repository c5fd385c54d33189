//! Small runners: `config`, `doc`, `error` and `test`.

use std::time::Duration;

use brine_protocol::value::{Value, ValueExt, empty_map, list, map};

use super::ask::{self, Question};
use super::function::{Function, Outcome, Run};
use super::{RUNNERS, documentation, wheel};

/// The longest sleep that a caller can ask for.
const SLEEP_MAX_SECONDS: f64 = 3_600.0;

/// The functions of these modules.
pub(super) const FUNCTIONS: [Function; 12] = [
    Function {
        name: "config.get",
        parameters: &["key", "default=''", "delimiter=':'"],
        doc: "Returns an option of the master, or a part of one (a:b); secrets and options that Salt does not have are not shown.",
        run: |run| Box::pin(async move { Ok(config_get(&run)) }),
    },
    Function {
        name: "doc.execution",
        parameters: &[],
        doc: "Asks all minions for the documentation of their functions, and returns all of it.",
        run: |run| Box::pin(doc_execution(run)),
    },
    Function {
        name: "doc.runner",
        parameters: &[],
        doc: "Returns the documentation of the runners.",
        run: |_| Box::pin(async { Ok(documentation(RUNNERS, "salt-run ", "")) }),
    },
    Function {
        name: "doc.wheel",
        parameters: &[],
        doc: "Returns the documentation of the wheel functions.",
        run: |_| Box::pin(async { Ok(documentation(wheel::FUNCTIONS, "", "")) }),
    },
    Function {
        name: "error.error",
        parameters: &["name=None", "message=''"],
        doc: "Fails with this exception, to try what happens then; without a name it does not.",
        run: |run| Box::pin(async move { raise(&run, "runner") }),
    },
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
        run: |run| Box::pin(async move { Ok(run.master.live.load().shown.clone()) }),
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

fn config_get(run: &Run) -> Value {
    let default = || run.get("default").cloned().unwrap_or_else(|| Value::from(""));
    let Some(key) = run.text("key") else { return default() };
    let delimiter = run.text("delimiter").filter(|text| !text.is_empty()).unwrap_or_else(|| ":".to_owned());
    run.master.live.load().shown.traverse(&key, &delimiter).cloned().unwrap_or_else(default)
}

async fn doc_execution(run: Run) -> Outcome {
    let answers = ask::minions(&run.master, Question::all("sys.doc")).await?;
    let mut docs = empty_map();
    for (_, of_minion) in answers.results() {
        for (name, doc) in of_minion.entries().unwrap_or_default() {
            if let Some(name) = name.text() {
                docs.insert(name, doc.clone());
            }
        }
    }
    Ok(docs)
}

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

/// Python's own exceptions that somebody may try; those of Salt follow.
const BUILT_IN: [&str; 18] = [
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "EOFError",
    "Exception",
    "ImportError",
    "IndexError",
    "KeyError",
    "LookupError",
    "MemoryError",
    "NameError",
    "NotImplementedError",
    "OSError",
    "PermissionError",
    "RuntimeError",
    "TypeError",
    "ValueError",
    "ZeroDivisionError",
];
const SALTS: [&str; 17] = [
    "AuthenticationError",
    "AuthorizationError",
    "CommandExecutionError",
    "CommandNotFoundError",
    "EauthAuthenticationError",
    "FileserverConfigError",
    "JobNotFound",
    "MinionError",
    "SaltCacheError",
    "SaltClientError",
    "SaltClientTimeout",
    "SaltException",
    "SaltInvocationError",
    "SaltMasterError",
    "SaltReqTimeoutError",
    "SaltSystemExit",
    "TokenAuthenticationError",
];

/// What Salt says of an exception, without the lines of its program.
pub(super) fn raise(run: &Run, kind: &str) -> Outcome {
    let Some(name) = run.text("name") else { return Ok(empty_map()) };
    let message = run.text("message").unwrap_or_default();
    // Salt's `raise_error`: a name that nobody knows is a SaltException's.
    let name = match name.as_str() {
        "" => "Exception".to_owned(),
        name if BUILT_IN.contains(&name) => name.to_owned(),
        name if SALTS.contains(&name) => format!("salt.exceptions.{name}"),
        _ => "salt.exceptions.SaltException".to_owned(),
    };
    // A TypeError, and what Salt derives from it, is shown as wrong arguments.
    if matches!(name.as_str(), "TypeError" | "salt.exceptions.SaltInvocationError") {
        return Err(run.wrong(&message));
    }
    let end = if message.is_empty() { String::new() } else { format!(": {message}") };
    Err(format!("Exception occurred in {kind} error.error: {name}{end}\n").into())
}
