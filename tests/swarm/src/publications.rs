//! Opens a publication once for all minions with the same bytes and the same key, because the result is the same. Of a sealed one that is
//! the body; each minion opens its own header.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::crypticle::{AesKey, Crypticle, SerialGuard};
use brine_protocol::ids::MinionId;
use brine_protocol::job::JobLoad;
use brine_protocol::keys::PublicKey;
use brine_protocol::publication::{self, PublicationError};
use brine_protocol::receiver::Received;
use brine_protocol::target::{Facts, Target, TargetType};
use brine_protocol::value::Value;
use bytes::Bytes;

use crate::link::Live;

/// Publications remembered. The minions of one process are rarely further apart than this.
const REMEMBERED: usize = 64;

/// A published job and its target.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) load: JobLoad,
    target: Target,
}

impl Job {
    /// Checks whether the job is for this minion.
    pub(crate) fn is_for(&self, id: &MinionId, grains: impl FnOnce() -> Value) -> bool {
        if self.target.needs_data() {
            return self.target.matches(&Facts { id, grains: Some(&grains()), pillar: None });
        }
        self.target.matches(&Facts::of_id(id))
    }
}

/// Why a publication is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("{0}")]
    Publication(#[from] PublicationError),
    #[error("a publication is no job: {0}")]
    Job(String),
}

impl Unusable {
    pub(crate) fn wants_reauth(&self) -> bool {
        matches!(self, Self::Publication(error) if error.wants_reauth())
    }
}

type Opened = Result<Arc<Job>, Unusable>;

/// What makes two openings the same: the bytes that all minions share, and the key of those for all minions.
#[derive(PartialEq, Eq)]
enum Known {
    Shared(Bytes, AesKey),
    Body(Bytes),
}

/// The last publications and their contents.
#[derive(Default)]
pub(crate) struct Publications {
    last: Mutex<VecDeque<(Known, Opened)>>,
}

impl Publications {
    /// Opens a publication, or returns the earlier result. None if it is for another minion.
    pub(crate) fn open(&self, frames: &[Bytes], topic: &str, live: &Live) -> Option<Opened> {
        let (known, open): (Known, Box<dyn FnOnce() -> Opened>) = match Received::parse(frames, topic.as_bytes()) {
            Ok(received) => match received? {
                Received::Shared(_) => {
                    let payload = frames.last()?.clone();
                    let credentials = &live.credentials;
                    let known = Known::Shared(payload.clone(), credentials.publish_key.clone());
                    (known, Box::new(move || open(&payload, &credentials.master, &credentials.publish_key)))
                }
                Received::Sealed(sealed) => {
                    let keys = live.seal_keys.as_ref()?;
                    // Each minion has a header of its own.
                    if let Err(error) = sealed.is_for(keys) {
                        return Some(Err(PublicationError::from(error).into()));
                    }
                    let known = Known::Body(sealed.parts()[1].clone());
                    (known, Box::new(move || parse(&sealed.load(keys).map_err(PublicationError::from)?)))
                }
            },
            Err(error) => return Some(Err(error.into())),
        };
        // The lock is held during the work, so that other minions wait for the result instead of repeating the work.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, opened)) = last.iter().find(|(before, _)| *before == known) {
            return Some(opened.clone());
        }
        let opened = open();
        last.push_front((known, opened.clone()));
        last.truncate(REMEMBERED);
        Some(opened)
    }
}

fn open(bytes: &[u8], master: &PublicKey, key: &AesKey) -> Opened {
    // Serials are not checked, because minions receive the same publications at different times.
    parse(&publication::open(bytes, master, &Crypticle::new(key), &mut SerialGuard::new())?)
}

fn parse(load: &Value) -> Opened {
    let no_job = |why: String| Unusable::Job(why);
    let load = JobLoad::parse(load).map_err(|error| no_job(error.to_string()))?;
    let kind: TargetType = load.tgt_type.parse().map_err(|_| no_job(format!("its tgt_type is {:?}", load.tgt_type)))?;
    let target = Target::parse(kind, &load.tgt, &load.delimiter).map_err(|error| no_job(error.to_string()))?;
    Ok(Arc::new(Job { load, target }))
}
