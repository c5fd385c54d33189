//! The door: who asks, and if that is nobody, a line in the log, an event and a line in the audit log that say who tried, and no secret.

use brine_protocol::value::{Value, ValueExt, map};

use super::{Asked, Caller, Denied};
use crate::audit::Record;
use crate::master::Master;
use crate::refusals::{Stranger, Who};

/// The event of a log-in, token or key that was wrong.
const EVENT: &str = "brine/refused/login";

/// Who asks for `client` (`publish`, `runner`, `wheel`), as [`super::Access::identify`] finds.
pub(crate) async fn admit(master: &Master, asked: &Asked<'_>, client: &'static str) -> Result<Caller, Denied> {
    let mut found = master.access.identify(asked).await;
    if let Err(denied) = &mut found {
        denied.told = report(master, asked, client, denied);
    }
    found
}

/// Answers `mk_token` (§7.3): an empty text for whoever is not let in, as Salt does.
pub(crate) async fn mk_token(master: &Master, asked: &Asked<'_>) -> Value {
    let refused = Value::from("");
    let (data, caller) = match master.access.mint(asked).await {
        Ok(minted) => minted,
        Err(denied) => {
            report(master, asked, "mk_token", &denied);
            return refused;
        }
    };
    let record = Record::new("mk_token", "allowed").by(&caller);
    let record = record.put("eauth", data.get("eauth").cloned().unwrap_or(Value::Nil));
    match master.audit.write(record.put("expire", data.get("expire").cloned().unwrap_or(Value::Nil))) {
        Ok(()) => data,
        // It stays, unknown to anybody, until it expires.
        Err(_) => refused,
    }
}

fn report(master: &Master, asked: &Asked<'_>, client: &'static str, denied: &Denied) -> bool {
    let (load, from) = (asked.load, master.access.origin(asked));
    let given = |key: &str| asked.given(key).is_some();
    let text = |key: &str| load.get_text(key).map(super::shown).unwrap_or_default();
    // Whom it says it is: of a token only the token could tell.
    let (method, user, system) = match (given("token"), given("eauth")) {
        (true, _) => ("token", String::new(), String::new()),
        (false, true) => ("eauth", text("username"), text("eauth")),
        (false, false) => ("key", text("user"), String::new()),
    };
    let mut said = denied.message.clone();
    if let Some(why) = denied.why {
        said = format!("{said} {why}");
    }
    let data = map([
        ("client", client),
        ("method", method),
        ("user", &user),
        ("eauth", &system),
        ("address", &from.to_string()),
        ("error", &said),
    ]);
    let kind = if from == super::From::Here { Stranger::LocalLogin } else { Stranger::Login };
    let told = master.refusals.log(Who::Stranger(kind), &format!("a {client} request from {from} was refused: {said}"));
    if told {
        master.bus.fire(EVENT, data);
    }
    let record = Record::new("login", "refused").whose(&user, method, from.to_string());
    master.audit.stranger(record.put("eauth", system).put("client", client).put("why", said));
    told
}
