//! Peer publication (§6.1): what minions ask of each other (`minion_pub`, `pub_ret`, under `peer`) and of the master's runners
//! (`minion_runner`, under `peer_run`).
//!
//! Nothing waits here for minions: who published gets the jid and asks for the returns, as Salt's `publish.publish` does. Stricter than
//! Salt in these: each of several functions has to be permitted, not any of them; arguments are judged as minions will read them, and
//! not let through where they can be read in two ways; what grains or pillar decided is published to the minions that were found
//! and judged, by name; whether there is a jid is told to who started it.

mod rules;
mod started;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use brine_protocol::args::yamlify;
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::{join_kwargs, split_kwargs};
use brine_protocol::value::{Value, ValueExt, empty_map, list, map};
use tokio::sync::Semaphore;

use crate::access::Extent;
use crate::audit::Record;
use crate::config::MasterOpts;
use crate::master::Master;
use crate::refusals::Who;
use crate::requests::Fault;
use crate::{access, publish, runners};
use rules::Rules;
use started::Started;

/// Publications of minions at a time: each is a signature and a write to disk, which operators wait for too.
const PUBLISHING_MAX: usize = 8;
/// Answers with returns that are made at a time.
const READING_MAX: usize = 4;
/// What such an answer may be, packed; it goes out in one message.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// Runners that one minion has running.
const RUNNERS_OF_ONE: usize = 2;
/// Runners of all minions.
const RUNNERS_MAX: usize = 32;
/// How long a runner may take: its minion waits 60 s for the answer.
const RUNNER_TIME: Duration = Duration::from_secs(50);
/// Bytes of a returner's name.
const RET_MAX: usize = 256;

/// Who may.
pub(crate) struct PeerRules {
    publish: Rules,
    run: Rules,
}

impl PeerRules {
    /// Reads `peer` and `peer_run`. The error is for the operator.
    pub(crate) fn read(opts: &MasterOpts) -> Result<Self, String> {
        let publish = Rules::read(opts.peer.as_ref()).map_err(|why| format!("peer: {why}"))?;
        let run = Rules::read(opts.peer_run.as_ref()).map_err(|why| format!("peer_run: {why}"))?;
        Ok(Self { publish, run })
    }
}

/// Who may, and who did.
pub(crate) struct Peer {
    rules: ArcSwap<PeerRules>,
    started: Started,
    publishing: Semaphore,
    reading: Semaphore,
    running: Semaphore,
    running_by: Mutex<HashMap<MinionId, usize>>,
}

impl Peer {
    /// Reads `peer` and `peer_run`. The error is for the operator.
    pub(crate) fn new(opts: &MasterOpts) -> Result<Self, String> {
        Ok(Self {
            rules: ArcSwap::from_pointee(PeerRules::read(opts)?),
            started: Started::default(),
            publishing: Semaphore::new(PUBLISHING_MAX),
            reading: Semaphore::new(READING_MAX),
            running: Semaphore::new(RUNNERS_MAX),
            running_by: Mutex::default(),
        })
    }

    /// From now on these may.
    pub(crate) fn replace(&self, rules: PeerRules) {
        self.rules.store(rules.into());
    }

    /// Forgets minions that have no key any more.
    pub(crate) fn forget(&self, is_accepted: impl Fn(&MinionId) -> bool) {
        self.started.retain(is_accepted);
    }

    fn runner_turn(&self, id: &MinionId) -> Option<Turn<'_>> {
        let permit = self.running.try_acquire().ok()?;
        let mut by = self.running_by.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by.entry(id.clone()).or_default();
        if *count >= RUNNERS_OF_ONE {
            return None;
        }
        *count += 1;
        Some(Turn { by: &self.running_by, id: id.clone(), _permit: permit })
    }
}

/// A runner's place, until it is dropped.
struct Turn<'a> {
    by: &'a Mutex<HashMap<MinionId, usize>>,
    id: MinionId,
    _permit: tokio::sync::SemaphorePermit<'a>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                by.remove(&self.id);
            }
        }
    }
}

/// `minion_pub`: publishes a minion's job; the answer has its jid and who is expected to return, or nothing.
pub(crate) async fn publish(master: &Arc<Master>, id: &MinionId, load: &Value) -> Result<Value, Fault> {
    let job = match judged(master, id, load).await? {
        Ok(job) => job,
        Err(why) => {
            refuse(master, id, load, &why);
            return Ok(empty_map());
        }
    };
    // The semaphores are never closed.
    let _turn = master.peer.publishing.acquire().await;
    let Some(published) = publish::peer_job(master, id, &job).await? else { return Ok(empty_map()) };
    master.peer.started.add(id, &published.jid);
    let minions = list(published.minions.iter().map(Value::from));
    Ok(map([("jid", Value::from(&published.jid)), ("minions", minions)]))
}

/// The job that a minion's request becomes, or why it may not be.
async fn judged(master: &Arc<Master>, id: &MinionId, load: &Value) -> Result<Result<Value, String>, Fault> {
    let asked = match Asked::read(load) {
        Ok(asked) => asked,
        Err(why) => return Ok(Err(why)),
    };
    let rules = master.peer.rules.load_full();
    let rules = rules.publish.of(id);
    if rules.is_empty() {
        return Ok(Err("peer permits nothing to this minion".to_owned()));
    }
    let kind = if asked.tgt_type.starts_with("node") { "nodegroup" } else { &asked.tgt_type };
    if !master.opts.minion_data_cache && !matches!(kind, "glob" | "pcre" | "list") {
        // It would be everyone (§10).
        return Ok(Err("minion_data_cache is off, and its target is not by id".to_owned()));
    }
    let resolved = found(master, kind, &asked.tgt).await?;
    // A pattern would let a minion find out others' pillar letter by letter.
    let exact = match kind {
        "pillar" | "pillar_pcre" => Some("pillar_exact"),
        "compound" => Some("compound_pillar_exact"),
        _ => None,
    };
    if let Some(exact) = exact {
        let exactly = found(master, exact, &asked.tgt).await?;
        if resolved.iter().any(|id| !exactly.contains(id)) {
            return Ok(Err("its target has a pattern for pillar".to_owned()));
        }
    }
    let mut job = map([("fun", asked.fun()), ("arg", asked.arg()), ("ret", Value::from(asked.ret.as_str()))]);
    let functions = access::functions(&job).unwrap_or_default();
    let resolve = |target| async move { publish::permitted_minions(master, target).await };
    let extent = access::allowed(rules, &functions, &resolved, resolve).await;
    let Some(extent) = extent.filter(|_| !functions.is_empty()) else {
        return Ok(Err("peer does not permit it there".to_owned()));
    };
    job.insert("user", master.opts.user.as_str());
    job.insert("kwargs", map([("id", id.as_str())]));
    if extent == Extent::Target && matches!(kind, "glob" | "pcre" | "list") {
        job.insert("tgt", asked.tgt.clone());
        job.insert("tgt_type", kind);
    } else {
        // What was judged is what is published: grains and pillar change, and so does who has a key.
        job.insert("tgt", list(resolved.iter().map(Value::from)));
        job.insert("tgt_type", "list");
    }
    Ok(Ok(job))
}

async fn found(master: &Arc<Master>, kind: &str, tgt: &Value) -> Result<Vec<MinionId>, Fault> {
    let load = map([("tgt", tgt.clone())]);
    Ok(publish::resolve(master, kind, &load, ":").await?.matched)
}

/// A request of a minion to publish, read.
struct Asked {
    /// Functions, and their arguments as minions get them.
    funs: Vec<(String, Vec<Value>)>,
    several: bool,
    tgt: Value,
    tgt_type: String,
    ret: String,
}

impl Asked {
    fn read(load: &Value) -> Result<Self, String> {
        let text = |name: &str| load.get_text(name);
        let fun = text("fun").filter(|fun| !fun.is_empty()).ok_or("it names no function")?;
        let arg = load.get_list("arg").ok_or("it has no list of arguments")?;
        let ret = text("ret").filter(|ret| ret.len() <= RET_MAX).ok_or("it has no ret")?.to_owned();
        let tgt = load.get("tgt").filter(|tgt| !tgt.is_nil()).ok_or("it has no target")?.clone();
        let tgt_type = match load.get("tgt_type") {
            Some(kind) => kind.text().ok_or("its tgt_type is not text")?.to_lowercase(),
            None => "glob".to_owned(),
        };
        let several = fun.contains(',');
        let funs: Vec<(String, Vec<Value>)> = if several {
            // Of several functions, each has its arguments in one text (§5.2).
            let words = |at: usize| {
                let text = arg.get(at).and_then(ValueExt::text).unwrap_or_default();
                parsed(&text.split_whitespace().map(Value::from).collect::<Vec<_>>())
            };
            fun.split(',').enumerate().map(|(at, fun)| (fun.to_owned(), words(at))).collect()
        } else {
            vec![(fun.to_owned(), parsed(arg))]
        };
        if funs.iter().any(|(fun, _)| fun.is_empty() || fun.starts_with("publish.")) {
            return Err("a publication that publishes would have no end".to_owned());
        }
        Ok(Self { funs, several, tgt, tgt_type, ret })
    }

    fn fun(&self) -> Value {
        if self.several {
            list(self.funs.iter().map(|(fun, _)| fun.as_str()))
        } else {
            Value::from(self.funs[0].0.as_str())
        }
    }

    fn arg(&self) -> Value {
        if self.several {
            list(self.funs.iter().map(|(_, arg)| Value::Array(arg.clone())))
        } else {
            Value::Array(self.funs[0].1.clone())
        }
    }
}

/// Arguments as `salt` makes them of its command line: texts are YAML, `name=value` is a keyword.
fn parsed(arg: &[Value]) -> Vec<Value> {
    let (args, kwargs) = split_kwargs(arg);
    let args = args.into_iter().map(|arg| arg.text().map_or_else(|| arg.clone(), yamlify)).collect();
    join_kwargs(args, kwargs)
}

/// `pub_ret`: what has returned until now for a job that this minion started.
pub(crate) async fn returns(master: &Arc<Master>, id: &MinionId, load: &Value) -> Result<Value, Fault> {
    let jid = load.get("jid").and_then(|jid| Jid::try_from(jid.python_str().as_str()).ok());
    let Some(jid) = jid.filter(|jid| master.peer.started.has(id, jid)) else {
        refuse(master, id, load, "it did not start a job of that jid");
        return Ok(empty_map());
    };
    let _turn = master.peer.reading.acquire().await;
    let mut answer = empty_map();
    let mut bytes = 0;
    for one in master.jobs.local().returns(&jid).await? {
        bytes += one.load.len();
        if bytes > ANSWER_BYTES_MAX {
            tracing::warn!("not all returns of {jid} are told to {id}: they have more than {ANSWER_BYTES_MAX} bytes");
            break;
        }
        let load = one.load();
        let mut told = map([("ret", load.get("return").cloned().unwrap_or(Value::Nil))]);
        if let Some(out) = load.get_text("out") {
            told.insert("out", out);
        }
        answer.insert(one.minion.as_str(), told);
    }
    Ok(answer)
}

/// `minion_runner`: runs a runner for a minion and answers with what it returned.
pub(crate) async fn runner(master: &Arc<Master>, id: &MinionId, load: &Value) -> Result<Value, Fault> {
    let (Some(fun), Some(arg)) = (load.get_text("fun"), load.get_list("arg")) else {
        refuse(master, id, load, "it names no runner or has no list of arguments");
        return Ok(empty_map());
    };
    if !master.peer.rules.load().run.allow_runner(id, fun) {
        refuse(master, id, load, "peer_run does not permit this runner");
        return Ok(empty_map());
    }
    let Some(_turn) = master.peer.runner_turn(id) else {
        refuse(master, id, load, "too many runners of minions are running");
        return Ok(empty_map());
    };
    let arg = parsed(arg);
    let record = Record::new("runner", "allowed").whose(id.as_str(), "minion", "").call(fun, &arg);
    if let Err(why) = master.audit.write(record) {
        refuse(master, id, load, why);
        return Ok(empty_map());
    }
    let call = map([("arg", Value::Array(arg))]);
    let user = format!("minion {id}");
    let work = runners::run_for(master, fun, &call, &user);
    Ok(match tokio::time::timeout(RUNNER_TIME, work).await {
        Ok(outcome) => outcome.unwrap_or_else(|failure| failure.0),
        Err(_) => Value::from(format!("'{fun}' took longer than {} s", RUNNER_TIME.as_secs())),
    })
}

fn refuse(master: &Master, id: &MinionId, load: &Value, why: &str) {
    let short = |key: &str| -> String {
        load.get(key).map(ValueExt::python_str).unwrap_or_default().chars().take(128).collect()
    };
    let (fun, jid): (String, String) = (short("fun"), short("jid"));
    let record = Record::new("peer", "refused").whose(id.as_str(), "minion", "");
    master
        .audit
        .stranger(record.put("fun", fun.as_str()).put("tgt", short("tgt")).put("jid", jid.as_str()).put("why", why));
    let said = format!("a request of {id} to its peers was refused: {why}");
    let data = map([("id", id.as_str()), ("fun", &fun), ("jid", &jid), ("error", why)]);
    master.refusals.tell(&master.bus, Who::Minion(id), &said, format!("brine/refused/peer/{id}"), data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::text;

    fn asked(fun: &str, arg: Value) -> Result<Asked, String> {
        Asked::read(&map([("fun", text(fun)), ("arg", arg), ("tgt", text("*")), ("ret", text(""))]))
    }

    #[test]
    fn arguments_are_those_of_a_command_line() {
        let one = asked("test.arg", list([text("1"), text("a=b"), text("[x]"), Value::from(true)])).unwrap();
        let kwargs = |name: &str, value: Value| map([("__kwarg__", Value::from(true)), (name, value)]);
        assert_eq!(one.arg(), list([1.into(), list(["x"]), true.into(), kwargs("a", text("b"))]));
        let marked = asked("f.g", list([kwargs("x", 1.into()), text("y")]));
        assert_eq!(marked.unwrap().arg(), list([text("y"), kwargs("x", 1.into())]));
    }

    #[test]
    fn several_functions_are_several_calls() {
        let several = asked("test.ping,test.arg", list([text(""), text("1 a=b")])).unwrap();
        assert_eq!(several.fun(), list(["test.ping", "test.arg"]));
        let kwargs = map([("__kwarg__", Value::from(true)), ("a", text("b"))]);
        assert_eq!(several.arg(), list([Value::Array(Vec::new()), list([1.into(), kwargs])]));
        assert_eq!(asked("test.ping,test.arg", Value::Array(Vec::new())).unwrap().arg().list().unwrap().len(), 2);
    }

    #[test]
    fn what_publishes_is_not_published() {
        for fun in ["publish.publish", "test.ping,publish.runner", "publish.", "a,,b", ""] {
            assert!(asked(fun, Value::Array(Vec::new())).is_err(), "{fun}");
        }
        assert!(asked("publisher.x", Value::Array(Vec::new())).is_ok());
        assert!(Asked::read(&map([("fun", "test.ping")])).is_err());
    }
}
