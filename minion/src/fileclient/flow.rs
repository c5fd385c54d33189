//! How long the pieces of a file are: as long as the connection carries in a moment. A slow link gets short ones, so that little is lost when
//! it breaks and jobs beside the file do not wait; a fast one long ones, so that requests cost little.

use std::time::Duration;

use tokio::time::Instant;

/// Bytes of the first piece. Salt's own pieces have as many.
const FIRST: u64 = 256 << 10;
/// The shortest piece: a request costs about 1 KiB.
const LEAST: u64 = 64 << 10;
/// The longest piece. Several are under way at once, each in memory; longer ones are not faster.
const MOST: u64 = 1 << 20;
/// What comes in this time is one piece. With [`super::pieces::AHEAD`] under way, a link that breaks loses less than a second of its work.
const MOMENT: Duration = Duration::from_millis(250);
/// How many times as long a piece is as the one before, at most: one that came fast may have been an exception.
const GROWTH: u64 = 4;

/// What a connection carries, measured by the pieces that came over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flow {
    piece: u64,
}

impl Default for Flow {
    fn default() -> Self {
        Self { piece: FIRST }
    }
}

impl Flow {
    /// Bytes of the next piece to ask for.
    pub(super) const fn piece(self) -> u64 {
        self.piece
    }

    /// This many bytes came in this time, in which nothing else of the file came.
    fn add(&mut self, bytes: u64, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let carried = bytes.saturating_mul(u64::try_from(MOMENT.as_micros()).unwrap_or(u64::MAX)) / micros;
        // A short piece says little about more than itself.
        self.piece = carried.min(bytes.max(self.piece / GROWTH).saturating_mul(GROWTH)).clamp(LEAST, MOST);
    }
}

/// Measures one fetch.
pub(super) struct Measured {
    pub(super) flow: Flow,
    since: Instant,
}

impl Measured {
    /// Begins with what an earlier fetch measured.
    pub(super) fn begin(flow: Flow) -> Self {
        Self { flow, since: Instant::now() }
    }

    /// Nothing was under way until now.
    pub(super) fn asked_first(&mut self) {
        self.since = Instant::now();
    }

    /// A piece came.
    pub(super) fn came(&mut self, bytes: u64) {
        let now = Instant::now();
        self.flow.add(bytes, now - self.since);
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a link that carries so many bytes a second, each after a pause.
    fn pieces(rate: u64, pause: Duration) -> Vec<u64> {
        let mut flow = Flow::default();
        let mut all = Vec::new();
        for _ in 0..8 {
            let piece = flow.piece();
            all.push(piece);
            flow.add(piece, pause + Duration::from_micros(piece * 1_000_000 / rate));
        }
        all
    }

    #[test]
    fn a_piece_is_what_comes_in_a_moment() {
        // 1 MB/s: a quarter of it, from the second piece on.
        assert!(pieces(1_000_000, Duration::ZERO)[1..].iter().all(|piece| (249_000..=250_000).contains(piece)));
        // Slower than the bounds can follow, and faster.
        assert!(pieces(10_000, Duration::ZERO)[1..].iter().all(|piece| *piece == LEAST));
        assert_eq!(pieces(1_000_000_000, Duration::ZERO)[..2], [FIRST, MOST]);
        // A long way that carries much: the pieces grow until the way does not count.
        let far = pieces(100_000_000, Duration::from_millis(50));
        assert!(far.is_sorted() && far[7] == MOST, "{far:?}");
    }

    #[test]
    fn one_fast_piece_does_not_make_the_next_one_huge_and_one_slow_piece_makes_it_short() {
        let mut flow = Flow { piece: LEAST };
        flow.add(LEAST, Duration::from_nanos(1));
        assert_eq!(flow.piece(), LEAST * GROWTH);
        flow.add(LEAST * GROWTH, Duration::from_secs(60));
        assert_eq!(flow.piece(), LEAST);
        // The short rest of a file tells nothing of the connection but that it is not slow.
        let mut flow = Flow { piece: MOST };
        flow.add(100, Duration::from_micros(20));
        assert!(flow.piece() >= LEAST);
    }
}
