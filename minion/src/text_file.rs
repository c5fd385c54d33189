//! Small text files of the system.

/// Reads at most `max` bytes of a text file; none if it is missing, unreadable or longer.
pub(crate) fn read_text(path: &str, max: u64) -> Option<String> {
    use std::io::Read;
    let file = std::fs::File::open(path).ok()?;
    let mut text = String::new();
    let read = file.take(max + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= max).then_some(text)
}
