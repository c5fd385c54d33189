//! A place in the master's events.

use std::fmt;
use std::str::FromStr;

/// A place in the master's events: `EPOCH-SEQ`. Each start of the master is an epoch of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The master's start.
    pub epoch: u64,
    /// The number of the event in it, from 1; 0 is before the first.
    pub seq: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.epoch, self.seq)
    }
}

/// A text that is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not the id of an event")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (epoch, seq) = text.split_once('-').filter(|(epoch, seq)| digits(epoch) && digits(seq)).ok_or(NoCursor)?;
        let epoch = u64::from_str_radix(epoch, 16).map_err(|_| NoCursor)?;
        Ok(Self { epoch, seq: seq.parse().map_err(|_| NoCursor)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let at = Cursor { epoch: 7, seq: 12 };
        assert_eq!(at.to_string(), "0000000000000007-12");
        assert_eq!("0000000000000007-12".parse(), Ok(at));
        for wrong in ["", "-", "7", "7-", "-7", "g-1", "1-a", "+1-1", "1-+1", "1-1-1", "11112222333344445-1"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(NoCursor), "{wrong}");
        }
    }
}
