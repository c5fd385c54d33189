//! The memory of states that run beside others: what those of a job hold from their start until somebody waits for them.
//! First these are their arguments, encoded, and then their results.

use std::sync::Arc;

use brine_protocol::value::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::outcome;
use crate::weight::weight;

/// Upper bound on the bytes of the arguments of a job's started states.
const MAX_ARGUMENTS: usize = 16 << 20;
/// Upper bound on the bytes of the results that nobody has waited for, in memory: twice the largest return of a job, whose
/// items take more there.
const MAX_RESULTS: usize = 64 << 20;

/// The room of one job.
#[derive(Clone)]
pub(super) struct Room {
    arguments: Arc<Semaphore>,
    results: Arc<Semaphore>,
}

/// A result with its room.
pub(super) struct Kept {
    pub(super) result: Value,
    _room: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { arguments: Arc::new(Semaphore::new(MAX_ARGUMENTS)), results: Arc::new(Semaphore::new(MAX_RESULTS)) }
    }

    /// Takes the room of a state's arguments.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn of_arguments(&self, bytes: usize) -> Result<OwnedSemaphorePermit, String> {
        taken(&self.arguments, bytes).ok_or_else(|| {
            let (most, free) = (MAX_ARGUMENTS, self.arguments.available_permits());
            format!(
                "the arguments of the states that this job has started may have {most} bytes together; {free} are left, this \
                 state has {bytes}"
            )
        })
    }

    /// Takes the room of a result. If there is none, the state counts as failed, whatever it came to.
    pub(super) fn keep(&self, result: Value) -> Kept {
        match taken(&self.results, weight(&result)) {
            Some(room) => Kept { result, _room: Some(room) },
            None => Kept { result: outcome::without_room(&result, MAX_RESULTS), _room: None },
        }
    }
}

fn taken(room: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    Arc::clone(room).try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{ValueExt, map, text};

    #[test]
    fn arguments_have_room_until_their_states_have_ended() {
        let room = Room::new();
        let held: Vec<_> = (0..16).map(|_| room.of_arguments(1 << 20).unwrap()).collect();
        let refused = room.of_arguments(1).unwrap_err();
        assert!(refused.contains("may have 16777216 bytes together; 0 are left, this state has 1"), "{refused}");
        drop(held);
        room.of_arguments(MAX_ARGUMENTS).map(drop).unwrap();
        assert!(room.of_arguments(MAX_ARGUMENTS + 1).is_err());
        assert!(room.of_arguments(usize::MAX).is_err());
    }

    #[test]
    fn results_have_room_until_they_are_waited_for() {
        let room = Room::new();
        let result = |size: usize| {
            let more = Value::Array(vec![Value::Nil; size / size_of::<Value>()]);
            map([
                ("name", text("a")),
                ("result", Value::from(true)),
                ("changes", more),
                ("__run_num__", Value::from(7)),
            ])
        };
        let kept: Vec<_> = (0..100).map(|_| room.keep(result(1 << 20))).collect();
        let whole = kept.iter().filter(|kept| kept.result == result(1 << 20)).count();
        assert!((60..64).contains(&whole), "{whole}");
        let last = &kept[99].result;
        let expect = map([
            ("name", text("a")),
            ("changes", map::<&str, Value>([])),
            ("result", Value::from(false)),
            (
                "comment",
                text(
                    "Its result was dropped: the results of states that nothing has waited for have more than 67108864 bytes.",
                ),
            ),
            ("__run_num__", Value::from(7)),
        ]);
        assert_eq!(*last, expect);
        drop(kept);
        assert_eq!(room.keep(result(1 << 20)).result.get("result"), Some(&Value::from(true)));
    }
}
