//! Runs the calls of a request, one after the other.

use std::time::Duration;

use brine_protocol::value::{self, Value, ValueExt};

use crate::batch;
use crate::chunk::Call;
use crate::job::local;
use crate::link::{Caller, Link, LinkError};
use crate::problem::Problem;

/// Runs a call. Returns its result; of a batch, that of each minion. `longest` bounds the wait for a runner
/// or the wheel that says no `timeout` itself, as in Salt.
///
/// # Errors
/// When the master refuses, or its answer does not come.
pub async fn run(link: &dyn Link, caller: &Caller, call: Call, longest: Duration) -> Result<Vec<Value>, Problem> {
    match call {
        Call::Batch { job, options, returns } => batch::batch(link, caller, job, options, returns).await,
        call => one(link, caller, call, longest).await.map(|result| vec![result]),
    }
}

async fn one(link: &dyn Link, caller: &Caller, call: Call, longest: Duration) -> Result<Value, Problem> {
    match call {
        Call::Batch { .. } => Err(Problem::bad("A batch has more than one result")),
        Call::Subset { job, count, returns } => batch::subset(link, caller, job, count, returns).await,
        Call::Local { job, wait: true, returns } => local(link, caller, &job, returns).await,
        Call::Local { job, wait: false, .. } => match link.publish(caller, &job).await {
            Ok(published) => {
                Ok(value::map([("jid", Value::from(published.jid)), ("minions", value::list(published.minions))]))
            }
            Err(LinkError::NoMatch) => Ok(value::empty_map()),
            Err(error) => Err(error.into()),
        },
        Call::Master { wheel: true, wait, fun, args, kwargs, timeout, .. } => {
            let reply = link.wheel(caller, &fun, args, kwargs);
            let reply = tokio::time::timeout(timeout.unwrap_or(longest), reply).await;
            let mut reply = reply.map_err(|_| LinkError::Late)??;
            // The event has the arguments; Salt's answer has not.
            if let Some(data) = reply.get_mut("data") {
                data.remove("fun_args");
            }
            if !wait {
                let jid = reply.traverse("data:jid", ":").cloned().unwrap_or(Value::Nil);
                reply.remove("data");
                reply.insert("jid", jid);
            }
            Ok(reply)
        }
        Call::Master { wheel: false, wait: false, fun, args, kwargs, .. } => {
            let started = link.runner(caller, &fun, args, kwargs).await?;
            Ok(value::map([("tag", started.tag), ("jid", started.jid)]))
        }
        Call::Master { wheel: false, wait: true, fun, args, kwargs, timeout, full_return } => {
            let result = runner(link, caller, &fun, args, kwargs, full_return);
            tokio::time::timeout(timeout.unwrap_or(longest), result).await.map_err(|_| LinkError::Late)?
        }
    }
}

async fn runner(
    link: &dyn Link,
    caller: &Caller,
    fun: &str,
    args: Vec<Value>,
    kwargs: Vec<(String, Value)>,
    full_return: bool,
) -> Result<Value, Problem> {
    let mut events = link.follow();
    let started = link.runner(caller, fun, args, kwargs).await?;
    let tag = format!("{}/ret", started.tag);
    events.narrow(&tag);
    loop {
        let event = events.next().await.ok_or(LinkError::Late)?;
        if event.tag == tag {
            return Ok(match full_return {
                true => value::map([("data", event.data.clone()), ("tag", Value::from(event.tag.as_str()))]),
                // Whole, also of a runner that chooses its outputter: `{"outputter": …, "data": …}`, as in Salt.
                false => event.data.get("return").cloned().unwrap_or(Value::Nil),
            });
        }
    }
}
