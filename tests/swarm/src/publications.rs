//! Opens a publication once for all minions with the same bytes and the same key, because the result is the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::crypticle::{AesKey, Crypticle, SerialGuard};
use brine_protocol::ids::MinionId;
use brine_protocol::job::JobLoad;
use brine_protocol::keys::PublicKey;
use brine_protocol::publication::{self, PublicationError};
use brine_protocol::target::{Facts, Target, TargetType};
use brine_protocol::value::Value;
use bytes::Bytes;

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

/// The last publications and their contents.
#[derive(Debug, Default)]
pub(crate) struct Publications {
    last: Mutex<VecDeque<(Bytes, AesKey, Opened)>>,
}

impl Publications {
    /// Opens a publication, or returns the earlier result.
    pub(crate) fn open(&self, bytes: &Bytes, master: &PublicKey, key: &AesKey) -> Opened {
        // The lock is held during the work, so that other minions wait for the result instead of repeating the work.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., opened)) = last.iter().find(|(known, with, _)| known == bytes && with == key) {
            return opened.clone();
        }
        let opened = open(bytes, master, key);
        last.push_front((bytes.clone(), key.clone(), opened.clone()));
        last.truncate(REMEMBERED);
        opened
    }
}

fn open(bytes: &[u8], master: &PublicKey, key: &AesKey) -> Opened {
    // Serials are not checked, because minions receive the same publications at different times.
    let load = publication::open(bytes, master, &Crypticle::new(key), &mut SerialGuard::new())?;
    let no_job = |why: String| Unusable::Job(why);
    let load = JobLoad::parse(&load).map_err(|error| no_job(error.to_string()))?;
    let kind: TargetType = load.tgt_type.parse().map_err(|_| no_job(format!("its tgt_type is {:?}", load.tgt_type)))?;
    let target = Target::parse(kind, &load.tgt, &load.delimiter).map_err(|error| no_job(error.to_string()))?;
    Ok(Arc::new(Job { load, target }))
}
