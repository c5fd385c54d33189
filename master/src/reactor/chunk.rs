//! What a low chunk of a reaction asks to start, with the arguments as Salt takes them.

use brine_protocol::config::yaml;
use brine_protocol::value::{Value, ValueExt as _, map};

use crate::runners::{Call, ReactorJob, Runners};

/// What is started.
#[derive(Debug)]
pub(super) enum Start {
    /// A job on minions.
    Job(ReactorJob),
    /// A job on the minion that sent the event.
    Caller { fun: String, args: Vec<Value>, kwargs: Vec<(String, Value)> },
    /// A runner or wheel function (`form`).
    InMaster { form: &'static str, fun: String, call: Call },
}

/// Arguments by position and by name; `None` for those that the chunk does not give.
type Given = (Option<Vec<Value>>, Option<Vec<(String, Value)>>);

impl Start {
    /// Reads a low chunk.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence.
    pub(super) fn new(chunk: &Value) -> Result<Self, String> {
        let text = |name: &str| chunk.get(name).map(|value| value.python_str()).unwrap_or_default();
        let (state, fun) = (text("state"), text("fun"));
        let given = arguments(chunk, &state)?;
        match state.as_str() {
            "local" | "cmd" => {
                let (args, kwargs) = given;
                job(chunk, fun, args.unwrap_or_default(), kwargs.unwrap_or_default()).map(Self::Job)
            }
            "caller" => {
                let (args, kwargs) = given;
                Ok(Self::Caller { fun, args: args.unwrap_or_default(), kwargs: kwargs.unwrap_or_default() })
            }
            "runner" => Ok(Self::InMaster { form: "runner", call: in_master("runner", &fun, chunk, given)?, fun }),
            "wheel" => Ok(Self::InMaster { form: "wheel", call: in_master("wheel", &fun, chunk, given)?, fun }),
            _ => Err(format!("{state:?} is no kind of reaction: local, runner, wheel and caller are")),
        }
    }
}

fn in_master(form: &str, fun: &str, chunk: &Value, given: Given) -> Result<Call, String> {
    match given {
        (None, None) => Runners::call_of_chunk(form, fun, chunk),
        (args, kwargs) => Ok(Call::new(args.unwrap_or_default(), kwargs.unwrap_or_default())),
    }
}

/// The arguments: `args`, or `arg` and `kwarg` of older configurations.
fn arguments(chunk: &Value, state: &str) -> Result<Given, String> {
    match chunk.get("args") {
        Some(args) => {
            for ignored in ["arg", "kwarg"].into_iter().filter(|name| chunk.has(name)) {
                let id = chunk.get("__id__").map(|id| id.python_str()).unwrap_or_default();
                tracing::warn!("reactor: {id:?} has args, so its {ignored} does not count");
            }
            let list = args.list();
            if state == "caller" && list.is_some_and(|list| !is_dictlist(list)) {
                return Ok((list.map(<[Value]>::to_vec), None));
            }
            match named(args) {
                Some(kwargs) => Ok((Some(Vec::new()), Some(kwargs))),
                None => Err("args must be a list of names with their values".to_owned()),
            }
        }
        None => {
            let args = match chunk.get("arg") {
                None => None,
                Some(Value::Array(args)) => Some(args.clone()),
                Some(Value::Nil) => Some(Vec::new()),
                Some(one) => Some(vec![one.clone()]),
            };
            let kwargs = match chunk.get("kwarg") {
                None => None,
                Some(Value::Nil) => Some(Vec::new()),
                Some(kwarg @ Value::Map(_)) => Some(pairs(kwarg)),
                Some(other) => match named(other) {
                    Some(kwargs) => Some(kwargs),
                    None => return Err("kwarg must be a map".to_owned()),
                },
            };
            Ok((args, kwargs))
        }
    }
}

fn pairs(map: &Value) -> Vec<(String, Value)> {
    map.entries().unwrap_or_default().iter().map(|(name, value)| (name.python_str(), value.clone())).collect()
}

/// Whether each item is a map of one entry.
fn is_dictlist(list: &[Value]) -> bool {
    list.iter().all(|item| item.entries().is_some_and(|entries| entries.len() == 1))
}

/// Salt's `repack_dictlist`: a map, or a list of maps of one entry, also as text. Nothing if it is none of those, or is
/// empty where it is a list.
fn named(value: &Value) -> Option<Vec<(String, Value)>> {
    if let Value::Map(_) = value {
        return Some(pairs(value));
    }
    let parsed;
    let list = match value.text() {
        Some(text) => {
            parsed = yaml::load_foreign(text).ok()?;
            parsed.list()?
        }
        None => value.list()?,
    };
    let mut named: Vec<(String, Value)> = Vec::new();
    for item in list {
        let (name, value) = match item {
            Value::Map(entries) => match entries.as_slice() {
                [(name, value)] => (name.python_str(), value.clone()),
                _ => return None,
            },
            Value::Array(_) | Value::Nil => return None,
            one => (one.python_str(), Value::Nil),
        };
        match named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => named.push((name, value)),
        }
    }
    (!named.is_empty()).then_some(named)
}

/// What of a chunk is no option of its job.
const NO_OPTIONS: [&str; 16] = [
    "state",
    "name",
    "names",
    "name_order",
    "order",
    "fun",
    "tgt",
    "tgt_type",
    "expr_form",
    "arg",
    "args",
    "kwarg",
    "ret",
    "jid",
    "timeout",
    "key",
];

fn job(chunk: &Value, fun: String, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> Result<ReactorJob, String> {
    let tgt = chunk.get("tgt").filter(|tgt| !tgt.is_nil()).cloned().ok_or("it has no tgt")?;
    let tgt_type = chunk.get("tgt_type").or_else(|| chunk.get("expr_form")).filter(|kind| !kind.is_nil());
    let tgt_type = tgt_type.map_or_else(|| "glob".to_owned(), |kind| kind.python_str());
    let ret = match chunk.get("ret") {
        None | Some(Value::Nil) => String::new(),
        Some(Value::Array(returners)) => {
            returners.iter().map(|returner| returner.python_str()).collect::<Vec<_>>().join(",")
        }
        Some(one) => one.python_str(),
    };
    let is_option = |name: &&str| !name.starts_with("__") && !NO_OPTIONS.contains(name);
    let options = chunk.entries().unwrap_or_default().iter();
    let options = options.filter_map(|(name, value)| Some((name.text().filter(is_option)?, value.clone())));
    Ok(ReactorJob { tgt, tgt_type, fun, args, kwargs, ret, options: map(options) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Start, String> {
        Start::new(&yaml::load(text).unwrap())
    }

    fn shown(text: &str) -> String {
        match read(text) {
            Err(why) => why,
            Ok(Start::Job(job)) => {
                let kwargs = map(job.kwargs.iter().map(|(name, value)| (name.as_str(), value.clone())));
                format!(
                    "{} {} {} {} {} {:?} {}",
                    job.fun,
                    job.tgt.python_repr(),
                    job.tgt_type,
                    Value::Array(job.args).python_repr(),
                    kwargs.python_repr(),
                    job.ret,
                    job.options.python_repr()
                )
            }
            Ok(Start::Caller { fun, args, kwargs }) => {
                format!("{fun} {} {}", Value::Array(args).python_repr(), kwargs.len())
            }
            Ok(Start::InMaster { form, fun, call }) => {
                let kwargs = map(call.kwargs().iter().map(|(name, value)| (name.as_str(), value.clone())));
                let args = Value::Array(call.args().to_vec());
                format!("{form} {fun} {} {}", args.python_repr(), kwargs.python_repr())
            }
        }
    }

    #[test]
    fn arguments_are_salts() {
        let own = "__id__: x, __sls__: /a.sls, name: x, order: 1";
        for (chunk, expect) in [
            ("state: local, fun: test.ping, tgt: '*'", "test.ping '*' glob [] {} \"\" {}"),
            ("state: cmd, fun: test.ping, tgt: '*'", "test.ping '*' glob [] {} \"\" {}"),
            ("state: local, fun: test.ping", "it has no tgt"),
            (
                "state: local, fun: cmd.run, tgt: [a, b], tgt_type: list, args: [{cmd: ls}, {cwd: /}], ret: [a, b], metadata: {k: v}",
                "cmd.run ['a', 'b'] list [] {'cmd': 'ls', 'cwd': '/'} \"a,b\" {'metadata': {'k': 'v'}}",
            ),
            (
                "state: local, fun: cmd.run, tgt: 'G@a:b', expr_form: compound, arg: [ls], kwarg: {cwd: /}",
                "cmd.run 'G@a:b' compound ['ls'] {'cwd': '/'} \"\" {}",
            ),
            ("state: local, fun: a.b, tgt: x, args: {k: v}", "a.b 'x' glob [] {'k': 'v'} \"\" {}"),
            ("state: local, fun: a.b, tgt: x, args: [one]", "a.b 'x' glob [] {'one': None} \"\" {}"),
            ("state: local, fun: a.b, tgt: x, args: []", "args must be a list of names with their values"),
            ("state: local, fun: a.b, tgt: x, args: [{a: 1, b: 2}]", "args must be a list of names with their values"),
            ("state: local, fun: a.b, tgt: x, args: [{a: 1}], arg: [2]", "a.b 'x' glob [] {'a': 1} \"\" {}"),
            ("state: caller, fun: a.b, args: [1, 2]", "a.b [1, 2] 0"),
            ("state: caller, fun: a.b, args: [{k: v}]", "a.b [] 1"),
            ("state: runner, fun: test.arg, args: [{a: 1}]", "runner test.arg [] {'a': 1}"),
            ("state: runner, fun: test.arg, a: 1", "runner test.arg [] {'a': 1}"),
            ("state: runner, fun: test.arg, arg: [1], kwarg: {a: 2}", "runner test.arg [1] {'a': 2}"),
            (
                "state: runner, fun: state.orchestrate, mods: x, pillar: {a: b}",
                "runner state.orchestrate ['x'] {'saltenv': 'base', 'test': None, 'exclude': None, 'pillar': {'a': 'b'}, \
                 'pillarenv': None, 'pillar_enc': None, 'orchestration_jid': None}",
            ),
            ("state: runner, fun: jobs.list_job", "list_job takes at least 1 argument (0 given)"),
            (
                "state: runner, fun: jobs.list_job, jid: 1, evil: 2",
                "'evil' is an invalid keyword argument for 'jobs.list_job'",
            ),
            ("state: runner, fun: no.such", "function not available"),
            ("state: wheel, fun: key.accept, args: [{match: m1}]", "wheel key.accept [] {'match': 'm1'}"),
            (
                "state: wheel, fun: key.accept, match: m1",
                "wheel key.accept ['m1'] {'include_rejected': False, 'include_denied': False}",
            ),
            ("state: pkg, fun: installed", "\"pkg\" is no kind of reaction: local, runner, wheel and caller are"),
        ] {
            assert_eq!(shown(&format!("{{{own}, {chunk}}}")), expect, "{chunk}");
        }
    }
}
