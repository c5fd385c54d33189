//! Names of users and groups.

use std::sync::OnceLock;

/// Upper bound on the bytes of `/etc/passwd` and `/etc/group`: enough for a large site.
const MAX_ACCOUNTS_BYTES: u64 = 16 * 1024 * 1024;

/// Looks up the name of a user in `/etc/passwd`.
pub(crate) fn user_name(uid: u32) -> Option<String> {
    find_account("/etc/passwd", |fields| {
        fields.get(2)?.parse().ok().filter(|n: &u32| *n == uid).map(|_| fields[0].to_owned())
    })
}

/// Returns the name of the user that runs this program, as Salt records it for a call at a terminal: `sudo_NAME` if
/// `sudo` made that user root. It is looked up once: beacons ask for it at each look.
pub(crate) fn own_name() -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    let look_up = || {
        let uid = rustix::process::getuid().as_raw();
        match (std::env::var("SUDO_USER"), user_name(uid)) {
            (Ok(who), _) if uid == 0 && !who.is_empty() && who != "root" => format!("sudo_{who}"),
            (_, Some(name)) => name,
            _ => uid.to_string(),
        }
    };
    NAME.get_or_init(look_up).clone()
}

/// Looks up the name of a group in `/etc/group`.
pub(crate) fn group_name(gid: u32) -> Option<String> {
    find_account("/etc/group", |fields| {
        fields.get(2)?.parse().ok().filter(|n: &u32| *n == gid).map(|_| fields[0].to_owned())
    })
}

fn find_account<T>(file: &str, mut pick: impl FnMut(&[&str]) -> Option<T>) -> Option<T> {
    let text = crate::text_file::read_text(file, MAX_ACCOUNTS_BYTES)?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        if fields.len() < 3 { None } else { pick(&fields) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_number() {
        assert_eq!(user_name(0).as_deref(), Some("root"));
        assert_eq!(group_name(0).as_deref(), Some("root"));
        assert_eq!(user_name(u32::MAX - 7), None);
    }
}
