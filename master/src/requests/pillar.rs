//! `_pillar` (§6.4): answers with the minion's own pillar, signed and encrypted for it, and writes grains and pillar to
//! the data cache, for targeting and for Python's tools.

use std::path::PathBuf;
use std::sync::Arc;

use brine_protocol::crypticle::Crypticle;
use brine_protocol::ids::MinionId;
use brine_protocol::msgpack;
use brine_protocol::request::{Request, seal_pillar_reply, seal_reply};
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use crate::bus::Bus;
use crate::fault::Fault;
use crate::files;
use crate::keys::MinionKey;
use crate::lanes::Turn;
use crate::minion_data::MinionDataOpts;
use crate::pillar::{Caching, Pillars, Subject};
use crate::private_ops::PrivatePool;
use crate::quotas::QuotaKind;
use crate::refusals::{Refusals, Who};
use crate::sandbox_reports::SandboxReports;
use crate::throttle::Throttle;

/// Largest size in bytes of a minion's grains in the data cache.
const GRAINS_BYTES_MAX: usize = 4 << 20;

/// Answers requests for pillar.
pub(crate) struct PillarRequests {
    pub(crate) pillars: Arc<Pillars>,
    pub(crate) opts: MinionDataOpts,
    pub(crate) cachedir: PathBuf,
    pub(crate) private: PrivatePool,
    pub(crate) reports: Arc<SandboxReports>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) bus: Bus,
}

impl PillarRequests {
    pub(super) async fn answer(
        &self,
        request: Request,
        key: &MinionKey,
        session: &Crypticle,
        turn: &mut Turn,
    ) -> Result<Vec<u8>, Fault> {
        let Some(minion) = key.public.clone() else {
            return Ok(seal_reply(session, &empty_map(), request.nonce.as_deref()));
        };
        // It waits for other pillars.
        turn.give_back();
        let pillar = self.pillar(&request.id, &request.load).await;
        self.keep_report(&request.id, &request.load);
        let reply =
            move |ops: &dyn brine_protocol::keys::PrivateOps| seal_pillar_reply(&pillar, &request, &minion, ops);
        Ok(self.private.run(reply).await?)
    }

    /// Compiles the pillar of a minion, and keeps what it says of itself.
    async fn pillar(&self, id: &MinionId, load: &Value) -> Value {
        let dict = |name: &str| load.get(name).filter(|value| matches!(value, Value::Map(_))).cloned();
        let text = |name: &str| load.get_text(name).map(str::to_owned);
        let grains = dict("grains").unwrap_or_else(empty_map);
        let packed = msgpack::encode_disk(&grains);
        if packed.len() > GRAINS_BYTES_MAX {
            let why = format!("its grains have {} bytes, the limit is {GRAINS_BYTES_MAX}", packed.len());
            self.refuse(id, &why);
            return crate::pillar::failed(id);
        }
        let subject = Subject {
            id: id.clone(),
            grains,
            saltenv: text("saltenv").or_else(|| text("env")),
            pillarenv: text("pillarenv"),
            given: dict("pillar_override").unwrap_or_else(empty_map),
        };
        // Targets see what the minion has at all times: not what one job was given, and no other environment's.
        let is_usual = subject.pillarenv.is_none() && subject.given.entries().is_none_or(<[_]>::is_empty);
        let renewed = load.get("clean_cache").is_some_and(ValueExt::truthy);
        let caching = if renewed { Caching::Renewed } else { Caching::On };
        let answer = self.pillars.compile(subject, caching).await;
        self.cache(id, packed, (is_usual && answer.is_whole).then_some(&answer.pillar)).await;
        answer.pillar
    }

    /// Keeps what the minion says of its modules. Python's minions say nothing, and `salt-call` of a host may say it too.
    fn keep_report(&self, id: &MinionId, load: &Value) {
        let Some(report) = load.get("sandbox").filter(|report| matches!(report, Value::Map(_))) else { return };
        if let Err(why) = self.reports.keep(id, report) {
            let said = format!("what {id} reports of its modules is not kept: {why}");
            self.refusals.log(Who::Minion(id), &said);
        }
    }

    /// Says why grains are not kept.
    fn refuse(&self, id: &MinionId, why: &str) {
        let data = map([("id", id.as_str()), ("error", why)]);
        let tag = format!("brine/refused/grains/{id}");
        self.refusals.tell(Who::Minion(id), &format!("the grains of {id} are not kept: {why}"), tag, data);
    }

    /// Keeps grains and pillar for targets.
    async fn cache(&self, id: &MinionId, grains: Vec<u8>, pillar: Option<&Value>) {
        if !self.opts.keep {
            return;
        }
        // A refusal does not change the answer, because the minion would take an empty answer for its pillar.
        if !self.throttle.admit_now(id, "grains", QuotaKind::Other, (1, grains.len() as u64)) {
            return;
        }
        let pillar = pillar.map(msgpack::encode_disk);
        let cachedir = self.cachedir.clone();
        let name = format!("{id}.p");
        let write = move || {
            for (bank, content) in [("grains", Some(grains)), ("pillar", pillar)] {
                let Some(content) = content else { continue };
                let dir = cachedir.join(bank);
                files::make_private_dir(&dir)?;
                files::write_atomic(&dir.join(&name), &content, 0o600)?;
            }
            std::io::Result::Ok(())
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) if self.opts.events => {
                self.bus.fire(format!("minion/refresh/{id}"), map([("Minion data cache refresh", id.as_str())]));
            }
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(e)) => self.refuse(id, &e.to_string()),
        }
    }
}
