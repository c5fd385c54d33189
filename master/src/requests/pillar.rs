//! `_pillar` (§6.4): answers with an empty pillar, signed and encrypted for the minion, and writes the minion's grains
//! to the data cache, for targeting and for Python's tools.

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
use crate::minion_data::MinionDataOpts;
use crate::private_ops::PrivatePool;
use crate::quotas::QuotaKind;
use crate::refusals::{Refusals, Who};
use crate::sandbox_reports::SandboxReports;
use crate::throttle::Throttle;

/// Largest size in bytes of a minion's grains in the data cache.
const GRAINS_BYTES_MAX: usize = 4 << 20;

/// Answers requests for pillar.
pub(crate) struct Pillars {
    pub(crate) opts: MinionDataOpts,
    pub(crate) cachedir: PathBuf,
    pub(crate) private: PrivatePool,
    pub(crate) reports: Arc<SandboxReports>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) bus: Bus,
}

impl Pillars {
    pub(super) async fn answer(
        &self,
        request: Request,
        key: &MinionKey,
        session: &Crypticle,
    ) -> Result<Vec<u8>, Fault> {
        let Some(minion) = key.public.clone() else {
            return Ok(seal_reply(session, &empty_map(), request.nonce.as_deref()));
        };
        let pillar = empty_map();
        self.cache(&request.id, &request.load, &pillar).await;
        self.keep_report(&request.id, &request.load);
        let reply =
            move |ops: &dyn brine_protocol::keys::PrivateOps| seal_pillar_reply(&pillar, &request, &minion, ops);
        Ok(self.private.run(reply).await?)
    }

    /// Keeps what the minion says of its modules. Python's minions say nothing, and `salt-call` of a host may say it too.
    fn keep_report(&self, id: &MinionId, load: &Value) {
        let Some(report) = load.get("sandbox").filter(|report| matches!(report, Value::Map(_))) else { return };
        if let Err(why) = self.reports.keep(id, report) {
            let said = format!("what {id} reports of its modules is not kept: {why}");
            self.refusals.log(Who::Minion(id), &said);
        }
    }

    async fn cache(&self, id: &MinionId, load: &Value, pillar: &Value) {
        if !self.opts.keep {
            return;
        }
        let Some(grains) = load.get("grains").filter(|grains| matches!(grains, Value::Map(_))) else { return };
        let grains = msgpack::encode_disk(grains);
        let refuse = |why: String| {
            let data = map([("id", id.as_str()), ("error", why.as_str())]);
            let tag = format!("brine/refused/grains/{id}");
            self.refusals.tell(Who::Minion(id), &format!("the grains of {id} are not kept: {why}"), tag, data);
        };
        if grains.len() > GRAINS_BYTES_MAX {
            return refuse(format!("they have {} bytes", grains.len()));
        }
        // A refusal does not change the answer, because the minion would take an empty answer for its pillar.
        if !self.throttle.admit_now(id, "grains", QuotaKind::Other, (1, grains.len() as u64)) {
            return;
        }
        let pillar = msgpack::encode_disk(pillar);
        let cachedir = self.cachedir.clone();
        let name = format!("{id}.p");
        let write = move || {
            for (bank, content) in [("grains", grains), ("pillar", pillar)] {
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
            Ok(Err(e)) => refuse(e.to_string()),
        }
    }
}
