//! The tags of events on which masters, their tools and clients act. A master refuses them from minions, and a minion
//! refuses them from its modules, because other implementations of the master accept any tag from a minion, and their
//! reactors trust it (CVE-2025-22239).

/// First parts of these tags.
const RESERVED: [&str; 12] = [
    "salt",
    "key",
    "minion",
    "resource",
    "syndic",
    "brine",
    "minion_start",
    "minion_ping",
    "new_job",
    "auth",
    "_salt_error",
    "fire_master",
];

/// Whether tags with this first part are the master's. So are those that begin with a jid, which callers check.
#[must_use]
pub fn is_reserved(first_part: &str) -> bool {
    RESERVED.contains(&first_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_masters_own_words_are_reserved_and_no_others() {
        assert!(["salt", "key", "auth", "new_job", "minion_start"].into_iter().all(is_reserved));
        assert!(!["", "salty", "Salt", "deploy", "myapp"].into_iter().any(is_reserved));
    }
}
