//! Decides when to send a PING and when a silent peer counts as gone. The caller supplies the time.

use std::time::Duration;

use tokio::time::Instant;

use crate::Heartbeat;

/// The liveness of one peer.
#[derive(Debug)]
pub(crate) struct Liveness {
    config: Heartbeat,
    last_seen: Instant,
    pinged: Option<Instant>,
    /// The TTL of the peer's PINGs: the peer wants to be dropped after a longer silence.
    peer_ttl: Option<Duration>,
}

/// The action that is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    Ping,
    /// Nothing has arrived for this long.
    Dead(Duration),
}

impl Liveness {
    /// `pings` says whether the peer knows PING (ZMTP 3.1).
    pub(crate) fn new(mut config: Heartbeat, pings: bool, now: Instant) -> Liveness {
        if !pings {
            config.interval = None;
        }
        Liveness { config, last_seen: now, pinged: None, peer_ttl: None }
    }

    /// Records a sign of life: bytes arrived, or the peer accepted bytes that it had not accepted before.
    pub(crate) fn seen(&mut self, now: Instant) {
        self.last_seen = now;
        self.pinged = None;
    }

    /// Records the TTL of the peer's PING, in tenths of a second.
    pub(crate) fn peer_ttl(&mut self, tenths: u16) {
        self.peer_ttl = (tenths > 0).then(|| Duration::from_millis(u64::from(tenths) * 100));
    }

    /// The time of the next action of [`Liveness::due`], unless the peer shows a sign of life before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let ours = match (self.pinged, self.config.interval) {
            (Some(pinged), _) => Some(pinged + self.config.timeout),
            (None, Some(interval)) => Some(self.last_seen + interval),
            (None, None) => None,
        };
        let theirs = self.peer_ttl.map(|ttl| self.last_seen + ttl);
        ours.into_iter().chain(theirs).min()
    }

    /// The action that is due now. A PING that is due counts as sent.
    pub(crate) fn due(&mut self, now: Instant) -> Due {
        let silent = now.saturating_duration_since(self.last_seen);
        if self.peer_ttl.is_some_and(|ttl| silent >= ttl) {
            return Due::Dead(silent);
        }
        match (self.pinged, self.config.interval) {
            (Some(pinged), _) if now >= pinged + self.config.timeout => Due::Dead(silent),
            (None, Some(interval)) if silent >= interval => {
                self.pinged = Some(now);
                Due::Ping
            }
            _ => Due::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pings_after_the_interval_and_drops_after_the_timeout() {
        let start = Instant::now();
        let mut peer = Liveness::new(Heartbeat::default(), true, start);
        assert_eq!(peer.due(start + 9 * SECOND), Due::Nothing);
        assert_eq!(peer.deadline(), Some(start + 10 * SECOND));
        assert_eq!(peer.due(start + 10 * SECOND), Due::Ping);
        assert_eq!(peer.due(start + 11 * SECOND), Due::Nothing);
        assert_eq!(peer.deadline(), Some(start + 40 * SECOND));
        peer.seen(start + 12 * SECOND);
        assert_eq!(peer.deadline(), Some(start + 22 * SECOND));
        assert_eq!(peer.due(start + 22 * SECOND), Due::Ping);
        assert_eq!(peer.due(start + 51 * SECOND), Due::Nothing);
        assert_eq!(peer.due(start + 52 * SECOND), Due::Dead(40 * SECOND));
    }

    #[test]
    fn pings_nobody_who_does_not_know_ping() {
        let start = Instant::now();
        for mut peer in [Liveness::new(Heartbeat::default(), false, start), Liveness::new(Heartbeat::OFF, true, start)]
        {
            assert_eq!(peer.deadline(), None);
            assert_eq!(peer.due(start + 1000 * SECOND), Due::Nothing);
        }
    }

    #[test]
    fn honours_the_ttl_of_the_peer() {
        let start = Instant::now();
        let mut peer = Liveness::new(Heartbeat::OFF, true, start);
        peer.peer_ttl(20);
        assert_eq!(peer.deadline(), Some(start + 2 * SECOND));
        assert_eq!(peer.due(start + SECOND), Due::Nothing);
        assert_eq!(peer.due(start + 2 * SECOND), Due::Dead(2 * SECOND));
        peer.peer_ttl(0);
        assert_eq!(peer.deadline(), None);
    }
}
