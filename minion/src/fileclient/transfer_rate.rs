//! The lowest rate at which a file may come. Without it, a server that answers each request in time but with few bytes could delay a job
//! without end.

use std::time::Duration;

use tokio::time::Instant;

/// Time that any file may take ...
const GRACE: Duration = Duration::from_secs(30);
/// ... beside the time that it needs at this many bytes a second: one piece of Salt's 256 KiB within the 60 s of
/// `request_channel_timeout`.
const MIN_RATE: u64 = 4096;
/// Upper bound on the time for a file. The part of a module that came is kept for the next fetch.
const MAX_TIME: Duration = Duration::from_secs(3600);
/// Pieces that may have any size ...
const FREE_PIECES: u64 = 64;
/// ... beside those with at least this many bytes. Salt's `file_buffer_size` is 262144; each piece costs a request.
const MIN_PIECE: u64 = 512;

/// Measures one fetch.
#[derive(Debug)]
pub(super) struct TransferRate {
    began: Instant,
    bytes: u64,
    pieces: u64,
}

impl TransferRate {
    pub(super) fn begin() -> Self {
        Self { began: Instant::now(), bytes: 0, pieces: 0 }
    }

    /// Counts a piece. The error says why no further pieces are fetched.
    pub(super) fn add_piece(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes as u64;
        self.pieces += 1;
        self.judge(self.began.elapsed())
    }

    fn judge(&self, took: Duration) -> Result<(), String> {
        let Self { bytes, pieces, .. } = *self;
        if pieces > FREE_PIECES && bytes / MIN_PIECE + FREE_PIECES < pieces {
            let size = bytes / pieces;
            return Err(format!(
                "{pieces} pieces had {bytes} bytes, about {size} each; the master's file_buffer_size has to be at least {MIN_PIECE}"
            ));
        }
        let seconds = took.as_secs();
        if took > MAX_TIME {
            return Err(format!("{bytes} bytes came in {seconds} s, and a file may take {} s", MAX_TIME.as_secs()));
        }
        if took > GRACE + Duration::from_secs(bytes / MIN_RATE) {
            return Err(format!(
                "{bytes} bytes came in {seconds} s, less than {MIN_RATE} a second; try again when the link or the master is better"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64, bytes: u64, pieces: u64) -> Result<(), String> {
        TransferRate { began: Instant::now(), bytes, pieces }.judge(Duration::from_secs(seconds))
    }

    #[test]
    fn slow_links_are_fast_enough_and_a_byte_a_piece_is_not() {
        for (seconds, bytes, pieces) in [
            (29, 1, 1),           // a small file, late
            (0, 64, 64),          // a file of few bytes
            (3000, 16 << 20, 64), // 5.6 kB a second
            (60, 256 << 10, 1),   // one whole piece in all the time of a request
            (5, 1_000_000, 1000), // a small file_buffer_size
        ] {
            assert_eq!(after(seconds, bytes, pieces), Ok(()), "{seconds} s, {bytes} bytes, {pieces} pieces");
        }
        for (seconds, bytes, pieces, why) in [
            (0, 65, 65, "65 pieces had 65 bytes, about 1 each"),
            (1, 100_000, 1000, "about 100 each"),
            (31, 100, 2, "less than 4096 a second"),
            (600, 1 << 20, 4, "less than 4096 a second"),
            (3601, 64 << 20, 256, "a file may take 3600 s"),
        ] {
            let error = after(seconds, bytes, pieces).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
