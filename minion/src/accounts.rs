//! Names of users and groups.

/// Upper bound on the bytes of `/etc/passwd` and `/etc/group`: those of a large site.
const MAX_ACCOUNTS_BYTES: u64 = 16 * 1024 * 1024;

/// The name of a user, from `/etc/passwd`.
pub(crate) fn user_name(uid: u32) -> Option<String> {
    find_account("/etc/passwd", |fields| {
        fields.get(2)?.parse().ok().filter(|n: &u32| *n == uid).map(|_| fields[0].to_owned())
    })
}

/// The user that runs this program, in Salt's form for calls at a terminal: `sudo_NAME` for root by sudo.
pub(crate) fn own_name() -> String {
    let uid = rustix::process::getuid().as_raw();
    match (std::env::var("SUDO_USER"), user_name(uid)) {
        (Ok(who), _) if uid == 0 && !who.is_empty() && who != "root" => format!("sudo_{who}"),
        (_, Some(name)) => name,
        _ => uid.to_string(),
    }
}

/// The name of a group, from `/etc/group`.
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
