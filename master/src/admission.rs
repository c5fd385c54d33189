//! Identifies the callers of clear requests. A refused caller leaves a line in the log, an event and a line in the
//! audit log, all without secrets.

use std::sync::Arc;

use brine_protocol::value::{Value, ValueExt, map};

use crate::access::{Access, Address, Claim, Denied, Principal, shown};
use crate::audit::{Audit, AuditLine};
use crate::bus::Bus;
use crate::refusals::{Refusals, Stranger, Who};

/// Tag of the event for a wrong log-in, token or key.
const EVENT: &str = "brine/refused/login";

/// Identifies callers.
pub(crate) struct Admission {
    pub(crate) access: Arc<Access>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) bus: Bus,
}

impl Admission {
    /// Identifies the caller of `client` (`publish`, `runner`, `wheel`, `end_token`) by [`Access::identify`], and reports a refusal.
    pub(crate) async fn admit(&self, claim: &Claim<'_>, client: &'static str) -> Result<Principal, Denied> {
        let mut found = self.access.identify(claim).await;
        if let Err(denied) = &mut found {
            denied.told = self.report(claim, client, denied);
        }
        found
    }

    /// Makes the token of `mk_token` (§7.3).
    pub(crate) async fn mk_token(&self, claim: &Claim<'_>) -> Result<Value, Denied> {
        let (data, principal) = match self.access.mint(claim).await {
            Ok(minted) => minted,
            Err(denied) => {
                self.report(claim, "mk_token", &denied);
                return Err(denied);
            }
        };
        let record = AuditLine::new("mk_token", "allowed").by(&principal);
        let record = record.put("eauth", data.get("eauth").cloned().unwrap_or(Value::Nil));
        // Without an audit line the caller does not get the token. The stored token stays unused until it expires.
        let written = self.audit.write(record.put("expire", data.get("expire").cloned().unwrap_or(Value::Nil)));
        written.map_err(|why| Denied::invocation(why.to_owned()))?;
        Ok(data)
    }

    /// Answers `end_token`, the log-out of a caller that [`Admission::admit`] identified by this very token.
    pub(crate) fn end_token(&self, load: &Value, caller: &Principal) -> Value {
        // Without a token, the caller was identified by its key or a password.
        let ended = match load.get_text("token") {
            None => false,
            Some(text) => self.access.end_token(text).unwrap_or_else(|error| {
                tracing::error!("a token cannot be removed: {error}");
                false
            }),
        };
        self.audit.note(AuditLine::new("end_token", if ended { "allowed" } else { "refused" }).by(caller));
        map([("ended", ended)])
    }

    fn report(&self, claim: &Claim<'_>, client: &'static str, denied: &Denied) -> bool {
        let (load, from) = (claim.load, self.access.address(claim));
        let given = |key: &str| claim.given(key).is_some();
        let text = |key: &str| load.get_text(key).map(shown).unwrap_or_default();
        // Reports the user that the caller claims to be. A token that was refused names no user.
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
        let kind = if from == Address::Here { Stranger::LocalLogin } else { Stranger::Login };
        let told =
            self.refusals.log(Who::Stranger(kind), &format!("a {client} request from {from} was refused: {said}"));
        if told {
            self.bus.fire(EVENT, data);
        }
        let record = AuditLine::new("login", "refused").whose(&user, method, from.to_string());
        self.audit.stranger(record.put("eauth", system).put("client", client).put("why", said));
        told
    }
}
