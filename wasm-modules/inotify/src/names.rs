//! The names of what happens: in the configuration, and in events.

/// Events and options, and their bits.
const BITS: [(&str, u32); 17] = [
    ("access", 0x1),
    ("modify", 0x2),
    ("attrib", 0x4),
    ("close_write", 0x8),
    ("close_nowrite", 0x10),
    ("open", 0x20),
    ("moved_from", 0x40),
    ("moved_to", 0x80),
    ("create", 0x100),
    ("delete", 0x200),
    ("delete_self", 0x400),
    ("move_self", 0x800),
    ("unmount", 0x2000),
    ("q_overflow", 0x4000),
    ("ignored", 0x8000),
    ("excl_unlink", 0x0400_0000),
    ("onlydir", 0x0100_0000),
];
const ONESHOT: u32 = 0x8000_0000;
const IS_DIRECTORY: u32 = 0x4000_0000;
/// These come without being asked for.
const ALWAYS: u32 = 0xe000;

/// What is watched for without a mask: create, delete and modify.
pub const DEFAULT: u32 = 0x302;

/// The bit of a word of the configuration. None if it is none.
pub fn bit(word: &str) -> Option<u32> {
    match word {
        "oneshot" => Some(ONESHOT),
        "q_overflow" => None,
        word => BITS.iter().find(|(name, _)| *name == word).map(|(_, bit)| *bit),
    }
}

/// A mask as the minion takes it.
pub fn mask(words: impl Iterator<Item = u32>) -> u32 {
    words.fold(0, |mask, bit| mask | bit) & !ALWAYS
}

/// What an event is called.
pub fn of_event(mask: u32) -> String {
    let bits = mask & !IS_DIRECTORY;
    let name = match BITS.iter().find(|(_, bit)| *bit == bits) {
        Some((name, _)) => format!("IN_{}", name.to_uppercase()),
        None => format!("{bits:#x}"),
    };
    if mask & IS_DIRECTORY == 0 { name } else { format!("{name}|IN_ISDIR") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bits() {
        assert_eq!(bit("create"), Some(0x100));
        assert_eq!((bit("q_overflow"), bit("dont_follow"), bit("all_events"), bit("")), (None, None, None, None));
        let words = ["create", "delete", "modify", "ignored", "unmount"];
        assert_eq!(mask(words.into_iter().filter_map(bit)), DEFAULT);
        assert_eq!(of_event(0x4000_0080), "IN_MOVED_TO|IN_ISDIR");
        assert_eq!(of_event(0x8), "IN_CLOSE_WRITE");
    }
}
