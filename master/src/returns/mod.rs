//! The one way of a return into the master (§6.2): stored once for each (jid, minion), announced by an event, and
//! acknowledged when it is on disk.
//!
//! [`ReturnIntake::accept`] has these stages: validate, find its job, encode, check the quota, store, announce, acknowledge.
//! Returns of runners enter at the store ([`ReturnIntake::keep_run`]).

mod failed_states;
mod receipt;
mod several;
mod signature;

use std::sync::Arc;

use brine_protocol::config::settings;
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::job::{ReturnJid, ReturnLoad};
use brine_protocol::msgpack;
use brine_protocol::options;
use brine_protocol::request::Request;
use brine_protocol::value::{Value, ValueExt, map};
use brine_receipts::Fingerprint;

use crate::access::Principal;
use crate::bus::{Bus, BusEvent, TRIMMED};
use crate::fault::Fault;
use crate::jobs::{Added, JobCache, NewReceipt, NewReturn, ReturnerName, Standing, StoreError, StoredJob, now_ms};
use crate::keys::MinionKey;
use crate::lanes::Turn;
use crate::quotas::{Met, QuotaKind};
use crate::refusals::{Refusals, Who};
use crate::throttle::Throttle;
pub(crate) use receipt::{VouchedKeys, holds as receipt_holds};

options! {
    /// Which returns are accepted.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct ReturnRules from c {
        bytes_max: usize = c.get(settings::MAX_RETURN_SIZE)?,
        /// `require_minion_sign_messages`: returns without a signature are refused.
        must_be_signed: bool = c.get(settings::REQUIRE_MINION_SIGN_MESSAGES)?,
        /// `drop_messages_signature_fail`: returns with a wrong signature are refused. On by default, unlike in Salt.
        refuses_bad_signatures: bool = c.get(settings::DROP_MESSAGES_SIGNATURE_FAIL)?,
    }
}

/// Accepts returns.
pub(crate) struct ReturnIntake {
    pub(crate) jobs: Arc<JobCache>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) bus: Bus,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) rules: ReturnRules,
    pub(crate) vouched_keys: VouchedKeys,
    /// Of the master's own key, as receipts about its jobs have it.
    pub(crate) fingerprint: Fingerprint,
}

/// What is done with a valid return.
enum Course {
    /// Store the return, and with `makes_job` also a new job, because no published job belongs to it.
    Store { jid: Jid, kind: QuotaKind, makes_job: bool },
    /// Fire the event without storing the return.
    Tell,
}

impl ReturnIntake {
    /// Accepts a return of the minion that the channel proved. Every answer except a fault lets the minion forget the
    /// return.
    async fn accept(&self, request: Request, key: &MinionKey, bytes: u64, turn: &mut Turn) -> Result<Value, Fault> {
        let signed = self.check_signature(&request, key);
        let id = &request.id;
        let mut load = request.load;
        // Neither stored nor shown with the return.
        let receipt = load.remove("receipt");
        let mut ret = ReturnLoad::parse(load, id);
        let course = match signed {
            Ok(()) => self.course(id, &mut ret).await?,
            Err(why) => Err(why),
        };
        match course {
            Ok(Course::Store { jid, kind, makes_job }) => {
                let receipt = self.check_receipt(id, (!makes_job).then_some(&jid), (receipt, &ret), key);
                self.take(id, jid, (ret, receipt), (kind, makes_job), turn).await
            }
            Ok(Course::Tell) => {
                if let Err(met) = self.throttle.admit(id, "_return", QuotaKind::Event, (1, bytes), turn).await {
                    return Ok(not_now(met));
                }
                let tag = format!("salt/job/nocache/ret/{id}");
                self.bus.fire_by(Principal::Minion(id.clone()), tag, ret.into_event());
                Ok(Value::Nil)
            }
            Err(why) => {
                self.refuse(id, &ret, why);
                Ok(Value::Nil)
            }
        }
    }

    /// Decides by the return's job how it is handled, or returns the reason of a refusal.
    async fn course(&self, id: &MinionId, ret: &mut ReturnLoad) -> Result<Result<Course, &'static str>, StoreError> {
        let jid = match ret.jid() {
            Ok(ReturnJid::Job(jid)) => jid.clone(),
            Ok(ReturnJid::NotKept) => return Ok(Ok(Course::Tell)),
            Ok(ReturnJid::Requested) => {
                let jid = Jid::now();
                ret.assign(&jid);
                return Ok(Ok(Course::Store { jid, kind: QuotaKind::Unasked, makes_job: true }));
            }
            Err(why) => return Ok(Err(why)),
        };
        let kind = match self.jobs.standing(&jid, id).await? {
            Standing::Asked => QuotaKind::Asked,
            Standing::Unasked => QuotaKind::Unasked,
            Standing::NotMeant => return Ok(Err("its job was not sent to this minion")),
        };
        Ok(Ok(Course::Store { jid, kind, makes_job: false }))
    }

    /// Encodes a return, checks the quota, stores it and fires its event.
    async fn take(
        &self,
        id: &MinionId,
        jid: Jid,
        (mut ret, receipt): (ReturnLoad, Option<Box<NewReceipt>>),
        (kind, makes_job): (QuotaKind, bool),
        turn: &mut Turn,
    ) -> Result<Value, Fault> {
        // A job made for this return names no returners, as far as the master knows.
        let returners = if ret.wants_returners() && !(makes_job && self.jobs.keeps()) {
            self.returners(id, &jid).await?
        } else {
            Vec::new()
        };
        let packed = self.encode(id, &jid, &mut ret);
        let job = makes_job.then(|| StoredJob::to_record(jid.clone(), &ret.to_job(id, &jid), vec![id.clone()]));
        let size = packed.len()
            + receipt.as_ref().map_or(0, |receipt| receipt.compact.len())
            + job.as_ref().map_or(0, |job| job.load.len());
        let admitted = match self.throttle.admit(id, "_return", kind, (1, size as u64), turn).await {
            Ok(admitted) => admitted,
            Err(met) => return Ok(not_now(met)),
        };
        let (fun, retcode, success) = (ret.fun(), ret.retcode(), ret.is_success());
        let failed = failed_states::events(id, &jid, &ret);
        let tag = format!("salt/job/{jid}/ret/{id}");
        let event = self.bus.encode_by(Principal::Minion(id.clone()), tag, ret.into_event(), &packed);
        let (of, chain) = (jid.clone(), receipt.as_ref().map(|receipt| (receipt.number, Arc::clone(&receipt.found))));
        let new = NewReturn { jid, minion: id.clone(), fun, at_ms: now_ms(), retcode, success, load: packed, receipt };
        let stored = self.store(job, new, &returners, (event, failed)).await;
        if !matches!(stored, Ok(Some(Added::New))) {
            // The store had the return already, or failed and the minion sends it again.
            self.throttle.give_back(id, &admitted);
        }
        if let Some((number, found)) = chain
            && let Some(found) = found.get()
        {
            self.tell_chain(id, of.as_str(), number, *found);
        }
        Ok(stored.map(|_| Value::Nil)?)
    }

    /// Encodes a return as it is stored. Replaces the result of one that is too large by a text, so that clients of the
    /// job still get an answer.
    fn encode(&self, id: &MinionId, jid: &Jid, ret: &mut ReturnLoad) -> Vec<u8> {
        let (packed, most) = (ret.encode(), self.rules.bytes_max);
        if packed.len() <= most {
            return packed;
        }
        let len = packed.len();
        drop(packed);
        let why = format!(
            "The return of {len} bytes is larger than the master's max_return_size ({most}) and was not stored"
        );
        self.refuse(id, ret, &why);
        ret.replace_result(id, jid, &why, most)
    }

    /// Stores a return, fires its events, and waits for the disk.
    async fn store(
        &self,
        job: Option<StoredJob>,
        new: NewReturn,
        returners: &[ReturnerName],
        (event, failed): (Arc<BusEvent>, Vec<(String, Value)>),
    ) -> Result<Option<Added>, StoreError> {
        if let Some(job) = job {
            self.jobs.add_job(job).await?;
        }
        let mut adding = self.jobs.add_return(new, returners).await?;
        let added = adding.stored().await;
        match added {
            Some(Added::New) => {
                self.bus.fire_encoded(&event);
                if !failed.is_empty() {
                    self.tell_failed_states(&event.by, failed);
                }
            }
            Some(Added::Duplicate) => tracing::debug!("a minion returned again: {}", event.event.tag),
            None => {}
        }
        // The minion keeps the return until the acknowledgement.
        adding.synced().await?;
        Ok(added)
    }

    /// Returns the returners that the job was published with. A minion cannot name others.
    async fn returners(&self, id: &MinionId, jid: &Jid) -> Result<Vec<ReturnerName>, StoreError> {
        let returners = self.jobs.returners_of(jid).await?;
        for why in &returners.refused {
            let said = format!("a return of {id} for {jid} is not written to the returner {why}");
            self.refusals.log(Who::Minion(id), &said);
        }
        Ok(returners.known.clone())
    }

    /// Reports a refused return in the log and on the bus.
    fn refuse(&self, id: &MinionId, ret: &ReturnLoad, why: &str) {
        let short = |key: &str| {
            let text = ret.get(key).map(ValueExt::python_str).unwrap_or_default();
            Value::from(text.chars().take(128).collect::<String>())
        };
        let data =
            map([("id", Value::from(id)), ("jid", short("jid")), ("fun", short("fun")), ("error", Value::from(why))]);
        let said = format!("a return of {id} was refused: {why}");
        self.refusals.tell(Who::Minion(id), &said, format!("brine/refused/return/{id}"), data);
    }

    /// Stores the return of a runner of the master `id` (`runner_returns`) as a job of the master, so that it can be
    /// looked up by its jid.
    pub(crate) async fn keep_run(&self, id: &MinionId, jid: &Jid, user: &str, data: &Value) -> Result<(), StoreError> {
        let fun = data.get_text("fun").unwrap_or_default();
        let load = map([
            ("id", Value::from(id)),
            ("tgt", Value::from(id)),
            ("jid", Value::from(jid)),
            ("fun", Value::from(fun)),
            ("user", Value::from(user)),
        ]);
        let job = StoredJob { tgt_type: "list".to_owned(), ..StoredJob::to_record(jid.clone(), &load, Vec::new()) };
        let mut returned = load;
        returned.insert("return", data.clone());
        let mut packed = msgpack::encode_disk(&returned);
        if packed.len() > self.rules.bytes_max {
            let mut short = data.clone();
            short.insert("return", TRIMMED);
            returned.insert("return", short);
            packed = msgpack::encode_disk(&returned);
        }
        let success = data.get_bool("success").unwrap_or(false);
        let new = NewReturn {
            jid: jid.clone(),
            minion: id.clone(),
            fun: fun.to_owned(),
            at_ms: job.started_ms,
            retcode: i64::from(!success),
            success,
            load: packed,
            receipt: None,
        };
        self.jobs.add_job(job).await?;
        self.jobs.add_return(new, &[]).await?.synced().await.map(drop)
    }
}

/// Returns the answer to a return that is refused for now. It is not an acknowledgement: a minion that keeps its
/// returns logs the text and sends the return again later. The answer is readable, so other minions do not authenticate
/// again because of it.
fn not_now(met: Met) -> Value {
    Value::from(format!("the return was not taken: {met}"))
}
