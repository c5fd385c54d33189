//! Addresses of repositories, and the names and passwords in them.

/// Puts a name and a password into an address for HTTPS.
///
/// # Errors
/// When the address is not one for HTTPS, or there is a password without a name.
pub(crate) fn with_auth(url: &str, user: Option<&str>, password: Option<&str>) -> Result<String, String> {
    let Some(user) = user else {
        return match password {
            None => Ok(url.into()),
            Some(_) => Err("https_pass needs https_user".into()),
        };
    };
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest,
        _ => return Err("Basic Auth only supported for HTTPS".into()),
    };
    let password = password.map(|password| format!(":{}", quoted(password))).unwrap_or_default();
    Ok(format!("https://{}{password}@{rest}", quoted(user)))
}

/// A text in which no character has a meaning within an address.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(byte.into()),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// A text without the names and passwords in addresses for HTTP: in each line, what is between the first such address's
/// beginning and the last `@`.
pub(crate) fn redacted(text: &str) -> String {
    text.split_inclusive('\n').map(redacted_line).collect()
}

fn redacted_line(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let starts = |scheme: &str| lower.find(scheme).map(|at| at + scheme.len());
    let first = [starts("http://"), starts("https://")].into_iter().flatten().min();
    match (first, line.rfind('@')) {
        (Some(start), Some(end)) if start <= end => format!("{}<redacted>{}", &line[..start], &line[end..]),
        _ => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_password_are_put_into_an_address() {
        let url = "https://git.example/a.git";
        assert_eq!(with_auth(url, None, None), Ok(url.into()));
        assert_eq!(with_auth(url, Some("a@b"), None), Ok("https://a%40b@git.example/a.git".into()));
        assert_eq!(with_auth(url, Some("a"), Some("p/:ä")), Ok("https://a:p%2F%3A%C3%A4@git.example/a.git".into()));
        let refused = Err("Basic Auth only supported for HTTPS".into());
        assert_eq!(with_auth("http://git.example", Some("a"), Some("b")), refused);
        assert_eq!(with_auth("/srv/a.git", Some("a"), None), refused);
        assert!(with_auth(url, None, Some("b")).is_err());
    }

    #[test]
    fn names_and_passwords_are_not_shown() {
        assert_eq!(
            redacted("clone HTTPS://a:b@c@h/x\nhttp://h/y a@b"),
            "clone HTTPS://<redacted>@h/x\nhttp://<redacted>@b"
        );
        assert_eq!(redacted("ssh://git@h/x http://h/y"), "ssh://git@h/x http://h/y");
        assert_eq!(redacted("a@b https://h"), "a@b https://h");
    }
}
