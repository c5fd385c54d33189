//! A return (§6.2): as a minion makes it, and as the master receives it.

use crate::ids::{Jid, MinionId};
use crate::msgpack;
use crate::value::{self, Value, ValueExt};

/// What one minion returned for one job.
#[derive(Debug, Clone, PartialEq)]
pub struct Return {
    /// The minion.
    pub id: MinionId,
    /// The job; none for `req`, by which `salt-call` has the master allocate a jid.
    pub jid: Option<Jid>,
    /// The function, or the list of functions.
    pub fun: Value,
    /// The arguments as they were published.
    pub fun_args: Value,
    /// The value; for several functions, a map from function to value.
    pub return_: Value,
    /// 0 for success; a map for several functions.
    pub retcode: Value,
    /// Whether the function succeeded; a map for several functions. `salt-call` does not send it.
    pub success: Option<Value>,
    /// The user who requested the job.
    pub user: Option<String>,
    /// The outputter to display the value with.
    pub out: Option<String>,
    /// `metadata` of the job.
    pub metadata: Option<Value>,
    /// The resources that the job used, a map. This is Brine's addition, which Salt passes on.
    pub usage: Option<Value>,
}

impl Return {
    /// A return of one function.
    pub fn new(
        id: MinionId,
        jid: Jid,
        fun: impl Into<String>,
        fun_args: Vec<Value>,
        return_: Value,
        retcode: i64,
    ) -> Self {
        Self {
            id,
            jid: Some(jid),
            fun: Value::from(fun.into()),
            fun_args: Value::Array(fun_args),
            return_,
            retcode: Value::from(retcode),
            success: Some(Value::from(retcode == 0)),
            user: None,
            out: None,
            metadata: None,
            usage: None,
        }
    }

    /// The load of the `_return` request.
    pub fn to_load(&self) -> Value {
        let jid = self.jid.as_ref().map_or_else(|| Value::from("req"), Value::from);
        let mut load = value::map([("cmd", Value::from("_return")), ("id", Value::from(&self.id))]);
        if let Some(success) = &self.success {
            load.insert("success", success.clone());
        }
        load.insert("return", self.return_.clone());
        load.insert("retcode", self.retcode.clone());
        load.insert("jid", jid);
        load.insert("fun", self.fun.clone());
        load.insert("fun_args", self.fun_args.clone());
        let texts = [("user", &self.user), ("out", &self.out)];
        for (key, text) in texts {
            if let Some(text) = text {
                load.insert(key, text.as_str());
            }
        }
        for (key, value) in [("metadata", &self.metadata), ("usage", &self.usage)] {
            if let Some(value) = value {
                load.insert(key, value.clone());
            }
        }
        load
    }
}

/// Upper bound on the characters kept of a function's name, of four bytes each. Only a hostile name is longer.
const FUN_CHARS_MAX: usize = 128;

/// The job that a return names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReturnJid {
    /// This job.
    Job(Jid),
    /// `req`: the master allocates a jid (`salt-call`).
    Requested,
    /// `nocache`: a return of a schedule, which is announced and not stored.
    NotKept,
}

/// The field of a `_return` request with further returns (§6.2.1), between a Brine master and a Brine minion.
const ALSO: &str = "also";
/// Upper bound on the returns in one request.
pub const MAX_RETURNS: usize = 32;

/// Makes one load of the loads of several `_return` requests (§6.2.1), in their order. None if there are none.
pub fn join_returns(loads: Vec<Value>) -> Option<Value> {
    let mut loads = loads.into_iter();
    let mut first = loads.next()?;
    let also: Vec<Value> = loads.collect();
    if !also.is_empty() {
        first.insert(ALSO, Value::Array(also));
    }
    Some(first)
}

/// Takes apart what [`join_returns`] made: the loads in their order, each as in a request of its own. None if it is the load of one return.
///
/// # Errors
/// When there are too many, or one is not the load of a return.
pub fn split_returns(load: &mut Value) -> Option<Result<Vec<Value>, &'static str>> {
    let also = load.remove(ALSO)?;
    let Value::Array(mut also) = also else { return Some(Err("its further returns are not a list")) };
    if also.len() >= MAX_RETURNS {
        return Some(Err("it has too many returns"));
    }
    for further in &mut also {
        if !matches!(further, Value::Map(_)) || further.has(ALSO) {
            return Some(Err("one of its further returns is not one"));
        }
        // What the sender says of the request, a further return says of itself.
        match load.get("ts") {
            Some(ts) => further.insert("ts", ts.clone()),
            None => drop(further.remove("ts")),
        }
    }
    also.insert(0, std::mem::replace(load, Value::Nil));
    Some(Ok(also))
}

/// A return as the master receives it. The fields that the master decides by are parsed once; all other fields stay
/// unchanged for listeners and for later look-ups.
#[derive(Debug, Clone, PartialEq)]
pub struct ReturnLoad {
    load: Value,
    jid: Result<ReturnJid, &'static str>,
    wants_returners: bool,
}

impl ReturnLoad {
    /// Reads the load of a `_return` request from the minion that the channel proved.
    pub fn parse(mut load: Value, id: &MinionId) -> Self {
        load.insert("id", id.as_str());
        // A Brine minion sends the returners of `--return` to its master, which writes to them. Python's minions write
        // to them themselves and send no such field.
        let wants_returners = load.remove("ret").is_some_and(|ret| ret.truthy());
        let jid = match load.get_text("jid") {
            _ if !load.has("return") || !load.has("jid") => Err("it has no return or no jid"),
            Some("req") => Ok(ReturnJid::Requested),
            Some("nocache") => Ok(ReturnJid::NotKept),
            text => text.and_then(|text| Jid::new(text).ok()).map(ReturnJid::Job).ok_or("its jid is not valid"),
        };
        Self { load, jid, wants_returners }
    }

    /// The job of the return.
    ///
    /// # Errors
    /// The reason, when the return cannot be accepted.
    pub fn jid(&self) -> Result<&ReturnJid, &'static str> {
        self.jid.as_ref().map_err(|why| *why)
    }

    /// Assigns the return to a job that the master made.
    pub fn assign(&mut self, jid: &Jid) {
        self.load.insert("jid", jid.as_str());
        self.jid = Ok(ReturnJid::Job(jid.clone()));
    }

    /// Whether the master passes the return to the job's returners.
    pub const fn wants_returners(&self) -> bool {
        self.wants_returners
    }

    /// A field as received.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.load.get(name)
    }

    /// The function, or the functions separated by commas.
    pub fn fun(&self) -> String {
        fun_text(&self.load)
    }

    /// The exit code.
    pub fn retcode(&self) -> i64 {
        worst_retcode(&self.load)
    }

    /// Whether all functions succeeded.
    pub fn is_success(&self) -> bool {
        is_success(&self.load)
    }

    /// Encodes the return for the job store, in the disk flavour.
    pub fn encode(&self) -> Vec<u8> {
        msgpack::encode_disk(&self.load)
    }

    /// Replaces a result that is too large by a failure, and returns its encoding of at most `most` bytes.
    pub fn replace_result(&mut self, id: &MinionId, jid: &Jid, why: &str, most: usize) -> Vec<u8> {
        let load = &mut self.load;
        load.insert("return", why);
        load.insert("retcode", 1);
        load.insert("success", false);
        load.insert("out", "nested");
        load.remove("usage");
        let mut packed = msgpack::encode_disk(load);
        if packed.len() > most {
            load.remove("fun_args");
            load.remove("metadata");
            packed = msgpack::encode_disk(load);
        }
        if packed.len() > most {
            // The other fields are too large as well, which no minion sends.
            *load = value::map([
                ("cmd", Value::from("_return")),
                ("id", Value::from(id)),
                ("jid", Value::from(jid)),
                ("fun", Value::from(fun_text(load))),
                ("return", Value::from(why)),
                ("retcode", Value::from(1)),
                ("success", Value::from(false)),
                ("out", Value::from("nested")),
            ]);
            packed = msgpack::encode_disk(load);
        }
        packed
    }

    /// The load of the job that is made for a return without a job.
    pub fn to_job(&self, id: &MinionId, jid: &Jid) -> Value {
        let field = |name: &str| self.get(name).cloned().unwrap_or(Value::Nil);
        value::map([
            ("jid", Value::from(jid)),
            ("fun", field("fun")),
            ("arg", field("fun_args")),
            ("tgt", Value::from(id)),
            ("tgt_type", Value::from("glob")),
            ("id", Value::from(id)),
            ("user", self.get("user").cloned().unwrap_or(Value::from("root"))),
        ])
    }

    /// The data of the return's event.
    pub fn into_event(self) -> Value {
        self.load
    }
}

/// The function of a job or return, or the functions separated by commas.
pub fn fun_text(load: &Value) -> String {
    let text = match load.get("fun") {
        Some(Value::Array(funs)) => funs.iter().map(ValueExt::python_str).collect::<Vec<_>>().join(","),
        Some(fun) => fun.python_str(),
        None => String::new(),
    };
    if text.len() > 4 * FUN_CHARS_MAX { text.chars().take(FUN_CHARS_MAX).collect() } else { text }
}

/// The exit code of a return; for several functions, the highest.
pub fn worst_retcode(load: &Value) -> i64 {
    let number = |value: &Value| value.as_i64().unwrap_or_else(|| i64::from(value.truthy()));
    match load.get("retcode") {
        Some(Value::Map(entries)) => entries.iter().map(|(_, v)| number(v)).max().unwrap_or(0),
        Some(Value::Array(items)) => items.iter().map(number).max().unwrap_or(0),
        Some(value) => number(value),
        None => 0,
    }
}

/// Whether every function of a return succeeded. `salt-call` does not say; its returns count as successful.
pub fn is_success(load: &Value) -> bool {
    load.get("success").is_none_or(|success| match success {
        Value::Map(entries) => entries.iter().all(|(_, v)| v.truthy()),
        Value::Array(items) => items.iter().all(ValueExt::truthy),
        value => value.truthy(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{list, map, text};

    const JID: &str = "20261120134740245008";

    fn id() -> MinionId {
        MinionId::new("m1").unwrap()
    }

    #[test]
    fn a_return_is_taken_in_as_it_was_sent() {
        let mut ret = Return::new(id(), Jid::new(JID).unwrap(), "test.ping", vec![], Value::from(true), 0);
        ret.user = Some("root".to_owned());
        ret.out = Some("nested".to_owned());
        ret.usage = Some(map([("wall_us", 5)]));
        let taken = ReturnLoad::parse(ret.to_load(), &id());
        assert_eq!(taken.jid(), Ok(&ReturnJid::Job(Jid::new(JID).unwrap())));
        assert_eq!((taken.fun().as_str(), taken.retcode(), taken.is_success()), ("test.ping", 0, true));
        assert_eq!(taken.into_event(), ret.to_load());
        ret.jid = None;
        let mut taken = ReturnLoad::parse(ret.to_load(), &id());
        assert_eq!(taken.jid(), Ok(&ReturnJid::Requested));
        taken.assign(&Jid::new(JID).unwrap());
        assert_eq!(taken.into_event().get_text("jid"), Some(JID));
    }

    #[test]
    fn the_sender_is_the_proved_one_and_unknown_fields_stay() {
        let load = |jid: Value| {
            map([("id", text("m2")), ("jid", jid), ("return", Value::Nil), ("x", 1.into()), ("ret", text("a"))])
        };
        let taken = ReturnLoad::parse(load(text(JID)), &id());
        assert!(taken.wants_returners());
        let event = taken.into_event();
        assert_eq!((event.get_text("id"), event.get_i64("x"), event.has("ret")), (Some("m1"), Some(1), false));
        assert_eq!(ReturnLoad::parse(load(text("nocache")), &id()).jid(), Ok(&ReturnJid::NotKept));
        for bad in [text("../../etc"), Value::Nil, Value::from(5)] {
            assert_eq!(ReturnLoad::parse(load(bad), &id()).jid(), Err("its jid is not valid"));
        }
        for missing in ["jid", "return"] {
            let mut load = load(text(JID));
            load.remove(missing);
            assert_eq!(ReturnLoad::parse(load, &id()).jid(), Err("it has no return or no jid"));
        }
    }

    #[test]
    fn a_result_that_is_too_large_leaves_a_failure_that_fits() {
        let jid = Jid::new(JID).unwrap();
        for (field, most) in [("return", 400), ("fun_args", 400), ("junk", 400)] {
            let mut load = map([("jid", text(JID)), ("fun", text("a.b")), ("return", Value::from(true))]);
            load.insert(field, "x".repeat(1_000));
            let mut ret = ReturnLoad::parse(load, &id());
            let packed = ret.replace_result(&id(), &jid, "too large", most);
            assert!(packed.len() <= most, "{field}");
            assert_eq!((ret.retcode(), ret.is_success(), ret.encode()), (1, false, packed));
        }
    }

    #[test]
    fn the_worst_of_several_return_codes_counts() {
        let ret = |retcode: Value| worst_retcode(&map([("retcode", retcode)]));
        assert_eq!(ret(Value::from(2)), 2);
        assert_eq!(ret(map([("a", 0), ("b", 3)])), 3);
        assert_eq!(ret(list([0, 1])), 1);
        assert_eq!(ret(Value::Nil), 0);
        assert_eq!(ret(text("x")), 1);
    }

    #[test]
    fn returns_are_joined_and_taken_apart() {
        let returned = |n: u64| map([("jid", Value::from(n)), ("return", Value::from(true))]);
        assert_eq!(join_returns(vec![]), None);
        let mut one = join_returns(vec![returned(1)]).unwrap();
        assert_eq!((one.clone(), split_returns(&mut one)), (returned(1), None));
        for ts in [None, Some(7)] {
            let mut second = returned(2);
            second.insert("ts", 1);
            let mut joined = join_returns(vec![returned(1), second, returned(3)]).unwrap();
            if let Some(ts) = ts {
                joined.insert("ts", ts);
            }
            let with_ts = |n| {
                let mut load = returned(n);
                ts.into_iter().for_each(|ts| load.insert("ts", ts));
                load
            };
            assert_eq!(split_returns(&mut joined).unwrap().unwrap(), [with_ts(1), with_ts(2), with_ts(3)]);
        }
    }

    #[test]
    fn odd_further_returns_are_refused() {
        let nested = map([("also", Value::Array(vec![]))]);
        for also in [
            Value::Nil,
            Value::Array(vec![Value::from("x")]),
            Value::Array(vec![nested]),
            Value::Array(vec![map([("jid", "x")]); MAX_RETURNS]),
        ] {
            let mut load = map([("jid", Value::from(JID)), ("also", also.clone())]);
            assert!(split_returns(&mut load).unwrap().is_err(), "{also}");
        }
        let mut most = map([("also", Value::Array(vec![map([("jid", "x")]); MAX_RETURNS - 1]))]);
        assert_eq!(split_returns(&mut most).unwrap().unwrap().len(), MAX_RETURNS);
    }
}
