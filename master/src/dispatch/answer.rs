//! The answers to `publish` requests (§7.2).

use brine_protocol::job::{PublishRequest, refusal_event};
use brine_protocol::value::{Value, map};

use super::{Dispatcher, Published, Rejection, audit_line};
use crate::access::{Denied, Principal};
use crate::fault::Fault;
use crate::refusals::Who;

impl Dispatcher {
    /// Answers a request whose caller was refused; `load` is the decoded part of it.
    pub(crate) fn refuse(&self, load: Value, denied: &Denied) -> Value {
        if denied.told {
            self.tell(refusal_event(load, &denied.message));
        }
        error("AuthenticationError", "Authentication error occurred.")
    }

    /// Answers the request of an identified caller.
    pub(crate) async fn answer(&self, load: Value, caller: &Principal) -> Result<Value, Fault> {
        let mut request = PublishRequest::parse(load)?;
        let name = caller.name();
        if self.access.is_blocked(caller, request.user(), &request.calls()) {
            let why = format!("publisher_acl_blacklist blocks a job of {name}");
            return Ok(self.not_allowed(request, caller, &why));
        }
        request.set_user(name);
        let failed = |why: String| map([("error", format!("The job was not published: {why}"))]);
        Ok(match self.submit(&request, caller).await? {
            Ok(published) => accepted(published),
            Err(Rejection::NotAllowed) => {
                let why = format!("{name} may not run {} on all of the target", request.fun());
                self.not_allowed(request, caller, &why)
            }
            Err(Rejection::Nobody(why)) => unresolved(&request, why.map(|why| why.to_string())),
            Err(Rejection::NotAudited(why)) => failed(why.to_owned()),
            Err(Rejection::BadJid) => map([("error", "Master failed to assign jid")]),
            // The full error: the caller has proved that it may read the master's own files.
            Err(Rejection::NotStored(error)) => {
                tracing::error!("a job was not published: {error}");
                failed(error.to_string())
            }
        })
    }

    /// Refuses a request. The caller gets a general text; the bus and the audit log get the details, without secrets.
    fn not_allowed(&self, request: PublishRequest, caller: &Principal, why: &str) -> Value {
        if let Some(line) = audit_line("refused", &request, caller) {
            self.audit.note(line.put("why", why));
        }
        if self.refusals.log(Who::User(caller.name()), &format!("a publish request was refused: {why}")) {
            self.tell(request.into_refusal_event(why));
        }
        error("AuthorizationError", "Authorization error occurred.")
    }

    /// Fires the event of a refusal. The tag has no jid, unlike in Salt: a client that waits for the job would take the
    /// event for the job's end, and any stranger could name another user's job.
    fn tell(&self, refusal: Option<Value>) {
        if let Some(data) = refusal {
            self.bus.fire("salt/job/error", data);
        }
    }
}

fn accepted(published: Published) -> Value {
    let Published { jid, minions, missing } = published;
    let load = map([
        ("jid", Value::from(jid)),
        ("minions", Value::Array(minions.into_iter().map(Value::from).collect())),
        ("missing", Value::Array(missing.into_iter().map(Value::from).collect())),
    ]);
    map([("enc", Value::from("clear")), ("load", load)])
}

fn unresolved(request: &PublishRequest, why: Option<String>) -> Value {
    let error = format!("Master could not resolve minions for target {}", request.tgt_text());
    // `why` is not a field of Salt's; Salt's clients read neither field.
    let why = why.map(|why| ("why", Value::from(why)));
    let load = [("jid", Value::Nil), ("minions", Value::Array(Vec::new())), ("error", Value::from(error))];
    map([("enc", Value::from("clear")), ("load", map(load.into_iter().chain(why)))])
}

fn error(name: &'static str, message: &'static str) -> Value {
    map([("error", map([("name", name), ("message", message)]))])
}
