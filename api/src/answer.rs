//! What goes out: JSON or YAML, as `Accept` asks.

use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use brine_cli::output::{self, Style};
use brine_protocol::text;
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
/// Characters of `Accept` that a refusal repeats.
const SHOWN_MAX: usize = 256;

impl Format {
    /// The form that `Accept` prefers; of equal ones the one that is named more closely, and of such ones YAML, as in Salt.
    ///
    /// # Errors
    /// When it accepts neither.
    pub fn wanted(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut wanted: Option<(f32, String, Self)> = None;
        let given = || headers.get_all(ACCEPT).iter().map(|value| value.to_str().unwrap_or_default());
        for part in given().flat_map(|value| value.split(',')) {
            let mut words = part.split(';').map(str::trim);
            let media = words.next().unwrap_or_default().to_ascii_lowercase();
            let format = match media.as_str() {
                "*/*" | "application/*" | JSON => Self::Json,
                YAML => Self::Yaml,
                _ => continue,
            };
            let quality = words.find_map(|word| word.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
            let Some(quality) = quality.filter(|quality| *quality > 0.0) else { continue };
            // The names' own order: `*/*`, `application/*`, JSON, YAML.
            if wanted.as_ref().is_none_or(|(best, name, _)| (quality, &media) > (*best, name)) {
                wanted = Some((quality, media, format));
            }
        }
        match wanted {
            Some((.., format)) => Ok(format),
            None if given().all(|value| value.trim_matches([' ', ',']).is_empty()) => Ok(Self::Json),
            None => {
                let given = text::short(&given().collect::<Vec<_>>().join(", "), SHOWN_MAX);
                let why = format!(
                    "Your client sent this Accept header: {given}. But this resource only emits these media types: {JSON}, {YAML}."
                );
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
        for json in
            ["application/*, */*", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "application/json, */*"]
        {
            assert_eq!(wanted(json), Ok(Format::Json), "{json}");
        }
        for yaml in [
            "application/x-yaml",
            "Application/X-YAML, */*;q=0.8",
            "application/json;q=0, application/x-yaml",
            "*/*, application/x-yaml",
            "application/*, application/x-yaml",
            "application/json, application/x-yaml",
        ] {
            assert_eq!(wanted(yaml), Ok(Format::Yaml), "{yaml}");
        }
        for neither in ["text/html", "image/png, text/plain", "application/json;q=0", "application/json;q=x"] {
            assert_eq!(wanted(neither), Err(406), "{neither}");
        }
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(&"a".repeat(9_999)).unwrap())]);
        let why = Format::wanted(&headers).unwrap_err();
        assert!(why.message().starts_with("Your client sent this Accept header: aaa") && why.message().len() < 999);
    }
}
