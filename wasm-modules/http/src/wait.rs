//! Asking again and again.

use crate::wasi::clocks::monotonic_clock::{now, subscribe_duration};

const SECOND: f64 = 1e9;
/// Seconds between tries, unless the caller says otherwise: Salt's own default is none, which is a flood.
const INTERVAL: f64 = 1.0;

/// How long to ask, and how often. In seconds.
pub(crate) struct Patience {
    most: f64,
    interval: f64,
}

impl Patience {
    pub(crate) fn new(most: Option<f64>, interval: Option<f64>) -> Self {
        let bounded =
            |seconds: f64, least: f64| if seconds.is_finite() { seconds.clamp(least, 86_400.0) } else { least };
        Self { most: bounded(most.unwrap_or(300.0), 0.0), interval: bounded(interval.unwrap_or(INTERVAL), 0.1) }
    }

    /// Asks until an answer is good. After that time, the last one.
    pub(crate) fn until<T>(&self, ask: impl Fn() -> Result<T, String>, good: impl Fn(&T) -> bool) -> Result<T, String> {
        let begun = now();
        loop {
            let answer = ask()?;
            let over = now().saturating_sub(begun) as f64 > self.most * SECOND;
            if over || good(&answer) {
                return Ok(answer);
            }
            subscribe_duration((self.interval * SECOND) as u64).block();
        }
    }
}
