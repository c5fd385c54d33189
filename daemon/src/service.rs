//! Messages to the service manager (sd_notify(3)). Without a service manager, they have no effect.

use std::time::Duration;

use sd_notify::NotifyState;

/// Reports that the daemon is ready.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the daemon is stopping, and how long that may take if the unit's `TimeoutStopSec` may be too short for it. At most 71 minutes
/// can be told.
pub fn stopping(longest: Option<Duration>) {
    tell(&[NotifyState::Stopping]);
    if let Some(longest) = longest {
        let longest_us = u32::try_from(longest.as_micros()).unwrap_or(u32::MAX);
        tell(&[NotifyState::ExtendTimeoutUsec(longest_us)]);
    }
}

/// Reports that the daemon reads its configuration again; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!("systemd was not told of the reload: {error}"),
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("systemd was not told what this daemon does: {error}");
    }
}

/// Sends keep-alive messages to the watchdog if it is enabled (`WatchdogSec=`). Each message proves that a worker of
/// the runtime ran a task and that a timer fired. Must be spawned as a task.
pub async fn watchdog() {
    let Some(every) = interval() else { return };
    let mut tick = tokio::time::interval(every);
    loop {
        tick.tick().await;
        if tokio::spawn(async {}).await.is_ok() {
            tell(&[NotifyState::Watchdog]);
        }
    }
}

/// Half of the service manager's timeout, as systemd recommends.
fn interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|within| within / 2).filter(|every| !every.is_zero())
}
