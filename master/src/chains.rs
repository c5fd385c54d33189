//! What the reactor started, and by which of its entries: so an event that a reaction caused is known as such.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::ids::Jid;
use brine_protocol::value::ValueExt as _;

use crate::access::Principal;
use crate::bus::BusEvent;
use crate::cause;

/// Bound on the jobs and runs in memory. The oldest are forgotten, and with them that a reaction started them.
const STARTED_MAX: usize = 20_000;

/// The jobs and runs that reactions started, by jid.
#[derive(Debug, Default)]
pub(crate) struct Chains(Mutex<Started>);

#[derive(Debug, Default)]
struct Started {
    by: HashMap<Jid, Arc<[u64]>>,
    order: VecDeque<Jid>,
}

impl Chains {
    /// Remembers a job or run, if a reaction starts it. Call it before its first event.
    pub(crate) fn note(&self, jid: &Jid, by: &Principal) {
        let chain = match by {
            Principal::Reactor(reaction) => Arc::clone(reaction.chain()),
            // Runners publish in the master's name.
            Principal::Master => match cause::current() {
                Some(chain) => chain,
                None => return,
            },
            _ => return,
        };
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if started.by.insert(jid.clone(), chain).is_none() {
            started.order.push_back(jid.clone());
        }
        while started.order.len() > STARTED_MAX {
            if let Some(oldest) = started.order.pop_front() {
                started.by.remove(&oldest);
            }
        }
    }

    /// Returns the entries of the reactor that led to an event; none if no reaction did.
    pub(crate) fn of(&self, event: &BusEvent) -> Arc<[u64]> {
        if let Some(chain) = &event.cause {
            return Arc::clone(chain);
        }
        let started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if started.by.is_empty() {
            return Arc::default();
        }
        // `salt/job/JID/…`, `salt/run/JID/…`, `salt/state_result/JID/…`, and `JID` alone.
        let in_tag = event.event.tag.split('/').take(3);
        let in_data = event.event.data.get_text("jid").filter(|_| !event.by.is_foreign());
        let jids = in_tag.chain(in_data).filter_map(|text| Jid::try_from(text).ok());
        jids.filter_map(|jid| started.by.get(&jid)).next().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::event::Framing;
    use brine_protocol::value::{Value, map};
    use futures_util::FutureExt as _;

    use super::*;
    use crate::access::Reaction;
    use crate::bus::{Bus, Next};

    fn event(by: Principal, tag: &str, data: Value) -> Arc<BusEvent> {
        let bus = Bus::new(Framing::Bare, 1 << 20);
        let events = bus.subscribe().unwrap();
        bus.fire_by(by, tag, data);
        match events.next().now_or_never() {
            Some(Some(Next::Event(event))) => event,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_reaction_started_leads_back_to_it() {
        let chains = Chains::default();
        let by = |chain: &[u64]| Principal::Reactor(Reaction::new(None, chain.into()));
        let jid = Jid::now();
        chains.note(&Jid::now(), &Principal::Master);
        assert!(chains.of(&event(Principal::Master, &format!("salt/job/{jid}/new"), map([("a", 1)]))).is_empty());
        chains.note(&jid, &by(&[3, 7]));
        let m1 = || Principal::Minion("m1".parse().unwrap());
        for (by, tag, data, chain) in [
            (Principal::Master, format!("salt/job/{jid}/new"), map([("a", 1)]), &[3, 7][..]),
            (Principal::Master, format!("salt/run/{jid}/ret"), map([("a", 1)]), &[3, 7]),
            (Principal::Master, "salt/other".to_owned(), map([("jid", jid.as_str())]), &[3, 7]),
            (m1(), format!("salt/job/{jid}/prog/m1/1"), map([("a", 1)]), &[3, 7]),
            // A minion names a jid as it likes.
            (m1(), "deploy/done".to_owned(), map([("jid", jid.as_str())]), &[]),
            (Principal::Master, format!("salt/job/{}/new", Jid::now()), map([("a", 1)]), &[]),
        ] {
            assert_eq!(&*chains.of(&event(by, &tag, data)), chain, "{tag}");
        }
    }

    #[tokio::test]
    async fn what_is_done_within_a_reaction_is_its_effect() {
        let chains = Chains::default();
        let jid = Jid::now();
        let fired = cause::within([9].into(), async {
            chains.note(&jid, &Principal::Master);
            event(Principal::Master, "deploy/done", map([("a", 1)]))
        });
        let fired = fired.await;
        assert_eq!(&*chains.of(&fired), &[9]);
        assert_eq!(&*chains.of(&event(Principal::Master, &format!("salt/job/{jid}/new"), map([("a", 1)]))), &[9]);
        assert!(chains.of(&event(Principal::Master, "deploy/done", map([("a", 1)]))).is_empty());
    }

    #[test]
    fn old_ones_are_forgotten() {
        let chains = Chains::default();
        let by = Principal::Reactor(Reaction::new(None, [1].into()));
        for _ in 0..STARTED_MAX + 10 {
            chains.note(&Jid::now(), &by);
        }
        let started = chains.0.lock().unwrap();
        assert_eq!((started.by.len(), started.order.len()), (STARTED_MAX, STARTED_MAX));
    }
}
