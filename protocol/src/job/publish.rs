//! A request to publish (§7.2), and the job made from it (§5.2).

use super::{JobError, fun_text};
use crate::ids::{Jid, MinionId};
use crate::value::{Value, ValueExt, empty_map, map};

/// The caller's `kwargs` that the published load contains (§5.2).
const PASSED_ON: [&str; 9] = [
    "delimiter",
    "ret_config",
    "ret_kwargs",
    "metadata",
    "module_executors",
    "executor_opts",
    "start_event",
    "master_id",
    "id",
];

/// The jid that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedJid {
    /// No jid, or an empty one as Salt's clients send it.
    New,
    /// A given jid: a batch of 3008 publishes several times under one jid.
    Given(Jid),
    /// A value that is not a jid.
    Invalid,
}

/// A checked request to publish, without credentials. Unknown fields are kept for the job store.
#[derive(Debug, Clone)]
pub struct PublishRequest {
    load: Value,
    jid: RequestedJid,
}

impl PublishRequest {
    /// Parses the load of a `publish` request.
    ///
    /// # Errors
    /// When there is no target, or the functions and arguments do not match.
    pub fn parse(mut load: Value) -> Result<Self, JobError> {
        strip_secrets(&mut load);
        if !load.has("tgt") {
            return Err(JobError::Field("tgt"));
        }
        check_calls(&load)?;
        // Salt's clients send an empty jid.
        let jid = match load.get("jid").filter(|jid| jid.truthy()) {
            None => RequestedJid::New,
            Some(given) => Jid::try_from(given).map_or(RequestedJid::Invalid, RequestedJid::Given),
        };
        Ok(Self { load, jid })
    }

    /// Makes a request. `fun` and `arg` are one function and its arguments, or a list of functions and a list of
    /// argument lists.
    pub fn new(fun: Value, arg: Vec<Value>, tgt: Value, tgt_type: &str, user: &str) -> Self {
        let load = map([
            ("tgt", tgt),
            ("tgt_type", Value::from(tgt_type)),
            ("fun", fun),
            ("arg", Value::Array(arg)),
            ("user", Value::from(user)),
        ]);
        Self { load, jid: RequestedJid::New }
    }

    /// Adds an entry to `kwargs`.
    #[must_use]
    pub fn with_option(mut self, name: &str, value: impl Into<Value>) -> Self {
        if !self.load.has("kwargs") {
            self.load.insert("kwargs", empty_map());
        }
        if let Some(kwargs) = self.load.get_mut("kwargs") {
            kwargs.insert(name, value);
        }
        self
    }

    /// Sets the returners.
    #[must_use]
    pub fn with_returners(mut self, ret: &str) -> Self {
        self.load.insert("ret", ret);
        self
    }

    /// Replaces the target.
    pub fn set_target(&mut self, tgt: Value, tgt_type: &str) {
        self.load.insert("tgt", tgt);
        self.load.insert("tgt_type", tgt_type);
    }

    /// The jid that the request names.
    pub const fn jid(&self) -> &RequestedJid {
        &self.jid
    }

    /// The target.
    pub fn tgt(&self) -> &Value {
        self.load.get("tgt").unwrap_or(&Value::Nil)
    }

    /// The target as text for lists and logs.
    pub fn tgt_text(&self) -> String {
        self.tgt().python_str()
    }

    /// The type of the target.
    pub fn tgt_type(&self) -> &str {
        self.load.get_text("tgt_type").unwrap_or("glob")
    }

    /// The delimiter of grain and pillar targets.
    pub fn delimiter(&self) -> &str {
        self.load.get("kwargs").and_then(|kwargs| kwargs.get_text("delimiter")).unwrap_or(":")
    }

    /// The returners, a comma list.
    pub fn ret(&self) -> &str {
        self.load.get_text("ret").unwrap_or_default()
    }

    /// The user: the claimed one, until [`PublishRequest::set_user`] sets the proved one.
    pub fn user(&self) -> Option<&str> {
        self.load.get_text("user")
    }

    /// Sets the user.
    pub fn set_user(&mut self, user: &str) {
        self.load.insert("user", user);
    }

    /// The name of the function, or the names separated by commas.
    pub fn fun(&self) -> String {
        fun_text(&self.load)
    }

    /// The arguments as received: for several functions, a list of each.
    pub fn arg(&self) -> &[Value] {
        self.load.get_list("arg").unwrap_or_default()
    }

    /// Each function with its arguments; a function without a list of its own has none.
    pub fn calls(&self) -> Vec<(&str, &[Value])> {
        let arg = self.arg();
        match self.load.get("fun") {
            Some(Value::Array(funs)) => {
                let of = |at: usize| arg.get(at).and_then(ValueExt::list).unwrap_or_default();
                funs.iter().enumerate().filter_map(|(at, fun)| Some((fun.text()?, of(at)))).collect()
            }
            fun => fun.and_then(ValueExt::text).map(|fun| (fun, arg)).into_iter().collect(),
        }
    }

    /// Whether the caller reads the job's files (`python_job_files`, Brine's own field).
    pub fn reads_files(&self) -> bool {
        self.load.get("python_job_files") != Some(&Value::Boolean(false))
    }

    /// Makes the job: with the returners `ret`, and with the target `only` if it is given.
    pub fn publish<'a>(&'a self, jid: &'a Jid, ret: &'a str, only: Option<&'a [MinionId]>) -> PublishedJob<'a> {
        PublishedJob { request: self, jid, ret, only }
    }

    /// The data of the event that the request was refused; none if the request had no `jid` (§8.2).
    pub fn into_refusal_event(self, why: &str) -> Option<Value> {
        refusal_event(self.load, why)
    }
}

/// The data of the event that a request was refused, from a load that was not checked; none if it had no `jid` (§8.2).
pub fn refusal_event(mut load: Value, why: &str) -> Option<Value> {
    if !load.has("jid") {
        return None;
    }
    strip_secrets(&mut load);
    load.insert("error", why);
    Some(load)
}

/// A job to be published.
#[derive(Debug, Clone, Copy)]
pub struct PublishedJob<'a> {
    request: &'a PublishRequest,
    jid: &'a Jid,
    ret: &'a str,
    only: Option<&'a [MinionId]>,
}

impl PublishedJob<'_> {
    /// The type of the published target.
    pub fn tgt_type(&self) -> &str {
        self.only.map_or_else(|| self.request.tgt_type(), |_| "list")
    }

    /// The load for the minions.
    pub fn to_load(&self) -> Value {
        let load = &self.request.load;
        let tgt = self.only.map_or_else(|| self.request.tgt().clone(), |only| ids(only.iter()));
        let mut published = map([
            ("fun", self.field("fun")),
            ("arg", self.field("arg")),
            ("tgt", tgt),
            ("jid", Value::from(self.jid)),
            ("ret", Value::from(self.ret)),
            ("tgt_type", Value::from(self.tgt_type())),
            ("user", load.get("user").cloned().unwrap_or(Value::from("root"))),
        ]);
        for name in PASSED_ON {
            match load.get("kwargs").and_then(|kwargs| kwargs.get(name)) {
                Some(Value::Nil) | None => {}
                Some(delimiter) if name == "delimiter" && delimiter.text() == Some(":") => {}
                Some(value) => published.insert(name, value.clone()),
            }
        }
        published
    }

    /// The load for the job store: the request with the master's decisions.
    pub fn to_stored(&self) -> Value {
        let mut stored = self.request.load.clone();
        stored.insert("jid", self.jid.as_str());
        stored.insert("ret", self.ret);
        stored.remove("python_job_files");
        stored
    }

    /// The data of the event that announces the job, with the minions expected to return and the missing ids of a list
    /// target.
    pub fn to_announcement(&self, minions: &[MinionId], missing: &[String]) -> Value {
        map([
            ("jid", Value::from(self.jid)),
            ("tgt_type", Value::from(self.request.tgt_type())),
            ("tgt", self.field("tgt")),
            ("user", self.field("user")),
            ("fun", self.field("fun")),
            ("arg", self.field("arg")),
            ("minions", ids(minions.iter())),
            ("missing", Value::Array(missing.iter().map(|id| Value::from(id.as_str())).collect())),
        ])
    }

    fn field(&self, name: &str) -> Value {
        self.request.load.get(name).cloned().unwrap_or(Value::Nil)
    }
}

fn ids<'a>(ids: impl Iterator<Item = &'a MinionId>) -> Value {
    Value::Array(ids.map(Value::from).collect())
}

/// Checks that each function is text with a list of arguments. In a job of several functions, a function may lack a
/// list.
fn check_calls(load: &Value) -> Result<(), JobError> {
    let arg = load.get_list("arg").ok_or(JobError::Field("arg"))?;
    match load.get("fun") {
        Some(Value::Array(funs)) if funs.is_empty() || funs.iter().any(|fun| fun.text().is_none()) => {
            Err(JobError::Field("fun"))
        }
        Some(Value::Array(_)) if arg.iter().any(|arg| arg.list().is_none()) => Err(JobError::Field("arg")),
        Some(Value::Array(_)) => Ok(()),
        fun => fun.and_then(ValueExt::text).filter(|fun| !fun.is_empty()).map(drop).ok_or(JobError::Field("fun")),
    }
}

/// Removes credentials from a request before it is displayed or stored.
pub fn strip_secrets(load: &mut Value) {
    if let Value::Map(entries) = load {
        entries.retain(|(name, _)| {
            !name.text().is_some_and(|name| {
                matches!(name, "key" | "token" | "password" | "eauth" | "tok" | "nonce" | "sig" | "front_end")
            })
        });
        for (name, value) in entries {
            if name.text() == Some("kwargs") {
                strip_secrets(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{list, text};

    fn request() -> Value {
        map([
            ("cmd", text("publish")),
            ("tgt", text("*")),
            ("fun", text("test.ping")),
            ("arg", Value::Array(Vec::new())),
            ("user", text("root")),
            ("ret", text("")),
        ])
    }

    fn jid() -> Jid {
        Jid::new("20261120134740245008").unwrap()
    }

    #[test]
    fn the_load_has_what_minions_expect_and_no_more() {
        let mut load = request();
        load.insert(
            "kwargs",
            map([
                ("delimiter", Value::from(":")),
                ("show_timeout", Value::from(true)),
                ("metadata", map([("a", 1)])),
                ("id", Value::Nil),
            ]),
        );
        let published = PublishRequest::parse(load).unwrap().publish(&jid(), "", None).to_load();
        let keys: Vec<_> = published.entries().unwrap().iter().filter_map(|(k, _)| k.text()).collect();
        assert_eq!(keys, ["fun", "arg", "tgt", "jid", "ret", "tgt_type", "user", "metadata"]);
    }

    #[test]
    fn what_is_stored_has_every_other_field_too() {
        let mut load = request();
        for (key, value) in [("timeout", Value::from(5)), ("jid", text("")), ("python_job_files", false.into())] {
            load.insert(key, value);
        }
        let request = PublishRequest::parse(load).unwrap();
        assert!(!request.reads_files());
        let only = [MinionId::new("a").unwrap()];
        let (jid, ret) = (jid(), "postgres");
        let job = request.publish(&jid, ret, Some(&only));
        let stored = job.to_stored();
        assert_eq!((stored.get_i64("timeout"), stored.get_text("jid")), (Some(5), Some(jid.as_str())));
        assert_eq!((stored.get_text("ret"), stored.get_text("tgt")), (Some(ret), Some("*")));
        assert!(!stored.has("python_job_files"));
        let load = job.to_load();
        assert_eq!((load.get("tgt"), load.get_text("tgt_type")), (Some(&list(["a"])), Some("list")));
    }

    #[test]
    fn calls_are_checked_once() {
        let with = |fun: Value, arg: Value| {
            let mut load = request();
            load.insert("fun", fun);
            load.insert("arg", arg);
            PublishRequest::parse(load)
        };
        let several = with(list(["a.b", "c.d"]), list([list([1])])).unwrap();
        assert_eq!(several.calls(), [("a.b", &[Value::from(1)][..]), ("c.d", &[])]);
        let empty = || Value::Array(Vec::new());
        for (fun, arg) in [
            (text(""), empty()),
            (Value::from(1), empty()),
            (empty(), empty()),
            (list([1]), empty()),
            (text("a.b"), Value::Nil),
            (list(["a.b"]), list([1])),
        ] {
            assert!(with(fun.clone(), arg.clone()).is_err(), "{fun} {arg}");
        }
        let mut without = request();
        without.remove("tgt");
        assert!(PublishRequest::parse(without).is_err());
    }

    #[test]
    fn a_jid_may_be_empty_and_must_be_one() {
        for (given, read) in [
            (text(""), RequestedJid::New),
            (Value::Nil, RequestedJid::New),
            (Value::from(&jid()), RequestedJid::Given(jid())),
            (text("../x"), RequestedJid::Invalid),
            (Value::from(7), RequestedJid::Invalid),
        ] {
            let mut load = request();
            load.insert("jid", given);
            assert_eq!(*PublishRequest::parse(load).unwrap().jid(), read);
        }
    }

    #[test]
    fn secrets_go_at_both_levels() {
        let mut load = map([
            ("fun", text("x.y")),
            ("key", text("k")),
            ("kwargs", map([("token", text("t")), ("password", text("p")), ("metadata", text("m"))])),
        ]);
        strip_secrets(&mut load);
        assert_eq!(load, map([("fun", text("x.y")), ("kwargs", map([("metadata", "m")]))]));
    }
}
