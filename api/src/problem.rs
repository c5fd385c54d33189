//! Why a request is not answered: a status and the page of HTML that Salt's users see. The text never repeats a
//! credential.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// What Salt says to a caller that is nobody.
pub const NO_PERMISSION: &str = "No permission -- see authorization schemes";

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    message: String,
    /// When another attempt makes sense.
    retry_after: Option<Duration>,
}

impl Problem {
    /// With this status and message.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    /// A malformed request.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A caller that is nobody, or may not do this.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, NO_PERMISSION)
    }

    /// The same, in other words of Salt's.
    pub fn unauthorized_because(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    /// A path that is not there. Salt repeats it; but it may be a token, as in Salt's `/ws/TOKEN`.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "The path was not found.")
    }

    /// A master that does not answer.
    pub fn master_away() -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "Salt Master is not available.");
        Self { retry_after: Some(Duration::from_secs(1)), ..problem }
    }

    /// Too many requests are under way.
    pub fn busy() -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "Too many requests are under way");
        Self { retry_after: Some(Duration::from_secs(1)), ..problem }
    }

    /// Too many log-ins failed.
    pub fn too_many(wait: Duration) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "Too many log-ins failed");
        Self { retry_after: Some(wait), ..problem }
    }

    /// The same of a caller with a password, who knows nothing of the token that this request made for it.
    #[must_use]
    pub fn of_a_password(self) -> Self {
        let message = self.message.replacen("failure of type \"token\"", "failure of type \"eauth\"", 1);
        Self { message, ..self }
    }

    /// The status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The page, as CherryPy writes it, without the advertisement.
    fn page(&self) -> String {
        let status = format!("{} {}", self.status.as_u16(), self.status.canonical_reason().unwrap_or_default());
        let message = escape(&self.message);
        format!(
            "<!DOCTYPE html PUBLIC\n\"-//W3C//DTD XHTML 1.0 Transitional//EN\"\n\
             \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n<html>\n<head>\n    \
             <meta http-equiv=\"Content-Type\" content=\"text/html; charset=utf-8\"></meta>\n    \
             <title>{status}</title>\n</head>\n    <body>\n        <h2>{status}</h2>\n        <p>{message}</p>\n    \
             </body>\n</html>\n"
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.page()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html;charset=utf-8"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Session"));
        }
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        // For the paths that show it in another form.
        response.extensions_mut().insert(self);
        response
    }
}

/// Text for the text of an element. Quotes stay, as in CherryPy's pages: programs look for words that have some.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}
