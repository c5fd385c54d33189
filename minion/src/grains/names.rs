//! Grains that need a name server: `fqdn_ip4`, `fqdn_ip6` and `fqdns`.
//!
//! A name server may take seconds, and grains are collected before anything else. So each question has a thread of its
//! own, a collection waits for a moment only, and what comes later is found by the next collection.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::value::list;

use super::map::Grains;
use crate::host_names::host_names;

/// How long a collection waits for all answers together.
const WAIT: Duration = Duration::from_millis(15);
/// Upper bound on the addresses that are asked about.
const QUESTIONS_MAX: usize = 32;

/// A question to the name servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Question {
    Addresses(String),
    Name(IpAddr),
}

impl Question {
    /// Asks, for as long as it takes.
    fn ask(&self) -> Vec<String> {
        match self {
            Self::Addresses(name) => {
                let found = dns_lookup::lookup_host(name).map(Vec::from_iter).unwrap_or_default();
                let mut found: Vec<String> = found.iter().map(IpAddr::to_string).collect();
                found.sort();
                found.dedup();
                found
            }
            // A name server that knows nothing has the address for a name.
            Self::Name(address) => dns_lookup::lookup_addr(address)
                .ok()
                .filter(|name| name.parse::<IpAddr>().is_err() && name.contains('.'))
                .into_iter()
                .collect(),
        }
    }
}

/// The questions that were asked, with their answers when those have come.
#[derive(Debug, Default)]
struct Lookups {
    known: Mutex<HashMap<Question, Option<Vec<String>>>>,
    came: Condvar,
}

impl Lookups {
    fn known(&self) -> MutexGuard<'_, HashMap<Question, Option<Vec<String>>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks again whatever is not being asked already, and waits a moment. Returns the newest answers, which may be
    /// those of an earlier collection, or none.
    fn answers(self: &Arc<Self>, questions: &[Question]) -> Vec<Vec<String>> {
        let before: HashMap<Question, Vec<String>> = {
            let mut known = self.known();
            known.retain(|question, answer| answer.is_none() || questions.contains(question));
            let mut before = HashMap::new();
            for question in questions {
                match known.insert(question.clone(), None) {
                    // A thread still asks.
                    Some(None) => continue,
                    Some(Some(answer)) => drop(before.insert(question.clone(), answer)),
                    None => {}
                }
                let (lookups, question) = (Arc::clone(self), question.clone());
                let ask = move || {
                    let answer = question.ask();
                    lookups.known().insert(question, Some(answer));
                    lookups.came.notify_all();
                };
                if let Err(error) = std::thread::Builder::new().name("names".to_owned()).spawn(ask) {
                    tracing::warn!("names cannot be looked up: {error}");
                    return vec![Vec::new(); questions.len()];
                }
            }
            before
        };
        let until = Instant::now() + WAIT;
        let mut known = self.known();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || questions.iter().all(|question| known.get(question).is_some_and(Option::is_some)) {
                break;
            }
            known = self.came.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let newest = |question: &Question| known.get(question).cloned().flatten();
        questions
            .iter()
            .map(|question| newest(question).or_else(|| before.get(question).cloned()).unwrap_or_default())
            .collect()
    }
}

static LOOKUPS: std::sync::LazyLock<Arc<Lookups>> = std::sync::LazyLock::new(Arc::default);

pub(super) fn collect(grains: &mut Grains) {
    let mut questions = vec![Question::Addresses(host_names().fqdn)];
    let addresses = grains.texts("ipv4").into_iter().chain(grains.texts("ipv6"));
    let own = addresses.filter_map(|address| address.parse::<IpAddr>().ok()).filter(|address| !address.is_loopback());
    questions.extend(own.take(QUESTIONS_MAX).map(Question::Name));
    let answers = LOOKUPS.answers(&questions);
    let (of_name, names) = answers.split_first().map_or((&[][..], &[][..]), |(first, rest)| (first.as_slice(), rest));
    let of = |wanted: fn(&IpAddr) -> bool| {
        let is_wanted = move |text: &&String| text.parse().is_ok_and(|address| wanted(&address));
        of_name.iter().filter(is_wanted).cloned()
    };
    grains.set("fqdn_ip4", list(of(IpAddr::is_ipv4)));
    grains.set("fqdn_ip6", list(of(IpAddr::is_ipv6)));
    let mut names: Vec<String> = names.concat();
    names.sort();
    names.dedup();
    grains.set("fqdns", list(names));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_addresses() {
        let lookups = Arc::<Lookups>::default();
        let question = [Question::Addresses("localhost".to_owned())];
        let began = Instant::now();
        while lookups.answers(&question) == [Vec::<String>::new()] {
            assert!(began.elapsed() < Duration::from_secs(60), "localhost has no address");
        }
        assert!(lookups.answers(&question)[0].iter().any(|address| address == "127.0.0.1" || address == "::1"));
    }

    #[test]
    fn a_slow_name_server_is_not_waited_for() {
        let lookups = Arc::<Lookups>::default();
        let question = Question::Addresses("slow.invalid".to_owned());
        // As while a thread asks.
        lookups.known().insert(question.clone(), None);
        let began = Instant::now();
        assert_eq!(lookups.answers(&[question]), [Vec::<String>::new()]);
        assert!(began.elapsed() >= WAIT);
    }
}
