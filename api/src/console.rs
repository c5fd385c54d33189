//! The console: pages of salt-api's own, which build.rs put into the program.

use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// What pages of the console may do: load what salt-api serves, speak to it, and nothing else. No script makes HTML of text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
/// Where the files are, below the page. A folder in there changes with them, so browsers keep them.
pub const FOLDER: &str = "/files";
/// The page. `@STATIC@` in it stands for where its files are, `@ROOT@` for what stands before all paths.
const PAGE: &str = "index.html";

/// Whether this program has the console.
pub fn is_there() -> bool {
    !FILES.is_empty()
}

/// Answers the page. `root` stands before all paths; `path` is the page's own.
pub fn page(headers: &HeaderMap, root: &str, path: &str) -> Response {
    let Some((_, bytes, _)) = find(PAGE) else {
        let text =
            "This salt-api was built without its console. `make programs` and `make install` build it with one.\n";
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
    let page = String::from_utf8_lossy(bytes).replace("@STATIC@", &format!("{root}{path}{FOLDER}/{VERSION}"));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn header<'a>(response: &'a Response, name: &str) -> &'a str {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[test]
    fn files_are_kept_and_pages_asked_for_again() {
        let page = page(&HeaderMap::new(), "/salt", "/app");
        if !is_there() {
            assert_eq!(page.status(), StatusCode::NOT_FOUND);
            return;
        }
        assert_eq!(header(&page, "cache-control"), "no-cache");
        for part in
            ["default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"]
        {
            assert!(header(&page, "content-security-policy").contains(part), "{part}");
        }
        let again = HeaderMap::from_iter([(IF_NONE_MATCH, page.headers()[ETAG].clone())]);
        assert_eq!(super::page(&again, "", "/app").status(), StatusCode::NOT_MODIFIED);
        let script = file(&HeaderMap::new(), VERSION, "main.js").expect("a script");
        assert!(
            header(&script, "cache-control").contains("immutable") && header(&script, "content-encoding").is_empty()
        );
        let packs = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("br, gzip"))]);
        assert_eq!(header(&file(&packs, VERSION, "main.js").expect("a script"), "content-encoding"), "gzip");
        for (version, name) in [("other", "main.js"), (VERSION, "no.js"), (VERSION, PAGE), (VERSION, "../main.js")] {
            assert!(file(&packs, version, name).is_none(), "{version} {name}");
        }
    }

    #[test]
    fn scripts_make_no_html() {
        let own = FILES
            .iter()
            .filter(|(name, ..)| name.ends_with(".js") && !["preact.js", "htm.js", "hooks.js"].contains(name));
        for (name, bytes, _) in own {
            let text = String::from_utf8_lossy(bytes);
            for sink in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"]
            {
                assert!(!text.contains(sink), "{name}: {sink}");
            }
        }
    }
}
