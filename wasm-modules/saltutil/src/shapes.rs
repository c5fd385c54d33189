//! Conversion between Salt's forms of arguments and results and those of the host.

use brine_guest::{Data, Value};

/// The kinds of modules that Salt syncs, in Salt's order.
const KINDS: [&str; 18] = [
    "clouds",
    "beacons",
    "modules",
    "states",
    "sdb",
    "grains",
    "renderers",
    "returners",
    "output",
    "utils",
    "log_handlers",
    "executors",
    "proxymodules",
    "engines",
    "thorium",
    "serializers",
    "matchers",
    "resources",
];

/// The environments in a comma-separated text or a list. None if none is named.
pub(crate) fn saltenv(data: &Data) -> Result<Option<Vec<String>>, String> {
    let name = |value: &Value| match value {
        Value::Text(name) => Ok(name.clone()),
        other => Err(format!("saltenv is to be text or a list of texts; a list with {} is not", other.kind())),
    };
    match data.value()? {
        Value::None => Ok(None),
        Value::Text(names) => Ok(Some(names.split(',').map(|name| name.trim().to_owned()).collect())),
        Value::List(items) => items.iter().map(name).collect::<Result<_, _>>().map(Some),
        other => Err(format!("saltenv is to be text or a list of texts, not {}", other.kind())),
    }
}

/// The names of modules in a whitelist or blacklist: a comma-separated text, a list, or the entry `modules` of a dict
/// of kinds. None if there is nothing about modules.
pub(crate) fn listed(data: &Data, what: &str) -> Result<Option<Vec<String>>, String> {
    let value = data.value()?;
    let of_modules = match &value {
        Value::Dict(_) => value.get("modules").unwrap_or(&Value::None),
        value => value,
    };
    let wrong = |value: &Value| format!("{what} is to be a text or a list of texts, not {}", value.kind());
    match of_modules {
        Value::None => Ok(None),
        Value::Text(names) => Ok(Some(names.split(',').map(|name| name.trim().to_owned()).collect())),
        Value::List(items) => {
            let name = |item: &Value| item.text().map(str::to_owned).ok_or_else(|| wrong(item));
            items.iter().map(name).collect::<Result<_, _>>().map(Some)
        }
        other => Err(wrong(other)),
    }
}

/// Whether the two lists exclude all modules. The host syncs all changed modules or none, so lists that exclude only
/// some are refused; otherwise the excluded ones would be synced.
pub(crate) fn syncs_nothing(white: Option<Vec<String>>, black: Option<Vec<String>>) -> Result<bool, String> {
    let refused = |what: &str| {
        Err(format!(
            "{what} with names is not offered: all modules that changed are synced, and what each may do is granted by the host's owner"
        ))
    };
    match (white, black) {
        (Some(white), _) if white.is_empty() => Ok(true),
        (Some(white), Some(black)) if white.iter().all(|name| black.contains(name)) => Ok(true),
        (Some(_), _) => refused("extmod_whitelist"),
        (None, Some(black)) if !black.is_empty() => refused("extmod_blacklist"),
        _ => Ok(false),
    }
}

/// The result of `saltutil.sync_all`: it has every kind of Salt, so that callers find the keys they expect.
pub(crate) fn sync_all(modules: Vec<String>) -> Vec<(String, Vec<String>)> {
    let mut modules = Some(modules);
    let changed = |kind| if kind == "modules" { modules.take().unwrap_or_default() } else { Vec::new() };
    KINDS.iter().copied().zip(KINDS.map(changed)).map(|(kind, names)| (kind.into(), names)).collect()
}

/// Whether Salt syncs modules of this kind.
pub(crate) fn is_kind(kind: &str) -> bool {
    KINDS.contains(&kind) || matches!(kind, "pillar" | "tops" | "wrapper")
}

/// The running jobs.
pub(crate) fn jobs(running: &Data) -> Result<Vec<Value>, String> {
    match running.value()? {
        Value::List(jobs) => Ok(jobs),
        other => Err(format!("the minion's list of jobs is {}", other.kind())),
    }
}

/// The texts of a text or of a list: a job can have several functions.
pub(crate) fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::List(items)) => items.iter().filter_map(Value::text).collect(),
        value => value.and_then(Value::text).into_iter().collect(),
    }
}

/// The pid of a running job.
pub(crate) fn pid(job: &Value) -> Option<i64> {
    if let Some(Value::Int(pid)) = job.get("pid") { Some(*pid) } else { None }
}

pub(crate) const KILL: u8 = 9;
pub(crate) const TERM: u8 = 15;

/// One of the two supported signals, by number or name.
pub(crate) fn signal(text: &str) -> Result<u8, String> {
    match text.strip_prefix("SIG").unwrap_or(text) {
        "9" | "KILL" => Ok(KILL),
        "15" | "TERM" => Ok(TERM),
        _ => Err(format!("a job is no process: it can be ended by TERM (15) or KILL (9), and takes no signal {text}")),
    }
}

/// A time for the host.
pub(crate) fn milliseconds(seconds: f64) -> u64 {
    // A negative number and NaN are 0, one that is too large is the largest.
    (seconds * 1000.0) as u64
}

/// Salt's text for a job that was ended.
pub(crate) fn ended(jid: &str, pid: Option<i64>, signal: u8) -> String {
    match pid {
        Some(pid) => format!("Signal {signal} sent to job {jid} at pid {pid}"),
        None => format!("Signal {signal} sent to job {jid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_are_a_text_or_a_list() {
        let list = |names: &[&str]| Ok(Some(names.iter().map(|name| name.to_string()).collect::<Vec<_>>()));
        assert_eq!(saltenv(&"dev".into()), list(&["dev"]));
        assert_eq!(saltenv(&"base, dev".into()), list(&["base", "dev"]));
        assert_eq!(saltenv(&vec!["base", "dev"].into()), list(&["base", "dev"]));
        assert_eq!(saltenv(&Value::None.into()), Ok(None));
        assert_eq!(saltenv(&1_i64.into()), Err("saltenv is to be text or a list of texts, not a number".into()));
        assert!(saltenv(&vec![1_i64].into()).is_err());
    }

    #[test]
    fn lists_of_what_is_synced_take_all_or_nothing() {
        let names = |data: Data| listed(&data, "extmod_whitelist");
        assert_eq!(names(Value::dict([("modules", Value::List(vec![]))]).into()), Ok(Some(vec![])));
        assert_eq!(names(Value::dict([("states", Value::List(vec!["a".into()]))]).into()), Ok(None));
        assert_eq!(names("a, b".into()), Ok(Some(vec!["a".into(), "b".into()])));
        assert!(names(1_i64.into()).is_err() && names(vec![1_i64].into()).is_err());
        let some = |names: &[&str]| Some(names.iter().map(|name| name.to_string()).collect::<Vec<_>>());
        for (white, black, nothing) in [
            (None, None, Some(false)),
            (None, some(&[]), Some(false)),
            (some(&[]), None, Some(true)),
            (some(&["a"]), some(&["a"]), Some(true)),
            (some(&["a"]), None, None),
            (some(&["a", "b"]), some(&["a"]), None),
            (None, some(&["a"]), None),
        ] {
            assert_eq!(syncs_nothing(white.clone(), black.clone()).ok(), nothing, "{white:?} {black:?}");
        }
    }

    #[test]
    fn sync_all_has_every_kind_and_the_modules() {
        let all = sync_all(vec!["modules.foo".into()]);
        assert_eq!(all.len(), KINDS.len());
        for (kind, names) in all {
            assert_eq!(names, if kind == "modules" { vec!["modules.foo"] } else { vec![] }, "{kind}");
        }
    }

    #[test]
    fn signals_that_end() {
        for (text, expected) in
            [("9", Some(9)), ("KILL", Some(9)), ("SIGTERM", Some(15)), ("15", Some(15)), ("1", None), ("", None)]
        {
            assert_eq!(signal(text).ok(), expected, "{text}");
        }
        assert_eq!(ended("2025", Some(7), TERM), "Signal 15 sent to job 2025 at pid 7");
    }

    #[test]
    fn one_function_or_several() {
        assert_eq!(texts(Some(&"test.ping".into())), ["test.ping"]);
        assert_eq!(texts(Some(&Value::List(vec!["a".into(), 1_i64.into(), "b".into()]))), ["a", "b"]);
        assert!(texts(None).is_empty());
    }
}
