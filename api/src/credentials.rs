//! The caller's token: in a header, or in the cookie that the log-in set.

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use brine_protocol::secret::Secret;

use crate::problem::Problem;

/// Name of the cookie.
pub const COOKIE_NAME: &str = "session_id";
/// The header with the token.
pub const TOKEN_HEADER: &str = "x-auth-token";
/// Longest token in characters: Salt's have 64 to 128.
const TOKEN_MAX: usize = 128;

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
    headers.contains_key(TOKEN_HEADER) || headers.contains_key(AUTHORIZATION) || cookie(headers).is_some()
}

/// Returns the token of a request: of `X-Auth-Token`, else of `Authorization: Bearer`, else of the cookie. The first
/// that is there counts, even if it is wrong and another would be right.
///
/// # Errors
/// When there is none, or it cannot be a token, or another site's page sent the cookie.
pub fn token(headers: &HeaderMap) -> Result<Token, Problem> {
    if let Some(token) = headers.get(TOKEN_HEADER) {
        return Token::parse(token.to_str().unwrap_or_default());
    }
    if let Some(authorization) = headers.get(AUTHORIZATION) {
        let text = authorization.to_str().unwrap_or_default();
        let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
        return if scheme.eq_ignore_ascii_case("bearer") {
            Token::parse(token.trim())
        } else {
            Err(Problem::unauthorized())
        };
    }
    let cookie = cookie(headers).ok_or_else(Problem::unauthorized)?;
    if is_foreign(headers) {
        let why = "The session's cookie does not count in a request that another site's page sent";
        return Err(Problem::new(StatusCode::FORBIDDEN, why));
    }
    Token::parse(cookie)
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.trim_matches('"'))
}

/// Whether a browser sent this for a page of another site. Programs other than browsers send neither header.
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
        return true;
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
    let authority = origin.as_ref().and_then(Uri::authority).map(|authority| authority.as_str());
    !matches!((authority, host), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(headers: &[(&'static str, &str)]) -> Result<String, u16> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        token(&headers).map(|token| token.secret().expose().clone()).map_err(|problem| problem.status().as_u16())
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
        assert_eq!(found(&[("x-auth-token", ""), ("cookie", "session_id=c3")]), Err(401));
        assert_eq!(found(&[("authorization", "Basic b2"), ("cookie", "session_id=c3")]), Err(401));
        for wrong in ["", "auto", "xyz", "a1 ", "../a1", "a1/b2", "0xa1", "-1", &"a".repeat(129)] {
            assert_eq!(found(&[("x-auth-token", wrong)]), Err(401), "{wrong:?}");
        }
        assert_eq!(found(&[]), Err(401));
    }

    #[test]
    fn another_sites_page_has_no_use_of_the_cookie() {
        let with = |name: &'static str, value: &str| {
            found(&[("host", "api.example:8000"), ("cookie", "session_id=c3"), (name, value)]).err()
        };
        for own in
            [("origin", "https://api.example:8000"), ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "none")]
        {
            assert_eq!(with(own.0, own.1), None, "{own:?}");
        }
        for foreign in [
            ("origin", "https://evil.example"),
            ("origin", "https://api.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(with(foreign.0, foreign.1), Some(403), "{foreign:?}");
        }
        assert_eq!(found(&[("x-auth-token", "a1"), ("origin", "https://evil.example")]), Ok("a1".to_owned()));
    }
}
