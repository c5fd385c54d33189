//! Questions to the system that may never be answered: a file system whose server is gone, a directory of users that is away.
//!
//! Each is asked on a thread of its own, so that one that hangs keeps nothing else waiting, not even the end of the minion.
//! How many may hang is bounded.

use std::sync::Arc;
use std::time::Duration;

use brine_sandbox::HostError;
use tokio::sync::{Semaphore, oneshot};

/// Enough for a call of the C library that looks up a user through several services.
const STACK: usize = 512 * 1024;

/// Asks such questions of one kind.
pub(super) struct Slow {
    places: Arc<Semaphore>,
    patience: Duration,
}

impl Slow {
    /// At most `places` at once, each for so long.
    pub(super) fn new(places: usize, patience: Duration) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), patience }
    }

    /// The answer, or that there is none in time: `what` says of whom.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        what: &str,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HostError> {
        let asked = async {
            // The thread keeps the place for as long as it hangs.
            let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
            let (tell, answer) = oneshot::channel();
            let asking =
                std::thread::Builder::new().name("slow question".to_owned()).stack_size(STACK).spawn(move || {
                    let _place = place;
                    let _ = tell.send(question());
                });
            asking.ok()?;
            answer.await.ok()
        };
        match tokio::time::timeout(self.patience, asked).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(HostError::Failed(format!("{what}: the minion could not ask; try again later"))),
            Err(_) => Err(HostError::Failed(format!("{what} does not answer within {:?}", self.patience))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_hangs_is_left_and_its_place_stays_taken() {
        let slow = Slow::new(1, Duration::from_millis(50));
        let (release, hang) = std::sync::mpsc::channel::<()>();
        let error = slow.ask("/mnt", move || hang.recv().is_err()).await.unwrap_err();
        assert_eq!(error.to_string(), "/mnt does not answer within 50ms");
        assert!(slow.ask("/mnt", || ()).await.is_err());
        drop(release);
        let slow = Slow { places: slow.places, patience: Duration::from_secs(10) };
        assert_eq!(slow.ask("/mnt", || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_question_that_fails_is_an_error() {
        let slow = Slow::new(1, Duration::from_secs(10));
        let error = slow.ask("/mnt", || panic!("no")).await.unwrap_err();
        assert!(error.to_string().starts_with("/mnt: "), "{error}");
        slow.ask("/mnt", || ()).await.unwrap();
    }
}
