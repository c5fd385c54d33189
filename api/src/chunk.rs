//! Lowstate chunks: one call each, checked before anything of the request runs.

use std::time::Duration;

use brine_cli::commands::target::expand_groups;
use brine_client::{BatchOptions, Job};
use brine_protocol::args;
use brine_protocol::secret::Secret;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{self, Value, ValueExt};

use crate::problem::Problem;

/// Upper bound on the chunks of a request.
pub const CHUNKS_MAX: usize = 100;
/// Upper bound on the times of a chunk, in seconds: a day.
const TIMEOUT_MAX: f64 = 86_400.0;

/// Upper bound on the pause between two minions of a batch.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

/// Characters of a name that a refusal repeats.
const SHOWN_MAX: usize = 64;

/// The clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// A job, with its returns.
    Local,
    /// A job, without waiting.
    LocalAsync,
    /// A job for some minions at a time.
    LocalBatch,
    /// A job for some minions only.
    LocalSubset,
    /// A runner, with its result.
    Runner,
    /// A runner, without waiting.
    RunnerAsync,
    /// A wheel function, with its result.
    Wheel,
    /// A wheel function; only its tag is answered.
    WheelAsync,
}

const CLIENTS: [(&str, Client); 8] = [
    ("local", Client::Local),
    ("local_async", Client::LocalAsync),
    ("local_batch", Client::LocalBatch),
    ("local_subset", Client::LocalSubset),
    ("runner", Client::Runner),
    ("runner_async", Client::RunnerAsync),
    ("wheel", Client::Wheel),
    ("wheel_async", Client::WheelAsync),
];

/// Salt's clients that Brine does not have.
const OF_SALT: [&str; 2] = ["ssh", "destroy"];

impl Client {
    /// The client with this name.
    pub fn parse(name: &str) -> Option<Self> {
        CLIENTS.iter().find(|(known, _)| *known == name).map(|(_, client)| *client)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        CLIENTS.iter().find(|(_, client)| *client == self).map_or("", |(name, _)| name)
    }

    /// All names, for people.
    pub fn names() -> String {
        CLIENTS.map(|(name, _)| name).join(", ")
    }
}

/// One call.
#[derive(Debug)]
pub struct Chunk {
    /// The work.
    pub call: Call,
    /// What the chunk says about its caller. Only `/run` reads it.
    pub credentials: Given,
}

/// A text that a refusal repeats.
fn shorten(text: &str) -> String {
    brine_protocol::text::short(text, SHOWN_MAX)
}

/// The keywords of a function.
type Keywords = Vec<(String, Value)>;

/// What becomes of the returns of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returns {
    /// Whether each comes with its return code and jid.
    pub full: bool,
    /// Time for the answer of minions that are asked whether they run the job, if the chunk says so.
    pub gather: Option<Duration>,
}

/// The work of a chunk.
#[derive(Debug)]
pub enum Call {
    /// A job.
    Local {
        /// The job.
        job: Job,
        /// Whether to wait for returns.
        wait: bool,
        /// What becomes of them.
        returns: Returns,
    },
    /// A job for some minions at a time.
    Batch {
        /// The job.
        job: Job,
        /// How many at a time.
        options: BatchOptions,
        /// As for a job.
        returns: Returns,
    },
    /// A job for some minions only.
    Subset {
        /// The job.
        job: Job,
        /// How many minions.
        count: usize,
        /// As for a job.
        returns: Returns,
    },
    /// A function of the master.
    Master {
        /// A wheel function; otherwise a runner.
        wheel: bool,
        /// Whether to wait for the result.
        wait: bool,
        /// The function.
        fun: String,
        /// Its arguments.
        args: Vec<Value>,
        /// Its keywords.
        kwargs: Vec<(String, Value)>,
        /// How long to wait, if the chunk says so.
        timeout: Option<Duration>,
        /// Whether a runner's result comes as the event has it.
        full_return: bool,
    },
}

/// Credentials as a body gives them; none of them checked.
#[derive(Debug, Default)]
pub struct Given {
    /// `token`.
    pub token: Option<Secret<String>>,
    /// `username`, `password` and `eauth`.
    pub log_in: Option<(String, Secret<String>, String)>,
    /// `token_expire`: how long the token of that log-in should live.
    pub expire: Option<Duration>,
}

impl Given {
    /// Reads the credentials of a chunk or of a log-in. A name, a password or a system that is missing or no text is as
    /// none.
    pub fn read(map: &Value) -> Self {
        let secret = |key: &str| map.get_text(key).map(|text| Secret::new(text.to_owned()));
        let token = match map.get("token") {
            None | Some(Value::Nil) => None,
            // A token that is no text is a wrong one, and not a missing one.
            Some(token) => Some(Secret::new(token.text().unwrap_or_default().to_owned())),
        };
        let log_in = match (map.get_text("username"), secret("password"), map.get_text("eauth")) {
            (Some(username), Some(password), Some(eauth)) => Some((username.to_owned(), password, eauth.to_owned())),
            _ => None,
        };
        let seconds =
            map.get("token_expire").and_then(|expire| expire.as_f64().or_else(|| expire.text()?.parse().ok()));
        let expire = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Self { token, log_in, expire }
    }
}

/// Keys of a chunk for a runner or the wheel that are no keywords of the function. `cmd`, `key` and `user` would be
/// fields of the request to the master.
const NOT_KEYWORDS: [&str; 15] = [
    "client",
    "fun",
    "arg",
    "kwarg",
    "token",
    "username",
    "password",
    "eauth",
    "timeout",
    "full_return",
    "print_event",
    "raw_shell",
    "cmd",
    "key",
    "user",
];
/// Keys of a chunk for a job that the master reads beside target and function.
const OF_JOBS: [&str; 2] = ["delimiter", "metadata"];

/// Reads the chunks of a request: a list, or one alone. Targets name no `groups` afterwards, which minions do not know.
///
/// # Errors
/// When one is malformed, or its client is not offered.
pub fn parse(lowstate: Value, offered: &[Client], groups: &Nodegroups) -> Result<Vec<Chunk>, Problem> {
    let chunks = match lowstate {
        Value::Array(chunks) => chunks,
        one @ Value::Map(_) => vec![one],
        _ => return Err(not_a_list()),
    };
    if chunks.len() > CHUNKS_MAX {
        return Err(Problem::bad(format!("A request has at most {CHUNKS_MAX} chunks")));
    }
    chunks.iter().map(|chunk| one(chunk, offered, groups)).collect()
}

fn not_a_list() -> Problem {
    Problem::bad("Lowstates must be a list")
}

fn one(chunk: &Value, offered: &[Client], groups: &Nodegroups) -> Result<Chunk, Problem> {
    if chunk.entries().is_none() {
        return Err(Problem::bad("A chunk must be a map"));
    }
    if chunk.entries().is_some_and(<[_]>::is_empty) {
        return Err(not_a_list());
    }
    let name = chunk.get("client").map_or_else(|| "None".to_owned(), ValueExt::python_str);
    let client = Client::parse(&name).filter(|_| chunk.get_text("client").is_some());
    let disabled =
        || format!("Client disabled: '{name}'. Add to 'netapi_enable_clients' master config option to enable.");
    let client = match client {
        Some(client) if offered.contains(&client) => client,
        Some(_) => return Err(Problem::bad(disabled())),
        None if OF_SALT.contains(&name.as_str()) => return Err(Problem::bad(disabled())),
        None => return Err(Problem::bad(format!("Invalid client specified: '{}'", shorten(&name)))),
    };
    let credentials = Given::read(chunk);
    let args = match chunk.get("arg") {
        None | Some(Value::Nil) => Vec::new(),
        Some(Value::Array(items)) => items.clone(),
        Some(one) => vec![one.clone()],
    };
    let kwargs = match chunk.get("kwarg").filter(|kwarg| kwarg.truthy()) {
        None => Vec::new(),
        Some(kwarg) => keywords(kwarg.entries().ok_or_else(|| Problem::bad("kwarg must be a map"))?)?,
    };
    let timeout = seconds(chunk, "timeout")?;
    let full_return = chunk.get("full_return").is_some_and(ValueExt::truthy);
    let returns = Returns { full: full_return, gather: seconds(chunk, "gather_job_timeout")? };
    let call = match client {
        Client::Local | Client::LocalAsync | Client::LocalBatch | Client::LocalSubset => {
            let mut job = job(chunk, args, kwargs, timeout)?;
            if matches!(job.tgt_type.as_str(), "nodegroup" | "compound") {
                job.tgt = sentence(job.tgt)?;
                job.tgt = expand_groups(&job.tgt, &job.tgt_type, groups)
                    .map_err(|name| Problem::bad(format!("Node group {} unavailable", shorten(&name))))?;
                job.tgt_type = "compound".to_owned();
            }
            match client {
                // Salt's batches have plain returns, whatever the chunk says.
                Client::LocalBatch => {
                    let returns = Returns { full: false, ..returns };
                    Call::Batch { job, options: batch_options(chunk)?, returns }
                }
                Client::LocalSubset => Call::Subset { job, count: subset(chunk)?, returns },
                _ => Call::Local { job, wait: client == Client::Local, returns },
            }
        }
        Client::Runner | Client::RunnerAsync | Client::Wheel | Client::WheelAsync => {
            let fun = chunk.get_text("fun").filter(|fun| !fun.is_empty());
            let fun = fun.ok_or_else(|| Problem::bad("fun must be the name of a function"))?.to_owned();
            let (args, mut all) = split(args, Texts::AreYaml)?;
            all.extend(kwargs);
            let own = chunk.entries().unwrap_or_default();
            let own = own.iter().filter(|(key, _)| key.text().is_none_or(|key| !NOT_KEYWORDS.contains(&key)));
            all.extend(keywords(own)?);
            Call::Master {
                wheel: matches!(client, Client::Wheel | Client::WheelAsync),
                wait: matches!(client, Client::Runner | Client::Wheel),
                fun,
                args,
                kwargs: all,
                // Salt waits for ever then, and so as long as it may here.
                timeout: timeout.filter(|timeout| !timeout.is_zero()),
                full_return,
            }
        }
    };
    Ok(Chunk { call, credentials })
}

/// A time that the chunk gives in seconds, if it does.
fn seconds(chunk: &Value, key: &str) -> Result<Option<Duration>, Problem> {
    match chunk.get(key) {
        None | Some(Value::Nil) => Ok(None),
        Some(empty) if empty.text() == Some("") => Ok(None),
        Some(given) => {
            let seconds = given.as_f64().or_else(|| given.text()?.parse().ok());
            let seconds = seconds.filter(|seconds| (0.0..=TIMEOUT_MAX).contains(seconds));
            let seconds = seconds.ok_or_else(|| Problem::bad(format!("{key} must be a number of seconds")))?;
            Ok(Some(Duration::from_secs_f64(seconds)))
        }
    }
}

/// The options of a batch by the words of a chunk: `batch`, `batch_wait` in seconds, `failhard`.
fn batch_options(chunk: &Value) -> Result<BatchOptions, Problem> {
    let size = chunk.get("batch").map_or_else(|| "10%".to_owned(), ValueExt::python_str);
    let size = size.parse().map_err(|_| Problem::bad("batch must be a number of minions or a percentage"))?;
    let wait = match chunk.get("batch_wait") {
        None | Some(Value::Nil) => Some(0.0),
        Some(wait) => wait.as_f64().or_else(|| wait.text()?.parse().ok()),
    };
    let wait = wait.and_then(|wait| Duration::try_from_secs_f64(wait).ok()).filter(|wait| *wait < WAIT_MAX);
    let wait = wait.ok_or_else(|| Problem::bad("batch_wait must be a number of seconds"))?;
    Ok(BatchOptions { size, wait, failhard: chunk.get("failhard").is_some_and(ValueExt::truthy) })
}

/// The number of minions of `local_subset`: `subset`, or `sub` of old; 3 without either.
fn subset(chunk: &Value) -> Result<usize, Problem> {
    let Some(count) = chunk.get("subset").or(chunk.get("sub")).filter(|count| !count.is_nil()) else { return Ok(3) };
    let count = count.as_u64().or_else(|| count.text()?.parse().ok()).and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| Problem::bad("subset must be a number of minions"))
}

fn job(
    chunk: &Value,
    args: Vec<Value>,
    kwargs: Vec<(String, Value)>,
    timeout: Option<Duration>,
) -> Result<Job, Problem> {
    let texts = |value: &Value| value.list().is_some_and(|items| items.iter().all(|item| item.text().is_some()));
    let tgt = chunk.get("tgt").filter(|tgt| tgt.text().is_some() || texts(tgt));
    let tgt = tgt.ok_or_else(|| Problem::bad("tgt must be a target"))?.clone();
    let fun = chunk.get("fun").filter(|fun| fun.text().is_some_and(|fun| !fun.is_empty()) || texts(fun));
    let fun = fun.ok_or_else(|| Problem::bad("fun must be the name of a function"))?.clone();
    let text = |key: &str| match chunk.get(key) {
        None | Some(Value::Nil) => Ok(None),
        Some(value) => {
            value.text().map(|text| Some(text.to_owned())).ok_or_else(|| Problem::bad(format!("{key} must be text")))
        }
    };
    // The name before 2017, which pepper still sends.
    let tgt_type = text("tgt_type")?.or(text("expr_form")?).unwrap_or_else(|| "glob".to_owned());
    let of_jobs = OF_JOBS.iter().filter_map(|key| Some(((*key).to_owned(), chunk.get(key)?.clone())));
    let arg = if fun.text().is_some() {
        let (args, mut all) = split(args, Texts::Stay)?;
        all.extend(kwargs);
        args::condition_input(args, all)
    } else {
        // A list of arguments for each function.
        args
    };
    Ok(Job {
        tgt,
        tgt_type,
        fun,
        arg,
        ret: text("ret")?.unwrap_or_default(),
        jid: String::new(),
        kwargs: of_jobs.collect(),
        timeout,
    })
}

/// The text of a compound target, whose words may have come as a list.
fn sentence(tgt: Value) -> Result<Value, Problem> {
    let Some(words) = tgt.list() else { return Ok(tgt) };
    let words: Vec<&str> = words.iter().filter_map(Value::text).collect();
    if words.iter().any(|word| word.contains(char::is_whitespace)) {
        return Err(Problem::bad("A word of a compound target has no blanks; `?` stands for one"));
    }
    Ok(Value::from(words.join(" ")))
}

/// What texts among arguments are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    /// As on a command line: Salt's runners and its wheel take them so, however they came.
    AreYaml,
    /// What they are: `1.10` is a version, and `true` may be a program. (Those of a form came as YAML.)
    Stay,
}

/// Takes the keywords from arguments: `name=value`, whose value is YAML, and the entries of a map that is marked with `__kwarg__`.
fn split(items: Vec<Value>, texts: Texts) -> Result<(Vec<Value>, Keywords), Problem> {
    let (mut args, mut kwargs) = (Vec::new(), Vec::new());
    for item in items {
        if let Some(text) = item.text() {
            if texts == Texts::Stay && args::parse_kwarg(text).is_none() {
                args.push(item);
                continue;
            }
            let (more, named) = args::split_input(&[text.to_owned()]);
            args.extend(more);
            kwargs.extend(keywords(value::map(named).entries().unwrap_or_default())?);
        } else if item.get("__kwarg__").is_some_and(ValueExt::truthy) {
            kwargs.extend(keywords(item.entries().unwrap_or_default())?);
        } else {
            args.push(item);
        }
    }
    Ok((args, kwargs))
}

/// Keywords of a function, without those that only the minion itself sets (`__pub_user`, …).
fn keywords<'a>(entries: impl IntoIterator<Item = &'a (Value, Value)>) -> Result<Keywords, Problem> {
    let mut all = Vec::new();
    for (key, value) in entries {
        let key = key.text().ok_or_else(|| Problem::bad("the name of a keyword must be text"))?;
        if !key.starts_with("__") {
            all.push((key.to_owned(), value.clone()));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ALL: [Client; 8] = [
        Client::Local,
        Client::LocalAsync,
        Client::LocalBatch,
        Client::LocalSubset,
        Client::Runner,
        Client::RunnerAsync,
        Client::Wheel,
        Client::WheelAsync,
    ];

    fn read(lowstate: &serde_json::Value) -> Result<Vec<Chunk>, u16> {
        parse(value::from_json(lowstate), &ALL, &Nodegroups::default()).map_err(|problem| problem.status().as_u16())
    }

    #[test]
    fn one_malformed_chunk_is_all() {
        let good = json!({"client": "local", "tgt": "*", "fun": "test.ping"});
        assert_eq!(read(&json!([good, good])).unwrap().len(), 2);
        assert!(read(&json!(vec![good.clone(); CHUNKS_MAX])).is_ok());
        assert_eq!(read(&json!(vec![good.clone(); CHUNKS_MAX + 1])).unwrap_err(), 400);
        for bad in [
            json!("text"),
            json!(null),
            json!([]),
            json!({}),
            json!({"client": "ssh", "tgt": "*", "fun": "test.ping"}),
            json!({"client": "destroy"}),
            json!({"client": ["local"], "tgt": "*", "fun": "test.ping"}),
            json!({"client": "local", "fun": "test.ping"}),
            json!({"client": "local", "tgt": "*"}),
            json!({"client": "local", "tgt": "*", "fun": ""}),
            json!({"client": "local", "tgt": {"a": 1}, "fun": "test.ping"}),
            json!({"client": "local", "tgt": "*", "fun": "test.ping", "kwarg": [1]}),
            json!({"client": "local", "tgt": "*", "fun": "test.ping", "timeout": "soon"}),
            json!({"client": "local", "tgt": "*", "fun": "test.ping", "timeout": -1}),
            json!({"client": "local", "tgt": "*", "fun": "test.ping", "gather_job_timeout": "soon"}),
            json!({"client": "local", "tgt": "*", "fun": "test.ping", "gather_job_timeout": 1e9}),
            json!({"client": "local", "tgt": "*", "fun": "test.ping", "tgt_type": 1}),
            json!({"client": "local", "tgt": ["G@os:Red Hat"], "tgt_type": "compound", "fun": "test.ping"}),
            json!({"client": "local", "tgt": "none", "tgt_type": "nodegroup", "fun": "test.ping"}),
            json!({"client": "local_batch", "tgt": "*", "fun": "test.ping", "batch": "some"}),
            json!({"client": "local_batch", "tgt": "*", "fun": "test.ping", "batch_wait": -1}),
            json!({"client": "local_subset", "tgt": "*", "fun": "test.ping", "subset": "few"}),
            json!({"client": "runner", "fun": ["jobs.active"]}),
            json!({"client": "wheel"}),
        ] {
            assert_eq!(read(&json!([good, bad])).unwrap_err(), 400, "{bad}");
        }
        let disabled = parse(value::from_json(&good), &[Client::Runner], &Nodegroups::default()).unwrap_err();
        assert_eq!(disabled.status().as_u16(), 400);
    }

    #[test]
    fn words_of_a_job() {
        let job = |more: serde_json::Value| {
            let mut chunk = json!({"client": "local", "tgt": "*", "fun": "test.ping"});
            chunk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let Call::Local { job, returns, .. } = read(&chunk).unwrap().remove(0).call else { panic!("a job") };
            (job, returns)
        };
        let waits = |more| (job(more).0.timeout, job(json!({})).1.gather);
        assert_eq!(waits(json!({})), (None, None));
        for (given, seconds) in [(json!("7"), 7), (json!(7), 7), (json!(7.0), 7)] {
            let (job, returns) = job(json!({"timeout": given, "gather_job_timeout": given, "full_return": 1}));
            let time = Some(Duration::from_secs(seconds));
            assert_eq!((job.timeout, returns), (time, Returns { full: true, gather: time }), "{given}");
        }
        for none in [json!(null), json!(""), json!([]), json!({}), json!(false)] {
            assert!(job(json!({"kwarg": none})).0.arg.is_empty(), "{none}");
        }
        let compound = |tgt| job(json!({"tgt": tgt, "tgt_type": "compound"})).0.tgt;
        assert_eq!(compound(json!(["m1", "or", "G@os:Debian"])), Value::from("m1 or G@os:Debian"));
    }

    #[test]
    fn refusals_have_salts_words() {
        let why = |chunk| {
            let offered = [Client::Local];
            let problem = parse(value::from_json(&chunk), &offered, &Nodegroups::default()).unwrap_err();
            problem.message().to_owned()
        };
        assert_eq!(why(json!({})), "Lowstates must be a list");
        assert_eq!(why(json!(5)), "Lowstates must be a list");
        assert_eq!(why(json!({"fun": "test.ping"})), "Invalid client specified: 'None'");
        assert_eq!(why(json!({"client": null})), "Invalid client specified: 'None'");
        assert_eq!(why(json!({"client": "x"})), "Invalid client specified: 'x'");
        for client in ["ssh", "destroy", "wheel"] {
            let text =
                format!("Client disabled: '{client}'. Add to 'netapi_enable_clients' master config option to enable.");
            assert_eq!(why(json!({"client": client})), text);
        }
    }

    /// What a chunk may not say never is in a request to the master.
    #[test]
    fn fields_of_the_request_are_not_the_callers() {
        let mut chunk = json!({
            "client": "local", "tgt": "*", "fun": "test.arg", "cmd": "wheel", "key": "evil", "user": "evil", "jid": "evil",
            "front_end": "evil", "__pub_user": "evil", "kwarg": {"a": 1, "__pub_user": "evil"},
            "arg": ["b=2", "__pub_jid=evil", {"__kwarg__": true, "c": 3, "__pub_fun": "evil"}],
        });
        let Call::Local { job, .. } = read(&chunk).unwrap().remove(0).call else { panic!("a job") };
        let load = value::to_json(&job.load(&brine_client::LogIn::Token("t".to_owned().into())));
        assert!(!load.to_string().contains("evil"), "{load}");
        assert_eq!((&load["cmd"], &load["kwargs"]), (&json!("publish"), &json!({"token": "t"})));
        assert_eq!(load["arg"], json!([{"b": 2, "c": 3, "a": 1, "__kwarg__": true}]));
        for client in ["runner", "wheel"] {
            chunk["client"] = json!(client);
            chunk["jid"] = json!("20200101000000000000");
            let Call::Master { kwargs, .. } = read(&chunk).unwrap().remove(0).call else { panic!("a function") };
            let names: Vec<&str> = kwargs.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["b", "c", "a", "tgt", "jid", "front_end"], "jid is a runner's own argument");
        }
    }
}
