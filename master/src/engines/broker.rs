//! What modules of engines may ask of the master: HTTP requests, names of hosts, and events. The sandbox has checked the
//! grant of each request when it arrives here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brine_egress::{Http, Resolver, SystemResolver};
use brine_protocol::ids::EventTag;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt as _};
use brine_sandbox::{Broker, Caller, EventsOp, HostError, HostOp, JobContext, LogLevel};
use futures_util::future::BoxFuture;

use crate::access::Principal;
use crate::bucket::{Bucket, Size};
use crate::bus::Bus;

/// Events that one engine fires: a reaction to them may lead to events that it sees.
const OF_ONE: Size = Size { most: 100.0, each_second: 20.0 };
/// The data of an event: Salt's default for its bus (`max_event_size`).
const DATA: msgpack::Limits = msgpack::Limits { max_bytes: 1 << 20, max_depth: 64, max_items: 100_000 };
/// How the calls of an engine say whose they are: the master writes it, and no module can.
const USER: &str = "engine ";

/// The user of an engine's calls.
pub(super) fn user(name: &str) -> String {
    format!("{USER}{name}")
}

/// The broker of a master.
pub(super) struct MasterBroker {
    bus: Bus,
    resolver: Arc<dyn Resolver>,
    http: Http,
    /// By the engine's name, of which the configuration has few.
    fired: Mutex<HashMap<String, Bucket>>,
}

impl MasterBroker {
    pub(super) fn new(bus: Bus) -> Self {
        let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver::default());
        Self { bus, http: Http::new(Arc::clone(&resolver)), resolver, fired: Mutex::default() }
    }

    /// Fires an event of an engine. Its tag is none of the master's own, whatever was granted.
    fn fire(&self, caller: &Caller, op: EventsOp) -> Result<Value, HostError> {
        let EventsOp::Fire { tag, data } = op;
        let engine = caller.job.user.strip_prefix(USER).unwrap_or_default();
        let tag = EventTag::new(tag).map_err(|e| HostError::Failed(e.to_string()))?;
        if brine_tags::is_reserved(tag.as_str().split('/').next().unwrap_or_default()) {
            return Err(HostError::Denied(format!(
                "the tag {} begins with a word of the master's own, which no engine fires",
                tag.as_str()
            )));
        }
        let data = msgpack::decode_disk(&data, &DATA)
            .map_err(|e| HostError::Failed(format!("the data cannot be fired: {e}")))?;
        let Value::Map(mut entries) = data else {
            return Err(HostError::Failed("an event's data is a dict".to_owned()));
        };
        // The time is the master's to say.
        entries.retain(|(key, _)| key.text() != Some("_stamp"));
        if !self.may_fire(engine) {
            return Err(HostError::Failed(format!(
                "this engine fires too much: at most {} events at once and then {} a second",
                OF_ONE.most, OF_ONE.each_second
            )));
        }
        self.bus.fire_by(Principal::Engine(engine.into()), tag.as_str(), Value::Map(entries));
        Ok(Value::from(true))
    }

    fn may_fire(&self, engine: &str) -> bool {
        let now = Instant::now();
        let mut fired = self.fired.lock().unwrap_or_else(PoisonError::into_inner);
        fired.entry(engine.to_owned()).or_insert_with(|| Bucket::full(OF_ONE, now)).take(OF_ONE, 1.0, 0.0, now)
    }
}

impl Broker for MasterBroker {
    fn host_call<'a>(&'a self, caller: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        Box::pin(async move {
            match op {
                HostOp::Http(op) => self.http.answer(self, caller, op).await,
                HostOp::Network(op) => brine_egress::resolve(self, &*self.resolver, caller, op).await,
                HostOp::Events(op) => self.fire(caller, op),
                other => Err(HostError::Denied(format!(
                    "{} is not there on a master: its engines have brine:host/http, brine:host/events and wasi:sockets",
                    other.interface()
                ))),
            }
        })
    }

    fn log(&self, job: &JobContext, level: LogLevel, message: &str) {
        let by = &job.user;
        match level {
            LogLevel::Trace => tracing::trace!("{by}: {message}"),
            LogLevel::Debug => tracing::debug!("{by}: {message}"),
            LogLevel::Info => tracing::info!("{by}: {message}"),
            LogLevel::Warning => tracing::warn!("{by}: {message}"),
            LogLevel::Error => tracing::error!("{by}: {message}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_kit_sandbox::{caller, job};
    use brine_protocol::event::Framing;
    use brine_protocol::value::map;
    use brine_sandbox::{Grants, KernelOp};
    use futures_util::FutureExt as _;

    use super::*;
    use crate::bus::Next;

    fn fire(tag: &str) -> HostOp {
        let data = msgpack::encode_disk(&map([("a", "b"), ("_stamp", "forged")]));
        HostOp::Events(EventsOp::Fire { tag: tag.to_owned(), data: data.into() })
    }

    #[tokio::test]
    async fn events_are_the_engines_own_and_few_and_never_the_masters() {
        let bus = Bus::new(Framing::Bare, 1 << 20);
        let events = bus.subscribe().unwrap();
        let broker = MasterBroker::new(bus);
        let job = JobContext { user: user("mine"), ..job("20261120134740245008", "m.engine") };
        let caller = caller(job, "m", Grants::default());
        let done = broker.host_call(&caller, fire("deploy/done")).await;
        assert_eq!(done, Ok(Value::from(true)));
        let Some(Some(Next::Event(event))) = events.next().now_or_never() else { panic!("no event") };
        assert!(matches!(&event.by, Principal::Engine(name) if &**name == "mine"));
        assert_ne!(event.event.data.get_text("_stamp"), Some("forged"));
        for tag in ["salt/job/20261120134740245008/ret/web1", "salt/beacon/minion/x", "minion_start", "brine/x"] {
            assert!(matches!(broker.host_call(&caller, fire(tag)).await, Err(HostError::Denied(_))), "{tag}");
        }
        for _ in 0..(OF_ONE.most as usize * 2) {
            let _ = broker.host_call(&caller, fire("deploy/done")).await;
        }
        let why = broker.host_call(&caller, fire("deploy/done")).await.unwrap_err();
        assert!(why.to_string().contains("fires too much"), "{why}");
        let op = HostOp::Kernel(KernelOp::Read { table: "loadavg".to_owned() });
        let why = broker.host_call(&caller, op).await.unwrap_err();
        assert!(why.to_string().contains("not there on a master"), "{why}");
    }
}
