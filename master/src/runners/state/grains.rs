//! The grains of the master's host, for orchestrations.

use std::time::{Duration, Instant};

use brine_protocol::value::{Value, ValueExt as _, map};
use tokio::sync::Mutex;

use super::super::Parts;
use super::super::salt::on_master;

/// How long grains count: the host's addresses can change.
const FRESH: Duration = Duration::from_secs(60);

/// The last grains.
#[derive(Default)]
pub(super) struct HostGrains(Mutex<Option<(Instant, Value)>>);

impl HostGrains {
    /// Returns the grains of this host under the master's name. Where they cannot be read, only the name.
    pub(super) async fn now(&self, parts: &Parts) -> Value {
        let mut last = self.0.lock().await;
        if let Some((at, grains)) = &*last
            && at.elapsed() < FRESH
        {
            return grains.clone();
        }
        let found = on_master::grains(parts).await;
        let mut grains = found.unwrap_or_else(|failure| {
            tracing::warn!("templates of the master see no grains of this host: {}", failure.0.python_str());
            map::<&str, Value>([])
        });
        grains.insert("id", parts.opts.id.as_str());
        *last = Some((Instant::now(), grains.clone()));
        grains
    }
}
