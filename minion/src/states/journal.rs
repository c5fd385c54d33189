//! The file of a run's results: a length and that many bytes of MessagePack for each, only ever appended. A process that
//! is killed while it writes leaves a last result that is not whole, which is not read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, list, map, text};

/// Upper bound on the bytes of whole results; those after it are kept without their changes.
const MAX_BYTES: u64 = 32 << 20;
/// Upper bound on the bytes of a run's file.
const MAX_FILE: u64 = 64 << 20;
/// Bounds on one result.
const RESULT: msgpack::Limits = msgpack::Limits { max_bytes: 16 << 20, max_depth: 128, max_items: 4 << 20 };

/// The open file.
pub(super) struct Journal {
    file: File,
    bytes: u64,
}

impl Journal {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(Self { file, bytes: 0 })
    }

    /// Adds a result.
    ///
    /// # Errors
    /// When it cannot be written, or the file is full.
    pub(super) fn add(&mut self, tag: &str, result: &Value) -> io::Result<()> {
        let mut bytes = msgpack::encode_network(&list([text(tag), result.clone()]));
        if self.bytes + bytes.len() as u64 > MAX_BYTES {
            bytes = msgpack::encode_network(&list([text(tag), short(result)]));
        }
        if self.bytes + bytes.len() as u64 > MAX_FILE {
            return Err(io::Error::other(format!("they have more than {MAX_FILE} bytes")));
        }
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend_from_slice(&bytes);
        self.file.write_all(&frame)?;
        self.bytes += frame.len() as u64;
        Ok(())
    }
}

/// A result without its changes and with a bounded comment.
fn short(result: &Value) -> Value {
    const MAX_TEXT: usize = 200;
    let mut kept: Vec<(Value, Value)> = Vec::new();
    for (key, value) in result.entries().unwrap_or_default() {
        match (key.text(), value) {
            (Some("changes" | "comment"), _) | (_, Value::Map(_) | Value::Array(_)) => {}
            (_, value) if value.text().is_some_and(|text| text.len() > MAX_TEXT) => {}
            _ => kept.push((key.clone(), value.clone())),
        }
    }
    let mut kept = Value::Map(kept);
    kept.insert("changes", map::<&str, Value>([]));
    kept.insert("comment", "Comment and changes were left out: the results of this run are too large to be kept.");
    kept
}

/// The results in a file, in the order in which they were kept; a later one of a tag replaces the earlier. None if the
/// file is not there.
pub(super) fn read(path: &Path) -> Option<Vec<(Value, Value)>> {
    let bytes = brine_files::read_own(path, MAX_FILE).ok()?;
    let mut rest = bytes.as_slice();
    let mut results: Vec<(Value, Value)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let Some((frame, after)) = after.split_at_checked(u32::from_be_bytes(*length) as usize) else { break };
        let Ok(Value::Array(pair)) = msgpack::decode(frame, &RESULT) else { break };
        let Ok([tag, result]) = <[Value; 2]>::try_from(pair) else { break };
        let key = tag.text().unwrap_or_default().to_owned();
        match places.get(&key) {
            Some(&place) => results[place] = (tag, result),
            None => {
                places.insert(key, results.len());
                results.push((tag, result));
            }
        }
        rest = after;
    }
    Some(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(comment: &str) -> Value {
        map([("result", Value::from(true)), ("comment", text(comment)), ("changes", map([("a", 1)]))])
    }

    #[test]
    fn what_was_kept_is_read_up_to_the_first_torn_result() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        assert!(read(&path).is_none());
        let mut journal = Journal::create(&path).unwrap();
        for (tag, comment) in [("a", "1"), ("b", "2"), ("a", "3")] {
            journal.add(tag, &result(comment)).unwrap();
        }
        let whole = vec![(text("a"), result("3")), (text("b"), result("2"))];
        assert_eq!(read(&path), Some(whole.clone()));
        let length = std::fs::metadata(&path).unwrap().len();
        journal.add("c", &result("4")).unwrap();
        for cut in [length + 1, length + 4, length + 9] {
            let bytes = std::fs::read(&path).unwrap();
            let torn = folder.path().join("torn");
            std::fs::write(&torn, &bytes[..cut as usize]).unwrap();
            assert_eq!(read(&torn), Some(whole.clone()), "{cut}");
        }
    }

    #[test]
    fn a_run_cannot_fill_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut journal = Journal::create(&path).unwrap();
        let large = result(&"x".repeat(9 << 20));
        for tag in ["a", "b", "c", "d"] {
            journal.add(tag, &large).unwrap();
        }
        let kept = read(&path).unwrap();
        assert_eq!(kept.len(), 4);
        assert_eq!(kept[0].1, large);
        assert_eq!(kept[3].1.get("changes"), Some(&map::<&str, Value>([])));
        assert_eq!(kept[3].1.get("result"), Some(&Value::from(true)));
        assert!(std::fs::metadata(&path).unwrap().len() < MAX_BYTES);
    }
}
