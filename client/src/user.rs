//! The name of the user that runs the command. It selects the key file and is sent to the master, which verifies it.

use std::path::Path;

/// The name of the user with this uid, from /etc/passwd; for users elsewhere (LDAP) from the environment.
fn name_of(uid: u32) -> String {
    by_passwd(Path::new("/etc/passwd"), |fields| fields[2].parse() == Ok(uid))
        .map(|fields| fields[0].clone())
        .or_else(|| std::env::var("LOGNAME").or_else(|_| std::env::var("USER")).ok())
        .unwrap_or_else(|| uid.to_string())
}

/// The uid of the user with this name.
pub fn find_uid(name: &str) -> Option<u32> {
    by_passwd(Path::new("/etc/passwd"), |fields| fields[0] == name)?[2].parse().ok()
}

/// The fields of the first matching line of a passwd file (seven, or at least three).
fn by_passwd(path: &Path, matches: impl Fn(&[String]) -> bool) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines()
        .map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>())
        .find(|fields| fields.len() >= 3 && matches(fields))
}

/// Salt's name for the caller: the user, or `sudo_<user>` if `sudo` made the user root.
pub(crate) fn caller_name() -> String {
    let user = name_of(rustix::process::geteuid().as_raw());
    match std::env::var("SUDO_USER") {
        Ok(sudo) if user == "root" => format!("sudo_{sudo}"),
        _ => user,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_root() {
        assert_eq!(name_of(0), "root");
        assert_eq!(find_uid("root"), Some(0));
        assert_eq!(find_uid("no such user"), None);
    }
}
