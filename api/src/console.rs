//! The console: pages of salt-api's own, which build.rs put into the program.

use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

use files::{FILES, VERSION};

mod files {
    include!(concat!(env!("OUT_DIR"), "/console_files.rs"));
}

/// What pages of the console may do: load what salt-api serves, speak to it, and nothing else. No script makes HTML of text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
/// The page. `@STATIC@` in it stands for where its files are, `@ROOT@` for what stands before all paths.
const PAGE: &str = "index.html";

/// Whether this program has the console.
pub fn is_there() -> bool {
    !FILES.is_empty()
}

/// Answers the page. `root` stands before all paths; `files` is the path for files.
pub fn page(headers: &HeaderMap, root: &str, files: &str) -> Response {
    let Some((_, bytes, _)) = find(PAGE) else {
        let text = "This salt-api was built without its console. `make programs` and `make install` build it with one.\n";
        return (StatusCode::NOT_FOUND, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response();
    };
    let tag = format!("\"{VERSION}\"");
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (VARY, HeaderValue::from_static("Accept")),
    ];
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, head, [(ETAG, tag)]).into_response();
    }
    let page = String::from_utf8_lossy(bytes).replace("@STATIC@", &format!("{root}{files}/console/{VERSION}"));
    (head, [(ETAG, tag)], page.replace("@ROOT@", root)).into_response()
}

/// Answers a file, if this program has it in this version.
pub fn file(headers: &HeaderMap, version: &str, name: &str) -> Option<Response> {
    let (name, plain, packed) = find(name).filter(|(name, ..)| version == VERSION && *name != PAGE)?;
    let kind = match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => "image/svg+xml",
    };
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
        (VARY, HeaderValue::from_static("Accept-Encoding")),
    ];
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    Some(if accepted.split(',').any(|coding| coding.trim() == "gzip") {
        (head, [(CONTENT_ENCODING, "gzip")], *packed).into_response()
    } else {
        (head, *plain).into_response()
    })
}

fn find(name: &str) -> Option<&'static (&'static str, &'static [u8], &'static [u8])> {
    FILES.iter().find(|(known, ..)| *known == name)
}
