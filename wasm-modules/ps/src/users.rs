//! Who is logged in, from the records of the C library (`utmp`), with psutil's names.

use brine_guest::Value;

pub(crate) const FILE: &str = "/run/utmp";
/// Upper bound on the users that are shown.
const MAX_USERS: usize = 10_000;
/// The record of a user's session.
const USER_PROCESS: u16 = 7;
/// Highest type of a record.
const LAST_TYPE: u16 = 9;

/// Where the parts of a record are: its length, and its time's place and bytes. All else is at the same places.
struct Layout {
    length: usize,
    time: usize,
    wide: bool,
}

/// On x86 and POWER, times have 32 bits so that programs of 32 bits read them too; elsewhere 64.
const LAYOUTS: [Layout; 2] =
    [Layout { length: 384, time: 340, wide: false }, Layout { length: 400, time: 344, wide: true }];

impl Layout {
    fn fits(&self, content: &[u8]) -> bool {
        content.len().is_multiple_of(self.length)
            && content.chunks_exact(self.length).all(|record| kind(record).is_some_and(|kind| kind <= LAST_TYPE))
    }

    /// The time of a log-in in seconds since 1970.
    fn time(&self, record: &[u8]) -> Option<f64> {
        let bytes = if self.wide { 8 } else { 4 };
        let number = |at: usize| {
            let part = record.get(at..at + bytes)?;
            let mut whole = [0; 8];
            whole[..bytes].copy_from_slice(part);
            Some(u64::from_le_bytes(whole))
        };
        // psutil leaves the microseconds out.
        number(self.time).map(|seconds| seconds as f64)
    }
}

fn kind(record: &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes(record.get(..2)?.try_into().ok()?))
}

/// A text that ends at a NUL byte or with its field.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// The users of a file of records; nobody of a file that has other records.
pub(crate) fn parse(content: &[u8]) -> Vec<Value> {
    let Some(layout) = LAYOUTS.iter().find(|layout| layout.fits(content)) else { return Vec::new() };
    let records = content.chunks_exact(layout.length).filter(|record| kind(record) == Some(USER_PROCESS));
    records.take(MAX_USERS).filter_map(|record| user(layout, record)).collect()
}

fn user(layout: &Layout, record: &[u8]) -> Option<Value> {
    let pid = i32::from_le_bytes(record.get(4..8)?.try_into().ok()?);
    let (terminal, name, host) = (text(record.get(8..40)?), text(record.get(44..76)?), text(record.get(76..332)?));
    // A log-in at this host's own screen.
    let host = if matches!(host.as_str(), ":0" | ":0.0") { "localhost".to_owned() } else { host };
    Some(Value::dict([
        ("name", name.into()),
        ("terminal", if terminal.is_empty() { Value::None } else { terminal.into() }),
        ("host", host.into()),
        ("started", Value::Float(layout.time(record)?)),
        ("pid", i64::from(pid).into()),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(layout: &Layout, kind: u16) -> Vec<u8> {
        let mut record = vec![0; layout.length];
        record[..2].copy_from_slice(&kind.to_le_bytes());
        record[4..8].copy_from_slice(&77_i32.to_le_bytes());
        record[8..13].copy_from_slice(b"pts/0");
        record[44..47].copy_from_slice(b"ann");
        record[76..84].copy_from_slice(b"10.0.0.9");
        record[layout.time..layout.time + 4].copy_from_slice(&1_700_000_000_u32.to_le_bytes());
        record
    }

    #[test]
    fn sessions_of_users_are_shown_in_both_layouts() {
        for layout in &LAYOUTS {
            let content = [record(layout, 2), record(layout, USER_PROCESS), record(layout, 8)].concat();
            let ann = Value::dict([
                ("name", "ann".into()),
                ("terminal", "pts/0".into()),
                ("host", "10.0.0.9".into()),
                ("started", Value::Float(1_700_000_000.0)),
                ("pid", Value::Int(77)),
            ]);
            assert_eq!(parse(&content), [ann], "{}", layout.length);
        }
    }

    #[test]
    fn other_files_have_nobody() {
        assert!(parse(b"").is_empty() && parse(&[7; 384]).is_empty() && parse(&[7, 0, 1]).is_empty());
    }
}
