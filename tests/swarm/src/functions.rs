//! The functions of a simulated minion, implemented natively: enough to tell commands apart and to satisfy `salt`.

use brine_protocol::job::JobLoad;
use brine_protocol::value::{Value, ValueExt, empty_map};

/// The result of a function.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// Returns this.
    Value(Value),
    /// Fails with this text.
    Failure(String),
    /// Fetches this file from the master's environment `base` in chunks, compares it with the master's hash, and
    /// returns its size.
    Fetch(String),
    /// Requests the pillar again, and returns true.
    Refresh,
}

/// Evaluates `test.ping`, `test.echo`, `test.version`, `grains.items`, `grains.get`, `saltutil.find_job` (which `salt`
/// calls while it waits), `saltutil.refresh_pillar`, and `swarm.fetch salt://PATH`.
pub(crate) fn call(fun: &str, arg: &[Value], grains: &Value, running: Option<&JobLoad>) -> Answer {
    let first = || arg.first().and_then(ValueExt::text).unwrap_or_default();
    Answer::Value(match fun {
        "test.ping" => Value::from(true),
        "test.echo" => arg.first().cloned().unwrap_or(Value::Nil),
        "test.version" => Value::from(concat!("brine-swarm ", env!("CARGO_PKG_VERSION"))),
        "grains.items" => grains.clone(),
        "grains.get" => grains.traverse(first(), ":").cloned().unwrap_or_else(|| Value::from("")),
        "saltutil.find_job" => running.filter(|job| job.jid.as_str() == first()).map_or_else(empty_map, |job| {
            let mut found = job.raw.clone();
            found.insert("pid", i64::from(std::process::id()));
            found
        }),
        "swarm.fetch" => match first().strip_prefix("salt://") {
            Some(path) => return Answer::Fetch(path.to_owned()),
            None => return Answer::Failure("swarm.fetch wants salt://PATH".to_owned()),
        },
        "saltutil.refresh_pillar" => return Answer::Refresh,
        other => return Answer::Failure(format!("'{other}' is not available.")),
    })
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::{list, map, text};

    use super::*;

    fn answer(fun: &str, arg: &[Value]) -> Answer {
        call(fun, arg, &map([("os", "Swarm")]), None)
    }

    #[test]
    fn a_handful_of_functions_and_no_more() {
        assert_eq!(answer("test.ping", &[]), Answer::Value(Value::from(true)));
        assert_eq!(answer("test.echo", &[text("x")]), Answer::Value(text("x")));
        assert_eq!(answer("grains.get", &[text("os")]), Answer::Value(text("Swarm")));
        assert_eq!(answer("swarm.fetch", &[text("salt://a/b")]), Answer::Fetch("a/b".to_owned()));
        assert!(matches!(answer("swarm.fetch", &[text("/etc/passwd")]), Answer::Failure(_)));
        assert!(matches!(answer("cmd.run", &[text("id")]), Answer::Failure(_)));
    }

    #[test]
    fn a_job_that_waits_is_found_by_its_jid() {
        let load = map([
            ("fun", text("test.ping")),
            ("arg", list(Vec::<Value>::new())),
            ("tgt", text("*")),
            ("jid", text("20261120134740245008")),
        ]);
        let job = JobLoad::parse(&load).unwrap();
        let found = |jid: &str| call("saltutil.find_job", &[text(jid)], &Value::Nil, Some(&job));
        assert!(matches!(found("20261120134740245008"), Answer::Value(found) if found.has("pid")));
        assert_eq!(found("20261120134740245009"), Answer::Value(empty_map()));
    }
}
