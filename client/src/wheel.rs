//! `WheelClient`: calls a wheel function in the master (§7.3).

use std::time::Duration;

use brine_protocol::value::{self, Value, ValueExt};

use crate::{ClientError, ClientOpts, LogIn, request};

/// The time for the master's reply: it may check a password, which is slow on purpose, and then reads all keys.
const ANSWER: Duration = Duration::from_secs(60);

/// The request for a wheel function, with the fields of the log-in.
pub fn load<K: Into<Value>>(fun: &str, args: Vec<Value>, kwargs: Vec<(K, Value)>, log_in: &LogIn) -> Value {
    let mut load = value::map([
        ("cmd", Value::from("wheel")),
        ("fun", Value::from(fun)),
        ("arg", Value::Array(args)),
        ("kwarg", value::map(kwargs)),
    ]);
    for (name, item) in log_in.fields() {
        load.insert(name, item);
    }
    load
}

/// The client.
#[derive(Debug)]
pub struct WheelClient {
    opts: ClientOpts,
    log_in: LogIn,
}

impl WheelClient {
    /// A client with this log-in. It connects on the first request.
    pub const fn logged_in(opts: ClientOpts, log_in: LogIn) -> Self {
        Self { opts, log_in }
    }

    /// Calls a function and returns its result.
    ///
    /// # Errors
    /// When the master cannot be reached or refuses, or when the function fails.
    pub async fn cmd(&self, fun: &str, kwargs: Vec<(&str, Value)>) -> Result<Value, ClientError> {
        let load = load(fun, Vec::new(), kwargs, &self.log_in);
        let reply = request::clear(&self.opts, load, ANSWER, None).await?;
        let data = reply.get("data").ok_or_else(|| ClientError::Reply("it has no data".to_owned()))?;
        let returned = data.get("return").cloned().unwrap_or(Value::Nil);
        match data.get_bool("success") {
            Some(false) => Err(ClientError::Refused(returned.python_str())),
            _ => Ok(returned),
        }
    }
}
