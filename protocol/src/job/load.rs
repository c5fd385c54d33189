//! A published job as a minion reads it (§5.2).

use super::JobError;
use crate::ids::Jid;
use crate::value::{Value, ValueExt};

/// One function of a job with its arguments as they were published.
#[derive(Debug, Clone, PartialEq)]
pub struct FunCall {
    /// `module.function`.
    pub fun: String,
    /// The arguments; keywords are in a map with `__kwarg__`, see [`super::split_kwargs`].
    pub arg: Vec<Value>,
}

/// A published job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLoad {
    /// The functions: one, or several for a multi-function job.
    pub calls: Vec<FunCall>,
    /// Whether `fun` was a list: then `return`, `retcode` and `success` are maps.
    pub multi: bool,
    /// The target.
    pub tgt: Value,
    /// The type of the target; `glob` if it is missing.
    pub tgt_type: String,
    /// The job's id.
    pub jid: Jid,
    /// Returners, a comma list; usually empty.
    pub ret: String,
    /// The user who requested the job.
    pub user: String,
    /// The delimiter of grain and pillar targets.
    pub delimiter: String,
    /// Whether the minion sends a start event.
    pub start_event: bool,
    /// `metadata`, to be copied to the return.
    pub metadata: Option<Value>,
    /// The whole load.
    pub raw: Value,
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
}
