//! Counts of a process, under the names that Salt's web server gives them, and Brine's own beside them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;
use brine_protocol::value::{self, Value};

/// Counts of a process.
#[derive(Debug)]
pub struct Stats {
    began: Instant,
    began_at: f64,
    requests: AtomicU64,
    current: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

impl Default for Stats {
    fn default() -> Self {
        let [requests, current, refused, failed] = std::array::from_fn(|_| AtomicU64::new(0));
        Self { began: Instant::now(), began_at: now(), requests, current, refused, failed }
    }
}

/// A request that is being answered, also if its caller leaves.
#[derive(Debug)]
pub struct Current<'a>(&'a Stats);

impl Current<'_> {
    /// Counts the answer.
    pub fn answered(self, status: StatusCode) {
        if status.is_client_error() {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
        } else if status.is_server_error() {
            self.0.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        self.0.current.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Stats {
    /// Counts a request.
    pub fn begin(&self) -> Current<'_> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.current.fetch_add(1, Ordering::Relaxed);
        Current(self)
    }

    /// The counts as `/stats` shows them; `is_up`: whether the master is there.
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn value(&self, is_up: bool) -> Value {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let uptime = self.began.elapsed().as_secs_f64();
        let per_second = count(&self.requests) as f64 / uptime.max(f64::EPSILON);
        let applications = value::map([
            ("Enabled", Value::from(true)),
            ("Current Time", Value::from(now())),
            ("Current Requests", Value::from(count(&self.current))),
            ("Requests/Second", Value::from(per_second)),
            ("Server Version", Value::from(env!("CARGO_PKG_VERSION"))),
            ("Start Time", Value::from(self.began_at)),
            ("Total Requests", Value::from(count(&self.requests))),
            ("Uptime", Value::from(uptime)),
            ("Requests", value::empty_map()),
        ]);
        let server = value::map([
            ("Enabled", Value::from(true)),
            ("Run time", Value::from(uptime)),
            ("Requests", Value::from(count(&self.requests))),
            ("Worker Threads", value::empty_map()),
        ]);
        let brine = value::map([
            ("master_is_up", Value::from(is_up)),
            ("requests_refused", Value::from(count(&self.refused))),
            ("requests_failed", Value::from(count(&self.failed))),
        ]);
        value::map([("CherryPy Applications", applications), ("Cheroot HTTPServer 0", server), ("Brine", brine)])
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
