//! Private-key operations: the implementation in use, and the bounded pool that runs them off the I/O threads.

use std::sync::Arc;

use brine_protocol::keys::{KeyError, PrivateKey, PrivateOps, PublicKey};
use tokio::sync::Semaphore;

/// The fastest implementation built in for this key. OpenSSL takes 0.32 ms for 2048 bits where the portable one takes 1.4 ms.
pub(crate) fn accelerate(key: PrivateKey) -> Arc<dyn PrivateOps> {
    #[cfg(feature = "openssl")]
    match brine_openssl::OpensslKey::new(&key) {
        Ok(fast) => return Arc::new(fast),
        Err(error) => tracing::warn!("OpenSSL does not take the master's key ({error}); working without it"),
    }
    Arc::new(key)
}

/// A new key, by the fastest implementation built in.
pub(crate) fn generate(bits: usize) -> Result<PrivateKey, KeyError> {
    #[cfg(feature = "openssl")]
    if let Some(key) = brine_openssl::generate(bits) {
        return Ok(key);
    }
    PrivateKey::generate(bits)
}

/// Runs private operations, as many at a time as there are processors; the rest wait in the order they came.
#[derive(Clone)]
pub(crate) struct PrivatePool {
    ops: Arc<dyn PrivateOps>,
    permits: Arc<Semaphore>,
    processors: usize,
}

impl PrivatePool {
    pub(crate) fn new(ops: Arc<dyn PrivateOps>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { ops, permits: Arc::new(Semaphore::new(processors)), processors }
    }

    /// What is taken, for the log.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} of {} private operations at a time",
            self.processors - self.permits.available_permits(),
            self.processors
        )
    }

    /// The public half of the key.
    pub(crate) fn public(&self) -> &PublicKey {
        self.ops.public()
    }

    /// The key itself, for a thread that does nothing else.
    pub(crate) fn ops(&self) -> &dyn PrivateOps {
        &*self.ops
    }

    /// Runs `work` with the key on a thread that may take its time.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn PrivateOps) -> Result<T, KeyError> + Send + 'static,
    ) -> Result<T, KeyError> {
        let ops = Arc::clone(&self.ops);
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| KeyError::Operation)?;
        let run = move || {
            let done = work(&*ops);
            drop(permit);
            done
        };
        tokio::task::spawn_blocking(run).await.map_err(|_| KeyError::Operation)?
    }
}
