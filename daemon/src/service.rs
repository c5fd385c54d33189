//! What the service manager is told (sd_notify(3)). Where there is none, nothing happens.

use std::time::Duration;

use sd_notify::NotifyState;

/// The daemon answers.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// It ends.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// It reads its configuration again; [`ready`] follows.
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

/// Tells the watchdog, if it wants to be told (`WatchdogSec=`), for as long as this runs: that a worker of the runtime took a task and
/// a timer rang. To be spawned.
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

/// Half of what the service manager waits, as systemd asks.
fn interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|within| within / 2).filter(|every| !every.is_zero())
}
