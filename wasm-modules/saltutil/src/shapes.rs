//! Salt's shapes: what callers give and what they expect back.

use brine_guest::{Data, Value};

/// The kinds of modules that Salt syncs, in its order.
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

/// The environments named by a text, with commas between them, or by a list. None where none is named.
pub(crate) fn saltenv(data: &Data) -> Result<Option<Vec<String>>, String> {
    let wrong = |value: &Value| format!("saltenv is to be text or a list of texts, not {value}");
    let names: Vec<String> = match data.value()? {
        Value::Nil => return Ok(None),
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong(item))).collect::<Result<_, _>>()?
        }
        value => value.as_str().ok_or_else(|| wrong(&value))?.split(',').map(|name| name.trim().to_owned()).collect(),
    };
    Ok(Some(names))
}

/// What `saltutil.sync_all` returns: every kind that Salt has, so that callers find the keys they look for.
pub(crate) fn sync_all(modules: Vec<String>) -> Vec<(String, Vec<String>)> {
    let mut modules = Some(modules);
    let changed = |kind| if kind == "modules" { modules.take().unwrap_or_default() } else { Vec::new() };
    KINDS.iter().copied().zip(KINDS.map(changed)).map(|(kind, names)| (kind.into(), names)).collect()
}

/// The running jobs, of which each is a dict.
pub(crate) fn jobs(running: &Data) -> Result<Vec<Value>, String> {
    match running.value()? {
        Value::Array(jobs) => Ok(jobs.into_iter().filter(Value::is_map).collect()),
        other => Err(format!("the minion's list of jobs is no list: {other}")),
    }
}

/// A text, or a list of texts: a job can have several functions.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        value => value.as_str().map(str::to_owned).into_iter().collect(),
    }
}

/// Salt's words for a job that was killed.
pub(crate) fn killed(jid: &str, pid: Option<u64>) -> String {
    match pid {
        Some(pid) => format!("Signal 9 sent to job {jid} at pid {pid}"),
        None => format!("Signal 9 sent to job {jid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_are_a_text_or_a_list() {
        let list = |names: &[&str]| Ok(Some(names.iter().map(|name| name.to_string()).collect::<Vec<_>>()));
        let array = |items: &[Value]| Data::new(&Value::Array(items.to_vec()));
        assert_eq!(saltenv(&"dev".into()), list(&["dev"]));
        assert_eq!(saltenv(&"base, dev".into()), list(&["base", "dev"]));
        assert_eq!(saltenv(&array(&["base".into(), "dev".into()])), list(&["base", "dev"]));
        assert_eq!(saltenv(&Data::new(&Value::Nil)), Ok(None));
        assert_eq!(saltenv(&Data::new(&1.into())), Err("saltenv is to be text or a list of texts, not 1".into()));
        assert_eq!(saltenv(&array(&[1.into()])), Err("saltenv is to be text or a list of texts, not 1".into()));
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
    fn one_function_or_several() {
        assert_eq!(texts(&"test.ping".into()), ["test.ping"]);
        assert_eq!(texts(&Value::Array(vec!["a".into(), 1.into(), "b".into()])), ["a", "b"]);
        assert!(texts(&Value::Nil).is_empty());
    }
}
