//! RSA operations: the implementation in use, and the bounded pool that runs them off the I/O threads.

use std::sync::Arc;

use brine_protocol::keys::{KeyError, PrivateKey, PrivateOps, PublicKey};
use tokio::sync::Semaphore;

/// Returns the fastest built-in implementation for this key. A signature of 2048 bits takes 0.32 ms with OpenSSL and
/// 1.4 ms with the portable implementation.
pub(crate) fn accelerate(key: PrivateKey) -> Arc<dyn PrivateOps> {
    #[cfg(feature = "openssl")]
    match brine_openssl::OpensslKey::new(&key) {
        Ok(fast) => return Arc::new(fast),
        Err(error) => tracing::warn!("OpenSSL does not take the master's key ({error}); working without it"),
    }
    Arc::new(key)
}

/// Generates a key with the fastest built-in implementation.
pub(crate) fn generate(bits: usize) -> Result<PrivateKey, KeyError> {
    #[cfg(feature = "openssl")]
    if let Some(key) = brine_openssl::generate(bits) {
        return Ok(key);
    }
    PrivateKey::generate(bits)
}

/// Whether this token of a request was made with this key (§4.1), by the fastest built-in implementation.
pub(crate) fn is_token(key: &PublicKey, token: &[u8]) -> bool {
    #[cfg(feature = "openssl")]
    let good = brine_protocol::request::is_tokens_message(brine_openssl::x931_recover(key, token).as_deref());
    #[cfg(not(feature = "openssl"))]
    let good = brine_protocol::request::is_token(key, token);
    good
}

/// Runs private-key operations, at most one for each processor. Further ones wait in order of arrival.
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

    /// Describes the operations in work, for the log.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} of {} private operations at a time",
            self.processors - self.permits.available_permits(),
            self.processors
        )
    }

    /// Returns the public half of the key.
    pub(crate) fn public(&self) -> &PublicKey {
        self.ops.public()
    }

    /// Returns the key itself, for a thread that is allowed to block.
    pub(crate) fn ops(&self) -> &dyn PrivateOps {
        &*self.ops
    }

    /// Runs `work` with the key on a thread that is allowed to block.
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
