//! A job's load as it is published (§5.2) and its return (§6.2).

use crate::ids::{Jid, MinionId};
use crate::value::{self, Value, ValueExt};

/// One function of a job with its arguments as they were published.
#[derive(Debug, Clone, PartialEq)]
pub struct FunCall {
    /// `module.function`.
    pub fun: String,
    /// The arguments; keywords are in a map with `__kwarg__`, see [`split_kwargs`].
    pub arg: Vec<Value>,
}

/// A published job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLoad {
    /// The functions: one, or several for a multi-function job.
    pub calls: Vec<FunCall>,
    /// Whether `fun` was a list: then `return`, `retcode` and `success` are maps.
    pub multi: bool,
    /// Whom it is for.
    pub tgt: Value,
    /// How `tgt` is read; `glob` when missing.
    pub tgt_type: String,
    /// The job's id.
    pub jid: Jid,
    /// Returners, a comma list; usually empty.
    pub ret: String,
    /// Who asked for it.
    pub user: String,
    /// The delimiter of grain and pillar targets.
    pub delimiter: String,
    /// Whether a start event is wanted.
    pub start_event: bool,
    /// `metadata`, to be copied to the return.
    pub metadata: Option<Value>,
    /// The whole load.
    pub raw: Value,
}

/// Why a load is no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A field is missing or has the wrong type.
    #[error("the load has no usable {0:?}")]
    Field(&'static str),
    /// The jid is none.
    #[error(transparent)]
    Jid(#[from] crate::ids::IdError),
}

impl JobLoad {
    /// Reads a load.
    ///
    /// # Errors
    /// When tgt, jid, fun or arg is missing or of a wrong type (§5.3).
    pub fn parse(load: &Value) -> Result<Self, JobError> {
        let jid = load.get("jid").ok_or(JobError::Field("jid"))?;
        let jid = Jid::try_from(jid)?;
        let arg = load.get_list("arg").ok_or(JobError::Field("arg"))?;
        let (calls, multi) = match load.get("fun") {
            Some(Value::String(fun)) => {
                let fun = fun.as_str().ok_or(JobError::Field("fun"))?;
                (vec![FunCall { fun: fun.to_owned(), arg: arg.to_vec() }], false)
            }
            Some(Value::Array(funs)) => {
                let call = |(i, fun): (usize, &Value)| {
                    let fun = fun.text().ok_or(JobError::Field("fun"))?.to_owned();
                    let arg = match arg.get(i) {
                        None => Vec::new(),
                        Some(Value::Array(arg)) => arg.clone(),
                        Some(_) => return Err(JobError::Field("arg")),
                    };
                    Ok(FunCall { fun, arg })
                };
                (funs.iter().enumerate().map(call).collect::<Result<Vec<_>, _>>()?, true)
            }
            _ => return Err(JobError::Field("fun")),
        };
        if calls.is_empty() || calls.iter().any(|c| c.fun.is_empty()) {
            return Err(JobError::Field("fun"));
        }
        let text = |key: &str, default: &str| load.get_text(key).unwrap_or(default).to_owned();
        Ok(Self {
            calls,
            multi,
            tgt: load.get("tgt").cloned().ok_or(JobError::Field("tgt"))?,
            tgt_type: text("tgt_type", "glob"),
            jid,
            ret: text("ret", ""),
            user: text("user", ""),
            delimiter: text("delimiter", ":"),
            start_event: load.get("start_event").is_some_and(ValueExt::truthy),
            metadata: load.get("metadata").filter(|m| !m.is_nil()).cloned(),
            raw: load.clone(),
        })
    }

    /// The name of the function, or the names with commas between.
    pub fn fun(&self) -> String {
        self.calls.iter().map(|c| c.fun.as_str()).collect::<Vec<_>>().join(",")
    }
}

/// Separates keyword arguments (§5.2): maps with `__kwarg__: True` and texts `name=value`. Later ones win.
pub fn split_kwargs(arg: &[Value]) -> (Vec<Value>, Vec<(String, Value)>) {
    let (mut args, mut kwargs) = (Vec::new(), Vec::new());
    for item in arg {
        if let Value::Map(entries) = item
            && item.get("__kwarg__") == Some(&Value::Boolean(true))
        {
            for (key, value) in entries {
                if let Some(key) = key.text().filter(|key| *key != "__kwarg__") {
                    set(&mut kwargs, key, value.clone());
                }
            }
        } else if let Some((key, value)) = item.text().and_then(crate::args::parse_kwarg) {
            set(&mut kwargs, key, crate::args::yamlify(value));
        } else {
            args.push(item.clone());
        }
    }
    (args, kwargs)
}

/// Sets a keyword in its place, or appends it.
pub(crate) fn set(kwargs: &mut Vec<(String, Value)>, key: &str, value: Value) {
    match kwargs.iter_mut().find(|(k, _)| k == key) {
        Some((_, slot)) => *slot = value,
        None => kwargs.push((key.to_owned(), value)),
    }
}

/// The `arg` list of a call: positional arguments and, if there are any, the keyword map at the end.
pub fn join_kwargs(args: Vec<Value>, kwargs: Vec<(String, Value)>) -> Vec<Value> {
    crate::args::condition_input(args, kwargs)
}

/// What one minion returned for one job.
#[derive(Debug, Clone, PartialEq)]
pub struct Return {
    /// Who returned.
    pub id: MinionId,
    /// For which job; none for `req`, which asks the master to allocate one (`salt-call`).
    pub jid: Option<Jid>,
    /// The function, or the list of functions.
    pub fun: Value,
    /// The arguments as they were published.
    pub fun_args: Value,
    /// The value; a map of function to value for several.
    pub return_: Value,
    /// 0 when all went well; a map for several functions.
    pub retcode: Value,
    /// Whether it went well; a map for several functions; `salt-call` does not send it.
    pub success: Option<Value>,
    /// Who asked for the job.
    pub user: Option<String>,
    /// The outputter to show it with.
    pub out: Option<String>,
    /// `metadata` of the job.
    pub metadata: Option<Value>,
    /// What the job used, a map; Brine's addition, which Salt passes through.
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

    /// Reads a `_return` load (or the data of a `salt/job/<jid>/ret/<id>` event).
    ///
    /// # Errors
    /// When id, jid or return is missing or of a wrong type.
    pub fn parse(load: &Value) -> Result<Self, JobError> {
        let id = MinionId::try_from(load.get("id").ok_or(JobError::Field("id"))?)?;
        let jid = match load.get("jid").ok_or(JobError::Field("jid"))? {
            jid if jid.text() == Some("req") => None,
            jid => Some(Jid::try_from(jid)?),
        };
        let text = |key: &str| load.get_text(key).map(str::to_owned);
        let value = |key: &str| load.get(key).filter(|v| !v.is_nil()).cloned();
        Ok(Self {
            id,
            jid,
            fun: load.get("fun").cloned().unwrap_or(Value::Nil),
            fun_args: load.get("fun_args").cloned().unwrap_or_else(|| Value::Array(Vec::new())),
            return_: load.get("return").cloned().ok_or(JobError::Field("return"))?,
            retcode: load.get("retcode").cloned().unwrap_or_else(|| Value::from(0)),
            success: value("success"),
            user: text("user"),
            out: text("out"),
            metadata: value("metadata"),
            usage: value("usage"),
        })
    }

    /// The highest return code.
    pub fn worst_retcode(&self) -> i64 {
        match &self.retcode {
            Value::Map(entries) => entries.iter().filter_map(|(_, v)| v.as_i64()).max().unwrap_or(0),
            Value::Array(items) => items.iter().filter_map(Value::as_i64).max().unwrap_or(0),
            other => other.as_i64().unwrap_or_else(|| i64::from(other.truthy())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{list, map, text};

    fn load(fun: Value, arg: Value) -> Value {
        map([("fun", fun), ("arg", arg), ("tgt", text("*")), ("jid", text("20261120134740245008"))])
    }

    #[test]
    fn a_load_is_read_with_salts_defaults() {
        let job = JobLoad::parse(&load(text("test.ping"), list::<Value>([]))).unwrap();
        assert_eq!((job.fun().as_str(), job.tgt_type.as_str(), job.delimiter.as_str()), ("test.ping", "glob", ":"));
        assert!(!job.multi && !job.start_event);
    }

    #[test]
    fn several_functions_have_an_argument_list_each() {
        let arg = list([list([1]), list::<Value>([])]);
        let job = JobLoad::parse(&load(list(["a.b", "c.d"]), arg)).unwrap();
        assert!(job.multi);
        assert_eq!(job.fun(), "a.b,c.d");
        assert_eq!(job.calls[0].arg, [Value::from(1)]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let good = load(text("test.ping"), list::<Value>([]));
        for key in ["fun", "arg", "tgt", "jid"] {
            let mut bad = good.clone();
            bad.remove(key);
            assert!(JobLoad::parse(&bad).unwrap_err().to_string().contains(key));
        }
        for bad in [list::<Value>([]), text(""), Value::from(1), list([1])] {
            assert_eq!(JobLoad::parse(&load(bad, list::<Value>([]))), Err(JobError::Field("fun")));
        }
        let mut bad = good;
        bad.insert("jid", "../../etc");
        assert!(matches!(JobLoad::parse(&bad), Err(JobError::Jid(_))));
        assert!(JobLoad::parse(&Value::Nil).is_err());
    }

    #[test]
    fn keywords_are_taken_out_of_the_arguments() {
        let arg = [
            text("pos"),
            text("a=1"),
            text("x==y"),
            map([("__kwarg__", Value::from(true)), ("b", text("c=d")), ("a", Value::from(2))]),
            map([("b", 1)]),
            map([("__kwarg__", 1), ("c", 1)]),
        ];
        let (args, kwargs) = split_kwargs(&arg);
        assert_eq!(args, [text("pos"), text("x==y"), map([("b", 1)]), map([("__kwarg__", 1), ("c", 1)])]);
        assert_eq!(kwargs, [("a".to_owned(), Value::from(2)), ("b".to_owned(), text("c=d"))]);
        assert_eq!(split_kwargs(&join_kwargs(args.clone(), kwargs.clone())), (args, kwargs));
    }

    #[test]
    fn a_return_goes_there_and_back() {
        let mut ret = Return::new(
            MinionId::new("m1").unwrap(),
            Jid::new("20261120134740245008").unwrap(),
            "test.ping",
            vec![],
            Value::from(true),
            0,
        );
        ret.user = Some("root".to_owned());
        ret.out = Some("nested".to_owned());
        ret.usage = Some(map([("wall_us", 5)]));
        assert_eq!(Return::parse(&ret.to_load()), Ok(ret.clone()));
        ret.jid = None;
        assert_eq!(ret.to_load().get_text("jid"), Some("req"));
        assert_eq!(Return::parse(&ret.to_load()), Ok(ret));
    }

    #[test]
    fn the_worst_of_several_return_codes_counts() {
        let ret = |retcode: Value| {
            let load = map([("id", text("m")), ("jid", text("req")), ("return", Value::Nil), ("retcode", retcode)]);
            Return::parse(&load).unwrap().worst_retcode()
        };
        assert_eq!(ret(Value::from(2)), 2);
        assert_eq!(ret(map([("a", 0), ("b", 3)])), 3);
        assert_eq!(ret(list([0, 1])), 1);
        assert_eq!(ret(Value::Nil), 0);
        assert_eq!(ret(text("x")), 1);
    }
}
