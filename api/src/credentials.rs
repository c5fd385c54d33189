//! The caller's token: in a header, or in the cookie that the log-in set.

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use brine_protocol::nodes::TOKEN_MAX;
use brine_protocol::secret::Secret;

use crate::problem::Problem;
use crate::rules::{self, Rules, Trust};

/// Name of the cookie.
pub const COOKIE_NAME: &str = "session_id";
/// The header with the token.
pub const TOKEN_HEADER: &str = "x-auth-token";

/// A text that may be a token. Whether it is one, the master decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(Secret<String>);

impl Token {
    /// Takes a text of hexadecimal digits.
    ///
    /// # Errors
    /// When it is anything else, for example empty.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let is_hex = !text.is_empty() && text.len() <= TOKEN_MAX && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| Self(Secret::new(text.to_owned()))).ok_or_else(Problem::unauthorized)
    }

    /// The text.
    pub const fn secret(&self) -> &Secret<String> {
        &self.0
    }
}

/// Returns whether a request says who it is from, rightly or wrongly.
pub fn are_given(headers: &HeaderMap) -> bool {
    headers.contains_key(TOKEN_HEADER) || bearer(headers).is_some() || cookie(headers).is_some()
}

/// Returns the token of a request: of `X-Auth-Token`, else of `Authorization: Bearer`, else of the cookie. The first
/// that is there counts, even if it is wrong and another would be right.
///
/// # Errors
/// When there is none, or it cannot be a token, or there are two, or another site's page sent the cookie.
pub fn token(headers: &HeaderMap, rules: &Rules, tls: bool) -> Result<Token, Problem> {
    if headers.contains_key(TOKEN_HEADER) {
        return Token::parse(only(headers, &HeaderName::from_static(TOKEN_HEADER)).unwrap_or_default());
    }
    if let Some(text) = bearer(headers) {
        return Token::parse(text);
    }
    let cookie = cookie(headers).filter(|_| rules.sessions).ok_or_else(Problem::unauthorized)?;
    if is_foreign(headers, rules, tls) {
        let why = "The session's cookie does not count in a request that another site's page sent";
        return Err(Problem::new(StatusCode::FORBIDDEN, why));
    }
    Token::parse(cookie)
}

/// The token of `Authorization: Bearer`; the empty text, which is no token, if the header is there twice. Other schemes are a proxy's.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?;
    let Some(text) = only(headers, &AUTHORIZATION) else { return Some("") };
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The text of a header that is there once. None if it is there twice, as which one counts differs from reader to reader.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The token of the cookie. Of two different ones another site's page may have set one (for a parent domain): then it is
/// the empty text, which is no token.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(COOKIE).iter().map(|line| line.to_str().unwrap_or_default());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut tokens = pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.trim_matches('"'));
    let first = tokens.next()?;
    Some(if tokens.all(|token| token == first) { first } else { "" })
}

/// Whether a browser sent this for a page of another site that `cors_origins` does not name. Programs other than browsers
/// send neither `Origin` nor `Sec-Fetch-Site`.
pub fn is_foreign(headers: &HeaderMap, rules: &Rules, tls: bool) -> bool {
    let name = HeaderName::from_static("sec-fetch-site");
    let site = headers.contains_key(&name).then(|| only(headers, &name));
    // The browser compared the page's origin with the address that it asked. We know only the `Host` that a proxy may have changed.
    if site == Some(Some("same-origin")) {
        return false;
    }
    if headers.contains_key(ORIGIN) {
        let Some(origin) = only(headers, &ORIGIN) else { return true };
        if rules.origins.trust(origin) == Trust::Full {
            return false;
        }
        if !is_own(origin, only(headers, &HOST), tls) {
            return true;
        }
    }
    site.is_some_and(|site| site != Some("none"))
}

/// Whether an origin is that of the request's own host. Behind a proxy its scheme cannot be known; under TLS it can.
fn is_own(text: &str, own: Option<&str>, tls: bool) -> bool {
    let origin = rules::origin(text);
    let Some((scheme, authority)) = origin.as_deref().and_then(|origin| origin.split_once("://")) else { return false };
    (scheme == "https" || !tls) && own.and_then(|host| rules::host(host, scheme)).as_deref() == Some(authority)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use brine_protocol::config::{Config, Role};

    use super::*;

    type Headers<'a> = &'a [(&'static str, &'a str)];

    fn rules(yaml: &str) -> Rules {
        let yaml = format!("rest_cherrypy: {{{yaml}}}");
        Rules::from_config(&Config::from_yaml(&yaml, Path::new("/etc/salt/master"), Role::Master).unwrap()).unwrap()
    }

    fn found_with(yaml: &str, tls: bool, headers: Headers<'_>) -> Result<String, u16> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        token(&headers, &rules(yaml), tls)
            .map(|token| token.secret().expose().clone())
            .map_err(|problem| problem.status().as_u16())
    }

    fn found(headers: Headers<'_>) -> Result<String, u16> {
        found_with("", false, headers)
    }

    #[test]
    fn the_first_that_is_there_counts() {
        let ok = |token: &str| Ok(token.to_owned());
        assert_eq!(
            found(&[("x-auth-token", "a1"), ("authorization", "Bearer b2"), ("cookie", "session_id=c3")]),
            ok("a1")
        );
        assert_eq!(found(&[("authorization", "bearer  b2"), ("cookie", "session_id=c3")]), ok("b2"));
        assert_eq!(found(&[("cookie", "x=1; session_id=c3; y=2")]), ok("c3"));
        // HTTP/2 may send each cookie in a line of its own.
        assert_eq!(found(&[("cookie", "x=1"), ("cookie", "session_id=c3")]), ok("c3"));
        assert_eq!(found(&[("cookie", "session_id=c3"), ("cookie", "session_id=c3")]), ok("c3"));
        assert_eq!(found(&[("x-auth-token", ""), ("cookie", "session_id=c3")]), Err(401));
        assert_eq!(found(&[("authorization", "Basic b2"), ("cookie", "session_id=c3")]), ok("c3"));
        assert_eq!(found(&[("authorization", "Basic b2")]), Err(401));
        assert_eq!(found(&[("authorization", "Bearer"), ("cookie", "session_id=c3")]), Err(401));
        for wrong in ["", "auto", "xyz", "a1 ", "../a1", "a1/b2", "0xa1", "-1", &"a".repeat(129)] {
            assert_eq!(found(&[("x-auth-token", wrong)]), Err(401), "{wrong:?}");
        }
        assert_eq!(found(&[]), Err(401));
    }

    /// Of two, readers differ in which one counts.
    #[test]
    fn two_credentials_are_none() {
        for two in [
            &[("x-auth-token", "a1"), ("x-auth-token", "a1")][..],
            &[("x-auth-token", "a1"), ("x-auth-token", "")],
            &[("authorization", "Bearer a1"), ("authorization", "Bearer b2")],
            &[("authorization", "Basic a1"), ("authorization", "Bearer b2"), ("cookie", "session_id=c3")],
            &[("cookie", "session_id=a1; session_id=b2")],
            &[("cookie", "session_id=a1"), ("cookie", "session_id=b2")],
        ] {
            assert_eq!(found(two), Err(401), "{two:?}");
        }
    }

    #[test]
    fn another_sites_page_has_no_use_of_the_cookie() {
        let with = |host: &str, more: Headers<'_>| {
            let mut headers = vec![("host", host), ("cookie", "session_id=c3")];
            headers.extend(more);
            found(&headers).err()
        };
        let host = "api.example:8000";
        for own in [
            &[("origin", "https://api.example:8000")][..],
            &[("origin", "http://API.example:8000")],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
            &[("origin", "https://api.example:8000"), ("sec-fetch-site", "same-origin")],
            // Behind a proxy that asks by another name.
            &[("origin", "https://salt.example"), ("sec-fetch-site", "same-origin")],
        ] {
            assert_eq!(with(host, own), None, "{own:?}");
        }
        for foreign in [
            &[("origin", "https://evil.example")][..],
            &[("origin", "https://api.example")],
            &[("origin", "https://api.example:8001")],
            &[("origin", "https://api.example:8000.evil.example")],
            &[("origin", "https://evil.example?api.example:8000")],
            &[("origin", "https://api.example:8000@evil.example")],
            &[("origin", "https://evil@api.example:8000")],
            &[("origin", "https://api.example.:8000")],
            &[("origin", "null")],
            &[("origin", "")],
            &[("origin", "api.example:8000")],
            &[("origin", "ftp://api.example:8000")],
            &[("origin", "https://api.example:8000, https://evil.example")],
            &[("origin", "https://api.example:8000"), ("origin", "https://evil.example")],
            &[("origin", "https://api.example:8000"), ("origin", "https://api.example:8000")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "same-origin, cross-site")],
            &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "Same-Origin")],
            &[("sec-fetch-site", "")],
            &[("origin", "https://api.example:8000"), ("sec-fetch-site", "cross-site")],
            &[("origin", "https://evil.example"), ("sec-fetch-site", "none")],
            &[("origin", "https://evil.example"), ("sec-fetch-site", "same-site")],
            // The host is the request's own, whatever proxies' headers say.
            &[("origin", "https://evil.example"), ("x-forwarded-host", "evil.example")],
            &[("origin", "https://evil.example"), ("host", "evil.example")],
        ] {
            assert_eq!(with(host, foreign), Some(403), "{foreign:?}");
        }
        for (host, origin, is_own) in [
            ("api.example", "https://api.example:443", true),
            ("api.example:443", "https://api.example", true),
            ("api.example:80", "http://api.example", true),
            ("api.example:443", "http://api.example", false),
            ("[2001:DB8::1]:8000", "http://[2001:db8::1]:8000", true),
            ("[2001:db8::1]", "http://[2001:db8::2]", false),
            ("[2001:db8::1]:8000", "http://[2001:db8::1]", false),
            ("", "http://", false),
            ("@", "http://@", false),
        ] {
            assert_eq!(with(host, &[("origin", origin)]).is_none(), is_own, "{host} {origin}");
        }
        assert_eq!(found(&[("cookie", "session_id=c3"), ("origin", "http://api.example")]), Err(403), "no Host");
        assert_eq!(found(&[("x-auth-token", "a1"), ("origin", "https://evil.example")]), Ok("a1".to_owned()));
    }

    /// Under TLS, a page that came without it was perhaps changed on its way.
    #[test]
    fn under_tls_a_page_without_it_is_foreign() {
        let with = |tls, origin| {
            found_with("", tls, &[("host", "api.example:8000"), ("cookie", "session_id=c3"), ("origin", origin)]).err()
        };
        assert_eq!(with(true, "https://api.example:8000"), None);
        assert_eq!(with(true, "http://api.example:8000"), Some(403));
        assert_eq!(with(false, "http://api.example:8000"), None);
    }

    #[test]
    fn a_named_origin_has_use_of_the_cookie_and_a_star_has_not() {
        let with = |yaml: &str| {
            let headers = [
                ("host", "api.example"),
                ("cookie", "session_id=c3"),
                ("origin", "https://console.example"),
                ("sec-fetch-site", "cross-site"),
            ];
            found_with(yaml, true, &headers).err()
        };
        assert_eq!(with("cors_origins: ['https://console.example']"), None);
        assert_eq!(with("cors_origins: ['*']"), Some(403));
        assert_eq!(with("cors_origins: ['https://other.example']"), Some(403));
    }

    #[test]
    fn without_sessions_the_cookie_does_not_count() {
        assert_eq!(found_with("enable_sessions: False", false, &[("cookie", "session_id=c3")]), Err(401));
        assert_eq!(found_with("enable_sessions: False", false, &[("x-auth-token", "c3")]), Ok("c3".to_owned()));
    }
}
