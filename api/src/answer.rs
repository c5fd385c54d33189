//! What goes out: JSON or YAML, as `Accept` asks.

use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use brine_cli::output::{self, Style};
use brine_protocol::value::Value;

use crate::json;
use crate::problem::Problem;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, the default.
    Json,
    /// YAML.
    Yaml,
}

const JSON: &str = "application/json";
const YAML: &str = "application/x-yaml";

impl Format {
    /// The form that `Accept` prefers; the first of equal ones.
    ///
    /// # Errors
    /// When it accepts neither.
    pub fn wanted(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut wanted: Option<(f32, Self)> = None;
        let mut any = false;
        for part in headers.get_all(ACCEPT).iter().flat_map(|value| value.to_str().unwrap_or_default().split(',')) {
            let mut words = part.split(';').map(str::trim);
            let media = words.next().unwrap_or_default().to_ascii_lowercase();
            any |= !media.is_empty();
            let format = match media.as_str() {
                "*/*" | "application/*" | JSON => Self::Json,
                YAML => Self::Yaml,
                _ => continue,
            };
            let quality = words.find_map(|word| word.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
            let Some(quality) = quality.filter(|quality| *quality > 0.0) else { continue };
            if wanted.is_none_or(|(best, _)| quality > best) {
                wanted = Some((quality, format));
            }
        }
        match wanted {
            Some((_, format)) => Ok(format),
            None if !any => Ok(Self::Json),
            None => {
                let why = format!("This resource only emits these media types: {JSON}, {YAML}.");
                Err(Problem::new(StatusCode::NOT_ACCEPTABLE, why))
            }
        }
    }

    /// The answer to a request.
    pub fn answer(self, value: &Value) -> Response {
        let (media, text) = match self {
            Self::Json => (JSON, json::line(value)),
            Self::Yaml => (YAML, output::render("yaml", value, &Style::default()) + "\n"),
        };
        let mut response = text.into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        // Most answers are one caller's own, and some are a token.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_form_is_taken() {
        let wanted = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            Format::wanted(&headers).map_err(|problem| problem.status().as_u16())
        };
        assert_eq!(Format::wanted(&HeaderMap::new()), Ok(Format::Json));
        for json in
            ["", "*/*", "application/json", "text/html, */*;q=0.1", "application/x-yaml;q=0.5, application/json"]
        {
            assert_eq!(wanted(json), Ok(Format::Json), "{json}");
        }
        for yaml in ["application/x-yaml", "Application/X-YAML, */*;q=0.8", "application/json;q=0, application/x-yaml"]
        {
            assert_eq!(wanted(yaml), Ok(Format::Yaml), "{yaml}");
        }
        for neither in ["text/html", "image/png, text/plain", "application/json;q=0", "application/json;q=x"] {
            assert_eq!(wanted(neither), Err(406), "{neither}");
        }
    }
}
