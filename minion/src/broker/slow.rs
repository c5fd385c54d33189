//! Runs system calls that may never return: on a file system whose server is gone, or in a user directory that is away.
//!
//! Each call has a thread of its own, so that a call that hangs delays nothing else, not even the end of the minion.
//! The number of calls that hang is bounded.

use std::sync::Arc;
use std::time::Duration;

use brine_sandbox::HostError;
use tokio::sync::{Semaphore, oneshot};

/// Stack of a thread: enough for a C library call that looks up a user through several services.
const STACK: usize = 512 * 1024;

/// Runs slow calls of one kind.
pub(super) struct Slow {
    places: Arc<Semaphore>,
    patience: Duration,
}

impl Slow {
    /// Allows at most `places` calls at once and waits at most `patience` for each.
    pub(super) fn new(places: usize, patience: Duration) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), patience }
    }

    /// Runs `question` on a thread and returns its result. After the timeout, the error names `what`.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        what: &str,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HostError> {
        let asked = async {
            // The thread holds the permit for as long as it hangs.
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
