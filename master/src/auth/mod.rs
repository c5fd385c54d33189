//! Authentication (§3): who may work with this master, and the signed reply that says so.

mod autosign;
mod gate;

use std::sync::Arc;

use brine_protocol::auth::{Accepted, AuthRefusal, AuthRequest};
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyError, PublicKey};
use brine_protocol::value::{Value, ValueExt as _, map};

pub(crate) use gate::{Gate, Verdict};

use crate::audit::Record;
use crate::master::Master;
use crate::refusals::{Stranger, Who};
use crate::requests::Fault;

/// The id of a request that brings the key that is accepted for it. It waits in line with its like then, and not behind strangers.
pub(crate) fn known(master: &Master, load: &Value) -> Option<MinionId> {
    let id = load.get_text("id").and_then(|id| MinionId::try_from(id).ok())?;
    master.gate.is_accepted(&id, load.get_text("pub")?).then_some(id)
}

/// Answers an `_auth` request that came from `origin`.
pub(crate) async fn answer(
    master: &Arc<Master>,
    load: &Value,
    version: u64,
    origin: Option<u64>,
) -> Result<Vec<u8>, Fault> {
    let request = match AuthRequest::parse(load, version, master.opts.auth.minimum_auth_version) {
        Ok(request) => request,
        Err(AuthRefusal::Malformed(why)) => return Err(Fault::new(format!("a malformed auth request: {why}"))),
        Err(refusal) => {
            master.refusals.log(Who::Stranger(Stranger::Auth), &format!("an auth request was refused: {refusal}"));
            return Ok(master.private.run(move |ops| refusal.reply(ops)).await?);
        }
    };
    // Files: strangers who make that take long must not hold the threads that others need.
    let deciding = Arc::clone(master);
    let decide =
        move || deciding.gate.decide(&request, origin, deciding.sessions.live()).map(|verdict| (verdict, request));
    let decided = tokio::task::spawn_blocking(decide).await.map_err(|_| Fault::new("deciding on a key failed"))?;
    let (verdict, request) = decided?;
    report(master, &request, &verdict);
    let request = Arc::new(request);
    Ok(match verdict {
        Verdict::Accept(key, _) => accept(master, request, key).await?,
        Verdict::Pending(_) => master.private.run(move |ops| request.pending(ops)).await?,
        Verdict::Full => master.private.run(move |ops| request.full(ops)).await?,
        Verdict::Rejected | Verdict::Denied | Verdict::Unusable(_) => {
            master.private.run(move |ops| request.rejected(ops)).await?
        }
    })
}

async fn accept(master: &Master, request: Arc<AuthRequest>, key: PublicKey) -> Result<Vec<u8>, Fault> {
    // Only now is the id one that an operator knows: nothing is kept for strangers.
    let key_stored = master.keys.stored_at(&request.id).ok_or_else(|| Fault::new("the key was deleted meanwhile"))?;
    let session = master.sessions.for_auth(&request.id, key_stored).map_err(|e| Fault::new(e.to_string()))?;
    let publish_key = master.publish_key.current();
    let publish_port = master.publish_port;
    let sign_key = master.sign_key.clone();
    debug_assert_eq!(request.key().ok().as_ref().map(PublicKey::clean_pem), Some(key.clean_pem()));
    let reply = move |ops: &dyn brine_protocol::keys::PrivateOps| -> Result<Vec<u8>, KeyError> {
        let accepted = Accepted {
            publish_key: &publish_key.key,
            publish_key_sig: &publish_key.signature,
            session_key: &session.key,
            publish_port,
            sign_key: sign_key.as_ref().map(|key| &**key.ops()),
        };
        request.accepted(ops, &accepted)
    };
    Ok(master.private.run(reply).await?)
}

fn report(master: &Master, request: &AuthRequest, verdict: &Verdict) {
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
        let record = Record::new("key", "succeeded").whose("", by, "").put("act", "accepted");
        master.audit.note(record.put("id", id.as_str()));
    }
    // Anybody can cause these as fast as the network goes, under any id.
    let who = match verdict {
        Verdict::Accept(_, None) => Who::KeyOf(id),
        Verdict::Accept(_, Some(_)) | Verdict::Pending(_) => Who::Stranger(Stranger::NewKey),
        _ => Who::Stranger(Stranger::Auth),
    };
    if !master.refusals.admits(who) {
        return;
    }
    match verdict {
        Verdict::Accept(..) => tracing::info!("authentication of {id} accepted"),
        Verdict::Pending(gone) => {
            tracing::info!("the key of {id} waits to be accepted: salt-key -a {id}");
            for id in gone {
                let why = "there are more than max_pending_keys or max_pending_keys_per_address, and it waited longest";
                tracing::warn!("the key of {id} does not wait any more: {why}");
                master.bus.fire("brine/refused/pending", map([("id", id.as_str()), ("error", why)]));
            }
        }
        Verdict::Rejected => tracing::warn!("authentication of {id} refused: its key is rejected"),
        Verdict::Denied => tracing::error!(
            "authentication of {id} refused: another key is stored for this id. If the host was reinstalled, remove the old one with salt-key -d {id}"
        ),
        Verdict::Full => tracing::error!("authentication of {id} refused: there are max_minions minions already"),
        Verdict::Unusable(why) => tracing::warn!("authentication of {id} refused: {why}"),
    }
    if master.opts.auth.auth_events {
        let mut data = map([
            ("result", Value::from(result)),
            ("act", Value::from(act)),
            ("id", Value::from(id.as_str())),
            ("pub", Value::from(request.pub_pem.as_str())),
        ]);
        // A stranger chose them, within the bounds of its request: so only who wants them gets them.
        if master.opts.auth.auth_events_autosign_grains.iter().any(|known| known == act)
            && let Some(grains) = request.autosign_grains.as_ref().filter(|grains| grains.truthy())
        {
            data.insert("autosign_grains", grains.clone());
        }
        master.bus.fire("salt/auth", data);
    }
}
