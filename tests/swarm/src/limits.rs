//! The limit on open files, which bounds the number of minions.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Connections of a minion: the subscription and the connection for requests.
pub const FILES_PER_MINION: u64 = 2;
/// Files of the process itself: the runtime's, the standard streams, those of a client.
const FILES_BESIDE: u64 = 64;

/// Raises the limit on open files as far as the system allows. Returns the number of files that the process may have.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    // Raising the limit up to the hard limit should succeed. If not, the lower one applies.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    if raised.is_ok() { most } else { limit.current.unwrap_or(u64::MAX) }
}

/// Returns how many of `wanted` minions a process with `files` open files can have, and a line with the reason if these
/// are fewer.
pub fn fit(wanted: usize, files: u64) -> (usize, Option<String>) {
    let room = usize::try_from(files.saturating_sub(FILES_BESIDE) / FILES_PER_MINION).unwrap_or(usize::MAX);
    if wanted <= room {
        return (wanted, None);
    }
    let why = format!(
        "{room} minions instead of {wanted}: a process may have {files} open files here and each minion takes {FILES_PER_MINION}, at the master \
         too; raise the hard limit (ulimit -Hn) for more"
    );
    (room, Some(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_files_are_fewer_minions_and_a_line() {
        assert_eq!(fit(100, 1_000), (100, None));
        let (room, why) = fit(10_000, 20_000);
        assert_eq!(room, 9_968);
        assert!(why.unwrap().contains("9968 minions instead of 10000"));
        assert_eq!(fit(1, 10).0, 0);
    }
}
