//! URLs of sources in sentences, as Salt writes them.

/// Reasons of statuses, which HTTP/2 no longer sends.
const REASONS: [(u16, &str); 20] = [
    (300, "Multiple Choices"),
    (304, "Not Modified"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (402, "Payment Required"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (406, "Not Acceptable"),
    (407, "Proxy Authentication Required"),
    (408, "Request Timeout"),
    (410, "Gone"),
    (416, "Requested Range Not Satisfiable"),
    (429, "Too Many Requests"),
    (451, "Unavailable For Legal Reasons"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
    (502, "Bad Gateway"),
    (503, "Service Unavailable"),
    (504, "Gateway Timeout"),
];

/// Whether a URL is fetched by HTTP.
pub fn is_web(url: &str) -> bool {
    url.split_once("://")
        .is_some_and(|(scheme, _)| ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web)))
}

/// A URL without user and password: as in Salt, without all that is before the last `@`.
pub fn redacted(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, rest)), Some((_, end))) if is_web(url) && rest.contains('@') => {
            format!("{scheme}://<redacted>@{end}")
        }
        _ => url.to_owned(),
    }
}

/// Salt's sentence about a web server that has no file at a URL.
pub fn status_error(status: u16, url: &str) -> String {
    let reason = REASONS.iter().find(|(known, _)| *known == status).map_or("Unknown", |(_, reason)| reason);
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').map_or("", |at| &rest[at..]).split(['?', '#']).next().unwrap_or_default();
    format!("Error: HTTP {status}: {reason} reading {path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("https://u:p@h/x", "https://<redacted>@h/x"),
            ("https://u:p@h/x@y", "https://<redacted>@y"),
            ("https://h/x", "https://h/x"),
            ("/a@b", "/a@b"),
            ("salt://a@b", "salt://a@b"),
        ] {
            assert_eq!(redacted(url), shown);
        }
        assert_eq!(status_error(404, "http://u:p@h:1/a/b?c=d"), "Error: HTTP 404: Not Found reading /a/b");
        assert_eq!(status_error(299, "http://h"), "Error: HTTP 299: Unknown reading ");
    }
}
