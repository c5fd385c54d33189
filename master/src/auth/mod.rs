//! Authentication (§3): decides which minions may work with this master, and signs the reply.

mod autosign;
mod gate;
mod opts;

use std::sync::Arc;

use brine_protocol::auth::{Accepted, AuthRefusal, AuthRequest, resumed};
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyError, PublicKey};
use brine_protocol::value::{Value, ValueExt as _, map};

pub(crate) use gate::{Gate, Verdict};
pub(crate) use opts::GateOpts;

use crate::audit::{Audit, AuditLine};
use crate::bus::Bus;
use crate::fault::Fault;
use crate::keys::{MasterKey, MinionKey, MinionKeys};
use crate::private_ops::PrivatePool;
use crate::publisher::CurrentKey;
use crate::refusals::{Refusals, Stranger, Who};
use crate::sessions::{MinionSession, Sessions};

/// Answers `_auth` requests.
pub(crate) struct Authenticator {
    pub(crate) gate: Arc<Gate>,
    pub(crate) keys: Arc<MinionKeys>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) private: PrivatePool,
    /// The key that signs the master's key (`master_sign_pubkey`).
    pub(crate) sign_key: Option<MasterKey>,
    pub(crate) publish_key: CurrentKey,
    /// The bound publish port, which the reply contains.
    pub(crate) publish_port: u16,
    pub(crate) audit: Arc<Audit>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) bus: Bus,
    /// The settings of the start. The live ones are in the gate.
    pub(crate) opts: GateOpts,
}

impl Authenticator {
    /// Returns the id of a request with the accepted key of that id. Such requests wait in a queue without strangers.
    pub(crate) fn known(&self, load: &Value) -> Option<MinionId> {
        let id = load.get_text("id").and_then(|id| MinionId::try_from(id).ok())?;
        self.gate.is_accepted(&id, load.get_text("pub")?).then_some(id)
    }

    /// Answers an `_auth` request from `origin`.
    pub(crate) async fn answer(&self, load: &Value, version: u64, origin: Option<u64>) -> Result<Vec<u8>, Fault> {
        let request = match AuthRequest::parse(load, version, self.opts.minimum_auth_version) {
            Ok(request) => request,
            Err(AuthRefusal::Malformed(why)) => return Err(Fault::new(format!("a malformed auth request: {why}"))),
            Err(refusal) => {
                self.refusals.log(Who::Stranger(Stranger::Auth), &format!("an auth request was refused: {refusal}"));
                return Ok(self.private.run(move |ops| refusal.reply(ops)).await?);
            }
        };
        // A blocking task, because strangers must not hold up the runtime's threads with slow file access.
        let (gate, live) = (Arc::clone(&self.gate), self.sessions.live());
        let decide = move || gate.decide(&request, origin, live).map(|verdict| (verdict, request));
        let decided = tokio::task::spawn_blocking(decide).await.map_err(|_| Fault::new("deciding on a key failed"))?;
        let (verdict, request) = decided?;
        self.report(&request, &verdict);
        let request = Arc::new(request);
        Ok(match verdict {
            Verdict::Accept(key, _) => self.accept(request, key).await?,
            Verdict::Pending(_) => self.private.run(move |ops| request.pending(ops)).await?,
            Verdict::Full => self.private.run(move |ops| request.full(ops)).await?,
            Verdict::Rejected | Verdict::Denied | Verdict::Unusable(_) => {
                self.private.run(move |ops| request.rejected(ops)).await?
            }
        })
    }

    async fn accept(&self, request: Arc<AuthRequest>, key: PublicKey) -> Result<Vec<u8>, Fault> {
        // A session is made only after acceptance, so nothing is stored for strangers.
        let key_stored = self.keys.stored_at(&request.id).ok_or_else(|| Fault::new("the key was deleted meanwhile"))?;
        let session =
            self.sessions.for_auth(&request.id, key_stored, request.seals).map_err(|e| Fault::new(e.to_string()))?;
        let publish_key = self.publish_key.current();
        let (publish_port, offer) = (self.publish_port, self.publish_key.offer().cloned());
        let sign_key = self.sign_key.clone();
        debug_assert_eq!(request.key().ok().as_ref().map(PublicKey::clean_pem), Some(key.clean_pem()));
        let reply = move |ops: &dyn brine_protocol::keys::PrivateOps| -> Result<Vec<u8>, KeyError> {
            let accepted = Accepted {
                publish_key: &publish_key.key,
                publish_key_sig: &publish_key.signature,
                session_key: &session.key,
                publish_port,
                sign_key: sign_key.as_ref().map(|key| &**key.ops()),
                offer: offer.as_ref(),
                run: session.run(),
            };
            request.accepted(ops, &accepted)
        };
        Ok(self.private.run(reply).await?)
    }

    /// Answers a minion that asks for the present keys under its session (§3.10). None if it has to authenticate.
    pub(crate) fn resume(&self, id: &MinionId, key: &MinionKey, session: &MinionSession) -> Option<Value> {
        let offer = self.publish_key.offer()?;
        // Whoever had another key under this id may know the session.
        if !session.is_of_key(self.keys.stored_at(id)?) {
            return None;
        }
        if self.refusals.admits(Who::KeyOf(id)) {
            tracing::info!("{id} goes on with its session");
            self.fire(id, &key.pem, (true, "accept"), None);
        }
        let current = self.publish_key.current();
        Some(resumed(&current.key, current.epoch.as_ref()?, self.publish_port, offer, session.run()))
    }

    fn report(&self, request: &AuthRequest, verdict: &Verdict) {
        let id = &request.id;
        let (result, act) = match verdict {
            Verdict::Accept(..) => (true, "accept"),
            Verdict::Pending(_) => (true, "pend"),
            Verdict::Rejected => (false, "reject"),
            Verdict::Denied => (false, "denied"),
            Verdict::Full => (false, "full"),
            Verdict::Unusable(_) => (false, "error"),
        };
        if let Verdict::Accept(_, Some(by)) = verdict {
            let record = AuditLine::new("key", "succeeded").whose("", by, "").put("act", "accepted");
            self.audit.note(record.put("id", id.as_str()));
        }
        // Anybody can cause these refusals at network speed and under any id.
        let who = match verdict {
            Verdict::Accept(_, None) => Who::KeyOf(id),
            Verdict::Accept(_, Some(_)) | Verdict::Pending(_) => Who::Stranger(Stranger::NewKey),
            _ => Who::Stranger(Stranger::Auth),
        };
        if !self.refusals.admits(who) {
            return;
        }
        match verdict {
            Verdict::Accept(..) => tracing::info!("authentication of {id} accepted"),
            Verdict::Pending(gone) => {
                tracing::info!("the key of {id} waits to be accepted: salt-key -a {id}");
                for id in gone {
                    let why =
                        "there are more than max_pending_keys or max_pending_keys_per_address, and it waited longest";
                    tracing::warn!("the key of {id} does not wait any more: {why}");
                    self.bus.fire("brine/refused/pending", map([("id", id.as_str()), ("error", why)]));
                }
            }
            Verdict::Rejected => tracing::warn!("authentication of {id} refused: its key is rejected"),
            Verdict::Denied => tracing::error!(
                "authentication of {id} refused: another key is stored for this id. If the host was reinstalled, remove the old one with salt-key -d {id}"
            ),
            Verdict::Full => tracing::error!("authentication of {id} refused: there are max_minions minions already"),
            Verdict::Unusable(why) => tracing::warn!("authentication of {id} refused: {why}"),
        }
        self.fire(id, &request.pub_pem, (result, act), request.autosign_grains.as_ref());
    }

    /// Fires the event of an authentication.
    fn fire(&self, id: &MinionId, pub_pem: &str, (result, act): (bool, &str), autosign_grains: Option<&Value>) {
        if !self.opts.auth_events {
            return;
        }
        let mut data = map([
            ("result", Value::from(result)),
            ("act", Value::from(act)),
            ("id", Value::from(id.as_str())),
            ("pub", Value::from(pub_pem)),
        ]);
        // A stranger chose these grains, so they are in the event only if the operator configured that.
        if self.opts.auth_events_autosign_grains.iter().any(|known| known == act)
            && let Some(grains) = autosign_grains.filter(|grains| grains.truthy())
        {
            data.insert("autosign_grains", grains.clone());
        }
        self.bus.fire("salt/auth", data);
    }
}
