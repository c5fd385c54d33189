//! One look of a beacon: calls of its module, and what becomes of the answer.

use std::sync::{Arc, PoisonError};

use brine_protocol::ids::{EventTag, Jid};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map, to_json};
use brine_sandbox::{Function, JobContext, JobOutcome, Module, Sandbox};

use super::Beacons;
use super::config::Beacon;

/// The time of one call. Most take less than a millisecond.
const MAX_CALL_MS: u64 = 30_000;
/// How long a beacon is asked to wait for something to happen.
const WAIT_MS: u64 = 20_000;
/// Upper bound on the events of one look. A master takes 1,024 in one request.
const MAX_EVENTS: usize = 500;
/// Upper bound on the bytes of the events of one look. A master accepts events of a megabyte.
const MAX_BYTES: usize = 512 * 1024;
/// Upper bound on the bytes that a beacon hands from one look to the next.
pub(super) const MAX_STATE: usize = 64 * 1024;
const MAX_DEPTH: usize = 32;

/// The function of a beacon that waits by itself.
const WATCH: &str = "watch";

/// The beacon that looks, and what its last look handed on.
type OfLook<'a> = (&'a str, Option<&'a [u8]>);

/// What a beacon saw.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// Each a dict of `tag` and `data`, and for an error what Salt adds.
    pub(super) events: Vec<Value>,
    pub(super) state: Option<Vec<u8>>,
    /// What was left out.
    pub(super) left_out: Option<String>,
}

/// The module of a beacon.
///
/// # Errors
/// One line that says that there is none.
pub(super) async fn module(sandbox: &Sandbox, name: &str) -> Result<Arc<Module>, String> {
    sandbox.settle(name).await;
    ready_module(sandbox, name)
}

/// The module of a beacon, if it is ready.
///
/// # Errors
/// As for [`module`].
pub(super) fn ready_module(sandbox: &Sandbox, name: &str) -> Result<Arc<Module>, String> {
    let Some(module) = sandbox.describe(name) else {
        return Err(format!("there is no module {name:?}"));
    };
    match function(&module, "beacon") {
        Some(_) => Ok(module),
        None => Err(format!("the module {name} is no beacon")),
    }
}

/// Whether a module can wait by itself for what it tells.
pub(super) fn waits(module: &Module) -> bool {
    function(module, WATCH).is_some()
}

fn function<'a>(module: &'a Module, name: &str) -> Option<&'a Function> {
    let known = |function: &&Function| function.name.strip_prefix("beacons.") == Some(name);
    module.info.beacons.iter().find(known)
}

impl Beacons {
    /// Asks the module of a beacon whether it can use a configuration. The words are for people.
    pub(crate) async fn validate(&self, name: &str, config: &Value, master: Option<&str>) -> (bool, String) {
        let item = |item: &Value| item.get_text("beacon_module").map(str::to_owned);
        let other = config.list().and_then(|items| items.iter().find_map(item));
        let module = other.unwrap_or_else(|| name.to_owned());
        self.judge(&module, config, master).await
    }

    pub(super) async fn judge(&self, name: &str, config: &Value, master: Option<&str>) -> (bool, String) {
        let Some(sandbox) = self.sandbox() else { return (false, "the sandbox is ending".to_owned()) };
        let module = match module(&sandbox, name).await {
            Ok(module) => module,
            Err(why) => return (false, why),
        };
        let Some(validate) = function(&module, "validate") else {
            // Salt's words.
            return (true, format!("Beacon {name} does not have a validate function, skipping validation."));
        };
        let outcome = self.call(&sandbox, (name, validate), (config, None), master).await;
        match (outcome.success, &outcome.value) {
            (true, Value::Array(answer)) => match answer.as_slice() {
                [Value::Boolean(valid), words] => (*valid, bounded(&words.python_str())),
                _ => (false, format!("{name}.beacons.validate returns a truth value and text")),
            },
            (true, _) => (false, format!("{name}.beacons.validate returns a truth value and text")),
            (false, why) => (false, bounded(&why.python_str())),
        }
    }

    /// Has a beacon look, or `watch`: wait until it sees something.
    ///
    /// # Errors
    /// One line, when the call failed or its answer cannot be used.
    pub(super) async fn look(
        &self,
        beacon: &Beacon,
        state: Option<&[u8]>,
        watch: bool,
        master: Option<&str>,
    ) -> Result<Seen, String> {
        let sandbox = self.sandbox().ok_or("the sandbox is ending")?;
        let module = module(&sandbox, &beacon.module).await?;
        let look = function(&module, if watch { WATCH } else { "beacon" }).ok_or("it is gone")?;
        let outcome =
            self.call(&sandbox, (&beacon.module, look), (&beacon.given, Some((&beacon.name, state))), master).await;
        match outcome.success {
            true => seen(self.opts.id.as_str(), &beacon.name, outcome.value),
            false => Err(bounded(&outcome.value.python_str())),
        }
    }

    /// The event of a look that failed, as Salt has it.
    pub(super) fn failed(&self, beacon: &Beacon, why: &str) -> Value {
        map([
            ("tag", Value::from(tag(self.opts.id.as_str(), &beacon.name))),
            ("error", Value::from(why)),
            ("data", Value::Map(Vec::new())),
            ("beacon_name", Value::from(beacon.module.as_str())),
        ])
    }

    async fn call(
        &self,
        sandbox: &Sandbox,
        (module, function): (&str, &Function),
        (config, look): (&Value, Option<OfLook<'_>>),
        master: Option<&str>,
    ) -> JobOutcome {
        let fun = format!("{module}.{}", function.name);
        let job = JobContext {
            jid: Jid::now().to_string(),
            function: fun.clone(),
            user: crate::accounts::own_name(),
            minion_id: self.opts.id.to_string(),
            test: false,
            master: master.map(str::to_owned),
            timeout_ms: Some(MAX_CALL_MS),
            called_by: None,
            state: None,
            run: None,
            record: false,
            typed: false,
        };
        let mut kwargs = Vec::new();
        for param in &function.params {
            match &*param.name {
                // For languages to which a value of any shape is work, it is JSON.
                "config" if &*param.ty == "string" => {
                    kwargs.push(("config".to_owned(), Value::from(to_json(config).to_string())));
                }
                "config" => kwargs.push(("config".to_owned(), config.clone())),
                "state" => {
                    let state =
                        look.and_then(|(_, state)| state).map_or(Value::Nil, |state| Value::Binary(state.to_owned()));
                    kwargs.push(("state".to_owned(), state));
                }
                name @ ("most_ms" | "most-ms") => kwargs.push((name.to_owned(), WAIT_MS.into())),
                _ => {}
            }
        }
        let _look = look.map(|(name, _)| Look::begin(self, &job.jid, &fun, name));
        sandbox.beacon(job, &fun, kwargs).await
    }
}

/// A look under way, for those who ask whose call it is.
struct Look<'a> {
    beacons: &'a Beacons,
    jid: String,
}

impl<'a> Look<'a> {
    fn begin(beacons: &'a Beacons, jid: &str, fun: &str, name: &str) -> Self {
        let look = (fun.to_owned(), name.to_owned());
        beacons.looks.lock().unwrap_or_else(PoisonError::into_inner).insert(jid.to_owned(), look);
        Self { beacons, jid: jid.to_owned() }
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.beacons.looks.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.jid);
    }
}

fn tag(id: &str, name: &str) -> String {
    format!("salt/beacon/{id}/{name}/")
}

fn bounded(text: &str) -> String {
    text.chars().take(2_000).collect()
}

/// What a module returned, as events. It is a list of dicts, or a dict of `events`, such a list, and `state`.
fn seen(id: &str, name: &str, answer: Value) -> Result<Seen, String> {
    let (events, state) = match answer {
        Value::Array(events) => (events, None),
        Value::Map(_) => {
            let state = match answer.get("state") {
                None | Some(Value::Nil) => None,
                Some(state) => Some(state.bytes().ok_or("its state is to be bytes")?.to_owned()),
            };
            (answer.get_list("events").ok_or("it returns events, a list of dicts")?.to_vec(), state)
        }
        Value::Nil => return Ok(Seen::default()),
        _ => return Err("it returns a list of dicts".to_owned()),
    };
    if let Some(state) = &state
        && state.len() > MAX_STATE
    {
        return Err(format!("its state has {} bytes, more than {MAX_STATE}", state.len()));
    }
    let (mut seen, mut bytes, all) = (Seen { state, ..Seen::default() }, 0, events.len());
    for mut data in events {
        if data.entries().is_none() {
            return Err("each of its events is to be a dict".to_owned());
        }
        let mut tag = tag(id, name);
        if let Some(own) = data.remove("tag") {
            tag.push_str(&own.python_str());
        }
        if EventTag::try_from(tag.as_str()).is_err() {
            seen.left_out = Some("an event with a tag that is none".to_owned());
            continue;
        }
        if !data.has("id") {
            data.insert("id", id);
        }
        bytes += msgpack::encode_network(&data).len();
        if seen.events.len() == MAX_EVENTS || bytes > MAX_BYTES {
            let left = all - seen.events.len();
            let most = format!("one look may have {MAX_EVENTS} and {MAX_BYTES} bytes");
            seen.left_out = Some(format!("{left} of its {all} events: {most}"));
            break;
        }
        if depth(&data) > MAX_DEPTH {
            return Err(format!("one of its events nests deeper than {MAX_DEPTH} levels"));
        }
        seen.events.push(map([("tag", Value::from(tag)), ("data", data), ("beacon_name", Value::from(name))]));
    }
    Ok(seen)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Map(entries) => 1 + entries.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::list;

    use super::*;

    fn tags(seen: &Seen) -> Vec<&str> {
        seen.events.iter().filter_map(|event| event.get_text("tag")).collect()
    }

    #[test]
    fn events_have_salts_tags_and_the_minions_id() {
        let answer = list([map([("memusage", 7.5)])]);
        let seen = super::seen("web1", "memusage", answer).unwrap();
        assert_eq!(tags(&seen), ["salt/beacon/web1/memusage/"]);
        let data = map([("memusage", Value::from(7.5)), ("id", Value::from("web1"))]);
        assert_eq!(seen.events[0].get("data"), Some(&data));

        let events = list([map([("tag", "ssh"), ("id", "own")]), map([("tag", "/etc/x")]), map([("tag", "a\nb")])]);
        let answer = map([("events", events), ("state", Value::Binary(vec![1, 2]))]);
        let seen = super::seen("web1", "service", answer).unwrap();
        assert_eq!(tags(&seen), ["salt/beacon/web1/service/ssh", "salt/beacon/web1/service//etc/x"]);
        assert_eq!(seen.events[0].get("data"), Some(&map([("id", "own")])));
        assert_eq!(seen.state, Some(vec![1, 2]));
        assert!(seen.left_out.unwrap().contains("a tag that is none"));
    }

    #[test]
    fn what_a_module_returns_is_bounded() {
        let many = list((0..10_000).map(|n| map([("n", n)])));
        let seen = super::seen("m", "b", many).unwrap();
        assert_eq!(seen.events.len(), MAX_EVENTS);
        assert_eq!(seen.left_out.unwrap(), "9500 of its 10000 events: one look may have 500 and 524288 bytes");
        let large = list([map([("x", Value::from("x".repeat(MAX_BYTES)))]), map([("y", Value::from(1))])]);
        let seen = super::seen("m", "b", large).unwrap();
        assert!(seen.events.is_empty() && seen.left_out.unwrap().starts_with("2 of its 2 events"));
        let state = |bytes: usize| map([("events", list([0; 0])), ("state", Value::Binary(vec![0; bytes]))]);
        assert!(super::seen("m", "b", state(MAX_STATE)).is_ok());
        assert!(super::seen("m", "b", state(MAX_STATE + 1)).unwrap_err().contains("more than 65536"));
        let deep = (0..40).fold(Value::from(1), |value, _| list([value]));
        assert!(super::seen("m", "b", list([map([("x", deep)])])).is_err());
        for odd in [Value::from(5), list([5]), map([("x", 5)]), map([("events", 5)])] {
            assert!(super::seen("m", "b", odd).is_err());
        }
    }
}
